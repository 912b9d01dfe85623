"""Where the facts of one directive live, and how their bytes come and go.

An output that fails half way must not leave half a file where yesterday's whole one was: bytes go
to a temporary name in the same directory, which is renamed into place at the end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, TypeAlias
from uuid import uuid4

from attrs import frozen

from everlog.core.program import Directive, Relation, Row, Value
from everlog.core.program.fact_rows import shown
from everlog.core.program.values import encoded
from everlog.files.rejects import Refuse, abort
from everlog.files.text_values import PARSERS, FactsError, NoSuchFile, encoded_text
from everlog.files.zipped import SUFFIXES, method_of, unzipped, zipped

MODES = ("overwrite", "append", "errorifexists", "ignore")  # Spark's words


@frozen
class Place:
    """A relation, the parameters of its directive, and the directory of facts or of outputs."""

    relation: Relation
    params: Mapping[str, str]
    directory: Path
    null_values: tuple[Value | None, ...] | None = None  # by column, where no parameter says it

    @property
    def name(self) -> str:
        return self.params.get("name", self.relation.name)

    def flag(self, key: str) -> bool:
        value = self.params.get(key, "false")
        if value not in ("true", "false"):
            raise FactsError(f"relation {self.relation.name}: {key}={shown(value)}: known are true, false")
        return value == "true"

    @property
    def nulls(self) -> tuple[Value | None, ...]:
        """What a null becomes in each column, as the parameter `null` says; None where it is a
        mistake.
        """
        if "null" in self.params:
            return null_values(self.relation, self.params["null"])
        return self.null_values or (None,) * self.relation.arity

    @property
    def table(self) -> str:
        """The table of a database that holds the relation."""
        named = (self.params[key] for key in ("dbtable", "table") if key in self.params)
        return next(named, self.name)

    @property
    def table_path(self) -> list[str]:
        """The table with its schema, where one is said: `dbtable="shop.orders"`.  A relation's own
        dot is none.
        """
        return [self.name] if self.table == self.name else self.table.split(".")

    @property
    def mode(self) -> str:
        """What becomes of what is there already: `overwrite` (default), `append`, `errorifexists`,
        `ignore`.
        """
        mode = self.params.get("mode", "overwrite")
        if mode not in MODES:
            raise FactsError(f"relation {self.relation.name}: mode={shown(mode)}: known are {', '.join(MODES)}")
        return mode

    def keeps(self, there: bool, what: object) -> bool:
        """Whether nothing is to be written, since something is there; FactsError if that is one."""
        if there and self.mode == "errorifexists":
            raise FactsError(f"cannot write relation {self.relation.name}: there is {what} already")
        return there and self.mode == "ignore"

    def path(self, suffix: str, *keys: str) -> Path:
        """The file that the first of `keys` names (else `filename`), or the relation's own.

        A relative name is under the directory, an absolute one is taken as it is.
        """
        named = (self.params[key] for key in keys or ("filename",) if key in self.params)
        return self.directory / next(named, self.name + suffix)


def null_values(relation: Relation, text: str) -> tuple[Value | None, ...]:
    """The value that a text is in each column, as in a fact file; None where it is none, FactsError
    if nowhere.

    >>> from everlog.core.program import Column, Kind
    >>> null_values(Relation("r", (Column("x", Kind.NUMBER), Column("y", Kind.SYMBOL))), "none")
    (None, 'none')
    """
    values: list[Value | None] = []
    for column in relation.columns:
        try:
            values.append(PARSERS[column.kind](text))
        except ValueError:
            values.append(None)
    if values and all(value is None for value in values):
        raise FactsError(f"relation {relation.name}: null={shown(text)} is a value of no column of {relation}")
    return tuple(values)


@frozen
class Reading:
    """How facts are to be read: whether they may be missing, what standard input is, who hears of
    bad rows.
    """

    place: Place
    missing_ok: bool = False
    stdin: TextIO | None = None
    refuse: Refuse = abort


Reader: TypeAlias = Callable[[Reading], list[Row]]
Writer: TypeAlias = Callable[[Place, Iterable[Row], TextIO], None]  # the stream is the screen


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_bytes(place: Place, path: Path, missing_ok: bool) -> bytes | None:
    """The bytes of a file, or of its `.gz` or `.zst`, unzipped; None if none exists and that is
    fine.
    """
    for candidate in candidates(path):
        try:
            return unzipped(candidate.read_bytes(), str(candidate))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as problem:
            raise cannot_open(place, path, reason(problem)) from None
    if missing_ok:
        return None
    raise no_such_file(place, path)


def read_stream(stdin: TextIO | None) -> bytes:
    """All that is left on a stream; its bytes where it has any, since text has lost its `\\r`."""
    stream = sys.stdin if stdin is None else stdin
    buffer = getattr(stream, "buffer", None)
    data: bytes = encoded(stream.read()) if buffer is None else buffer.read()
    return unzipped(data, "<stdin>")


def candidates(path: Path) -> list[Path]:
    """Where a file may be: under its name, or compressed under one that says so."""
    return [path, *(path.with_name(path.name + suffix) for suffix in SUFFIXES)] if path.name else [path]


def found(place: Place, path: Path, missing_ok: bool) -> Path | None:
    """The file, which is there; None if it is not and that is fine."""
    if path.exists():
        return path
    if missing_ok:
        return None
    raise no_such_file(place, path)


def no_such_file(place: Place, path: Path) -> NoSuchFile:
    return NoSuchFile(str(cannot_open(place, path, "there is no such file")))


def cannot_open(place: Place, path: Path | str, why: str) -> FactsError:
    return FactsError(f"cannot open fact file {path} of relation {place.relation.name}: {why}")


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_text(place: Place, suffix: str, text: str) -> None:
    """Make a text the content of the file of a directive, compressed as the directive says."""
    method = method_of(place.params)
    ending = next((end for end, name in SUFFIXES.items() if name == method), "")
    path = place.path(suffix + ending)
    if not place.keeps(path.exists(), path):
        write_bytes(path, zipped(encoded_text(text), method, str(path)))


def write_bytes(path: Path, data: bytes) -> None:
    """Make `data` the whole content of a file, or raise and leave the file as it was.

    What is no regular file (`/dev/stdout`, a pipe) is written to, not replaced.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what is to be at `path`: a temporary file beside it that takes its place at
    the end.

    After an error nothing has changed.
    """
    require_directory(path)
    try:
        if path.is_relative_to("/dev") or (path.exists() and not path.is_file()):
            yield path
            return
        target = Path(os.path.realpath(path))
        temporary = target.with_name(f".everlog-{uuid4().hex}.tmp")
        try:
            yield temporary
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as problem:
        raise FactsError(f"cannot write {path}: {reason(problem)}") from None


def require_directory(path: Path) -> None:
    if not path.parent.is_dir():
        raise FactsError(f"cannot write {path}: the directory {path.parent} does not exist")


def require_output_folders(folder: str, outputs: Sequence[Directive]) -> None:
    """The folder of outputs, and those below it that they name: told before anything runs."""
    if outputs and not Path(folder).is_dir():
        what = "is not a directory" if Path(folder).exists() else "does not exist"
        raise FactsError(f"output directory `{folder}` {what}")
    for name in (directive.params.get("filename", "") for directive in outputs):
        if "://" not in name:
            require_directory(Path(folder) / (name or "x"))


def write_stream(stdout: TextIO, text: str) -> None:
    """Write to the screen the same bytes that a file would get, whatever the screen's encoding."""
    data = encoded_text(text)
    buffer = getattr(stdout, "buffer", None)
    if buffer is None:
        stdout.write(text)
        return
    stdout.flush()
    buffer.write(data)
    buffer.flush()


def reason(problem: Exception) -> str:
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)

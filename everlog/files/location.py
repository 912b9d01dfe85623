"""The location of a directive's facts, and atomic writes.

A write that fails must not leave half a file: bytes go to a temporary file in the same directory,
which replaces the target at the end.
"""

from __future__ import annotations

import errno
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

MODES = ("overwrite", "append", "errorifexists", "ignore")  # as in Spark


@frozen
class Place:
    """A relation, the parameters of its directive, and the directory of its file."""

    relation: Relation
    params: Mapping[str, str]
    directory: Path
    null_values: tuple[Value | None, ...] | None = None  # by column, if there is no parameter

    @property
    def name(self) -> str:
        return self.params.get("name", self.relation.name)

    def flag(self, key: str) -> bool:
        value = self.params.get(key, "false")
        if value not in ("true", "false"):
            raise FactsError(f"relation {self.relation.name}: {key}={shown(value)}: use true or false")
        return value == "true"

    @property
    def nulls(self) -> tuple[Value | None, ...]:
        """The value of a null in each column, from the parameter `null`; None: an error."""
        if "null" in self.params:
            return null_values(self.relation, self.params["null"])
        return self.null_values or (None,) * self.relation.arity

    @property
    def table(self) -> str:
        """The database table that holds the relation."""
        named = (self.params[key] for key in ("dbtable", "table") if key in self.params)
        return next(named, self.name)

    @property
    def table_path(self) -> list[str]:
        """The table with its schema, if there is one: `dbtable="shop.orders"`.

        A dot in the relation's own name does not count.
        """
        return [self.name] if self.table == self.name else self.table.split(".")

    @property
    def mode(self) -> str:
        """What to do with existing facts.

        One of `overwrite` (default), `append`, `errorifexists` and `ignore`.
        """
        mode = self.params.get("mode", "overwrite")
        if mode not in MODES:
            raise FactsError(f"relation {self.relation.name}: mode={shown(mode)}: use {', '.join(MODES)}")
        return mode

    def keeps(self, there: bool, what: object) -> bool:
        """Whether to write nothing, since the target exists; FactsError if that is one."""
        if there and self.mode == "errorifexists":
            raise FactsError(f"cannot write relation {self.relation.name}: {what} already exists")
        return there and self.mode == "ignore"

    def path(self, suffix: str, *keys: str) -> Path:
        """The file that the first of `keys`, or `filename`, names; else the relation's.

        A relative name is under the directory, an absolute one is used as it is.
        """
        named = (self.params[key] for key in keys or ("filename",) if key in self.params)
        return self.directory / next(named, self.name + suffix)


def null_values(relation: Relation, text: str) -> tuple[Value | None, ...]:
    """The value of a text in each column, as in a fact file; None if it does not fit.

    Raises FactsError if it fits no column.

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
        raise FactsError(f"relation {relation.name}: null={shown(text)} fits no column of {relation}")
    return tuple(values)


@frozen
class Reading:
    """How to read facts: may the file be missing, standard input, handler of bad rows."""

    place: Place
    missing_ok: bool = False
    stdin: TextIO | None = None
    refuse: Refuse = abort


Reader: TypeAlias = Callable[[Reading], list[Row]]
Writer: TypeAlias = Callable[[Place, Iterable[Row], TextIO], None]  # the stream is standard output


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_bytes(place: Place, path: Path, missing_ok: bool) -> bytes | None:
    """The unzipped bytes of a file, its `.gz` or `.zst`; None if missing."""
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
    """The rest of a stream; its bytes if possible, since text has lost its `\\r`."""
    stream = sys.stdin if stdin is None else stdin
    buffer = getattr(stream, "buffer", None)
    data: bytes = encoded(stream.read()) if buffer is None else buffer.read()
    return unzipped(data, "<stdin>")


def candidates(path: Path) -> list[Path]:
    """The paths of a file: its name, plain or with a suffix of compression."""
    return [path, *(path.with_name(path.name + suffix) for suffix in SUFFIXES)] if path.name else [path]


def found(place: Place, path: Path, missing_ok: bool) -> Path | None:
    """The existing file; None if it is missing and may be."""
    if path.exists():
        return path
    if missing_ok:
        return None
    raise no_such_file(place, path)


def no_such_file(place: Place, path: Path) -> NoSuchFile:
    here = "" if path.is_absolute() or path.parent != Path() else " in the current folder"
    return NoSuchFile(str(cannot_open(place, path, f"there is no such file{here}")))


def cannot_open(place: Place, path: Path | str, why: str) -> FactsError:
    return FactsError(f"cannot open fact file {path} of relation {place.relation.name}: {why}")


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_text(place: Place, suffix: str, text: str) -> None:
    """Write a text to the file of a directive, compressed if the directive says so."""
    method = method_of(place.params)
    ending = next((end for end, name in SUFFIXES.items() if name == method), "")
    path = place.path(suffix + ending)
    if not place.keeps(path.exists(), path):
        write_bytes(path, zipped(encoded_text(text), method, str(path)))


def write_chunks(place: Place, suffix: str, chunks: Iterable[bytes]) -> None:
    """Write bytes to the file of a directive that is not compressed, as they are made."""
    path = place.path(suffix)
    if not place.keeps(path.exists(), path):
        with replacing(path) as temporary, temporary.open("wb") as file:
            file.writelines(chunks)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the content of a file by `data`, or raise and leave it as it was.

    A target that is not a regular file (`/dev/stdout`, a pipe) is written to, not replaced.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to `path` at the end of the block.

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
    """Raise FactsError if a folder of the outputs does not exist."""
    if outputs and not Path(folder).is_dir():
        what = "is not a directory" if Path(folder).exists() else "does not exist"
        raise FactsError(f"output directory `{folder}` {what}")
    for name in (directive.params.get("filename", "") for directive in outputs):
        if "://" not in name:
            require_directory(Path(folder) / (name or "x"))


def write_stream(stdout: TextIO, text: str) -> None:
    """Write to standard output the bytes that a file would get, whatever its encoding.

    A stream without a buffer (`PYTHONUNBUFFERED`) may take only a part, where a signal comes.
    """
    data = encoded_text(text)
    buffer = getattr(stdout, "buffer", None)
    if buffer is None:
        stdout.write(text)
        return
    stdout.flush()
    left = memoryview(data)
    while left:
        taken = buffer.write(left)
        if taken is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[taken:]
    buffer.flush()


def reason(problem: Exception) -> str:
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)

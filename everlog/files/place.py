"""Where the facts of one directive live, and how their bytes come and go.

An output that fails half way must not leave half a file where yesterday's whole one was: bytes go
to a temporary name in the same directory, which is renamed into place at the end.

Reads: values.  Read by: layout, delimited, json, sqlite, dispatch.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from attrs import frozen

from everlog.core.program import Relation
from everlog.core.values import encoded
from everlog.files.values import FactsError, NoSuchFile, encoded_text

_GZIP = b"\x1f\x8b"


@frozen
class Place:
    """A relation, the parameters of its directive, and the directory of facts or of outputs."""

    relation: Relation
    params: Mapping[str, str]
    directory: Path

    @property
    def name(self) -> str:
        return self.params.get("name", self.relation.name)

    def flag(self, key: str) -> bool:
        return self.params.get(key) == "true"

    def path(self, suffix: str, *keys: str) -> Path:
        """The file that the first of `keys` names (else `filename`), or the relation's own.

        A relative name is under the directory, an absolute one is taken as it is.
        """
        named = (self.params[key] for key in keys or ("filename",) if key in self.params)
        return self.directory / next(named, self.name + suffix)


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_bytes(place: Place, path: Path, missing_ok: bool) -> bytes | None:
    """The bytes of a file, or of its `.gz`, unzipped; None if neither exists and that is fine."""
    for candidate in (path, path.with_name(path.name + ".gz")) if path.name else (path,):
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


def unzipped(data: bytes, source: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as problem:
        raise FactsError(f"{source}: begins like a gzip file but is not one: {problem}") from None


def no_such_file(place: Place, path: Path) -> NoSuchFile:
    return NoSuchFile(str(cannot_open(place, path, "there is no such file")))


def cannot_open(place: Place, path: Path | str, why: str) -> FactsError:
    return FactsError(f"cannot open fact file {path} of relation {place.relation.name}: {why}")


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_bytes(path: Path, data: bytes) -> None:
    """Make `data` the whole content of a file, or raise and leave the file as it was.

    What is no regular file (`/dev/stdout`, a pipe) is written to, not replaced.
    """
    require_directory(path)
    try:
        if path.is_relative_to("/dev") or (path.exists() and not path.is_file()):
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except (OSError, ValueError) as problem:
        raise FactsError(f"cannot write {path}: {reason(problem)}") from None


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".everlog-{uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def require_directory(path: Path) -> None:
    if not path.parent.is_dir():
        raise FactsError(f"cannot write {path}: the directory {path.parent} does not exist")


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

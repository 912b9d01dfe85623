"""Versioned relations as Parquet files: one rename commits a batch.

    FOLDER/commits/7.json          version 7: the location and size of each table, its batches
    FOLDER/tables/7/…              the tables that version 7 wrote; others are in older folders
    FOLDER/changes/7/RELATION      the changes of version 7: the columns, and `sign` (+1 or -1)

The state is the newest commit.  When all that it names is on the disk, its file is written under
another name, synced and renamed: before the rename the state is the old one, after it the new one,
and the next writer removes what a crash has left in `tables` and `changes` without a commit.  A
commit names its batches, so a repeated batch changes nothing.

The driver and all executors must see the folder, on a file system with an atomic rename: a local
disk, or a mounted shared one.  A system lock on `writer.lock` admits one writer at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from everlog.core.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StateError(RuntimeError):
    """A folder is not a state of this program, or another process writes it."""


@frozen
class Table:
    """The location of a table, relative to the folder, and its number of rows."""

    place: str
    size: int


@frozen
class Commit:
    version: int
    program: str
    tables: Mapping[str, Table] = field(factory=dict)
    batches: tuple[str, ...] = ()

    def text(self) -> str:
        tables = {name: [table.place, table.size] for name, table in self.tables.items()}
        held = {"version": self.version, "program": self.program, "tables": tables, "batches": list(self.batches)}
        return json.dumps(held, ensure_ascii=False, indent=1)

    @staticmethod
    def read(path: Path) -> Commit:
        held = json.loads(path.read_text(encoding="utf-8"))
        tables = {name: Table(place, size) for name, (place, size) in held["tables"].items()}
        return Commit(held["version"], held["program"], tables, tuple(held["batches"]))


def fingerprint(program: Program) -> str:
    """A hash of the relations and rules of a program, without their places in a text."""
    parts = [*map(str, program.relations.values()), *map(str, program.rules), *map(str, program.subsumptions)]
    parts += [f"{name} {sorted(map(repr, rows))}" for name, rows in sorted(program.facts.items())]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


class Folder:
    """The state of one program.

    Invariant: `commit` is the newest in the folder, and every table that it names is complete.
    """

    def __init__(self, path: str | Path, program: Program) -> None:
        self.path = Path(path).absolute()
        self._program = fingerprint(program)
        (self.path / "commits").mkdir(parents=True, exist_ok=True)
        self.commit = self._newest()
        if self.commit.program != self._program:
            raise StateError(f"{self.path} is the state of another program: its relations or rules differ")

    def refresh(self) -> None:
        """Load the newest commit, which another process may have written."""
        self.commit = self._newest()

    def _newest(self) -> Commit:
        while found := self._versions():
            try:
                return Commit.read(self.path / "commits" / f"{max(found)}.json")
            except FileNotFoundError:
                continue  # removed since the listing
        return Commit(0, self._program)

    def _versions(self) -> list[int]:
        return [int(path.stem) for path in (self.path / "commits").glob("*.json") if path.stem.isdigit()]

    def read(self, spark: SparkSession, table: Table, schema: str) -> DataFrame:
        """The rows of a table, lazily, with the given schema."""
        return spark.read.schema(schema).parquet(str(self.path / table.place))

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """A new version; `Writing.commit` makes it the state."""
        with self._locked():
            self.refresh()
            self._sweep()
            yield Writing(self)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the system lock; it ends with the process.  Its file names the holder."""
        import fcntl

        handle = os.open(self.path / "writer.lock", os.O_CREAT | os.O_RDWR, 0o666)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(handle, 100).decode("utf-8", "replace") or "another process"
                raise StateError(f"{self.path} is being written by {owner}") from None
            except OSError as problem:
                raise StateError(f"{self.path} cannot be locked: {problem.strerror}") from None
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
            yield
        finally:
            os.close(handle)

    def _sweep(self) -> None:
        """Remove unfinished versions, and tables that the last two commits do not name.

        So the files of a reader stay until the second batch after it.
        """
        before = self.path / "commits" / f"{self.commit.version - 1}.json"
        kept = [self.commit, *([Commit.read(before)] if before.exists() else [])]
        used = {Path(table.place).parts[1] for commit in kept for table in commit.tables.values()}
        for kind in ("tables", "changes"):
            for folder in (self.path / kind).glob("*"):
                newer = folder.name.isdigit() and int(folder.name) > self.commit.version
                if newer or (kind == "tables" and folder.name not in used):
                    shutil.rmtree(folder, ignore_errors=True)
        for old in (self.path / "commits").glob("*"):
            if old.suffix != ".json" or int(old.stem) < self.commit.version - 1:
                old.unlink(missing_ok=True)


class Writing:
    """The next version of a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.version = folder.commit.version + 1
        self.tables = dict(folder.commit.tables)

    def write(self, name: str, frame: DataFrame) -> Table:
        """Write a table of the new version."""
        place = f"tables/{self.version}/{_file_name(name)}"
        table = Table(place, _written(frame, self.folder.path / place))
        self.tables[name] = table
        return table

    def tell(self, relation: str, frame: DataFrame) -> int:
        """Write the changes of a relation."""
        return _written(frame, self.changes / _file_name(relation))

    @property
    def changes(self) -> Path:
        return self.folder.path / "changes" / str(self.version)

    def commit(self, batch: str) -> Commit:
        """Make this version the state, once its tables are on the disk."""
        for kind in ("tables", "changes"):
            _sync(self.folder.path / kind / str(self.version))
        old = self.folder.commit
        new = Commit(self.version, old.program, self.tables, (*old.batches, batch))
        path = self.folder.path / "commits" / f"{self.version}.json"
        draft = path.with_suffix(".draft")
        with open(draft, "w", encoding="utf-8") as file:
            file.write(new.text())
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        _sync_one(path.parent)
        self.folder.commit = new
        return new


def _sync(folder: Path) -> None:
    """Sync all files in a folder, and their directory entries."""
    for place, _, files in os.walk(folder):
        for name in files:
            _sync_one(Path(place) / name)
        _sync_one(Path(place))
    if folder.exists():
        _sync_one(folder.parent)


def _sync_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _written(frame: DataFrame, place: Path) -> int:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    frame.observe(seen, F.count(F.lit(1)).alias("size")).write.mode("overwrite").parquet(str(place))
    return int(seen.get["size"])


def _file_name(name: str) -> str:
    """A name as a folder name, with unusual characters as numbers."""
    return "".join(c if c.isalnum() or c in "_.- " else f"%{ord(c):x}" for c in name).replace(" ", "+")

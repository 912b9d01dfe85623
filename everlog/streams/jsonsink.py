"""Debezium's lines as a sink: to a file, to standard output or a pipe, to sockets.

A file is a history: the sum of its events is the relation as last written.  So after any
interruption (a crash, other rules), opening the file again appends the difference as one
transaction, and nothing is lost or written twice.  An incomplete transaction at the end, from a
crash, is removed first.

A pipe or a socket has no memory.  Each reader first gets the current relations: a transaction in
which each table is emptied (`t`) and read (`r`).
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.core.program import Relation, Row
from everlog.core.program.values import decoded
from everlog.files.location import reason, require_directory
from everlog.files.text_values import FactsError
from everlog.streams.debezium import (
    BEGINNING,
    Event,
    Marker,
    decode,
    event_value,
    row_changes,
    row_object,
    transaction_text,
)
from everlog.streams.model import RowChange
from everlog.streams.naming import Naming
from everlog.streams.sockets import Address


class _JsonSink:
    """The relations to write, and the lines of a step."""

    def __init__(self, relations: Sequence[str], naming: Naming) -> None:
        self.positions: Mapping[str, str] = {}
        self._naming = naming
        self._relations = [naming.relations[name] for name in relations]
        self._number = 0

    def _text(self, changes: Changes, positions: Mapping[str, str]) -> str:
        """The lines of a step; empty if it changed none of the relations."""
        events = [
            (relation, change)
            for relation in self._relations
            if changes[relation.name]
            for change in self._events(relation, changes.deleted(relation.name), changes.inserted(relation.name))
        ]
        return self._numbered(events, positions) if events else ""

    def _events(
        self, relation: Relation, gone: Sequence[Row], new: Sequence[Row], op: str = "c"
    ) -> list[RowChange]:
        return list(row_changes(relation, gone, new, self._naming.keys.get(relation.name, ()), op))

    def _numbered(
        self, events: Iterable[tuple[Relation, RowChange]], positions: Mapping[str, str], snapshot: bool = False
    ) -> str:
        self._number += 1
        return transaction_text(str(self._number), events, positions, snapshot)

    def _snapshot(self, database: Database) -> str:
        """The current relations, for a reader that may have old ones."""
        events: list[tuple[Relation, RowChange]] = []
        for relation in self._relations:
            events.append((relation, RowChange(relation.name, "t")))
            for row in database.rows(relation.name):
                events.append((relation, RowChange(relation.name, "r", None, row_object(relation, row))))
        return self._numbered(events, database.positions, snapshot=True)

    def fileno(self) -> int | None:
        return None

    def attend(self, database: Database) -> None:
        pass

    def settle(self, positions: Mapping[str, str]) -> None:
        pass


class FileSink(_JsonSink):
    """A file to which transactions are appended."""

    def __init__(self, path: Path, relations: Sequence[str], naming: Naming) -> None:
        super().__init__(relations, naming)
        self._path = path
        self._told_so_far: dict[str, dict[Row, None]] = {relation.name: {} for relation in self._relations}
        require_directory(path)
        try:
            self._file = path.open("r+b" if path.exists() else "w+b")
        except OSError as problem:
            raise FactsError(f"cannot write {path}: {reason(problem)}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read_back()
        except BlockingIOError:
            self._file.close()
            raise FactsError(f"cannot write {path}: another everlog writes to it") from None
        except BaseException:
            self._file.close()
            raise

    def _read_back(self) -> None:
        """Sum up the file's events, and cut off an incomplete end; refuse other files."""
        offset = complete = 0
        pending: list[RowChange] = []
        begun = False
        for number, line in enumerate(self._file, start=1):
            whole = line.endswith(b"\n")
            try:
                if not begun and not _may_begin(decoded(line)):
                    raise ValueError("a transaction should begin here")
                begun = True
                if not whole:
                    break
                offset += len(line)
                match decode(decoded(line), number):
                    case Event(change=change, connector="everlog"):
                        pending.append(change)
                    case Marker(begins=False) as end:
                        self._add_up(pending)
                        pending, complete, begun = [], offset, False
                        self._number, self.positions = int(end.id), end.positions
                    case Event():
                        raise ValueError("a change from another program")
            except ValueError as problem:
                raise FactsError(f"{self._path}:{number}: not written by everlog: {problem}") from None
        self._file.truncate(complete)
        self._file.seek(complete)

    def _add_up(self, changes: Iterable[RowChange]) -> None:
        for change in changes:
            relation = next((of for of in self._relations if of.name == change.table), None)
            if relation is not None:
                rows = self._told_so_far[relation.name]
                if change.before is not None:
                    rows.pop(_row(relation, change.before), None)
                if change.after is not None:
                    rows[_row(relation, change.after)] = None

    def open(self, database: Database) -> None:
        events: list[tuple[Relation, RowChange]] = []
        fresh = self._number == 0
        for relation in self._relations:
            before, now = self._told_so_far.pop(relation.name), list(database.rows(relation.name))
            new = [row for row in now if row not in before]
            gone = set(before).difference(now)
            changes = self._events(relation, [row for row in before if row in gone], new, "r" if fresh else "c")
            events += [(relation, change) for change in changes]
        if events:
            self._add(self._numbered(events, database.positions, snapshot=fresh))
        self.positions = database.positions

    def write(self, changes: Changes, positions: Mapping[str, str]) -> None:
        text = self._text(changes, positions)
        if text:
            self._add(text)
            self.positions = positions

    def _add(self, text: str) -> None:
        try:
            self._file.write(text.encode())
            self._file.flush()
        except OSError as problem:
            raise FactsError(f"cannot write {self._path}: {reason(problem)}") from None

    def close(self) -> None:
        self._file.close()


def _may_begin(line: str) -> bool:
    """Whether a line is the first of our transactions, or what a crash has left of it."""
    return line.startswith(BEGINNING) or BEGINNING.startswith(line)


def _row(relation: Relation, values: Mapping[str, object]) -> Row:
    """A row from the file; ValueError if the relation has changed."""
    if set(values) != {column.name for column in relation.columns}:
        raise ValueError(f"a row of {relation.name} has the columns {', '.join(values)}, but now {relation}")
    return tuple(event_value(column.kind, values[column.name]) for column in relation.columns)


class PipeSink(_JsonSink):
    """Standard output, a pipe or a socket: one reader, which first gets a snapshot."""

    def __init__(
        self, opened: Callable[[], int], name: str, relations: Sequence[str], naming: Naming, snapshot: bool
    ) -> None:
        super().__init__(relations, naming)
        self._opened, self._name, self._with_snapshot = opened, name, snapshot
        self._descriptor = -1

    def open(self, database: Database) -> None:
        self._descriptor = self._opened()
        if self._with_snapshot:
            self._add(self._snapshot(database))

    def write(self, changes: Changes, positions: Mapping[str, str]) -> None:
        self._add(self._text(changes, positions))

    def _add(self, text: str) -> None:
        data = memoryview(text.encode())
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            if self._descriptor == 1:
                raise
            raise FactsError(f"the reader of {self._name} has closed it") from None
        except OSError as problem:
            raise FactsError(f"cannot write to {self._name}: {reason(problem)}") from None

    def close(self) -> None:
        if self._descriptor > 2:
            os.close(self._descriptor)


class ListenSink(_JsonSink):
    """A listening socket; each reader gets a snapshot, and then the changes."""

    def __init__(self, address: Address, relations: Sequence[str], naming: Naming, snapshot: bool) -> None:
        super().__init__(relations, naming)
        self._address, self._with_snapshot = address, snapshot
        self._listening = address.listen()
        self._peers: list[socket.socket] = []

    def open(self, database: Database) -> None:
        self.attend(database)

    def fileno(self) -> int | None:
        return self._listening.fileno()

    def attend(self, database: Database) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except BlockingIOError:
                return
            peer.setblocking(True)
            if self._send(peer, self._snapshot(database) if self._with_snapshot else ""):
                self._peers.append(peer)

    def write(self, changes: Changes, positions: Mapping[str, str]) -> None:
        text = self._text(changes, positions) if self._peers else ""
        if text:
            self._peers = [peer for peer in self._peers if self._send(peer, text)]

    @staticmethod
    def _send(peer: socket.socket, text: str) -> bool:
        try:
            peer.sendall(text.encode())
        except OSError:  # the reader has gone
            peer.close()
            return False
        return True

    def close(self) -> None:
        for end in (*self._peers, self._listening):
            end.close()
        if self._address.path is not None:
            Path(self._address.path).unlink(missing_ok=True)

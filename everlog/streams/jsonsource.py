"""Debezium's lines as a source: from a file, a pipe or a socket.

The position in a file is the offset after the last complete transaction, with a checksum of the
bytes before it, so that a replaced file is noticed.  A pipe or a socket has no position: the sender
decides where to begin, and repeated events change nothing.

Lines may contain anything.  A line that is not a change event, and a transaction that does not fit
its END, are refused: they go to the rejects and are skipped for good, or else end the stream with
an error; earlier complete transactions are applied first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from everlog.api.database import Database
from everlog.core.program.values import decoded
from everlog.files.rejects import BadRow, Refuse
from everlog.files.text.encodings import MARK, wrong_byte
from everlog.files.text_values import FactsError
from everlog.streams.debezium import decode
from everlog.streams.grouping import Group, Grouper
from everlog.streams.lines import LONGEST, FileLines, Line, Lines
from everlog.streams.model import RowChange, Transaction
from everlog.streams.naming import Naming


class _Refused(Exception):
    """The reason why a line is not a change event."""


class JsonSource:
    """A stream of change events from the lines of `opened`, or of the file at `path`."""

    def __init__(
        self,
        name: str,
        naming: Naming,
        refuse: Refuse,
        *,
        opened: Callable[[], Lines] | None,
        path: Path,
        live: bool = False,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self.name = name
        self._naming, self._refuse, self._tell = naming, refuse, tell
        self._opened, self._path, self._live = opened, path, live
        self._lines: Lines | None = None
        self._file: FileLines | None = None
        self._grouper = Grouper(self._relation_of)
        self._failure: FactsError | None = None
        self._ended = self._cut = False

    def open(self, database: Database) -> None:
        if self._opened is not None:
            self._lines = self._opened()
            return
        position = database.positions.get(self.name)
        found = _read(position)
        self._lines = self._file = FileLines(self._path, self._live, found["offset"], found["lines"])
        if position is not None and not self._is_ours(found):
            self._file.close()
            raise FactsError(
                f"{self._path} is not the file that was read up to byte {found['offset']}: it was replaced or cut;"
                " start with another database, or give the file another name"
            )
        self._grouper = Grouper(self._relation_of, dict(found["done"]))

    def _is_ours(self, found: dict[str, Any]) -> bool:
        return self._file is not None and self._file.sum_before(found["offset"]) == found["sum"]

    def take(self) -> Sequence[Transaction] | None:
        assert self._lines is not None
        if self._failure is not None:
            raise self._failure
        if self._ended:
            return None
        lines = self._lines.take()
        groups: list[Group] = []
        try:
            for group in self._taken(lines or ()):
                if group.problem:
                    self._refuse_all(group.problem, group.number, group.changes)
                groups.append(group)
        except FactsError as problem:
            if not groups:
                raise
            self._failure = problem  # raised after what came before it
        self._ended = lines is None
        return [self._transaction(group) for group in groups]

    def _taken(self, lines: Sequence[Line]) -> Iterator[Group]:
        """The transactions that these lines complete.

        If the last line is refused, an empty group after it has the position.
        """
        refused = False
        for line in lines:
            bad = False
            try:
                yield from self._groups(line)
            except _Refused as problem:
                bad = True
                self._refuse(BadRow(self.name, line.number, str(problem), decoded(line.data), "line"))
                self._grouper.lose()
            refused = bad or (refused and not line.data)
            if refused and line is lines[-1]:
                yield from self._grouper.here(line.end, line.number)
            if line.is_last:
                yield from self._left_by(line)

    def _left_by(self, line: Line) -> Iterator[Group]:
        """End what has no markers, unless its last line was cut: the sender has gone."""
        if not self._cut:
            yield from self._grouper.finish(line.end, line.number)
            for short in self._grouper.short():  # a file is read again from there, and may have grown
                self._refuse_all(*short)
        self._tell_incomplete()
        self._grouper.drop()
        self._cut = False

    def _groups(self, line: Line) -> Iterator[Group]:
        if line.is_too_long:
            raise _Refused(f"a line has more than {LONGEST} bytes")
        text = decoded(line.data.removeprefix(MARK) if line.begin == 0 else line.data)
        if not text.strip():
            return
        try:
            wrong = None if text.isascii() else wrong_byte(text)
            if wrong is not None:
                raise ValueError(wrong.partition(";")[0])  # no parameter can set another encoding here
            entry = decode(text, line.number)
        except ValueError as problem:
            if not line.is_cut:
                raise _Refused(str(problem)) from None
            self._cut = True
            return
        if entry is not None:
            yield from self._grouper.add(entry, line.begin, line.end, line.number)

    def _refuse_all(self, problem: str, number: int, changes: Sequence[RowChange]) -> None:
        """Refuse the changes of a transaction that does not fit its END on this line."""
        if number not in {change.number for change in changes}:
            self._refuse(BadRow(self.name, number, problem, None, "line"))
        for change in changes:
            values = change.after if change.after is not None else change.before
            self._refuse(BadRow(self.name, change.number, problem, values, "line"))

    def _relation_of(self, table: str) -> str | None:
        relation = self._naming.relation_of(table)
        return None if relation is None else relation.name

    def _transaction(self, group: Group) -> Transaction:
        position = None
        if self._file is not None:
            found = {"offset": group.offset, "lines": group.lines, "done": list(group.finished.items())}
            position = json.dumps({**found, "sum": self._file.sum_before(group.offset)})
        return Transaction(() if group.problem else group.changes, position, self.name)

    def _tell_incomplete(self) -> None:
        for name, count in self._grouper.incomplete:
            if self._tell is not None:
                self._tell(f"{self.name} ends within the transaction {name!r}: its {count} change(s) are skipped")

    def fileno(self) -> int | None:
        return None if self._lines is None else self._lines.fileno()

    def has_begun(self) -> bool:
        return True  # there is no snapshot to wait for

    def is_before(self, position: str | None, other: str) -> bool:
        wanted = _read(other)
        if self._file is None or not self._is_ours(wanted):
            return False
        found = _read(position)
        return bool((found["offset"], len(found["done"])) < (wanted["offset"], len(wanted["done"])))

    def done(self, position: str) -> None:
        pass  # a file keeps its content

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


def _read(position: str | None) -> dict[str, Any]:
    """A position: the offset, the lines before it, and what is done behind it."""
    found: dict[str, Any] = {"offset": 0, "lines": 0, "done": []} if position is None else json.loads(position)
    return found

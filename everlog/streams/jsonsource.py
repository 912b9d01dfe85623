"""Debezium's lines as a source: from a file, a pipe or a socket.

The position of a file is the offset behind the last complete transaction, with a sum over the bytes before it, so
that a file which was replaced in the meantime is noticed.  A pipe or a socket has no position: whoever sends there
decides where to begin, and what comes twice changes nothing.

Reads: streams.debezium, grouping, lines, naming.  Read by: streams.addresses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from everlog.core.values import decoded
from everlog.database import Database
from everlog.files.encodings import MARK, wrong_byte
from everlog.files.rejects import BadRow, Refuse
from everlog.files.values import FactsError
from everlog.streams.debezium import decode
from everlog.streams.grouping import Group, Grouper
from everlog.streams.lines import FileLines, Line, Lines
from everlog.streams.model import Transaction
from everlog.streams.naming import Naming


class JsonSource:
    """A stream of change events.  `opened` gives its lines; without it, they are those of the file at `path`."""

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
        self._grouper = Grouper(self._known)
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
                " begin with another database, or give the file another name"
            )
        self._grouper = Grouper(self._known, frozenset(found["done"]))

    def _is_ours(self, found: dict[str, Any]) -> bool:
        return self._file is not None and self._file.sum_before(found["offset"]) == found["sum"]

    def take(self) -> Sequence[Transaction] | None:
        assert self._lines is not None
        if self._ended:
            return None
        lines = self._lines.take()
        groups: list[Group] = []
        for line in lines or ():
            groups += self._groups(line)
            if line.is_last:
                groups += self._left_by(line)
        self._ended = lines is None
        return [self._transaction(group) for group in groups]

    def _left_by(self, line: Line) -> list[Group]:
        """Whoever sent has gone: what has no markers ends here, unless its last line was cut."""
        groups = [] if self._cut else list(self._grouper.finish(line.end, line.number))
        self._tell_incomplete()
        self._grouper.drop()
        self._cut = False
        return groups

    def _groups(self, line: Line) -> list[Group]:
        text = decoded(line.data.removeprefix(MARK) if line.begin == 0 else line.data)
        if not text.strip():
            return []
        try:
            wrong = None if text.isascii() else wrong_byte(text)
            if wrong is not None:
                raise ValueError(wrong.partition(";")[0])  # there is no parameter to say another encoding by
            entry = decode(text, line.number)
        except ValueError as problem:
            if line.is_cut:
                self._cut = True
                return []
            self._refuse(BadRow(self.name, line.number, str(problem), text, "line"))
            self._grouper.lose()
            return []
        return [] if entry is None else list(self._grouper.add(entry, line.begin, line.end, line.number))

    def _known(self, table: str) -> bool:
        return self._naming.relation_of(table) is not None

    def _transaction(self, group: Group) -> Transaction:
        position = None
        if self._file is not None:
            found = {"offset": group.offset, "lines": group.lines, "done": sorted(group.finished)}
            position = json.dumps({**found, "sum": self._file.sum_before(group.offset)})
        return Transaction(group.changes, position, self.name)

    def _tell_incomplete(self) -> None:
        for name, count in self._grouper.incomplete:
            if self._tell is not None:
                self._tell(f"{self.name} ends within the transaction {name!r}: its {count} change(s) are left out")

    def fileno(self) -> int | None:
        return None if self._lines is None else self._lines.fileno()

    def has_begun(self) -> bool:
        return True  # it begins with nothing

    def is_before(self, position: str | None, other: str) -> bool:
        wanted = _read(other)
        if self._file is None or not self._is_ours(wanted):
            return False
        found = _read(position)
        return bool((found["offset"], len(found["done"])) < (wanted["offset"], len(wanted["done"])))

    def done(self, position: str) -> None:
        pass  # a file keeps what it has

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


def _read(position: str | None) -> dict[str, Any]:
    """A position, with the offset where to go on, the lines before it, and what is done behind it."""
    found: dict[str, Any] = {"offset": 0, "lines": 0, "done": []} if position is None else json.loads(position)
    return found

"""Fact files that change while a program runs: each change becomes one step.

The files are polled: modification time, size and inode show whether one has changed.  A file may be
half written, so it is read only when two polls in a row see the same file (four times as long if it
does not end with a newline), and the rows count only if the file is unchanged after the reading.
Files that change together become one step.  A file that is wrong or missing is reported, and its
facts stay as they were.

A row that has left its file is deleted, unless the program's text states it too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import NoReturn, TextIO, TypeAlias

from attrs import define

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.core.program import Directive, Program, Row
from everlog.core.program.executor import InsertOnly, Update
from everlog.core.program.values import EvaluationError
from everlog.files import read_facts
from everlog.files.formats import format_of
from everlog.files.text_values import FactsError
from everlog.files.zipped import SUFFIXES

Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]  # per file: name, time, size, inode
UNENDED = 4  # a file without a final newline must stay unchanged for this many polls
_PATIENT = 20  # polls after which complete files no longer wait for incomplete ones


@define
class _Source:
    """One `.input` directive and its files."""

    directive: Directive
    taken: Signature  # as of the last reading, or of the last failure
    latest: Signature  # as of the last poll
    since: float  # when `latest` was first seen
    rows: set[Row]


class FactFiles:
    """The files of a program's `.input` directives; `look` applies what has changed.

    `pause` is the time between two polls.  `tell` receives messages about rejected rows.
    """

    def __init__(
        self,
        program: Program,
        folder: Path,
        *,
        missing_ok: bool = False,
        pause: float = 0.5,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self._program, self._folder = program, folder
        self._missing_ok, self.pause, self._tell = missing_ok, pause, tell
        self._sources: list[_Source] = []
        self._waiting_since: float | None = None

    def begin(self, reading: Callable[[str, int, int], None]) -> dict[str, list[Row]]:
        """Read all files for the first time and return their rows by relation.

        `reading` receives the relation being read, the number read so far, and the total.
        """
        given: dict[str, list[Row]] = {}
        inputs = self._program.inputs
        for number, directive in enumerate(inputs):
            reading(directive.relation, number, len(inputs))
            before = signature(self._program, directive, self._folder)
            rows = self._read(directive)
            given.setdefault(directive.relation, []).extend(rows)
            if is_followed(directive):
                self._sources.append(_Source(directive, before, before, 0.0, set(rows)))
        return given

    def _read(self, directive: Directive) -> list[Row]:
        relation = self._program.relations[directive.relation]
        return read_facts(
            relation,
            directive.params,
            self._folder,
            missing_ok=self._missing_ok,
            stdin=sys.stdin,
            tell=self._tell,
        )

    def look(self, database: Database, now: float, complain: Callable[[str], None]) -> Changes | None:
        """Apply the complete changes as one step; None if there are none."""
        ready, unsettled = [], False
        for source in self._sources:
            latest = signature(self._program, source.directive, self._folder)
            if latest != source.latest:
                source.latest, source.since = latest, now
            if latest != source.taken:
                if now - source.since >= self.pause * (1 if _is_ended(latest) else UNENDED):
                    ready.append(source)
                else:
                    unsettled = True
        if not ready:
            return None
        if self._waiting_since is None:
            self._waiting_since = now
        if unsettled and now - self._waiting_since < self.pause * _PATIENT:
            return None
        self._waiting_since = None
        return self._apply(database, ready, complain)

    def _apply(self, database: Database, ready: list[_Source], complain: Callable[[str], None]) -> Changes | None:
        read: list[tuple[_Source, set[Row]]] = []
        for source in ready:
            try:
                rows = set(self._read(source.directive))
            except FactsError as problem:
                source.taken = source.latest
                complain(f"{problem}\nthe facts of `{source.directive.relation}` stay as they were")
                continue
            if signature(self._program, source.directive, self._folder) == source.latest:
                source.taken = source.latest
                read.append((source, rows))
        step = self._step(read)
        if not step:
            for source, rows in read:
                source.rows = rows
            return None
        try:
            changes = database.apply(step)
        except (EvaluationError, InsertOnly, MemoryError) as problem:
            complain(f"{problem if str(problem) else 'out of memory'}\nthe step is skipped")
            return None
        for source, rows in read:
            source.rows = rows
        return changes

    def _step(self, read: list[tuple[_Source, set[Row]]]) -> list[Update]:
        """The updates that lead from the old rows to the new ones.

        Several files may hold rows of one relation.
        """
        new = {id(source): rows for source, rows in read}
        step: list[Update] = []
        for name in dict.fromkeys(source.directive.relation for source, _ in read):
            own = [source for source in self._sources if source.directive.relation == name]
            before = set[Row]().union(*(source.rows for source in own))
            after = set[Row]().union(*(new.get(id(source), source.rows) for source in own))
            stated = set(self._program.facts.get(name, ()))
            step += [Update(name, row, insert=False) for row in before - after - stated]
            step += [Update(name, row) for row in after - before]
        return step


def follow_files(files: FactFiles, database: Database, tell: Callable[[Changes], None], err: TextIO) -> NoReturn:
    """Poll the files until an exception such as Ctrl-C; report errors and go on."""

    def complain(why: object) -> None:
        print(f"error: {why}", file=err, flush=True)

    while True:
        sleep(files.pause)
        changes = files.look(database, monotonic(), complain)
        if changes is not None:
            try:
                tell(changes)
            except FactsError as problem:  # an output cannot be written: try again at the next change
                complain(problem)


def is_followed(directive: Directive) -> bool:
    """Whether a directive reads a file, which may change, rather than a stream."""
    way = format_of(directive.params)
    if way in ("postgres", "jdbc"):
        return False
    return way != "stdin" and (way != "json" or "filename" in directive.params)


def signature(program: Program, directive: Directive, folder: Path) -> Signature:
    """The names, times, sizes and inodes of a directive's files."""
    found = []
    for path in _candidates(program, directive, folder):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _candidates(program: Program, directive: Directive, folder: Path) -> Iterator[Path]:
    """The files that a directive may read, by its `filename` or its relation's name."""
    params = directive.params
    named = [params[key] for key in ("filename", "dbname") if key in params]
    for name in named:
        for more in ("", *SUFFIXES, "-wal", "-journal"):
            yield folder / (name + more)
    if not named:
        own = params.get("name", program.relations[directive.relation].name) + "."
        rejects = folder / params.get("rejects", "")  # an output of the reading, not an input
        try:
            yield from sorted(path for path in folder.iterdir() if path.name.startswith(own) and path != rejects)
        except OSError:
            return


def _is_ended(files: Signature) -> bool:
    """Whether every file is empty or ends with a newline."""
    for name, _, size, _ in files:
        try:
            with open(name, "rb") as file:
                if size and file.seek(size - 1) >= 0 and file.read(1) != b"\n":
                    return False
        except OSError:
            return False
    return True

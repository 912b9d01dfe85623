"""Fact files that change while a program lives: each change becomes one step.

Files are looked at from time to time, by their time, size and identity.  Somebody may be writing
one just then: a file is read when it has stayed the same from one look to the next, longer if it
does not end with a line, and what was read counts only if the file is still the same afterwards.
Files that change together are taken together.  A file that is wrong, or gone, is told, and its
facts stay as they were.

What a file had and has no more is deleted, unless the program's text states it, too.
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
from everlog.files.formats import way_of
from everlog.files.text_values import FactsError
from everlog.files.zipped import SUFFIXES

Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]  # of each file: name, time, size, identity
UNENDED = 4  # times as long is a file left alone that does not end with a line
_PATIENT = 20  # looks, after which files that are ready no longer wait for others


@define
class _Source:
    """One `.input` directive and its files."""

    directive: Directive
    taken: Signature  # what was last read, or refused
    latest: Signature  # what was last seen,
    since: float  # and since when
    rows: set[Row]


class FactFiles:
    """The files of a program's `.input` directives; `look` finds what has changed, and applies it.

    `pause` is the time between two looks; `tell` hears of rows that went to a file of rejects.
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
        """Read all files for the first time; the rows to give to the database.

        `reading` hears which relation is being read, after how many of how many.
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
        """Apply what has changed and is complete, as one step; None if there is nothing."""
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
        """The updates from what the files had to what they have; several may give facts to one
        relation.
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
    """Look at the files again and again, until an exception ends it; what goes wrong is told, and
    it goes on.
    """

    def complain(why: object) -> None:
        print(f"error: {why}", file=err, flush=True)

    while True:
        sleep(files.pause)
        changes = files.look(database, monotonic(), complain)
        if changes is not None:
            try:
                tell(changes)
            except FactsError as problem:  # an output cannot be written: perhaps the next time
                complain(problem)


def is_followed(directive: Directive) -> bool:
    """Whether the facts of a directive come from a file, which may change, rather than from a
    stream.
    """
    way = way_of(directive.params)
    if way in ("postgres", "jdbc"):
        return False
    return way != "stdin" and (way != "json" or "filename" in directive.params)


def signature(program: Program, directive: Directive, folder: Path) -> Signature:
    """What can be seen of a directive's files without reading them."""
    found = []
    for path in _candidates(program, directive, folder):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _candidates(program: Program, directive: Directive, folder: Path) -> Iterator[Path]:
    """The files that a directive may read: those it names, or those that are named as its relation
    is.
    """
    params = directive.params
    named = [params[key] for key in ("filename", "dbname") if key in params]
    for name in named:
        for more in ("", *SUFFIXES, "-wal", "-journal"):
            yield folder / (name + more)
    if not named:
        own = params.get("name", program.relations[directive.relation].name) + "."
        rejects = folder / params.get("rejects", "")  # which reading writes
        try:
            yield from sorted(path for path in folder.iterdir() if path.name.startswith(own) and path != rejects)
        except OSError:
            return


def _is_ended(files: Signature) -> bool:
    """Whether every file ends with a line; an empty one does."""
    for name, _, size, _ in files:
        try:
            with open(name, "rb") as file:
                if size and file.seek(size - 1) >= 0 and file.read(1) != b"\n":
                    return False
        except OSError:
            return False
    return True

"""The past of a database: states, differences, changes, and live readers.

The log holds net changes of base facts, so the base facts after any step are the current ones with
later steps undone.  The program of that step derives the rest; from one past state to a later one
the engine goes step by step, as it did originally.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.api.changes import Changes
from everlog.api.database import Database, Functions
from everlog.api.live import LiveText, with_functors
from everlog.core.engine import Engine
from everlog.core.program import Program, Relation, Row
from everlog.core.program.fact_rows import declared
from everlog.core.runtime.guards import Limits
from everlog.store import log
from everlog.store.errors import NoSuchStep, ReadOnly
from everlog.store.log import Entry
from everlog.store.program_text import program_of, restored, saved
from everlog.store.records import Change, applied, combined, undone
from everlog.store.recovery import contents_of

if TYPE_CHECKING:
    from everlog.store.durable_database import DurableDatabase


@frozen
class Past:
    """A past step that changed a relation."""

    step: int
    time: datetime
    changes: Changes

    def __str__(self) -> str:
        return f"step {self.step}\n{self.changes}"


@frozen
class Logged:
    """A step as the log has it: deleted and inserted base facts by relation, counted."""

    step: int
    time: datetime
    given: Mapping[str, tuple[int, int]]
    program: bool  # whether it changed the program


def logged(database: DurableDatabase, after: int, upto: int) -> list[Logged]:
    """The steps after one up to another, in order."""
    with database._file.reading() as connection:
        found = list(log.entries(connection, after, upto))
    return [
        Logged(
            entry.step,
            datetime.fromtimestamp(entry.time / 1000, UTC),
            {name: (len(gone), len(came)) for name, (gone, came) in entry.change.items() if gone or came},
            entry.program is not None,
        )
        for entry in found
    ]


# ── states ───────────────────────────────────────────────────────────────────────────────────


@frozen
class Moment:
    """A past state, not computed yet, and the steps from there to a later one.

    Creating it needs the database; using it does not.
    """

    step: int
    text: str
    given: Mapping[str, Collection[Row]]
    later: list[Entry]
    functors: Functions
    strategies: Mapping[str, str]
    limits: Limits

    def database(self) -> Database:
        """A database in memory with the past state."""
        written = restored(self.text)
        program = with_functors(program_of(written), self.functors)
        given = {name: rows for name, rows in self.given.items() if name in program.relations and rows}
        engine = Engine(program, given=given, limits=self.limits, strategies=self.strategies)
        live = written if isinstance(written, LiveText) else None
        return Database._of(engine, live, self.functors, self.strategies)

    def as_of(self) -> Database:
        """The same, read-only."""
        past = self.database()
        past._writer.state.shut(ReadOnly, f"this is the past state after step {self.step}: it cannot be changed")
        return past


def moment(database: DurableDatabase, step: int, upto: int | None = None) -> Moment:
    """The state after a step; NoSuchStep if the step is in the future or not kept."""
    upto, file = step if upto is None else upto, database._file
    with file.reading() as connection:
        file.find_oldest(connection)  # the writer may have dropped some since
        for number in (step, upto):
            if number > database.step:
                raise NoSuchStep(f"there is no step {number} yet: the last one is {database.step}")
            if number < file.oldest:
                raise NoSuchStep(
                    f"the state after step {number} is not kept: history goes back to step {file.oldest}"
                )
        later = list(log.entries(connection, step, database.step))
        _, text = log.program_at(connection, step)
    now = {name: database._engine.given(name) for name in database.program.relations}
    then = applied(now, [undone(entry.change) for entry in reversed(later)])
    given = {name: list(rows) for name, rows in then.items()}
    return Moment(
        step,
        text,
        given,
        later[: upto - step],
        database._functors,
        database._strategies,
        database.limits,
    )


def advance(past: Database, entries: Iterable[Entry]) -> None:
    """Apply log entries to a past state."""
    waiting: list[Change] = []
    for entry in entries:
        if entry.program is None:
            waiting.append(entry.change)
            continue
        past._engine.change(combined(waiting))
        waiting.clear()
        _switch_program(past, entry.program)
    past._engine.change(combined(waiting))


def _switch_program(database: Database, text: str) -> Changes:
    """Switch to another program, with the same strategies and functors."""
    written = restored(text)
    program = with_functors(program_of(written), database._functors)
    with database._engine.guard:
        changes = database._writer.follow(database._engine.change_program, program)
        database._live = written if isinstance(written, LiveText) else None
        database._prepare()
    return changes


# ── differences ──────────────────────────────────────────────────────────────────────────────


def difference(moment: Moment, backwards: bool, relation: str | None) -> Changes:
    """The facts that a later state gained and lost; `backwards` swaps the two."""
    past = moment.database()
    relations = dict(past.relations)
    old = _views(past, relation)
    advance(past, moment.later)
    relations |= past.relations
    if relation is not None:
        declared(relations, relation)
    new = _views(past, relation)
    if backwards:
        old, new = new, old
    signed = {name: _signed(old.get(name, frozenset()), new.get(name, frozenset())) for name in relations}
    return Changes({name: rows for name, rows in signed.items() if rows}, relations)


def _views(database: Database, relation: str | None) -> dict[str, frozenset[Row]]:
    names = database.relations if relation is None else {relation} & database.relations.keys()
    return {name: database._engine.view(name) for name in names}


def _signed(old: frozenset[Row], new: frozenset[Row]) -> dict[Row, int]:
    return dict.fromkeys(old - new, -1) | dict.fromkeys(new - old, 1)


def of_relation(moment: Moment, relation: str) -> list[Past]:
    """The steps that changed a relation."""
    program = program_of(restored(moment.text))
    found = program.relations.get(relation)
    if found is not None and all(entry.program is None for entry in moment.later) and _is_base(program, found):
        steps = [(entry, _signed_rows(entry.change.get(relation))) for entry in moment.later]
        return [_past(entry, Changes({relation: rows}, {relation: found})) for entry, rows in steps if rows]
    past = moment.database()
    known = dict(past.relations)
    out = []
    for step in steps_from(moment, past):
        known |= past.relations
        if relation in step.changes:
            out.append(Past(step.step, step.time, step.changes.only((relation,))))
    declared(known, relation)
    return out


def steps_from(moment: Moment, past: Database | None = None) -> Iterator[Past]:
    """The steps from a past state to the later one, with all changes.

    `past` is the past state, if it is computed already.
    """
    past = moment.database() if past is None else past
    for entry in moment.later:
        if entry.program is None:
            yield _past(entry, Changes(past._engine.change(entry.change), past.relations))
        else:
            yield _past(entry, _switch_program(past, entry.program))


def _is_base(program: Program, relation: Relation) -> bool:
    """Whether a relation has only base facts, so that nothing needs to be computed."""
    derived = {rule.head.relation for rule in program.rules} | {s.dominated.relation for s in program.subsumptions}
    special = relation.equivalence or relation.choices or relation.auxiliary_of
    return relation.name not in derived and relation.name not in program.limits and not special


def _signed_rows(change: tuple[list[Row], list[Row]] | None) -> dict[Row, int]:
    return {} if change is None else dict.fromkeys(change[0], -1) | dict.fromkeys(change[1], 1)


def _past(entry: Entry, changes: Changes) -> Past:
    return Past(entry.step, datetime.fromtimestamp(entry.time / 1000, UTC), changes)


# ── following a writer ───────────────────────────────────────────────────────────────────────


def follow(reader: DurableDatabase) -> Changes:
    """Repeat what the writer has done since; the sum of the changes."""
    file = reader._file
    file.require_place()
    with file.reading() as connection:  # one transaction: the writer may drop steps in between
        file.find_steps(connection)
        dropped = file.oldest > reader._step
        entries = [] if dropped else list(log.entries(connection, reader._step, file.step))
    total: dict[str, dict[Row, int]] = {}
    relations = dict(reader.relations)
    for changes in _whole(reader) if dropped else _steps(reader, entries):
        relations |= reader.relations
        _add(total, changes)
        reader._writer.notify(changes)
    reader._writer.changes = Changes({name: rows for name, rows in total.items() if rows}, relations)
    return reader._writer.changes


def _steps(reader: DurableDatabase, entries: Iterable[Entry]) -> Iterator[Changes]:
    """Apply steps one by one; after an error the reader is at the last good one."""
    for entry in entries:
        if entry.program is None:
            changes = reader._writer.follow(reader._engine.change, entry.change)
        else:
            changes = _switch_program(reader, entry.program)
        reader._step = entry.step
        yield changes


def _whole(reader: DurableDatabase) -> Iterator[Changes]:
    """Load the current content of the file, since steps in between were dropped."""
    contents = contents_of(reader._file)
    if contents.text != saved(reader._live if reader._live is not None else reader.program):
        yield _switch_program(reader, contents.text)
    then = applied(contents.given, contents.changes)
    net: Change = {}
    for name in reader.program.relations:
        now, new = reader._engine.given(name), dict.fromkeys(then.get(name, ()))
        net[name] = [row for row in now if row not in new], [row for row in new if row not in now]
    changes = reader._writer.follow(reader._engine.change, {name: both for name, both in net.items() if any(both)})
    reader._step = reader._file.step
    yield changes


def _add(total: dict[str, dict[Row, int]], changes: Mapping[str, Mapping[Row, int]]) -> None:
    for name in changes:
        rows = total.setdefault(name, {})
        for row, sign in changes[name].items():
            if rows.pop(row, sign) == sign:
                rows[row] = sign

"""One database in a file under random moves, closed, opened, compacted and read.

The model is the list of all past states: base facts, rules, and what follows by the reference
evaluator.  After each move the database is in the last one, memory and file agree, and every state
of the history is unchanged.  A move that fails, because of a rule or the disk, has changed nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from everlog import Database, DatalogError, EvaluationError, RuleError, Update
from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.dsl.check import compile_text
from everlog.store.durable_database import DurableDatabase
from everlog.store.errors import AlreadyOpen, NoSuchStep, NotWritten

BASE = """.decl e(x:number, y:number)
.decl v(x:number)
.decl w(x:symbol, y:float)
.decl p(x:number, y:number)
.decl q(x:number, y:number) eqrel
.decl r(x:number)
.decl m(x:number, n:number)"""
RULES = [
    "p(x, y) :- e(x, y).",
    "p(x, z) :- p(x, y), e(y, z).",
    "p(x, 12 / y) :- e(x, y), v(y).",
    "q(x, y) :- p(x, y), v(x).",
    "r(x) :- v(x), !p(x, _).",
    "r(x) :- q(x, y), m(y, n), n > 1.",
    "r((x + 1) % 7) :- r(x).",
    "m(x, n) :- v(x), n = count : { p(x, _) }.",
    "m(x, n) :- e(x, _), n = sum y : { e(x, y) }.",
    ".decl more(x:number, y:symbol)  more(x, y) :- v(x), w(y, _).",
    "e(1, 2).",
    "v(3).",
]
rows = {
    "e": st.tuples(*[st.integers(0, 4)] * 2),
    "v": st.tuples(st.integers(0, 4)),
    "w": st.tuples(st.sampled_from(["", "é", "\udc80", "a\0"]), st.sampled_from([0.0, 0.5, float("inf")])),
    "p": st.tuples(*[st.integers(0, 4)] * 2),
}
updates = st.sampled_from("eeevwp").flatmap(lambda n: st.builds(Update, st.just(n), rows[n], st.booleans()))


@frozen
class State:
    """What was after a step."""

    given: dict[str, frozenset[Row]]
    statements: tuple[str, ...]

    def views(self) -> dict[str, set[Row]]:
        return {name: set(rows) for name, rows in _evaluated(self.statements, tuple(self.given.items())).items()}


@lru_cache(maxsize=512)
def _compiled(statements: tuple[str, ...]) -> Program:
    return compile_text("\n".join([BASE, *statements]))


@lru_cache(maxsize=512)
def _evaluated(statements: tuple[str, ...], given: tuple[tuple[str, Any], ...]) -> dict[str, frozenset[Row]]:
    return dict(reference.evaluate(evolve(_compiled(statements), facts={}), dict(given)))


class BrokenDisk:
    """Nothing can be written."""

    def __init__(self, step: int) -> None:
        self.step = step

    def write(self, *given: object, **more: object) -> None:
        raise NotWritten("broken")

    write_positions = write


class DurableMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(prefix="everlog-laws-"))
        self.path = self.folder / "data.db"
        self.db = Database.open(self.path, text=BASE)
        self.reader: DurableDatabase | None = None
        self.past = [State({name: frozenset() for name in self.db.relations}, ())]
        self.oldest = 0
        self.positions: dict[str, str] = {}

    def teardown(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.db.close()
        shutil.rmtree(self.folder)

    @property
    def now(self) -> State:
        return self.past[-1]

    def attempt(self, after: State, move: Callable[[], object], *failures: type[Exception]) -> bool:
        """Make a move to a state, in one step, or in none if it is the same; or fail."""
        try:
            move()
        except failures:
            return False
        if after != self.now:
            self.past.append(after)
        return True

    def changed(self, step: list[Update]) -> State:
        given = {name: set(rows) for name, rows in self.now.given.items()}
        for update in step:
            (given[update.relation].add if update.insert else given[update.relation].discard)(update.row)
        return evolve(self.now, given={name: frozenset(rows) for name, rows in given.items()})

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    @rule(update=updates)
    def single(self, update: Update) -> None:
        write = self.db.insert if update.insert else self.db.delete
        self.attempt(self.changed([update]), lambda: write(update.relation, update.row), EvaluationError)

    @rule(step=st.lists(updates, max_size=6))
    def several(self, step: list[Update]) -> None:
        self.attempt(self.changed(step), lambda: self.db.apply(step), EvaluationError)

    @rule(many=st.sets(rows["e"], min_size=12), insert=st.booleans())
    def many(self, many: set[Row], insert: bool) -> None:
        write = self.db.insert if insert else self.db.delete
        step = [Update("e", row, insert) for row in many]
        self.attempt(self.changed(step), lambda: write("e", many), EvaluationError)

    @rule(step=st.lists(updates, max_size=4), fails=st.booleans())
    def transaction(self, step: list[Update], fails: bool) -> None:
        def move() -> None:
            with self.db.transaction() as tx:
                tx.apply(step)
                if fails:
                    raise ZeroDivisionError

        self.attempt(self.changed(step), move, EvaluationError, ZeroDivisionError)

    @rule(step=st.lists(updates, max_size=2), position=st.integers(0, 9).map(str))
    def from_a_source(self, step: list[Update], position: str) -> None:
        positions = {"source": position}
        if self.attempt(self.changed(step), lambda: self.db.apply(step, positions=positions), EvaluationError):
            self.positions = positions

    # ── rules ────────────────────────────────────────────────────────────────────────────────

    @rule(text=st.sampled_from(RULES))
    def add(self, text: str) -> None:
        given = dict(self.now.given)
        if text[1] == "(" and text.endswith(").") and ":-" not in text:
            given[text[0]] |= {tuple(map(int, text[2:-2].split(",")))}
        if text.startswith(".decl"):
            given["more"] = frozenset()
        after = State(given, (*self.now.statements, text))
        if self.attempt(after, lambda: self.db.add_rule(text), EvaluationError, DatalogError):
            assert self.now is after, "a change of the program is a step"

    @precondition(lambda self: any(not s.startswith(".decl") for s in self.now.statements))
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from([s for s in self.now.statements if not s.startswith(".decl")]))
        given = dict(self.now.given)
        if ":-" not in text:
            given[text[0]] -= {tuple(map(int, text[2:-2].split(",")))}
        after = State(given, tuple(s for s in self.now.statements if s != text))
        self.attempt(after, lambda: self.db.drop_rule(text), EvaluationError, DatalogError, RuleError)

    # ── disks ────────────────────────────────────────────────────────────────────────────────

    @rule(step=st.lists(updates, min_size=1, max_size=30))
    def broken_disk(self, step: list[Update]) -> None:
        with self.broken():
            if self.changed(step) != self.now:
                with pytest.raises((NotWritten, EvaluationError)):
                    self.db.apply(step)
            else:
                self.db.apply(step)

    @rule(text=st.sampled_from(RULES))
    def broken_disk_and_rules(self, text: str) -> None:
        with self.broken(), pytest.raises((NotWritten, EvaluationError, DatalogError)):
            self.db.add_rule(text)

    @contextmanager
    def broken(self) -> Iterator[None]:
        self.db._writer.keep_in(BrokenDisk(self.db.step))
        try:
            yield
        finally:
            self.db._writer.keep_in(self.db._file)

    # ── files ────────────────────────────────────────────────────────────────────────────────

    @rule(look_inside=st.booleans())
    def reopen(self, look_inside: bool) -> None:
        rules = dict(self.db.rules)
        self.db.close()
        self.db = Database.open(self.path)
        assert dict(self.db.rules) == rules
        if look_inside:  # which wakes the engine
            self.db._engine.check()

    @rule()
    def crash(self) -> None:
        """What is on disk is opened elsewhere, while this one goes on."""
        other = self.folder / "crashed"
        other.mkdir()
        for suffix in ("", "-wal"):
            if Path(f"{self.path}{suffix}").exists():
                shutil.copy(f"{self.path}{suffix}", other / f"data.db{suffix}")
        with Database.open(other / "data.db") as crashed:
            assert self.shown(crashed) == self.now.views()
            assert crashed.step == self.db.step
        shutil.rmtree(other)

    @rule(history=st.sampled_from(["all", 0, 1, 3, 10]), state=st.sampled_from([None, True, False]))
    def checkpoint(self, history: int | str, state: bool | None) -> None:
        self.db.checkpoint(history=history, state=state)
        if isinstance(history, int):
            self.oldest = max(self.oldest, len(self.past) - 1 - history)

    @rule()
    def second_writer(self) -> None:
        with pytest.raises(AlreadyOpen):
            Database.open(self.path)

    @rule()
    def look(self) -> None:
        """A reader begins, or follows."""
        if self.reader is None:
            self.reader = Database.open(self.path, read_only=True)
        else:
            before = self.shown(self.reader)
            changes = self.reader.refresh()
            for name in changes:
                after = (before.get(name, set()) - set(changes.deleted(name))) | set(changes.inserted(name))
                assert after == set(self.reader.view(name)) if name in self.reader.relations else not after
        assert self.shown(self.reader) == self.now.views()
        assert dict(self.reader.rules) == dict(self.db.rules)

    # ── the past ─────────────────────────────────────────────────────────────────────────────

    @rule(data=st.data())
    def as_of(self, data: st.DataObject) -> None:
        step = data.draw(st.integers(max(0, self.oldest - 1), len(self.past)))
        if self.oldest <= step < len(self.past):
            assert self.shown(self.db.as_of(step)) == self.past[step].views()
        else:
            with pytest.raises(NoSuchStep):
                self.db.as_of(step)

    @rule(data=st.data())
    def diff(self, data: st.DataObject) -> None:
        steps = st.integers(self.oldest, len(self.past) - 1)
        before, after = data.draw(steps), data.draw(steps)
        old, new = self.past[before].views(), self.past[after].views()
        changes = self.db.diff(before, after)
        for name in old.keys() | new.keys():
            gone, came = old.get(name, set()) - new.get(name, set()), new.get(name, set()) - old.get(name, set())
            assert dict(changes.get(name, {})) == dict.fromkeys(gone, -1) | dict.fromkeys(came, 1)

    @rule(name=st.sampled_from("epm"))
    def history(self, name: str) -> None:
        expected = {}
        for step in range(self.oldest + 1, len(self.past)):
            old, new = self.past[step - 1].views()[name], self.past[step].views()[name]
            if old != new:
                expected[step] = dict.fromkeys(old - new, -1) | dict.fromkeys(new - old, 1)
        assert {entry.step: dict(entry.changes[name]) for entry in self.db.history(name)} == expected

    # ── always ───────────────────────────────────────────────────────────────────────────────

    def shown(self, database: Database) -> dict[str, set[Row]]:
        return {name: set(database.view(name)) for name in database.relations}

    @invariant()
    def is_as_the_model_says(self) -> None:
        assert self.db.step == len(self.past) - 1
        assert self.db.oldest == self.oldest
        assert self.db.positions == self.positions
        assert self.shown(self.db) == self.now.views()
        assert {name: frozenset(self.db.given(name)) for name in self.db.relations} == self.now.given


class TestDurable(DurableMachine.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


@pytest.mark.deep
class TestDurableDeeply(DurableMachine.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(max_examples=400, stateful_step_count=50, deadline=None)

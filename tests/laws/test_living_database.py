"""One database, in which facts, rules, declarations and subscribers come and go.

The model is a list of statements and the base facts; the reference evaluator derives the rest.
After each move every relation agrees with it, subscribers got exactly the changes, and the
invariants of the engine hold.  A move that fails has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from last_steps import assert_explained

from everlog import (
    Changes,
    Database,
    DatalogError,
    EvaluationError,
    LimitExceeded,
    Limits,
    NestedWrite,
    RuleError,
    Update,
)
from everlog.api.subscriptions import Subscription
from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.core.proofs import verify
from everlog.dsl.check import compile_text

BASE = [".decl e(x:number, y:number)", ".decl v(x:number)"]
DECLARATIONS = {
    "p": [".decl p(x:number, y:number)", ".decl p(x:number, y:number) choice-domain x", ".decl p(x:number)"],
    "q": [".decl q(x:number, y:number)", ".decl q(x:number, y:number) eqrel", ".decl q(x:number, y:number) btree"],
    "r": [".decl r(x:number)"],
    "m": [".decl m(x:number, n:number)", ".decl m(x:number, n:number) choice-domain n"],
    "n": [".decl n(i:number, x:number)"],
}
RULES = [
    "p(x, y) :- e(x, y).",
    "p(x, z) :- p(x, y), e(y, z).",
    "p(x, z) :- p(x, y), p(y, z).",
    "p(x) :- v(x), e(x, _).",
    "p(x, y) :- q(x, y), !v(x).",
    "p(x, 12 / y) :- e(x, y).",
    "q(x, y) :- e(x, y), v(x).",
    "q(x, y) :- p(x, y), p(y, x).",
    "q(x, z) :- q(x, y), e(y, z), z < 3.",
    "q(x, x) :- r(x).",
    "r(x) :- v(x), !p(x, _).",
    "r(x) :- p(x, y), !p(y, x).",
    "r(y) :- r(x), e(x, y).",
    "r(x) :- q(x, y), m(y, n), n > 1.",
    "r(x + 1) :- r(x), v(x).",
    "r((x + 1) % 7) :- r(x), x < 9.",
    "m(x, n) :- v(x), n = count : { p(x, _) }.",
    "m(x, n) :- e(x, _), n = sum y : { e(x, y) }.",
    "m(x, n) :- v(x), n = count : { e(y, z), z > x }.",
    "m(x, n) :- q(x, _), n = max y : { q(x, y), !v(y) }.",
    "n(autoinc(), x) :- v(x).",
    "n(autoinc(), x) :- r(x), !v(x).",
    "n(i, y) :- n(i, x), e(x, y).",
    "r(i) :- n(i, x), x != 1.",
    ".limitsize q(n=5)",
]
FACTS = ["e(1, 2).", "e(2, 2).", "v(3).", "p(4, 4).", "r(0).", "q(0, 4)."]
NUMBERS = range(5)

updates = st.tuples(st.sampled_from("eeeevvpqrmn"), st.tuples(*[st.sampled_from(NUMBERS)] * 2), st.booleans())


@lru_cache(maxsize=256)
def compiled(text: str) -> Program:
    return compile_text(text)


class LivingDatabase(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.statements = [*BASE, *(forms[0] for forms in DECLARATIONS.values())]
        self.db = Database.from_text("\n".join(self.statements), limits=Limits(facts=3000))
        self.given: dict[str, set[Row]] = {name: set() for name in self.db.relations}
        self.heard: dict[Subscription, dict[str, set[Row]]] = {}
        self.silent: list[tuple[dict[str, set[Row]], dict[str, set[Row]]]] = []  # of who has been cancelled
        self.listen("*")

    # ── the model ────────────────────────────────────────────────────────────────────────────

    def views(self) -> dict[str, set[Row]]:
        return {name: set(self.db.view(name)) for name in self.db.relations}

    def fitting(self, step: Iterable[tuple[str, Row, bool]]) -> list[Update]:
        """Updates that fit the current columns; those of dropped relations are removed."""
        return [
            Update(name, row[: self.db.relations[name].arity], insert)
            for name, row, insert in step
            if name in self.db.relations
        ]

    def changed(self, step: Iterable[Update]) -> dict[str, set[Row]]:
        given = {name: set(rows) for name, rows in self.given.items()}
        for update in step:
            (given[update.relation].add if update.insert else given[update.relation].discard)(update.row)
        return given

    def attempt(self, move: Callable[[], object], *failures: type[Exception]) -> bool:
        """Make a move; if it fails, it has left no trace."""
        before = self.views(), dict(self.db.rules), list(self.db.relations), self.db.changes
        try:
            move()
        except failures:
            assert (self.views(), dict(self.db.rules), list(self.db.relations), self.db.changes) == before
            return False
        return True

    def step(self, step: list[Update], move: Callable[[], object]) -> None:
        if self.attempt(move, EvaluationError):
            self.given = self.changed(step)

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    @initialize(step=st.lists(updates, max_size=8))
    def load(self, step: list[tuple[str, Row, bool]]) -> None:
        fitting = [Update(u.relation, u.row) for u in self.fitting(step)]
        self.step(fitting, lambda: self.db.apply(fitting))

    @rule(update=updates)
    def single(self, update: tuple[str, Row, bool]) -> None:
        for one in self.fitting([update]):
            write = self.db.insert if one.insert else self.db.delete
            self.step([one], lambda one=one, write=write: write(one.relation, one.row))  # type: ignore[misc]

    @rule(step=st.lists(updates, min_size=2, max_size=6))
    def several(self, step: list[tuple[str, Row, bool]]) -> None:
        fitting = self.fitting(step)
        self.step(fitting, lambda: self.db.apply(fitting))

    @rule(rows=st.sets(st.sampled_from(list(product(NUMBERS, NUMBERS))), min_size=8), insert=st.booleans())
    def many(self, rows: set[Row], insert: bool) -> None:
        write = self.db.insert if insert else self.db.delete
        self.step([Update("e", row, insert) for row in rows], lambda: write("e", rows))

    @rule(step=st.lists(updates, max_size=4), fails=st.booleans())
    def transaction(self, step: list[tuple[str, Row, bool]], fails: bool) -> None:
        fitting = self.fitting(step)

        def move() -> None:
            with self.db.transaction() as tx:
                before = self.db.view("e")
                for number, update in enumerate(fitting):
                    collects: Any = tx if number % 2 else self.db  # what the thread writes elsewhere joins it
                    (collects.insert if update.insert else collects.delete)(update.relation, update.row)
                with pytest.raises(NestedWrite):
                    self.db.add_rule("v(1).")
                assert self.db.view("e") == before
                if fails:
                    raise ZeroDivisionError

        if self.attempt(move, EvaluationError, ZeroDivisionError):
            assert not fails
            self.given = self.changed(fitting)

    # ── rules and declarations ───────────────────────────────────────────────────────────────

    @rule(text=st.sampled_from(RULES))
    def add(self, text: str) -> None:
        if self.attempt(lambda: self.db.add_rule(text), EvaluationError, DatalogError):
            self.statements.append(text)

    @rule(texts=st.lists(st.sampled_from(RULES), min_size=2, max_size=4, unique=True))
    def add_several(self, texts: list[str]) -> None:
        if self.attempt(lambda: self.db.add_rule("\n".join(texts)), EvaluationError, DatalogError):
            self.statements += texts

    @rule(text=st.sampled_from(FACTS))
    def add_fact(self, text: str) -> None:
        if self.attempt(lambda: self.db.add_rule(text), EvaluationError, DatalogError):
            self.statements.append(text)
            self.given[text[0]].add(_row(text))

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        there = [s for s in self.statements if not s.startswith(".decl")]
        text = data.draw(st.sampled_from(sorted(set(there)) or RULES))
        if self.attempt(lambda: self.db.drop_rule(text), EvaluationError, DatalogError, RuleError):
            assert text in there
            self.statements = [s for s in self.statements if s != text]
            if text in FACTS:
                self.given[text[0]].discard(_row(text))
        else:
            assert text not in FACTS or text not in there

    @precondition(lambda self: self.db.rules)
    @rule(data=st.data())
    def drop_by_name(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.db.rules)))
        text = self.db.rules[name]
        twins = [n for n, written in self.db.rules.items() if written == text]
        if len(twins) == 1 and self.attempt(lambda: self.db.drop_rule(name), EvaluationError):
            self.statements.remove(text)

    @rule(name=st.sampled_from(sorted(DECLARATIONS)), form=st.integers(0, 2))
    def declare(self, name: str, form: int) -> None:
        if name in self.db.relations:
            with pytest.raises(DatalogError):
                self.db.add_rule(DECLARATIONS[name][0])
            return
        text = DECLARATIONS[name][form % len(DECLARATIONS[name])]
        self.db.add_rule(text)
        self.statements.append(text)
        self.given[name] = set()

    @rule(name=st.sampled_from(sorted(DECLARATIONS)))
    def drop_relation(self, name: str) -> None:
        if self.attempt(lambda: self.db.drop_relation(name), DatalogError, RuleError):
            gone = f"{name}(", f".decl {name}(", f".limitsize {name}("
            self.statements = [s for s in self.statements if not s.startswith(gone)]
            del self.given[name]

    # ── who listens ──────────────────────────────────────────────────────────────────────────

    @rule(relation=st.sampled_from(["*", "e", "p", "q", "r"]))
    def listen(self, relation: str) -> None:
        if relation != "*" and relation not in self.db.relations:
            return
        known = {name: rows for name, rows in self.views().items() if relation in ("*", name)}

        def hear(changes: Changes) -> None:
            for name in changes:
                assert relation in ("*", name)
                rows = known.setdefault(name, set())
                assert rows.isdisjoint(changes.inserted(name)), "told twice"
                assert rows.issuperset(changes.deleted(name)), "told of what was not there"
                rows.difference_update(changes.deleted(name))
                rows.update(changes.inserted(name))
            assert changes == self.db.changes.only([relation] if relation != "*" else list(self.db.changes))

        self.heard[self.db.subscribe(relation, hear)] = known

    @precondition(lambda self: len(self.heard) > 1)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        subscription = data.draw(st.sampled_from(list(self.heard)))
        subscription.cancel()
        known = self.heard.pop(subscription)
        self.silent.append((known, {name: set(rows) for name, rows in known.items()}))

    @rule(step=st.lists(updates, min_size=1, max_size=3))
    def fail_while_listening(self, step: list[tuple[str, Row, bool]]) -> None:
        fitting = self.fitting(step)
        calls: list[Changes] = []

        def fail(changes: Changes) -> None:
            calls.append(changes)
            with pytest.raises(NestedWrite):
                self.db.delete("v", (1,))
            raise ZeroDivisionError

        def move() -> None:
            with self.db.subscribe(None, fail):
                failed = False
                try:
                    self.db.apply(fitting)
                except ExceptionGroup as group:
                    failed = group.subgroup(ZeroDivisionError) is not None
                assert calls == ([self.db.changes] if failed else [])

        self.step(fitting, move)

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    @rule(
        name=st.sampled_from("epqrmn"), args=st.tuples(*[st.sampled_from(["0", "1", "2", "3", "x", "y", "_"])] * 2)
    )
    def query(self, name: str, args: tuple[str, ...]) -> None:
        if name not in self.db.relations:
            return
        args = args[: self.db.relations[name].arity]
        found = [
            row
            for row in self.db.view(name)
            if all(not a.isdigit() or int(a) == x for a, x in zip(args, row, strict=True))
            and not ("x" in args and args.count("x") == 2 and row[0] != row[1])
            and not ("y" in args and args.count("y") == 2 and row[0] != row[1])
        ]
        text = f"{name}({', '.join(args)})"
        assert self.db.facts(text) == found
        places = [args.index(variable) for variable in dict.fromkeys(a for a in args if a in ("x", "y"))]
        assert self.db.query(text) == sorted({tuple(row[place] for place in places) for row in found})

    @rule(data=st.data())
    def prove(self, data: st.DataObject) -> None:
        facts = [(name, row) for name in self.db.relations for row in self.db.view(name)]
        if facts:
            name, row = data.draw(st.sampled_from(facts))
            assert self.db.holds(name, row)
            verify(self.db._engine, self.db.why(name, row))
        assert all(name in self.db.explain() and name in str(self.db.stats()) for name in self.db.relations)

    # ── always ───────────────────────────────────────────────────────────────────────────────

    @invariant()
    def every_relation_is_what_the_reference_says(self) -> None:
        program = compiled("\n".join(self.statements))
        expected = reference.evaluate(evolve(program, facts={}), self.given)
        assert {name: set(self.db.given(name)) for name in self.db.relations} == self.given
        assert self.views() == {name: set(rows) for name, rows in expected.items()}

    @invariant()
    def whoever_listens_knows(self) -> None:
        now = self.views()
        for subscription, known in self.heard.items():
            names = now if subscription.relation is None else [subscription.relation]
            assert {n: known.get(n, set()) for n in names} == {n: now.get(n, set()) for n in names}
            assert not any(rows for name, rows in known.items() if name not in now)
        assert all(known == then for known, then in self.silent)

    @invariant()
    def the_engine_is_sound(self) -> None:
        self.db._engine.check()
        assert_explained(self.db._engine)


def _row(text: str) -> Row:
    return tuple(int(part) for part in text[2:-2].split(","))


_asked = settings().max_examples
LivingDatabase.TestCase.settings = settings(
    max_examples=25 if _asked <= 60 else _asked // 5, stateful_step_count=25 if _asked <= 60 else 40, deadline=None
)
TestLivingDatabase: Any = LivingDatabase.TestCase


def test_a_step_past_a_limit_is_refused_in_a_live_database() -> None:
    db = Database.from_text(".decl n(x:number)", limits=Limits(iterations=100))
    db.insert("n", (1,))
    with pytest.raises(LimitExceeded):
        db.add_rule("n(x + 1) :- n(x).")
    assert db.view("n") == [(1,)]
    assert not db.rules


def test_a_fact_of_the_text_that_was_deleted_comes_back_when_it_is_stated_again() -> None:
    db = Database.from_text(".decl n(x:number)  n(1).")
    db.delete("n", (1,))
    assert db.add_rule("n(1).") == {"n": {(1,): 1}}

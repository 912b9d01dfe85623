"""Practical systems: the query's answer, and changes that sum to the state."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Program
from everlog.dsl.check import compile_text
from everlog.ies import registry
from everlog.ies.files import datalog
from everlog.ies.practical import fans, field_matrices, tc_algebra
from everlog.ies.practical.alternating_paths import AlternatingPaths
from everlog.ies.practical.protocol import NotPermissible, Practical, Row, Rows
from everlog.ies.practical.same_generation_counts import CountedGenerations
from everlog.ies.practical.tc_algebra import AlgebraicClosure
from everlog.ies.practical.tc_counts import CountedClosure
from everlog.ies.practical.tc_witness import WitnessClosure

NODES: list[Any] = [0, "a", 2, "b", 4, "c", 6.5, -7, "d", 9, 10, 11]  # and their places here, for the oracle
CLASSES = [WitnessClosure, CountedClosure, AlgebraicClosure, CountedGenerations, AlternatingPaths]

# forms that a system takes by itself only when it is large: name → what to set for that
FORMS: dict[str, list[tuple[Any, str, int]]] = {
    "as it comes": [],
    "sets": [(fans, "SMALL", 0), (fans, "SPARSE", 0)],
    "arrays": [(tc_algebra, "LEAST", 0), (tc_algebra, "DENSE", 10_000), (field_matrices, "PANEL", 2)],
    "both": [(fans, "SMALL", 1), (fans, "SPARSE", 2), (tc_algebra, "LEAST", 2), (tc_algebra, "DENSE", 2)],
}
CASES = [
    *(pytest.param(cls, "as it comes", id=cls.described.name) for cls in CLASSES),
    pytest.param(WitnessClosure, "sets", id="tc_witness, sets"),
    pytest.param(WitnessClosure, "both", id="tc_witness, from one form to the other"),
    pytest.param(AlgebraicClosure, "arrays", id="tc_algebra, arrays"),
    pytest.param(AlgebraicClosure, "both", id="tc_algebra, from one form to the other"),
]

Step = tuple[bool, str, Row]


@contextmanager
def form(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for module, constant, value in FORMS[name]:
            stack.enter_context(mock.patch.object(module, constant, value))
        yield


@cache
def program_of(cls: type[Practical]) -> Program:
    return compile_text(datalog(cls.described))  # type: ignore[arg-type]  # what it reads of a system is there


def answer(system: Practical, evaluate: Callable[[Program, Mapping[str, Any]], Mapping[str, Any]]) -> set[Row]:
    """The query's answer on the input, from scratch; the oracle numbers nodes."""
    place = {node: n for n, node in enumerate(NODES)}
    rows = {name: {tuple(place[v] for v in row) for row in given} for name, given in system.base.items()}
    found = evaluate(program_of(type(system)), rows)[system.described.answer.name]
    return {tuple(NODES[n] for n in row) for row in found}


def by_reference(program: Program, rows: Mapping[str, Any]) -> Mapping[str, Any]:
    return reference.evaluate(program, rows)


def by_rounds(program: Program, rows: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: table.rows() for name, table in seminaive.evaluate(program, rows).tables.items()}


def stored(system: Practical) -> dict[str, set[Row]]:
    names = (*system.base, system.described.answer.name, *(a.name for a in system.described.auxiliaries))
    return {name: set(system.view(name)) for name in names}


def closes_a_cycle(edges: set[Row], row: Row) -> bool:
    reached, waiting = {row[1]}, [row[1]]
    while waiting:
        node = waiting.pop()
        more = {y for x, y in edges if x == node} - reached
        reached |= more
        waiting += more
    return row[0] in reached


class Followed:
    """A system, and the sum of its reported changes."""

    def __init__(self, system: Practical) -> None:
        self.system, self.sum = system, stored(system)

    def step(self, step: Step) -> dict[str, tuple[set[Row], set[Row]]]:
        insert, relation, row = step
        system, given_ = self.system, self.system.base[relation]
        there = row in given_
        refused = system.described.acyclic and insert and not there and closes_a_cycle(given_, row)
        try:
            changes = (system.insert if insert else system.delete)(relation, row)
        except NotPermissible:
            assert refused
            assert stored(system) == self.sum
            return {}
        assert not refused
        assert (relation in changes) == (insert != there)
        assert not changes or insert != there, "nothing to do, and something changed"
        told: dict[str, tuple[set[Row], set[Row]]] = {}
        for name, (gone, new) in changes.items():
            told[name] = told_gone, told_new = set(gone), set(new)
            assert len(told_gone) == len(gone) == len(list(gone))
            assert len(told_new) == len(new) == len(list(new))
            assert told_gone or told_new
            for rows in (gone, new):
                if isinstance(rows, Rows) and name == system.described.answer.name:
                    assert {(x, y) for x, ys in rows.by_key(0).items() for y in ys} == set(rows)
                    assert {(x, y) for y, xs in rows.by_key(1).items() for x in xs} == set(rows)
            assert told_gone <= self.sum[name]
            self.sum[name] -= told_gone
            assert not told_new & self.sum[name] or name not in (relation, system.described.answer.name)
            self.sum[name] |= told_new
        return told


@st.composite
def steps(draw: st.DrawFn, cls: type[Practical], most: int = 12) -> list[Step]:
    """Updates of few rows, so that they meet, with duplicates and missing rows."""
    nodes = st.sampled_from(NODES[:5])
    relations = {one.name: st.tuples(*[nodes] * one.arity) for one in cls.described.inputs}
    rows = st.one_of([st.tuples(st.just(name), row) for name, row in relations.items()])
    pool = draw(st.lists(rows, min_size=1, max_size=10))
    update = st.tuples(st.integers(0, 2).map(bool), st.sampled_from(pool))
    return [(insert, *row) for insert, row in draw(st.lists(update, max_size=most))]


@pytest.mark.parametrize(("cls", "form_"), CASES)
def test_the_answer_is_the_query_of_the_input_and_the_changes_add_up(cls: type[Practical], form_: str) -> None:
    """F_Q(U) = Q(U(∅)) after each update, also for auxiliaries."""

    @given(steps=steps(cls))
    def law(steps: list[Step]) -> None:
        with form(form_):
            followed = Followed(cls(track_auxiliaries=True))
            for step in steps:
                followed.step(step)
                followed.system.check()
                now = stored(followed.system)
                assert now == followed.sum
                assert {name: len(rows) for name, rows in now.items()} == followed.system.sizes()
                assert now[cls.described.answer.name] == answer(followed.system, by_reference)

    law()


@pytest.mark.parametrize(("cls", "form_"), CASES)
def test_it_may_begin_anywhere_and_untracked_changes_are_the_same(cls: type[Practical], form_: str) -> None:
    """Loaded at once and then updated, it reports the same changes."""

    @given(before=steps(cls, 9), after=steps(cls, 6))
    def law(before: list[Step], after: list[Step]) -> None:
        with form(form_):
            one = Followed(cls(track_auxiliaries=True))
            for step in before:
                one.step(step)
            other = Followed(cls())
            other.system.load(one.system.base)
            other.system.check()
            public = {*one.system.base, cls.described.answer.name}
            other.sum = stored(other.system)
            assert {name: rows for name, rows in one.sum.items() if name in public} == {
                name: rows for name, rows in other.sum.items() if name in public
            }
            for step in after:
                told, silent = one.step(step), other.step(step)
                assert silent == {name: change for name, change in told.items() if name in public}
                other.system.check()
                other.sum = stored(other.system)

    law()


@pytest.mark.parametrize(("cls", "form_"), CASES)
def test_long_histories_of_larger_graphs(cls: type[Practical], form_: str) -> None:
    draw = random.Random(7)
    with form(form_):
        system = cls(track_auxiliaries=True)
        followed = Followed(system)
        name = cls.described.answer.name
        for number in range(400):
            relation = draw.choice(
                [one for one in cls.described.inputs for _ in range(3 if one.arity == 2 else 1)]
            )
            row = tuple(draw.choice(NODES) for _ in range(relation.arity))
            if cls.described.acyclic and draw.random() < 0.8 and NODES.index(row[0]) > NODES.index(row[1]):
                row = row[::-1]
            insert = draw.random() < (0.7 if number < 150 else 0.45)
            if not insert and system.base[relation.name]:
                row = draw.choice(sorted(system.base[relation.name], key=repr))
            followed.step((insert, relation.name, row))
            if number % 8 == 0:
                system.check()
                assert stored(system) == followed.sum
                assert followed.sum[name] == answer(system, by_rounds)


def test_every_practical_system_of_the_catalogue_is_tested_here() -> None:
    assert {registry.entry(name).described.name for name in registry.PRACTICAL} == {
        cls.described.name for cls in CLASSES
    }


# ── the algebraic system ─────────────────────────────────────────────────────────────────────────


@given(edges=st.sets(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=60), panel=st.integers(1, 30))
def test_elimination_in_panels_inverts(edges: set[tuple[int, int]], panel: int) -> None:
    with form("arrays"), mock.patch.object(field_matrices, "PANEL", panel):
        system = AlgebraicClosure()
        system.load({"edge": edges})
        system.check()
        witnesses = WitnessClosure()
        witnesses.load({"edge": edges})
        assert set(system.view("path")) == set(witnesses.view("path"))


@given(before=steps(AlgebraicClosure, 10), after=steps(AlgebraicClosure, 4), arrays=st.booleans())
def test_weights_drawn_anew_change_no_answer(before: list[Step], after: list[Step], arrays: bool) -> None:
    with form("arrays" if arrays else "as it comes"):
        followed = Followed(AlgebraicClosure(track_auxiliaries=True))
        for step in before:
            followed.step(step)
        for step in after:
            followed.system.risk = 0.75
            refreshes = followed.system.refreshes
            told = followed.step(step)
            assert followed.system.refreshes == refreshes + bool(told)
            followed.system.check()
            assert stored(followed.system) == followed.sum
            assert followed.sum["path"] == answer(followed.system, by_reference)

"""Sums, counts and lattices through recursion: every executor equals the reference and oracles."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from growing_programs import DIRECT, FORMS, MAPS, histories, program_of
from hypothesis import given
from hypothesis import strategies as st
from living import examples, follows, on_a_machine

from everlog.core.engine import Engine
from everlog.core.engine.planning.plan import GROWING
from everlog.core.evaluate import reference, seminaive
from everlog.core.program.executor import Update
from everlog.core.proofs.checker import verify
from everlog.core.proofs.search import why


@pytest.mark.parametrize("name", FORMS | MAPS | DIRECT)
@examples(8)
@given(st.data())
def test_every_executor_follows(name: str, data: st.DataObject) -> None:
    text = (FORMS | MAPS | DIRECT)[name]
    inputs, stream = data.draw(histories(text))
    with on_a_machine(data):
        follows(program_of(text), inputs, stream, ["follow", "mixed", "bulk"])


@pytest.mark.parametrize("name", FORMS | MAPS | DIRECT)
@examples(8)
@given(st.data())
def test_whole_evaluation_equals_the_reference(name: str, data: st.DataObject) -> None:
    text = (FORMS | MAPS | DIRECT)[name]
    program = program_of(text)
    inputs, _ = data.draw(histories(text, steps=0))
    with on_a_machine(data):
        evaluation = seminaive.evaluate(program, inputs)
    expected = reference.evaluate(program, inputs)
    assert {name: evaluation.relation(name) for name in program.relations} == expected


@pytest.mark.parametrize("name", FORMS | MAPS)
def test_which_units_are_kept(name: str) -> None:
    assert Engine(program_of((FORMS | MAPS)[name])).strategy_of("r")[0] == GROWING


@pytest.mark.parametrize("name", DIRECT)
def test_the_tests_of_sums_are_kept(name: str) -> None:
    engine = Engine(program_of(DIRECT[name]))
    tests = [relation for relation in engine.program.relations if ".enough" in relation]
    assert tests
    assert all(engine.strategy_of(relation)[0] == GROWING for relation in tests)


@pytest.mark.parametrize("name", FORMS | MAPS | DIRECT)
@examples(3)
@given(st.data())
def test_each_fact_has_a_proof(name: str, data: st.DataObject) -> None:
    text = (FORMS | MAPS | DIRECT)[name]
    inputs, stream = data.draw(histories(text))
    engine = Engine(program_of(text))
    engine.insert(inputs)
    for step in stream:
        engine.apply([Update(*change) for change in step])
    for row in engine.view("r"):
        verify(engine, why(engine, "r", row))


# ── against other algorithms ─────────────────────────────────────────────────────────────────


def controlled(shares: set[tuple[int, int, int]], most: int) -> set[tuple[int, int]]:
    """The companies that each company controls: shares of controlled ones count together."""
    companies = {c for x, y, _ in shares for c in (x, y)}
    found = set()
    for x in companies:
        own = {x}
        while True:
            held = Counter[int]()
            for y, z, n in shares:
                held[z] += n * (y in own)
            more = {z for z, n in held.items() if n > most} - own
            if not more:
                break
            own |= more
        found |= {(x, z) for z in own}
    return found


def owned(shares: set[tuple[int, int, int]], most: int) -> set[tuple[int, int, int]]:
    """What each company owns: directly, or by those of which it has enough."""
    held: dict[tuple[int, int], int] = {}
    while True:
        found = Counter[tuple[int, int]]()
        for y, z, n in shares:
            found[y, z] += n
            for (x, through), s in held.items():
                found[x, z] += n * (through == y and s > most)
        reached = {(y, z) for y, z, _ in shares}
        reached |= {(x, z) for (x, y), s in held.items() if s > most for w, z, _ in shares if w == y}
        if (new := {pair: found[pair] for pair in reached}) == held:
            return {(*pair, n) for pair, n in held.items()}
        held = new


def in_no_core(arcs: set[tuple[int, int]]) -> set[int]:
    """The nodes that are peeled off: fewer than two of their arcs lead to nodes that stay."""
    left = {x for x, _ in arcs}
    gone = set[int]()
    while True:
        weak = {x for x in left - gone if sum(1 for a, y in arcs if a == x and y not in gone) < 2}
        if not weak:
            return gone
        gone |= weak


@pytest.mark.parametrize(
    ("name", "relation", "oracle"),
    [
        ("owns", "share", lambda facts: owned(facts, 3)),
        ("company control", "share", lambda facts: controlled(facts, 3)),
        ("votes in a head", "share", lambda facts: controlled(facts, 3)),
        ("the cores that are left", "arc", lambda facts: {(x,) for x in in_no_core(facts)}),
    ],
)
@examples(25)
@given(st.data())
def test_live_totals_equal_the_textbook(name: str, relation: str, oracle: Any, data: st.DataObject) -> None:
    text = (FORMS | DIRECT)[name]
    inputs, stream = data.draw(histories(text, steps=15))
    engine, facts = Engine(program_of(text), large=10**9), set(inputs[relation])
    engine.insert(inputs)
    for step in [[], *stream]:
        engine.apply([Update(*change) for change in step])
        for _, row, insert in step:
            (facts.add if insert else facts.discard)(row)
        assert set(engine.view("r")) == oracle(facts)
        engine.check()

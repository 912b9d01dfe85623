"""Units that carry a column along: the engine equals the reference after every step, whatever comes and goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from living import examples, follows, program_of

from everlog.core.engine.condensation import Condensation
from everlog.core.engine.flow_graph import Graph
from everlog.core.engine.flowing import FlowKeeper
from everlog.core.proofs import verify, why

EDGES = ".decl edge(x:number, y:number)\n.input edge\n.decl path(x:number, y:number)\n"
PROGRAMS = {
    "closure": EDGES + "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).",
    "mirrored": EDGES + "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z).",
    "backwards": EDGES + "path(y, x) :- edge(x, y). path(x, z) :- path(x, y), edge(z, y).",
    "both ways": EDGES
    + "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). path(x, z) :- path(x, y), edge(z, y).",
    "another source": EDGES
    + ".decl at(c:number, n:number) .input at path(c, n) :- at(c, n). path(c, m) :- path(c, n), edge(n, m).",
    "given facts too": EDGES + ".input path path(x, y) :- edge(y, x). path(x, z) :- path(x, y), edge(y, z).",
    "only given facts": EDGES + ".input path path(x, z) :- path(x, y), edge(y, z).",
    "two relations of steps": EDGES
    + ".decl road(x:number, y:number) .input road path(x, y) :- edge(x, y). path(x, y) :- road(y, x)."
    + "path(x, z) :- path(x, y), edge(y, z). path(x, z) :- path(x, y), road(y, z).",
    "steps that say more": EDGES
    + ".decl toll(x:number, y:number, w:number) .input toll .decl shut(n:number) .input shut "
    + "path(x, x) :- edge(x, _). path(x, y + 1) :- edge(x, y), y < 3."
    + "path(x, z) :- path(x, y), toll(y, z, w), !shut(z), w < 3, y != z. path(x, z) :- path(x, y), edge(y, z), shut(y).",
    "read by others": EDGES
    + "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    + ".decl meet(x:number, y:number, z:number) meet(x, y, z) :- path(x, y), path(y, z), !path(z, x)."
    + ".decl many(x:number, n:number) many(x, n) :- edge(x, _), n = count : { path(x, _) }.",
}
NODES = st.integers(0, 5)


def rows_for(program: Any, name: str) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[NODES] * program.relations[name].arity)


@st.composite
def streams(draw: st.DrawFn, program: Any) -> tuple[dict[str, list[Any]], list[list[Any]]]:
    """Facts to begin with, and steps of one change or a few: those there go as often as others come."""
    inputs = [d.relation for d in program.inputs]
    there = {name: set(draw(st.lists(rows_for(program, name), max_size=9))) for name in inputs}
    start = {name: sorted(rows) for name, rows in there.items()}
    steps = []
    for _ in range(draw(st.integers(1, 6))):
        step = []
        for _ in range(draw(st.sampled_from([1, 1, 2, 5]))):
            name = draw(st.sampled_from(inputs))
            if there[name] and draw(st.booleans()):
                row = draw(st.sampled_from(sorted(there[name])))
                there[name].remove(row)
                step.append((name, row, False))
            else:
                row = draw(rows_for(program, name))
                there[name].add(row)
                step.append((name, row, True))
        steps.append(step)
    return start, steps


@pytest.mark.parametrize("kind", PROGRAMS)
@given(data=st.data())
@examples(10, share=3)
def test_sets_flow_as_the_reference_says(kind: str, data: st.DataObject) -> None:
    program = program_of(PROGRAMS[kind])
    inputs, stream = data.draw(streams(program))
    engines = follows(program, inputs, stream, ["follow", "mixed", "bulk", "witness"])
    keeper = engines["follow"]._network.home["path"]
    assert isinstance(keeper, FlowKeeper)


@given(data=st.data())
@examples(20)
def test_every_fact_has_a_proof_that_holds(data: st.DataObject) -> None:
    program = program_of(PROGRAMS[data.draw(st.sampled_from(sorted(PROGRAMS)))])
    inputs, stream = data.draw(streams(program))
    (engine,) = follows(program, inputs, stream, ["follow"]).values()
    for row in engine.view("path"):
        verify(engine, why(engine, "path", row))


@given(
    start=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
    steps=st.lists(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=4), max_size=25),
)
@settings(deadline=None)
def test_components_follow_steps_that_come_and_go(start: set[Any], steps: list[list[Any]]) -> None:
    forth: dict[Any, set[Any]] = {}
    back: dict[Any, set[Any]] = {}
    graph = Graph((forth,), (back,))

    def toggle(a: Any, b: Any) -> None:
        for index, key, value in ((forth, a, b), (back, b, a)):
            fan = index.setdefault(key, set())
            fan ^= {value}
            if not fan:
                del index[key]

    for a, b in start:
        toggle(a, b)
    parts = Condensation(graph)
    parts.check()
    for step in steps:
        changed = set(step)
        gone = [(a, b) for a, b in changed if b in forth.get(a, ())]
        new = [pair for pair in changed if pair not in gone]
        before = {node: part.nodes for node, part in parts.of.items()}
        for pair in changed:
            toggle(*pair)
        parts.remove(gone)
        merged = parts.add(new)
        for part in merged:
            assert {node for nodes in part.parts for node in nodes} == set(part.nodes)
            assert sum(map(len, part.parts)) == len(part.nodes)
            for nodes in part.parts:  # what is one part was together before
                assert all(other in before.get(node, {node}) for node in nodes for other in nodes)
            part.parts = []
        parts.check()

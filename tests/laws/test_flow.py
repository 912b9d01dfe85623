"""Units that carry a column along: the engine equals the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from living import compiled, examples, first_step, follows, plain, program_of, updates

from everlog.core.engine.engine import Engine
from everlog.core.engine.keepers.flow import condensation, flow_pass, places
from everlog.core.engine.keepers.flow.condensation import Condensation
from everlog.core.engine.keepers.flow.flow_graph import Graph
from everlog.core.engine.keepers.flow.flowing import FlowKeeper
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


@contextmanager
def as_if_large(large: bool) -> Iterator[None]:
    """Small graphs are followed in the ways that are meant for large ones."""
    if not large:
        yield
        return
    with patch.object(flow_pass, "MANY", 1), patch.object(condensation, "_MANY", 1):
        yield


def rows_for(program: Any, name: str) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[NODES] * program.relations[name].arity)


@st.composite
def streams(draw: st.DrawFn, program: Any) -> tuple[dict[str, list[Any]], list[list[Any]]]:
    """Initial facts, and steps of one or a few changes, half of them deletes."""
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
    with as_if_large(data.draw(st.booleans())):
        engines = follows(program, inputs, stream, ["follow", "mixed", "bulk", "ranked_python"])
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


class _Full(Exception):
    pass


@given(seed=st.integers(0, 2**32), nodes=st.sampled_from([12, 30, 60]), large=st.booleans())
@examples(20)
def test_larger_graphs_are_followed_step_by_step(seed: int, nodes: int, large: bool) -> None:
    """One large component, as in random graphs, with its successors.

    Some steps are refused at their end, and change nothing.  Changes are read last, after all
    steps.
    """
    draw = Random(seed)
    engine = Engine(program_of(PROGRAMS["closure"]))
    edges = {(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(int(nodes * draw.uniform(1, 2.5)))}
    engine.apply(updates(first_step({"edge": sorted(edges)})))
    views, told = [engine.view("path")], []
    for _ in range(25):
        step = []
        for _ in range(draw.choice([1, 1, 1, 3])):
            there = sorted(edges) or [(0, 0)]
            row = draw.choice([draw.choice(there), (draw.randrange(nodes), draw.randrange(nodes))])
            step.append(("edge", row, row not in edges))
            edges ^= {row}
        with as_if_large(large):
            if draw.random() < 0.2:
                refuse(engine, step)
                engine.check()
                assert engine.view("path") == views[-1]
            told.append(engine.apply(updates(step)))
            engine.check()
        views.append(engine.view("path"))
    for changes, before, after in zip(told, views, views[1:], strict=False):
        expected = dict.fromkeys(before - after, -1) | dict.fromkeys(after - before, 1)
        assert plain(changes).get("path", {}) == expected


def test_a_node_that_falls_off_a_circle_takes_along_what_came_by_it() -> None:
    circle = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (5, 6), (6, 1)]
    stream = [[("edge", (7, 9), True)], [("edge", (6, 1), False)], [("edge", (6, 1), True)]]
    program = compiled(PROGRAMS["closure"])
    (engine,) = follows(program, {"edge": [*circle, (9, 8), (8, 6)]}, stream, ["follow"]).values()
    assert (9, 1) in engine.view("path")


def refuse(engine: Engine, step: list[Any]) -> None:
    def full(_: Any) -> None:
        raise _Full

    engine.seal = full
    try:
        with pytest.raises(_Full):
            engine.apply(updates(step))
    finally:
        engine.seal = None


@given(
    start=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
    steps=st.lists(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=4), max_size=25),
    gap=st.sampled_from([10, places.GAP]),
)
@settings(deadline=None)
def test_components_follow_steps_that_come_and_go(start: set[Any], steps: list[list[Any]], gap: int) -> None:
    with patch.object(places, "GAP", gap):  # a small one, and all get new places once in a while
        follow_steps(start, steps)


def follow_steps(start: set[Any], steps: list[list[Any]]) -> None:
    forth: dict[Any, set[Any]] = {}
    back: dict[Any, set[Any]] = {}
    graph = Graph((forth,), (back,))

    def toggle(a: Any, b: Any) -> None:
        for index, key, value in ((forth, a, b), (back, b, a)):
            values = index.setdefault(key, set())
            values ^= {value}
            if not values:
                del index[key]

    for a, b in start:
        toggle(a, b)
    parts = Condensation(graph)
    parts.check()
    for part in parts.components():
        parts.nodes_after(part), parts.nodes_before(part)  # which it keeps in mind from then on
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

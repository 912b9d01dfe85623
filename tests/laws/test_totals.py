"""Aggregates over joins, kept by totals and by best values of parts of the join."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st
from living import Oracle, examples, plain, updates

from everlog.core.engine import Engine
from everlog.core.engine.explain import explain_plan
from everlog.core.joins.join_strategies import JOINS, VIEW_TREE
from everlog.dsl.check import compile_text

BASE = {"r": 2, "s": 2, "t": 2, "u": 1}
DECLARED = "".join(
    f".decl {name}({', '.join(f'c{n}:number' for n in range(arity))})\n" for name, arity in BASE.items()
)
TOTALS = [name for name, strategy in JOINS.items() if strategy.totals]


@st.composite
def aggregates(draw: st.DrawFn) -> str:
    names = "abcd"
    atoms = draw(st.lists(st.sampled_from(sorted(BASE)), min_size=2, max_size=4))
    args = [[draw(st.sampled_from(names)) for _ in range(BASE[name])] for name in atoms]
    body = ", ".join(f"{name}({', '.join(of)})" for name, of in zip(atoms, args, strict=True))
    used = sorted({arg for of in args for arg in of})
    factors = draw(st.lists(st.sampled_from(used), min_size=1, max_size=3))
    what, kind = draw(
        st.sampled_from(
            [
                (f"sum {' * '.join(factors)}", "number"),
                (f"mean {factors[0]}", "float"),
                ("count", "number"),
                (f"min {factors[0]}", "number"),
                (f"max {factors[0]}", "number"),
            ]
        )
    )
    if used != factors and draw(st.booleans()):
        body += (
            f", {draw(st.sampled_from(used))} {draw(st.sampled_from(['<', '!=']))} {draw(st.sampled_from(used))}"
        )
    if draw(st.integers(0, 5)) == 0:
        body += f", !{draw(st.sampled_from(['r', 'u']))}({draw(st.sampled_from(used))}"
        body += ")" if "!u" in body else f", {draw(st.sampled_from([*used, '_']))})"
    outer = draw(st.sampled_from([v for v in used if v not in factors] or [""]))
    if outer and draw(st.booleans()):
        group = f"u({outer}), "
        return f"{DECLARED}.decl q(g:number, v:{kind})\nq({outer}, v) :- {group}v = {what} : {{ {body} }}.\n"
    return f"{DECLARED}.decl q(v:{kind})\nq(v) :- v = {what} : {{ {body} }}.\n"


def changes() -> st.SearchStrategy[Any]:
    value = st.integers(-2, 2) | st.sampled_from([2**53 + 1, -(2**62), 2**63 - 1])
    return st.sampled_from(sorted(BASE)).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(*[value] * BASE[name]), st.booleans())
    )


ROUNDED = f"{DECLARED}.decl q(v:float)\nq(v) :- v = mean b : {{ r(a, b), s(a, c), u(c) }}.\n"
LARGE = [[("r", (0, 2**53 + 1), True), ("r", (0, 1), True), ("s", (0, 0), True), ("u", (0,), True)]]


@pytest.mark.parametrize("strategy", [*TOTALS, "auto"])
@examples(40)
@given(aggregates(), st.lists(st.lists(changes(), max_size=4), max_size=8))
@example(ROUNDED, [*LARGE, [("r", (0, 1), False)]])
def test_totals_are_those_of_the_reference(strategy: str, text: str, stream: Any) -> None:
    note(text)
    program = compile_text(text)
    oracle = Oracle(program)
    engine = Engine(program, strategies={} if strategy == "auto" else {"*": strategy}, large=1000)
    for step in stream:
        expected = oracle.apply(updates(step))
        assert expected is not None
        assert plain(engine.apply(updates(step))) == expected
        engine.check()
    assert {name: engine.view(name) for name in oracle.state} == oracle.state


FLOATS = [0.1, 0.2, -0.3, 1e100, -1e100, 5e-324, 1.5e308, math.inf, -math.inf, math.nan, -0.0]
WITH_FLOATS = f"{DECLARED}.decl f(c0:number, x:float)\n"
MEAN = f"{WITH_FLOATS}.decl q(v:float)\nq(v) :- v = mean x : {{ s(a, a), f(a, x) }}.\n"


@st.composite
def aggregates_of_floats(draw: st.DrawFn) -> str:
    atoms = draw(st.lists(st.sampled_from(sorted(BASE)), min_size=1, max_size=3))
    args = [[draw(st.sampled_from("abc")) for _ in range(BASE[name])] for name in atoms]
    key = draw(st.sampled_from([arg for of in args for arg in of]))
    literals = [f"{name}({', '.join(of)})" for name, of in zip(atoms, args, strict=True)]
    literals += [f"f({key}, x)", *(["f(a, y)"] if draw(st.booleans()) else [])]
    what = draw(st.sampled_from(["sum x", "sum x", "mean x", *(["sum x * y"] if "y" in literals[-1] else [])]))
    outer = draw(st.sampled_from(sorted({arg for of in args for arg in of})))
    body = ", ".join(literals)
    if draw(st.booleans()):
        return (
            f"{WITH_FLOATS}.decl q(g:number, v:float)\nq({outer}, v) :- u({outer}), v = {what} : {{ {body} }}.\n"
        )
    return f"{WITH_FLOATS}.decl q(v:float)\nq(v) :- v = {what} : {{ {body} }}.\n"


def changes_of_floats() -> st.SearchStrategy[Any]:
    value = st.integers(0, 2)
    of_f = st.tuples(st.just("f"), st.tuples(value, st.sampled_from(FLOATS)), st.booleans())
    rest = st.sampled_from(sorted(BASE)).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(*[value] * BASE[name]), st.booleans())
    )
    return st.one_of(of_f, of_f, rest)


@pytest.mark.parametrize("strategy", [*TOTALS, "auto"])
@examples(60)
@given(aggregates_of_floats(), st.lists(st.lists(changes_of_floats(), max_size=5), max_size=8))
@example(MEAN, [[("s", (0, 0), True), ("f", (0, 0.1), True)], [("f", (0, 0.1), False), ("f", (0, 0.2), True)]])
def test_totals_of_floats_are_exact(strategy: str, text: str, stream: Any) -> None:
    """Also when infinities and NaN come and go, and large values that hide small ones."""
    note(text)
    program = compile_text(text)
    oracle = Oracle(program)
    engine = Engine(program, strategies={} if strategy == "auto" else {"*": strategy}, large=1000)
    for step in stream:
        expected = oracle.apply(updates(step))
        assert expected is not None
        assert plain(engine.apply(updates(step))) == expected
        engine.check()
    assert {name: engine.view(name) for name in oracle.state} == oracle.state


@pytest.mark.parametrize("what", ["sum x", "sum a * x", "sum x * x", "mean x", "count", "sum y", "mean y"])
def test_an_update_of_a_hub_costs_what_its_view_promises(what: str) -> None:
    """The steps of the view do not grow with the number of matches."""
    last = "f(b, y)" if "y" in what else "t(b, x)"
    kind = "float" if "mean" in what or "y" in what else "number"
    text = f"{WITH_FLOATS}.decl q(v:{kind})\nq(v) :- v = {what} : {{ r(a, b), s(b, c), {last} }}."
    steps = []
    for rows in (50, 400):
        engine = Engine(compile_text(text), strategies={"*": VIEW_TREE})
        engine.insert(
            {name: [(n if name == "r" else 0, 0 if name == "r" else n) for n in range(rows)] for name in "rst"}
        )
        engine.insert({"f": [(0, n / 7) for n in range(rows)]})
        engine.update("r", (rows, 0))
        keeper = next(k for k in engine._network.keepers if getattr(k, "joined", {}))
        (joined,) = keeper.joined.values()  # type: ignore[attr-defined]
        before = joined.view.steps
        engine.update(*("f", (0, 0.3)) if last[0] == "f" else ("t", (0, rows)))
        steps.append(joined.view.steps - before)
        assert steps[-1], "the view has heard of it"
    assert steps[0] == steps[1]


def test_products_of_floats_are_not_totals() -> None:
    text = f"{WITH_FLOATS}.decl q(v:float)\nq(v) :- v = sum x * y : {{ f(a, x), s(a, b), f(b, y) }}."
    assert "what is computed of floats is rounded for each match" in explain_plan(compile_text(text))

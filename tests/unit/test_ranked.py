"""Recursion on the compiled machine that lives long: compaction, and ranks that are used up."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from everlog.core.engine import Engine
from everlog.core.engine.keepers.recursive import ranked
from everlog.core.engine.keepers.recursive.ranked import RankedKeeper
from everlog.core.evaluate import reference
from everlog.core.program.executor import Update
from everlog.core.program.values import NAN
from everlog.dsl.check import compile_text
from everlog.store.column_codec import decoded_columns, encoded_columns

machine: Any = pytest.importorskip("everlog.core.native._machine")

CLOSURE = compile_text(
    ".decl e(x:number, y:number) .decl p(x:number, y:number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
)
LAST = 0xFFFFFFF0  # the rank that no fact may have


def chain(length: int, insert: bool = True) -> list[Update]:
    return [Update("e", (n, n + 1), insert) for n in range(length)]


def started(length: int) -> tuple[Engine, RankedKeeper]:
    engine = Engine(CLOSURE, strategies={"p": "ranked"}, large=10**9)
    engine.apply(chain(length))
    (keeper,) = [one for one in engine._network.keepers if isinstance(one, RankedKeeper)]
    return engine, keeper


def assert_right(engine: Engine) -> None:
    assert engine.view("p") == reference.evaluate(CLOSURE, {"e": engine.view("e")})["p"]
    engine.check()


@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupted_compaction_leaves_everything_as_it_was(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, keeper = started(12)
    engine.apply(chain(8, insert=False))
    monkeypatch.setattr(ranked, "WASTE", 0)
    calls = 0
    made = ranked.empty_words

    def interrupted(*what: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return made(*what)

    monkeypatch.setattr(ranked, "empty_words", interrupted)
    before = engine.view("p")
    with pytest.raises(KeyboardInterrupt):
        engine.apply([Update("e", (0, 9), True)])
    assert engine.view("p") == before
    assert_right(engine)
    engine.apply([Update("e", (0, 9), True)])
    assert_right(engine)
    assert all(live.waste == 0 for live in keeper.live.values())


@pytest.mark.parametrize("left", [0, 3, 40])
def test_ranks_that_are_used_up_begin_anew(left: int) -> None:
    """After 2^32 facts a unit is computed once, and goes on."""
    engine, keeper = started(6)
    *columns, ranks, counts = keeper.state()
    shift = LAST - 1 - left - max(ranks)
    keeper.restore([*columns, [rank + shift for rank in ranks], counts])
    assert_right(engine)
    chance = random.Random(left)
    for _ in range(30):
        engine.apply([Update("e", (chance.randrange(9), chance.randrange(9)), chance.random() < 0.6)])
        assert_right(engine)
    assert max(keeper.state()[-2], default=0) < 10_000


@pytest.mark.parametrize(("rank", "count"), [(0, 1), (LAST, 1), (2**32 - 1, 1), (1, 0)])
def test_ranks_and_counts_that_nothing_can_have_are_refused(rank: int, count: int) -> None:
    _, keeper = started(2)
    *columns, ranks, counts = keeper.state()
    with pytest.raises(machine.Uncountable):
        keeper.restore([*columns, [rank, *ranks[1:]], [count, *counts[1:]]])


def test_a_question_about_unknown_symbols_leaves_nothing_behind() -> None:
    text = (
        ".decl e(x:symbol, y:symbol) .decl p(x:symbol, y:symbol) p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
    )
    engine = Engine(compile_text(text), strategies={"p": "ranked"}, large=10**9)
    engine.apply([Update("e", ("a", "b"), True), Update("e", ("b", "c"), True)])
    (keeper,) = [one for one in engine._network.keepers if isinstance(one, RankedKeeper)]
    live, size = keeper.live["p"], len(keeper.symbols)
    assert ("a", "c") in live
    assert keeper.derivation_of("p", ("a", "c")) is not None
    for row in [("a", "new"), ("newer", "newest"), ("c", "a"), ("a",), ("a", 1), None]:
        assert row not in live
    assert keeper.derivation_of("p", ("a", "other")) is None
    assert len(keeper.symbols) == size


def test_compaction_forgets_symbols_of_facts_that_went() -> None:
    text = (
        ".decl e(x:symbol, y:symbol) .decl p(x:symbol, y:symbol) p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
    )
    program = compile_text(text)
    engine = Engine(program, strategies={"p": "ranked"}, large=10**9)
    (keeper,) = [one for one in engine._network.keepers if isinstance(one, RankedKeeper)]
    for number in range(4 * ranked.WASTE):
        row = (f"node {number}", f"node {number}'")
        engine.update("e", row)
        engine.update("e", row, insert=False)
    last = [("a", "b"), ("b", "c")]
    for row in last:
        engine.update("e", row)
    assert len(keeper.symbols) < 3 * ranked.WASTE
    assert engine.view("p") == reference.evaluate(program, {"e": last})["p"]
    engine.check()


VALUES = """
.decl e(n:number, u:unsigned, f:float, s:symbol)
.decl p(n:number, u:unsigned, f:float, s:symbol)
.decl some()
p(n, u, f, s) :- e(n, u, f, s).
p(n, u, f, s) :- p(n, v, g, s), p(n, u, g, t), p(_, v, f, t).
some() :- p(_, _, f, _), f > 0.0.
some() :- some(), e(_, _, _, _).
"""


@pytest.mark.parametrize("wide", [0, 40], ids=["few", "wide"])
def test_a_state_of_all_kinds_comes_back(wide: int) -> None:
    """As columns of the narrowest integers that a file has."""
    program, generator = compile_text(VALUES), random.Random(2)
    floats = [0.5, -1.0, math.inf, NAN]
    for size in (0, 1, 60):
        rows = {
            (generator.randrange(-3, 3) << wide, generator.randrange(4) << wide, generator.choice(floats), s)
            for s in generator.choices(["a", "é", "\udc80", ""], k=size)
        }
        engine = Engine(program, strategies={"p": "ranked", "some": "ranked"}, given={"e": rows})
        kept = {name: decoded_columns(encoded_columns(columns)) for name, _, columns in engine.state()}
        other = Engine(program, strategies={"p": "ranked", "some": "ranked"}, given={"e": rows}, kept=kept)
        for _ in range(4):
            other.check()
            assert {name: other.view(name) for name in ("p", "some")} == {
                name: engine.view(name) for name in ("p", "some")
            }
            step = [
                Update("e", row, generator.random() < 0.5)
                for row in generator.sample(sorted(rows, key=repr), size // 4)
            ]
            assert engine.apply(step) == other.apply(step)

"""The engine by itself: what it refuses and plans, and its past bugs."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from engines import Incremental
from last_steps import assert_explained

from everlog.core.engine import Engine, NoSuchStrategy
from everlog.core.engine.keepers.counted import CountKeeper
from everlog.core.engine.keepers.recursive.supports import Supports
from everlog.core.engine.keepers.recursive.turn_work import TurnWork
from everlog.core.evaluate import reference
from everlog.core.native.availability import why_not
from everlog.core.program import Program
from everlog.core.program.executor import NotABaseRelation, Update
from everlog.core.program.values import NAN, EvaluationError
from everlog.core.runtime.guards import Limits
from everlog.core.storage.table_shapes import RowShape
from everlog.core.storage.tables import Table
from everlog.dsl.check import compile_text

RANKS = "ranked_python" if why_not() else "ranked"  # the keeper of recursion that carries no column
CLOSURE = """.decl e(x:number, y:number)  .decl p(x:number, y:number)
p(x, y) :- e(x, y).  p(x, z) :- p(x, y), e(y, z)."""


def engine_of(text: str, **options: Any) -> Engine:
    return Engine(compile_text(text), **options)


def edges(*rows: tuple[int, int], insert: bool = True) -> list[Update]:
    return [Update("e", row, insert) for row in rows]


def assert_current(engine: Engine) -> None:
    given = {name: set(engine.given(name)) for name in engine.program.relations}
    expected = reference.evaluate(evolve(engine.program, facts={}), given)
    assert {name: engine.view(name) for name in engine.program.relations} == expected
    engine.check()
    assert_explained(engine)


# ── what is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("padding", [[], [Update("e", (8, 9))]], ids=["alone", "with another"])
@pytest.mark.parametrize(
    ("update", "message"),
    [
        (Update("nobody", (1,)), "undefined relation `nobody`"),
        (Update("e", (1,)), "has 2 column(s), 1 given"),
        (Update("p", (1, 2, 3)), "has 2 column(s), 3 given"),
    ],
)
def test_an_update_that_fits_no_relation_is_refused_with_its_step(
    update: Update, message: str, padding: list[Update]
) -> None:
    engine = engine_of(CLOSURE)
    engine.apply(edges((1, 2)))
    with pytest.raises(NotABaseRelation) as caught:
        engine.apply([*padding, update])
    assert message in str(caught.value)
    assert engine.view("e") == {(1, 2)}
    engine.check()


def test_a_strategy_that_is_not_there_is_refused() -> None:
    with pytest.raises(NoSuchStrategy, match="no strategy `magic` to ask for"):
        engine_of(CLOSURE, strategies={"p": "magic"})
    with pytest.raises(NoSuchStrategy, match="`q`, which is not declared"):
        engine_of(CLOSURE, strategies={"q": "ranked_python"})


def test_a_program_that_fails_on_its_own_facts_has_no_engine() -> None:
    with pytest.raises(EvaluationError, match=r"division by zero: 1 / 0 at <text>:1\n  in the rule  q\(1 / x\)"):
        engine_of(".decl n(x:number)  .decl q(x:number)  q(1 / x) :- n(x).  n(0).")


# ── plans ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("", "given"),
        ("r(x) :- v(x).", "counts"),
        ("r(x) :- v(x).  r(y) :- r(x), e(x, y).", RANKS),
        ("r(x) :- r(x), e(x, _).", RANKS),
        ("r(autoinc()) :- v(x).", "recompute"),
        (f"r(x0) :- {', '.join(f'e(x{i}, x{i + 1})' for i in range(60))}.", "recompute"),
    ],
)
def test_the_strategy_follows_from_the_rules(text: str, strategy: str) -> None:
    engine = engine_of(f".decl e(x:number, y:number)  .decl v(x:number)  .decl r(x:number)  {text}")
    assert engine.strategy_of("r")[0] == strategy
    engine.apply([Update("v", (1,)), Update("e", (1, 2)), Update("e", (1, 1)), Update("r", (5,))])
    engine.apply([Update("v", (1,), False), Update("e", (1, 2), False)])
    assert_current(engine)


def test_a_unit_is_maintained_as_asked() -> None:
    for strategy in ("ranked_python", "recompute"):
        engine = engine_of(CLOSURE, strategies={"p": strategy})
        assert engine.strategy_of("p")[0] == strategy
        engine.apply(edges((1, 2), (2, 1), (2, 3)))
        engine.apply(edges((1, 2), insert=False))
        assert_current(engine)


# ── ways of a step ───────────────────────────────────────────────────────────────────────────


def test_hundreds_of_small_steps_take_the_short_way_and_now_and_then_the_long_one() -> None:
    engine = engine_of(CLOSURE + " .decl c(n:number)  c(n) :- n = count : { p(_, _) }.")
    for number in range(150):
        engine.apply(edges((number % 12, number * 7 % 12), insert=number % 3 != 0))
        if number % 10 == 0:
            assert_current(engine)


def test_rules_are_compiled_anew_when_their_relations_have_grown() -> None:
    engine = engine_of(".decl a(x:number)  .decl b(x:number, y:number)  .decl c(y:number)  c(y) :- a(x), b(x, y).")
    engine.apply([Update("a", (1,))])
    engine.apply([Update("b", (1, 1))])
    engine.apply([Update("b", (x % 50, x)) for x in range(2000)])
    for x in range(40):
        engine.apply([Update("a", (x,))])
    engine.apply([Update("b", (x % 50, x), False) for x in range(1990)])
    for x in range(40):
        engine.apply([Update("a", (x,), x % 2 == 0)])
    assert_current(engine)


def test_more_units_than_a_way_is_written_out_for() -> None:
    chain = "".join(f".decl r{i}(x:number)  r{i}(x) :- r{i - 1}(x), !e(x, {i}).\n" for i in range(1, 260))
    engine = engine_of(".decl e(x:number, y:number)  .decl r0(x:number)\n" + chain)
    engine.apply([Update("r0", (1,))])
    assert engine.view("r259") == {(1,)}
    assert len(engine.apply([Update("e", (1, 100))])) == 1 + 160
    engine.apply([Update("e", (1, 100), False), Update("r0", (2,))])
    assert engine.view("r259") == {(1,), (2,)}
    engine.check()


def test_changes_of_auxiliary_relations_are_not_told() -> None:
    """`p(_, x)` is kept as a projection, which is in one unit with `p`."""
    engine = engine_of(
        ".decl e(x:number, y:number)  .decl p(x:number, y:number)\np(x, y) :- e(x, y).  p(x, x) :- p(_, x)."
    )
    assert engine.apply(edges((1, 2))) == {"e": {(1, 2): 1}, "p": {(1, 2): 1, (2, 2): 1}}
    assert engine.apply(edges((1, 2), insert=False)) == {"e": {(1, 2): -1}, "p": {(1, 2): -1, (2, 2): -1}}


# ── aggregates ───────────────────────────────────────────────────────────────────────────────


def test_an_unused_group_does_not_fail() -> None:
    text = """.decl e(x:number, y:number)  .decl v(x:number)  .decl q(x:number, n:number)
    q(x, n) :- v(x), n = sum 12 / y : { e(x, y) }."""
    engine = engine_of(text)
    assert engine.strategy_of("q")[0] == "counts"
    engine.apply([*edges((1, 2), (5, 0)), Update("v", (1,))])
    assert engine.view("q") == {(1, 6)}
    with pytest.raises(EvaluationError, match=r"12 / 0 at <text>:2\n  in the rule  q\(x, n\)"):
        engine.apply([Update("v", (5,))])
    assert_current(engine)
    engine.apply([*edges((5, 0), insert=False), Update("v", (5,))])
    assert engine.view("q") == {(1, 6), (5, 0)}
    assert_current(engine)


def test_nan_comes_and_goes_as_the_greatest_value() -> None:
    text = """.decl f(x:float)  .decl least(x:float)  .decl most(x:float)
    least(x) :- x = min y : { f(y) }.  most(x) :- x = max y : { f(y) }."""
    engine = engine_of(text)
    for value in (1.0, NAN, float("inf")):
        engine.apply([Update("f", (value,))])
    assert (engine.view("least"), engine.view("most")) == ({(1.0,)}, {(NAN,)})
    engine.apply([Update("f", (1.0,), False), Update("f", (float("inf"),), False)])
    assert engine.view("least") == {(NAN,)}
    engine.apply([Update("f", (NAN,), False)])
    assert engine.view("least") == engine.view("most") == set()
    engine.check()


# ── other rules ──────────────────────────────────────────────────────────────────────────────


def without(program: Program, *numbers: int) -> Program:
    return evolve(program, rules=tuple(r for n, r in enumerate(program.rules) if n not in numbers))


def test_units_that_stay_keep_their_state_and_collect_nothing() -> None:
    program = compile_text(CLOSURE + " .decl q(x:number)  q(x) :- p(x, x).  q(x) :- e(x, x).")
    engine = Engine(program)
    engine.apply(edges((1, 2), (2, 1)))
    closure = engine.tables["p"]
    keeper = engine._network.home["p"]
    tasks = len(list(keeper.tasks()))
    for _ in range(5):
        engine.change_program(without(program, 3))
        engine.change_program(program)
    assert engine.tables["p"] is closure
    assert engine._network.home["p"] is keeper
    assert len(list(keeper.tasks())) == tasks
    engine.apply(edges((2, 3)))
    assert_current(engine)


def test_a_change_of_rules_that_fails_is_as_if_it_had_never_been_tried() -> None:
    program = compile_text(CLOSURE + " .decl q(x:number)  q(x) :- p(x, x).  q(1 / x) :- e(x, x).")
    engine = Engine(without(program, 3))
    engine.apply(edges((1, 2), (2, 1), (0, 0)))
    before = {name: engine.view(name) for name in program.relations}
    for _ in range(2):
        with pytest.raises(EvaluationError):
            engine.change_program(program)
        assert {name: engine.view(name) for name in program.relations} == before
        assert all(keeper.store is engine._network.store for keeper in engine._network.keepers)
        assert all(engine._network.keepers[k.number] is k for k in engine._network.keepers)
    for step in (edges((2, 3)), edges((1, 2), insert=False), edges((0, 0), insert=False)):
        engine.apply(step)
        assert_current(engine)
    engine.change_program(program)
    assert_current(engine)


def test_a_counter_goes_on_where_the_one_before_it_ends_also_after_rules_have_gone() -> None:
    program = compile_text(
        """.decl v(x:number)  .decl a(i:number, x:number)  .decl b(i:number, x:number)  .decl c(i:number, x:number)
        a(autoinc(), x) :- v(x).  b(autoinc(), x) :- v(x), x > 1.  c(autoinc(), x) :- v(x)."""
    )
    engine = Engine(program)
    engine.apply([Update("v", (x,)) for x in range(4)])
    for rules in (without(program, 1), program, without(program, 0), without(program, 0, 2), program):
        engine.change_program(rules)
        assert_current(engine)
        engine.apply([Update("v", (9,), len(rules.rules) == 3)])
        assert_current(engine)


# ── interruptions ────────────────────────────────────────────────────────────────────────────


class Interruption(BaseException):
    pass


def test_an_index_that_is_half_built_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(RowShape(3), {(1, 2, 3), (4, 5, 6)})

    def interrupted(*arguments: Any) -> None:
        raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr("everlog.core.storage.shape.group", interrupted)
        with pytest.raises(Interruption):
            table.index((0,), (1, 2))
    assert table.index((0,), (1, 2)) == {1: {(2, 3)}, 4: {(5, 6)}}
    table.check()


def test_suspects_and_changes_do_not_outlive_a_step_that_is_given_up() -> None:
    engine = engine_of(CLOSURE + " .decl q(x:number)  q(x) :- p(x, y), p(y, x).", large=10**9)
    engine.apply(edges((1, 2), (2, 1), (2, 3)))
    engine.apply(edges((3, 4)))
    engine.apply(edges((3, 4), insert=False))
    for name, delta in engine._network.store.deltas.items():
        before = engine.view("p")
        clear = delta.clear

        def interrupted(delta: Table = delta, clear: Any = clear) -> None:
            delta.clear = clear  # type: ignore[method-assign]
            raise Interruption

        delta.clear = interrupted  # type: ignore[method-assign]
        try:
            engine.apply([*edges((1, 2), insert=False), *edges((3, 1))])
        except Interruption:
            assert engine.view("p") == before, name
            assert not len(delta), name
            engine.apply([*edges((1, 2), insert=False), *edges((3, 1))])
        assert_current(engine)
        engine.apply([*edges((1, 2)), *edges((3, 1), insert=False)])
        assert_current(engine)


def test_counts_are_those_of_all_derivations() -> None:
    engine = engine_of(
        ".decl e(x:number, y:number)  .decl q(x:number)  q(x) :- e(x, y), e(y, z).  q(x) :- e(_, x)."
    )
    engine.apply(edges((1, 1), (1, 2), (2, 1)))
    keeper = engine._network.home["q"]
    assert isinstance(keeper, CountKeeper)
    assert keeper.counts == {1: 3, 2: 2}  # 1-1, 1-2 and 1←; 2-1 and 2←: z only has to exist
    engine.apply(edges((1, 1), insert=False))
    assert keeper.counts == {1: 2, 2: 2}
    engine.apply(edges((1, 2), (2, 1), insert=False))
    assert keeper.counts == {}
    assert_current(engine)


def test_bulk_and_small_steps_end_in_the_same_counts_and_totals() -> None:
    text = (
        CLOSURE
        + """ .decl c(x:number, n:number)  c(x, n) :- p(x, _), n = sum y : { p(x, y) }.
    .decl d(x:number)  d(x) :- c(x, _).  d(y) :- e(_, y)."""
    )
    small, bulk = (Incremental(large=large).start(compile_text(text)) for large in (10**9, 1))
    for step in (edges((1, 2), (2, 3), (3, 1)), edges((2, 3), insert=False), edges((2, 4), (4, 3))):
        assert small.apply(step) == bulk.apply(step)
        for name in small._network.store.tables:
            one, other = small._network.home[name], bulk._network.home[name]
            assert getattr(one, "counts", None) == getattr(other, "counts", None), name
            assert getattr(one, "values", None) == getattr(other, "values", None), name


# ── ranks are made when they are first needed ────────────────────────────────────────────

SAME = """.decl parent(x:number, y:number)  .decl same(x:number, y:number)
    same(x, y) :- parent(x, p), parent(y, p).
    same(x, y) :- parent(x, p), parent(y, q), same(p, q).
    .decl banned(x:number)  .decl known(x:number)  known(x) :- parent(x, _), !banned(x).
    .decl near(x:number, y:number)  near(x, y) :- known(x), same(x, y).  near(x, z) :- near(x, y), near(y, z)."""


def _family(**more: Any) -> Engine:
    parents = [(child, child // 2) for child in range(2, 40)]
    given = {"parent": parents, "banned": [(7,)]}
    return Engine(
        compile_text(SAME), given=given, strategies={"same": "ranked_python", "near": "ranked_python"}, **more
    )


def _proven(engine: Engine) -> set[str]:
    keepers = [k for k in engine._network.keepers if k.planned.strategy == "ranked_python" and k.proven]
    return {name for keeper in keepers for name in keeper.relations}


@pytest.mark.parametrize(
    ("update", "proven"),
    [
        (Update("parent", (40, 20)), set()),
        (Update("parent", (39, 19), insert=False), {"same", "near"}),
        (Update("banned", (9,)), {"near"}),
        (Update("banned", (7,), insert=False), {"near"}),
    ],
    ids=["insert", "delete", "insert under negation", "delete under negation"],
)
def test_a_step_makes_the_ranks_of_what_it_may_take_away(update: Update, proven: set[str]) -> None:
    engine = _family()
    assert _proven(engine) == set()
    engine.apply([update])
    assert _proven(engine) == proven
    engine.check()
    for back in (True, False, True):
        engine.apply([Update(update.relation, update.row, back), Update("parent", (41, 3), back)])
        assert_current(engine)


def test_a_question_why_makes_ranks_and_changes_no_fact() -> None:
    engine = _family()
    before = engine.view("same")
    assert engine.last_step("same", (38, 39)) is not None
    assert _proven(engine) == {"same"}
    assert engine.view("same") == before
    engine.check()


def test_ranks_that_cannot_be_made_leave_the_facts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _family()
    before = engine.view("same")

    def fails(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Supports, "add", fails)
        with pytest.raises(KeyboardInterrupt):
            engine.update("parent", (39, 19), insert=False)
    assert engine.view("same") == before
    assert (39, 19) in engine.given("parent")
    engine.check()
    engine.update("parent", (39, 19), insert=False)
    assert_explained(engine)


def test_ranks_do_not_count_as_facts_that_a_step_derives() -> None:
    engine = _family()
    engine.guard.limits = Limits(facts=30)
    engine.update("parent", (39, 19), insert=False)
    assert engine.size("same") > 30
    assert_explained(engine)


def test_a_turn_that_costs_as_much_as_a_computation_gives_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edge that goes carries derivations, but no pair goes: there is another way around."""
    monkeypatch.setattr(TurnWork, "least", -(10**9))
    around = [(n, (n + 1) % 12) for n in range(12)]
    text = (
        ".decl e(x:number, y:number) .decl p(x:number, y:number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
    )
    engine = Engine(compile_text(text), strategies={"p": "ranked_python"}, large=10**9)
    engine.apply(edges(*around, *((b, a) for a, b in around)))
    (unit,) = engine.statistics().units
    assert (unit.anew, unit.ranked_at, list(unit.told())) == (0, 0, [])
    assert engine.update("e", (3, 4), insert=False) == {"e": {(3, 4): -1}}
    assert_current(engine)
    (unit,) = engine.statistics().units
    assert (unit.anew, unit.anew_at, unit.ranked_at) == (1, 2, 2)
    assert any("p: computed anew in 1 step, last in step 2" in line for line in unit.told())
    assert engine.update("e", (7, 6), insert=False)["e"] == {(7, 6): -1}
    assert engine.anew["p"] == (2, 3)
    assert_current(engine)


def test_sums_of_single_updates_stay_within_64_bits() -> None:
    """Totals that are a multiple of 2⁶⁴ are groups of value 0, which are not empty."""
    engine = engine_of(
        """.decl e(x:number, y:number)  .decl u(x:number, y:unsigned)  .decl k(x:number)
        .decl s(x:number, n:number)  .decl t(x:number, n:unsigned)  .decl z(x:number)
        s(x, n) :- k(x), n = sum y : { e(x, y) }.  t(x, n) :- k(x), n = sum y : { u(x, y) }.
        z(x) :- k(x), 0 = sum y : { u(x, y) }.""",
        large=10**9,
    )
    engine.apply([Update("k", (1,)), Update("k", (2,))])
    assert engine._ways.fused("e", True) is not None
    steps = [("e", (1, 2**62)), ("e", (1, 2**62 + 1)), ("e", (1, -5)), ("e", (2, 0)), ("e", (2, 7))]
    steps += [("u", (1, 2**63)), ("u", (1, 2**63 - 1)), ("u", (1, 1)), ("u", (2, 3)), ("u", (1, 9))]
    for insert in (True, False):
        for name, row in steps:
            engine.apply([Update(name, row, insert)])
            assert_current(engine)
            engine.what_if([Update(name, row, not insert)], lambda changes: None)
            assert_current(engine)

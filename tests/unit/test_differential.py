"""The differential strategy: derivations by iteration, computed by hand, by a circuit and by the reference."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import generators
import pytest
from generators import PROGRAMS
from hypothesis import given
from hypothesis import strategies as st

from everlog.core import reference
from everlog.core.dbsp import streams
from everlog.core.dbsp.zsets import ZSet, distinct, join
from everlog.core.engine import Engine, LimitExceeded, Limits, differential
from everlog.core.engine.differential import DifferentialKeeper, Listing
from everlog.core.executor import Recomputing, Update
from everlog.core.values import EvaluationError
from everlog.dsl.check import compile_text

BASE = ".decl e(x:number, y:number) .decl v(x:number)\n"
REACH = BASE + ".decl r(x:number)\nr(x) :- v(x).\nr(y) :- r(x), e(x, y).\n"
LINEAR = BASE + ".decl p(x:number, y:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
DOUBLE = BASE + ".decl p(x:number, y:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).\n"
SHAPES = {name: PROGRAMS[name] for name in generators.PROGRAMS if "closure" in name} | {
    "same generation": PROGRAMS["same generation"],
    "mutual": PROGRAMS["mutual"],
    "mutual, non-linear": """.decl a(x:number, y:number) .decl b(x:number, y:number)
        a(x, y) :- e(x, y).
        b(x, z) :- a(x, y), a(y, z).
        a(x, z) :- b(x, y), a(y, z), v(y).
        b(x, z) :- a(x, y), b(y, x), b(x, z).""",
    "an outside relation twice": ".decl p(x:number)\np(x) :- v(x).\np(z) :- e(x, y), p(y), e(y, z), e(z, x).",
    "lower negation and aggregates": """.decl n(x:number, k:number) .decl p(x:number, y:number) .decl q(x:number)
        n(x, k) :- v(x), k = count : { e(x, _) }.
        p(x, y) :- e(x, y), !t(x, y, _).
        p(x, z) :- p(x, y), e(y, z), !v(z), k = sum a : { e(a, z) }, k < 6.
        p(x, k) :- p(x, y), n(y, k), !e(k, x).
        q(x) :- v(x), !p(x, x).""",
    "heads that compute": """.decl n(x:number)
        n(x) :- v(x).  n(x + 1) :- n(x), x < 5.  n(x - y) :- n(x), e(x, y), y > 0, n(y).""",
    "a functor in an atom of the unit": ".decl n(x:number)\nn(x) :- v(x).\nn(x) :- e(x, y), n(x + 1).",
    "ranges and constants": """.decl n(x:number, y:number)
        n(1, x) :- v(x).  n(2, y) :- n(1, x), y = range(0, x).  n(1, y) :- n(2, y), e(y, 1).""",
    "nullary": ".decl a() .decl b()\na() :- flag().\nb() :- a(), v(1).\na() :- b().\na() :- b(), a(), v(2).",
    "readers that need the state of before": """.decl p(x:number, y:number) .decl q(x:number, y:number)
        .decl a(x:number) .decl b(x:number) .decl c(x:number)
        p(x, y) :- e(x, y).  p(x, z) :- p(x, y), p(y, z).
        q(x, z) :- p(x, y), p(y, z), !p(z, x).  q(x, z) :- q(x, y), p(y, z), p(z, y), v(z).
        a(x) :- v(x).  b(y) :- a(x), e(x, y).  a(y) :- b(x), e(x, y).
        c(x) :- a(x), b(y), e(x, y), !b(x).""",
}
DECLARATIONS = "\n".join(
    f".decl {n}({', '.join(f'c{i}:{k}' for i, k in enumerate(kinds))})" for n, kinds in generators.BASE.items()
)
USED = {name: generators.BASE[name] for name in ("e", "v", "t", "flag")}


def started(text: str, **options: Any) -> Engine:
    return Engine(compile_text(text), strategies={"*": "differential"}, large=10**9, **options)


def keeper_of(engine: Engine, relation: str) -> DifferentialKeeper:
    keeper = engine._network.home[relation]
    assert isinstance(keeper, DifferentialKeeper)
    return keeper


def do(engine: Engine, text: str) -> None:
    """`+e 1 2, -v 3`: one step, with every invariant checked after it."""
    updates = []
    for part in text.split(","):
        name, *values = part.split()
        updates.append(Update(name[1:], tuple(map(int, values)), name[0] == "+"))
    engine.apply(updates)
    engine.check()


def numbers(engine: Engine, relation: str) -> dict[Any, dict[int, int]]:
    kept = keeper_of(engine, relation).numbers[relation]
    return {row[0] if len(row) == 1 else row: dict(kept[row]) for row in sorted(kept)}


# ── levels by hand ───────────────────────────────────────────────────────────────────────────────


def test_a_cycle_gives_a_fact_derivations_at_later_iterations() -> None:
    engine = started(LINEAR)
    do(engine, "+e 1 2, +e 2 3, +e 3 1")
    assert numbers(engine, "p") == {
        (1, 1): {3: 1},
        (1, 2): {1: 1, 4: 1},
        (1, 3): {2: 1},
        (2, 1): {2: 1},
        (2, 2): {3: 1},
        (2, 3): {1: 1, 4: 1},
        (3, 1): {1: 1, 4: 1},
        (3, 2): {2: 1},
        (3, 3): {3: 1},
    }
    do(engine, "-e 3 1")
    assert numbers(engine, "p") == {(1, 2): {1: 1}, (1, 3): {2: 1}, (2, 3): {1: 1}}


def test_two_atoms_of_the_unit_are_one_derivation_even_if_both_change() -> None:
    engine = started(DOUBLE)
    do(engine, "+e 1 1")  # p(1, 1) :- p(1, 1), p(1, 1): once
    assert numbers(engine, "p") == {(1, 1): {1: 1, 2: 1}}
    do(engine, "+e 1 2, +e 2 1")
    assert numbers(engine, "p") == {
        (1, 1): {1: 1, 2: 2},  # by 1 1 1 and 1 2 1
        (1, 2): {1: 1, 2: 1, 3: 1},  # by 1 1 2, and 1 2 2 with p(2, 2) at 2
        (2, 1): {1: 1, 2: 1, 3: 1},
        (2, 2): {2: 1, 3: 1},  # by 2 1 2, and 2 2 2
    }
    do(engine, "-e 2 1")
    assert numbers(engine, "p") == {(1, 1): {1: 1, 2: 1}, (1, 2): {1: 1, 2: 1}}


def test_a_cycle_does_not_keep_itself_alive() -> None:
    engine = started(REACH)
    do(engine, "+v 0, +e 0 1, +e 1 2, +e 2 1, +e 2 2")
    assert numbers(engine, "r") == {0: {1: 1}, 1: {2: 1, 4: 1}, 2: {3: 1, 4: 1}}
    do(engine, "-e 0 1")
    assert numbers(engine, "r") == {0: {1: 1}}


def test_a_fact_moves_to_an_earlier_level_and_back() -> None:
    engine = started(REACH)
    do(engine, "+v 0, +e 0 1, +e 1 2, +e 2 3, +e 3 4, +e 4 5")
    assert numbers(engine, "r")[4] == {5: 1}
    do(engine, "+e 1 4")
    assert numbers(engine, "r")[4] == {3: 1, 5: 1}
    assert numbers(engine, "r")[5] == {4: 1}
    do(engine, "-e 1 4")
    assert numbers(engine, "r")[4] == {5: 1}
    assert numbers(engine, "r")[5] == {6: 1}


def test_a_fact_moves_more_than_once_within_a_step() -> None:
    """The way to 1 over 0 goes, so what is new by the levels of before is later in the end."""
    engine = started(REACH)
    do(engine, "+v 0, +e 0 1, +e 1 2, +e 2 3, +e 3 4, +e 0 9, +e 9 8, +e 8 7, +e 7 1")
    assert numbers(engine, "r")[1] == {2: 1, 5: 1}
    do(engine, "-e 0 1, +e 1 4")
    assert numbers(engine, "r")[1] == {5: 1}
    assert numbers(engine, "r")[4] == {6: 1, 8: 1}
    do(engine, "-e 9 8, +e 0 1, -e 1 4")
    assert numbers(engine, "r") == {0: {1: 1}, 1: {2: 1}, 2: {3: 1}, 3: {4: 1}, 4: {5: 1}, 9: {2: 1}}


def test_a_fact_that_is_given_has_a_derivation_more() -> None:
    engine = started(REACH)
    do(engine, "+v 0, +e 0 1, +r 1, +r 0, +e 1 0")
    assert numbers(engine, "r") == {0: {1: 2, 2: 1}, 1: {1: 1, 2: 1}}
    do(engine, "-v 0, -r 0")
    assert numbers(engine, "r") == {0: {2: 1}, 1: {1: 1, 3: 1}}
    do(engine, "-r 1")
    assert numbers(engine, "r") == {}


def test_witnesses_are_not_kept() -> None:
    engine = started(REACH)
    do(engine, "+v 0, +e 0 1")
    assert engine.witness("r", (1,)) is None
    assert engine.strategy_of("r") == ("differential", "recursive, asked for")


def test_other_rules_leave_a_unit_as_it_is() -> None:
    engine = started(REACH)
    do(engine, "+v 0, +e 0 1")
    keeper = keeper_of(engine, "r")
    engine.change_program(compile_text(REACH + ".decl q(x:number)\nq(x) :- r(x), r(y), e(x, y).\n"))
    assert keeper_of(engine, "r") is keeper
    do(engine, "+e 1 2")
    assert engine.view("q") == {(0,), (1,)}
    engine.change_program(compile_text(REACH + "r(x) :- r(y), r(z), x = y + z, x < 4.\n"))
    do(engine, "-e 0 1")
    assert engine.view("r") == {(0,)}
    do(engine, "+v 1")
    assert engine.view("r") == {(0,), (1,), (2,), (3,)}


# ── work, limits, interruptions ──────────────────────────────────────────────────────────────────


def test_the_work_is_that_of_the_derivations_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = started(LINEAR)
    do(engine, ", ".join(f"+e {x} {x + 1}" for x in range(60)))  # 1 830 facts
    listed = []
    plain = Listing.__call__

    def counting(self: Listing, *arguments: Any) -> Any:
        for derivation in plain(self, *arguments):
            listed.append(derivation)
            yield derivation

    monkeypatch.setattr(Listing, "__call__", counting)
    engine.apply([Update("e", (60, 61))])
    assert len(listed) == 61  # p(x, 61) for each x
    listed.clear()
    engine.apply([Update("e", (60, 61), insert=False)])
    assert len(listed) == 61
    listed.clear()
    engine.apply([Update("e", (0, 2))])  # p(0, z) comes earlier, for 59 of them: each is listed twice
    assert len(listed) == 1 + 2 * 58


def test_a_recursion_without_end_meets_the_limit_and_leaves_no_trace() -> None:
    engine = started(BASE + ".decl n(x:number)\nn(x) :- v(x).\nn(x + 1) :- n(x), !e(x, x).\n", limits=Limits(30))
    do(engine, "+e 3 3, +v 0")
    with pytest.raises(LimitExceeded, match="more than 30 iterations of n"):
        engine.apply([Update("e", (3, 3), insert=False)])
    engine.check()
    assert numbers(engine, "n") == {0: {1: 1}, 1: {2: 1}, 2: {3: 1}, 3: {4: 1}}


def test_a_failing_rule_leaves_no_trace() -> None:
    engine = started(BASE + ".decl n(x:number)\nn(x) :- v(x).\nn(y) :- n(x), e(x, y), 6 / y > 0.\n")
    do(engine, "+v 1, +e 1 2, +e 2 3")
    before = numbers(engine, "n")
    for step in ("+e 3 0", "+e 3 1, +e 2 0", "-e 1 2, +e 1 3, +e 3 0"):
        with pytest.raises(EvaluationError):
            do(engine, step)
        engine.check()
        assert numbers(engine, "n") == before


def test_an_interruption_anywhere_leaves_no_trace() -> None:
    """Ctrl-C before any line of the strategy, with the shield as it is."""
    text = DOUBLE + ".decl q(x:number)\nq(x) :- p(x, y), p(y, x), !p(x, x).\n"
    steps = "+e 1 2, +e 2 3, +e 3 1, +e 3 4", "-e 2 3, +e 1 3, +e 4 2"
    engine = started(text)
    do(engine, steps[0])
    before = {name: engine.view(name) for name in "epq"}, numbers(engine, "p")
    interrupted, at = True, 0
    while interrupted:
        at += 11
        left = at

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal left
            if frame.f_code.co_filename != differential.__file__:
                return trace if event == "call" else None
            left -= event == "line"
            if left == 0:
                engine.guard.interrupt(KeyboardInterrupt())
            return trace

        updates = [Update("e", row, row != (2, 3)) for row in ((2, 3), (1, 3), (4, 2))]
        outer = sys.gettrace()
        sys.settrace(trace)
        try:
            engine.apply(updates)
            interrupted = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(outer)
        if interrupted:
            engine.check()
            assert ({name: engine.view(name) for name in "epq"}, numbers(engine, "p")) == before
    assert at > 500
    engine.check()


# ── the circuit that it is ───────────────────────────────────────────────────────────────────────

edges = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)
ROUNDS = 7


def round_of(e: ZSet[Any], p: ZSet[Any]) -> ZSet[Any]:
    """One iteration of non-linear closure, with the number of derivations: `distinct` comes after."""
    there = distinct(p)
    return e + ZSet.summed(
        ((left[0], right[1]), n) for (left, right), n in join(there, there, lambda a: a[1], lambda b: b[0]).items()
    )


@given(st.lists(edges, min_size=1, max_size=4))
def test_the_numbers_are_those_of_the_nested_stream(states: list[set[Any]]) -> None:
    """The change of the numbers in step t at level k is the value of the loop at (t, k - 1)."""
    zero: ZSet[Any] = ZSet()
    changes = streams.differentiate(streams.stream(map(ZSet.of, states), zero))
    step = streams.incremental(streams.lift(streams.incremental(streams.lift(round_of))))
    loop: Any = streams.fix(
        lambda a: step(streams.lift(streams.impulse)(changes), streams.lift(streams.delay)(a)),
        streams.stream((), zero),
    )
    engine = started(DOUBLE)
    for t in range(len(states)):
        before = numbers(engine, "p")
        engine.apply([Update("e", row, n > 0) for row, n in changes[t].items()])
        after = numbers(engine, "p")
        for level in range(1, ROUNDS + 1):
            found = ZSet(
                {
                    row: after.get(row, {}).get(level, 0) - before.get(row, {}).get(level, 0)
                    for row in {*before, *after}
                }
            )
            assert found == loop[t][level - 1], f"step {t}, level {level}"


# ── against the reference ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_every_step_is_what_the_reference_says(shape: str, data: st.DataObject) -> None:
    program = compile_text(f"{DECLARATIONS}\n{SHAPES[shape]}\n")
    kinds = {name: tuple(c.kind.value for c in program.relations[name].columns) for name in program.relations}
    given_too = {rule.head.relation for rule in program.rules}  # facts of views may be given, too
    pool = USED | {name: kinds[name] for name in sorted(given_too)[: data.draw(st.integers(0, 1))]}
    oracle = Recomputing(reference.evaluate).start(program)
    engine = Engine(program, strategies={"*": "differential"}, large=10**9)
    first = [(name, row, True) for name, rows in data.draw(generators.facts(USED)).items() for row in rows]
    for step in [first, *data.draw(generators.streams(pool, steps=8))]:
        updates = [Update(*update) for update in step]
        expected, changes = oracle.apply(updates), engine.apply(updates)
        assert {n: dict(c) for n, c in changes.items()} == {n: dict(c) for n, c in expected.items()}
        for name in program.relations:
            assert engine.view(name) == oracle.view(name), f"{name} after {step}"
        engine.check()

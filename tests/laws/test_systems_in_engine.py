"""A relation that a system maintains equals the meaning of its rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog import Changes, Database
from everlog.core.engine.planning.systems import Refused, systems
from everlog.core.evaluate.reference import evaluate
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.ies.offers import SYSTEMS

CLOSURE = {
    "left": "r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z).",
    "right": "r(x, y) :- e(x, y).  r(x, z) :- e(x, y), r(y, z).",
    "doubly": "r(x, z) :- e(x, y), r(y, z).  r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z).",
    "nonlinear": "r(a, c) :- r(b, c), r(a, b).  r(a, b) :- e(a, b).",
    "turned": "r(y, x) :- e(x, y).  r(z, x) :- e(y, z), r(y, x).",
    "backwards": "r(a, b) :- e(b, a).  r(c, a) :- r(b, a), r(c, b).",
}
GENERATION = {
    "reflexive": "r(x, x) :- e(x, _).  r(y, y) :- e(_, y).  r(x, y) :- e(a, x), e(b, y), r(a, b).",
    "siblings": "r(x, y) :- e(p, x), e(p, y).  r(x, y) :- e(a, x), r(a, b), e(b, y).",
    "unequal": "r(x, y) :- e(p, x), e(p, y), x != y.  r(x, y) :- e(a, x), r(a, b), e(b, y), x != y.",
    "unequal step": "r(x, y) :- e(p, x), e(p, y).  r(x, y) :- y != x, e(a, x), r(a, b), e(b, y).",
    "reflexive, unequal step": "r(x, x) :- e(x, _). r(y, y) :- e(_, y). r(x, y) :- e(a, x), r(a, b), e(b, y), x != y.",
    "upwards": "r(x, y) :- e(x, p), e(y, p).  r(y, x) :- e(x, a), r(b, a), e(y, b).",
}
ALTERNATING = {
    "as in the paper": """
      .decl place(x:number)  .decl first(x:number, z:number)  .decl last(x:number, z:number)
      .decl following(x:number, w:number, z:number)  .decl some(y:number, x:number, z:number)
      place(x) :- u(x).  place(x) :- e(x, _).  place(y) :- e(_, y).
      first(x, z) :- e(x, z), z = min w : { e(x, w) }.
      last(x, z) :- e(x, z), z = max w : { e(x, w) }.
      following(x, w, z) :- w = min v : { e(x, v), v > z }, e(x, z).
      r(x, x) :- place(x).
      r(x, y) :- e(x, z), r(z, y), !u(x).
      some(y, x, z) :- u(x), first(x, z), r(z, y).
      some(y, x, w) :- some(y, x, z), following(x, w, z), r(w, y).
      r(x, y) :- some(y, x, z), last(x, z).""",
}
SHAPES = {"transitive closure": CLOSURE, "same generation": GENERATION, "alternating paths": ALTERNATING}
CASES = [
    pytest.param(system, text, id=f"{system}-{name}")
    for shape, systems_ in SYSTEMS.items()
    for system in systems_
    for name, text in SHAPES[shape].items()
]
DECLARED = ".decl e(x:number, y:number)  .decl r(x:number, y:number)  .decl u(x:number)\n"
nodes = st.integers(0, 3)
facts = st.tuples(st.just("e"), st.tuples(nodes, nodes)) | st.tuples(st.just("u"), st.tuples(nodes))
updates = st.tuples(st.booleans(), facts)


@pytest.mark.parametrize(("system", "text"), CASES)
@settings(max_examples=12)
@given(steps=st.lists(st.lists(updates, min_size=1, max_size=3), max_size=6))
def test_a_system_keeps_what_the_rules_mean(
    system: str, text: str, steps: list[list[tuple[bool, tuple[str, tuple[int, ...]]]]]
) -> None:
    """Inserts and deletes of present and absent facts; a refused step changes nothing."""
    program = compile_text(DECLARED + text)
    db = Database(program, strategies={"r": system})
    assert db._engine.strategy_of("r")[0] == system
    given_: dict[str, set[tuple[int, ...]]] = {"e": set(), "u": set()}
    for number, step in enumerate(steps):
        then = {name: set(rows) for name, rows in given_.items()}
        for insert, (name, row) in step:
            (then[name].add if insert else then[name].discard)(row)
        before = {name: db.view(name) for name in db.relations}
        told = applied(db, [(name, row, 1 if insert else -1) for insert, (name, row) in step])
        if isinstance(told, str):
            assert system in told
            assert has_cycle(then["e"]) or "limit" in told
            assert {name: db.view(name) for name in db.relations} == before
            continue
        given_ = then
        db._engine.check()
        wanted = evaluate(program, given_)
        for name in program.relations:
            assert db.view(name) == sorted(wanted[name]), f"{name} after step {number}"
        for name in db.relations:
            came = {row for row, sign in told[name].items() if sign > 0} if name in told else set()
            gone = {row for row, sign in told[name].items() if sign < 0} if name in told else set()
            assert set(db.view(name)) == (set(before[name]) - gone) | came, name


def applied(db: Database, step: list[tuple[str, tuple[int, ...], int]]) -> Changes | str:
    """What a step changed, or why it was refused."""
    try:
        return db.apply(step)
    except Refused as error:
        return str(error)


def has_cycle(edges: set[tuple[int, ...]]) -> bool:
    left = set(edges)
    while True:
        sources = {x for x, _ in left}
        kept = {(x, y) for x, y in left if y in sources}
        if kept == left:
            return bool(left)
        left = kept


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z), x != z.",
            "r#2 has `x != z`, which is not in the shape",
        ),
        ("r(x, y) :- e(x, y), u(x).  r(x, z) :- r(x, y), e(y, z).", "r#1 has `u(x)`, which is not in the shape"),
        ("r(x, y) :- e(x, y).  r(x, z) :- r(y, x), e(y, z).", "r#2 is not a rule of this shape"),
        ("r(x, y) :- e(x, y).  r(x, z) :- r(x, y), f(y, z).", "r#2 reads `f` where r#1 reads `e`"),
        ("r(x, z) :- f(x, y), r(y, z).  r(x, y) :- e(x, y).", "r#1 reads `f` where r#2 reads `e`"),
        (
            "r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(z, y).",
            "r#2 has the columns of `e` in another order than r#1",
        ),
        ("r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z).  r(a, b) :- e(a, b).", "r#3 says the same as r#1"),
        (
            "r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z).  r(a, b) :- f(a, b).",
            "r#3 is not among the rules of the shape",
        ),
        ("r(x, z) :- r(x, y), e(y, z).", "there is no rule `r(x, y) :- e(x, y).`"),
        ("r(z, x) :- r(y, x), e(z, y).", "there is no rule `r(y, x) :- e(y, x).`"),
        ("r(x, z) :- e(y, x), r(y, z).", "there is no rule `r(y, x) :- e(x, y).`"),
        ("r(x, y) :- e(x, y).", "is not recursive"),
        ("r(x, 1) :- e(x, 1).  r(x, z) :- r(x, y), e(y, z).", "r#1 is not a rule of this shape"),
        ("r(x, y) :- e(x, y).  r(x, z) :- r(x, y), e(y, z).  r(1, 2).", "`r` has facts of its own"),
    ],
)
def test_another_query_is_refused_with_the_reason(text: str, reason: str) -> None:
    source = DECLARED + ".decl f(x:number, y:number)\n" + text
    with pytest.raises(ValueError, match="tc_witness") as error:
        Database(compile_text(source), strategies={"r": "tc_witness"})
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "r(x, y) :- e(p, x), e(p, y).  r(x, y) :- e(a, x), r(a, b), f(b, y).",
            "r#2 reads `e` and `f` where the shape",
        ),
        (
            "r(x, y) :- f(p, x), f(p, y).  r(x, y) :- e(a, x), r(a, b), e(b, y).",
            "r#1 reads `f` where r#2 reads `e`",
        ),
        ("r(x, x) :- e(x, _).  r(x, y) :- e(a, x), r(a, b), e(b, y).", "there is no rule `r(x, x) :- e(_, x).`"),
        (
            "r(x, y) :- e(p, x), e(p, y), x != y.  r(c, d) :- e(a, c), r(a, b), e(b, d).",
            "r#1 has `x != y`, which does not",
        ),
    ],
)
def test_another_query_than_same_generation_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="not same generation") as error:
        Database(
            compile_text(DECLARED + ".decl f(x:number, y:number)\n" + text),
            strategies={"r": "same_generation_counts"},
        )
    assert reason in str(error.value)


def test_a_relation_of_alternating_paths_that_lacks_a_rule_is_named() -> None:
    text = DECLARED + ALTERNATING["as in the paper"]
    for without, reason in [
        ("place(y) :- e(_, y).", "there is no rule `place(y) :- e(_, y).`"),
        ("r(x, x) :- place(x).", "there is no rule `r(x, x) :- place(x).`"),
    ]:
        assert without in text
        with pytest.raises(ValueError, match="not alternating paths") as error:
            Database(compile_text(text.replace(without, "")), strategies={"r": "alternating_counters"})
        assert reason in str(error.value)


def test_every_system_that_is_offered_is_known() -> None:
    assert set(systems()) == {name for names in SYSTEMS.values() for name in names}
    assert issubclass(Refused, EvaluationError)

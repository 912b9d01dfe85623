"""Rules that read relations for parts of their bodies hold the same facts as without."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from covered_bodies import NAMES, another, bodies
from hypothesis import given, note
from hypothesis import strategies as st
from living import Oracle, examples, plain, updates

from everlog import Database
from everlog.core.engine import Engine
from everlog.core.engine.planning.plan import make_plan
from everlog.core.program import Program
from everlog.dsl.check import compile_text

BASE = ".decl e(x:number, y:number)  .decl v(x:number)\n"
RECURSIVE = [
    ".decl p(x:number, y:number)",
    "p(x, y) :- e(x, y).",
    "p(x, z) :- p(x, y), e(y, w), e(w, z).",
]
value = st.integers(0, 3)


def _renamed(text: str, names: dict[str, str]) -> str:
    return "".join(names.get(c, c) for c in text)


@st.composite
def rules(draw: st.DrawFn) -> list[str]:
    """A line for each relation; bodies have earlier ones as parts, with other names."""
    lines: list[str] = []
    before: list[tuple[list[str], list[str]]] = []
    for n in range(draw(st.integers(2, 5))):
        literals, bound = draw(bodies(3))
        if before and draw(st.integers(0, 3)):
            part, shown = draw(st.sampled_from(before))
            names = dict(zip(NAMES, draw(st.permutations(NAMES)), strict=True))
            other = {name: draw(st.sampled_from([name, f"{name}1"])) for name in NAMES}
            more = [_renamed(each, other) for each in literals] if draw(st.booleans()) else []
            literals = [_renamed(another(draw, each), names) for each in part] + more
            there = " ".join(literals)
            bound = [name for name in (_renamed(each, names) for each in shown) if name in there]
        before.append((literals, [name for name in bound if len(name) == 1]))
        head = draw(st.lists(st.sampled_from(bound), max_size=3)) if bound else []
        columns = ", ".join(f"c{i}:number" for i in range(len(head)))
        lines.append(f".decl r{n}({columns})  r{n}({', '.join(head)}) :- {', '.join(literals)}.")
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), " ".join(RECURSIVE))
    return lines


changes = st.one_of(
    st.tuples(st.just("e"), st.tuples(value, value), st.booleans()),
    st.tuples(st.just("v"), st.tuples(value), st.booleans()),
)


@st.composite
def steps(draw: st.DrawFn, program: Program) -> list[Any]:
    """Changes of base facts, and now and then a fact of a derived relation."""
    step = draw(st.lists(changes, max_size=5))
    if not draw(st.integers(0, 5)):
        name = draw(st.sampled_from([n for n in program.relations if n not in ("e", "v")]))
        step.append((name, (1,) * program.relations[name].arity, draw(st.booleans())))
    return step


def _agrees(engine: Engine, oracle: Oracle) -> None:
    for name, rows in oracle.state.items():
        assert engine.view(name) == rows, name
    engine.check()


def _opened_again(engine: Engine) -> Engine:
    """An engine from the state that is saved."""
    given = {name: list(engine.given(name)) for name in engine.program.relations}
    return Engine(engine.program, given=given, kept={name: columns for name, _, columns in engine.state()})


@examples(150)
@given(rules(), st.data())
def test_rules_that_read_what_is_kept(lines: list[str], data: st.DataObject) -> None:
    note("\n".join(lines))
    program = compile_text(BASE + "\n".join(lines))
    engine, oracle = Engine(program, large=data.draw(st.sampled_from([1, 64]))), Oracle(program)
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(steps(program))
        engine.what_if(updates(step), plain)
        assert plain(engine.apply(updates(step))) == oracle.apply(updates(step))
        _agrees(engine, oracle)
        if data.draw(st.integers(0, 4)) == 0:
            engine = _opened_again(engine)
            _agrees(engine, oracle)
        if data.draw(st.integers(0, 2)) == 0:  # other rules: some go, or come back
            kept = [line for line in lines if data.draw(st.booleans())] or lines
            program = compile_text(BASE + "\n".join(kept))
            given = {name: oracle.given.get(name, set()) for name in program.relations}
            engine.change_program(program)
            oracle = Oracle(evolve(program, facts={name: tuple(rows) for name, rows in given.items()}))
            _agrees(engine, oracle)


TWO = ".decl two(x:number, y:number)  two(a, c) :- e(a, b), e(b, c).\n"


def _reads(text: str, own: tuple[str, ...] = ()) -> dict[str, str]:
    plan = make_plan(compile_text(BASE + text), own=own)
    return {name: "; ".join(map(str, found)) for name, found in plan.coverings.items()}


def test_names_constants_and_filters_do_not_matter() -> None:
    found = _reads(f"{TWO} .decl q(z:number)  q(z) :- e(1, y), e(y, z), z > 2.")
    assert found == {"q#1": "two(1, z) for e(1, y), e(y, z)  (two#1 with a → 1, b → y, c → z)"}


def test_equal_rules_do_not_read_each_other() -> None:
    found = _reads(f"{TWO} .decl q(x:number, y:number)  q(x, z) :- e(x, y), e(y, z).")
    assert list(found) == ["q#1"]


def test_a_relation_that_depends_on_a_rule_is_not_read_by_it() -> None:
    text = """.decl e2(x:number, y:number)  .decl two(x:number, y:number)
        two(a, c) :- e2(a, b), e2(b, c).  e2(a, c) :- e(a, c), v(c).  e2(a, c) :- e2(a, b), e2(b, c), v(a)."""
    assert _reads(text) == {}


def test_rules_before_the_relation_stay_as_they_are() -> None:
    assert _reads(f".decl q(x:number)  q(x) :- e(x, y), e(y, 1).\n{TWO}") == {}


def test_strategies_and_orders_that_were_asked_for_are_followed() -> None:
    q = ".decl q(x:number)  q(x) :- e(x, y), e(y, 1).\n"
    assert _reads(TWO + q) != {}
    assert _reads(f"{TWO}{q}.strategy delta") == {}
    assert _reads(f"{TWO}{q}.plan 0:(2, 1)") == {}
    assert _reads(f"{TWO}{q}.view two") == {}
    assert _reads(f"{TWO.replace(')  two', ') magic  two')}{q}") == {}
    assert _reads(TWO + q, own=("two",)) == {}


def test_a_replacement_that_makes_an_update_dearer_is_not_made() -> None:
    triangles = ".decl q(x:number, y:number, z:number)  q(x, y, z) :- e(x, y), e(y, z), e(z, x).\n"
    paths = ".decl p(x:number, y:number, z:number)  p(x, y, z) :- e(x, y), e(y, z).\n"
    assert "q#1" not in _reads(paths + triangles)  # O(D^1/2) by a view of its own


def test_facts_of_its_own_send_readers_back_to_their_bodies() -> None:
    db = Database.from_text(f"{BASE}{TWO}.decl q(z:number)  q(z) :- e(1, y), e(y, z).")
    db.insert_all({"e": [(1, 2), (2, 3)]})
    assert "reads        two(1, z)" in db.explain("q#1")
    told = db.insert("two", (1, 9))
    assert {name: dict(change) for name, change in told.items()} == {"two": {(1, 9): 1}}
    assert "reads" not in db.explain("q#1")
    assert db.rows("q") == [(3,)]
    db.delete("two", (1, 9))
    db.delete("e", (2, 3))
    assert db.rows("q") == []


def test_other_rules_of_the_relation_send_readers_back() -> None:
    db = Database.from_text(f"{BASE}{TWO}.decl q(z:number)  q(z) :- e(1, y), e(y, z).")
    db.insert_all({"e": [(1, 2), (2, 3)]})
    db.add_rule("two(x, y) :- e(x, y), v(x).")
    assert "reads" not in db.explain("q#1")
    db.insert("v", (1,))
    assert db.rows("q") == [(3,)]
    db.drop_rule("two#2")
    assert "reads" in db.explain("q#1")

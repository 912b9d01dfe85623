"""A view has the facts of the same relation if it is stored, and tells the same changes."""

from __future__ import annotations

import re
from typing import Any

import generators
import pytest
from generators import VALUES, Case
from hypothesis import assume, given, note
from hypothesis import strategies as st
from living import Oracle, compiled, examples, first_step, plain, updates

from everlog import Database
from everlog.core.engine import Engine
from everlog.core.engine.keepers.views.view_table import ViewTable
from everlog.core.engine.stepping.found_changes import StepIsOver
from everlog.core.evaluate import reference
from everlog.core.program import Program
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError

BASE = {"e": 2, "f": 2, "g": 1, "h": 3}
REFUSALS = {"DL080", "DL081", "DL082", "DL084", "DL085", "DL015"}
DECLARED = "".join(
    f".decl {name}({', '.join(f'c{n}:number' for n in range(arity))})\n" for name, arity in BASE.items()
)


def with_views(text: str, names: list[str]) -> tuple[Program, set[str]]:
    """The program with those of the relations as views that can be ones."""
    chosen: list[str] = []
    program = compiled(text)
    for name in names:
        try:
            program = compile_text(text + "".join(f"\n.view {each}" for each in [*chosen, name]))
            chosen.append(name)
        except DatalogError as error:
            if not {d.code for d in error.report.errors} <= REFUSALS:
                raise
    return program, set(chosen)


def agrees(engine: Engine, oracle: Oracle, views: set[str], data: st.DataObject) -> None:
    for name, rows in oracle.state.items():
        found = list(engine.stream(name))
        assert len(found) == len(set(found)), f"{name}: an answer comes twice"
        assert set(found) == rows, name
        assert engine.size(name) == len(rows), name
    for name in sorted(views):
        assert isinstance(engine.tables[name], ViewTable)
        columns = engine.program.relations[name].columns
        row = tuple(data.draw(st.sampled_from(VALUES[column.kind.value])) for column in columns)
        assert (row in engine.tables[name]) == (row in oracle.state[name])
        assert all(each in engine.tables[name] for each in oracle.state[name])
        some = data.draw(st.sets(st.integers(0, len(columns) - 1))) if columns else set()
        wanted = {each for each in oracle.state[name] if all(each[n] == row[n] for n in some)}
        assert set(engine.lookup(name, {n: row[n] for n in some})) == wanted, (name, some, row)
    engine.check()


def follows(text: str, inputs: Any, stream: Any, data: st.DataObject) -> None:
    try:
        stored = compiled(text)
        derived = sorted(name for name in stored.relations if stored.rules_of(name))
        names = data.draw(st.lists(st.sampled_from(derived), unique=True)) if derived else []
        program, views = with_views(text, names)
        note(text + "".join(f"\n.view {name}" for name in sorted(views)))
        oracle, engine = Oracle(stored), Engine(program, large=data.draw(st.sampled_from([1, 64])))
        assert reference.evaluate(program, oracle.given) == oracle.state
    except EvaluationError:
        assume(False)
        raise
    for whole in [first_step(inputs), *stream]:
        step = [change for change in whole if change[0] not in views]
        expected = oracle.apply(updates(step))
        try:
            changes = engine.apply(updates(step))
        except EvaluationError:
            assert expected is None
            continue
        assert expected is not None
        assert {name: len(change) for name, change in changes.items()} == {n: len(c) for n, c in expected.items()}
        assert plain(changes) == expected
        for name, change in changes.items():
            assert all(change[row] == sign for row, sign in expected[name].items())
        agrees(engine, oracle, views, data)
        engine.what_if(updates(step), plain)


@examples(80)
@given(generators.cases(), st.data())
def test_views_of_random_programs(case: Case, data: st.DataObject) -> None:
    follows(*case, data)


@examples(60)
@given(generators.dense_cases(), st.data())
def test_views_of_dense_programs(case: Case, data: st.DataObject) -> None:
    follows(*case, data)


@st.composite
def joins(draw: st.DrawFn) -> str:
    """A view of one or two rules over base relations, and a relation that reads it."""
    arity = draw(st.integers(0, 4))
    rules = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        body, names = [], "abcde"[: draw(st.integers(1, 5))]
        used: list[str] = []
        for _ in range(draw(st.integers(1, 4))):
            relation = draw(st.sampled_from(sorted(BASE)))
            args = [draw(st.sampled_from([*names, *names, "_", "1"])) for _ in range(BASE[relation])]
            used += [arg for arg in args if arg in names]
            body.append(f"{relation}({', '.join(args)})")
        if used and draw(st.integers(0, 4)) == 0:
            body.append(f"{draw(st.sampled_from(used))} {draw(st.sampled_from(['<', '!=', '=']))} 2")
        if used and draw(st.integers(0, 6)) == 0:
            body.append(f"{draw(st.sampled_from(used))} <= {draw(st.sampled_from(used))}")
        shown = list(dict.fromkeys(used))[:arity] if draw(st.booleans()) else []
        while len(shown) < arity:
            shown.append(draw(st.sampled_from([*used, *used, "1", *([f"{used[0]} + 1"] if used else [])])))
        rules.append(f"v({', '.join(shown)}) :- {', '.join(body)}.\n")
    columns = ", ".join(f"c{n}:number" for n in range(arity))
    args = ", ".join(f"x{n}" if n else "x0" for n in range(arity))
    reader = f".decl w({columns})\nw({args}) :- v({args}), {'x0 > 0' if arity else 'g(1)'}.\n"
    return f"{DECLARED}.decl v({columns})\n{''.join(rules)}{reader}"


def changes_of(relations: dict[str, int]) -> st.SearchStrategy[Any]:
    value = st.integers(0, 3)
    return st.sampled_from(sorted(relations)).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(*[value] * relations[name]), st.booleans())
    )


@examples(150)
@given(joins(), st.lists(st.lists(changes_of(BASE), max_size=6), max_size=6), st.data())
def test_views_of_random_joins(text: str, stream: Any, data: st.DataObject) -> None:
    stored = compile_text(text)
    program, views = with_views(text, ["v"])
    assert views == {"v"}
    note(text)
    engine, oracle = Engine(program, large=data.draw(st.sampled_from([1, 64]))), Oracle(stored)
    first = {n: [(1,) * a, (2,) * a] for n, a in BASE.items()}
    for step in [first_step(first), *stream]:
        expected = oracle.apply(updates(step))
        assert expected is not None
        changes = engine.apply(updates(step))
        assert plain(changes) == expected
        assert {name: len(change) for name, change in changes.items()} == {n: len(c) for n, c in expected.items()}
        agrees(engine, oracle, views, data)
    engine.change_program(stored)
    assert engine.view("v") == oracle.state["v"]
    told = engine.change_program(program)
    assert not told.get("v")
    agrees(engine, oracle, views, data)


PATH = DECLARED + ".decl p(a:number, b:number, c:number)\n.view p\np(a, b, c) :- e(a, b), f(b, c).\n"


def test_a_change_is_read_until_the_next_step() -> None:
    db = Database.from_text(PATH)
    db.insert("e", (1, 2))
    changes = db.insert("f", (2, 3))
    assert dict(changes["p"]) == {(1, 2, 3): 1}
    db.insert("g", (1,))  # which the view does not read
    assert dict(changes["p"]) == {(1, 2, 3): 1}
    db.insert("f", (2, 4))
    with pytest.raises(StepIsOver, match="until the next step"):
        dict(changes["p"])
    with pytest.raises(StepIsOver):
        len(list(changes["p"]))


def test_what_if_tells_what_a_view_would_lose() -> None:
    db = Database.from_text(PATH)
    db.insert_all({"e": [(1, 2), (5, 2)], "f": [(2, 3)]})
    assert dict(db.what_if("-f(2, 3).")["p"]) == {(1, 2, 3): -1, (5, 2, 3): -1}
    assert db.rows("p") == [(1, 2, 3), (5, 2, 3)]


def test_a_view_of_ten_thousand_million_answers() -> None:
    """Counted, tested, begun and told without being enumerated."""
    db = Database.from_text(PATH)
    many = range(100_000)
    db.insert_all({"e": [(n, 0) for n in many], "f": [(0, n) for n in many]})
    assert db.size("p") == 10**10
    assert (99_999, 0, 77_777) in db["p"]
    assert (1, 1, 1) not in db["p"]
    found = iter(db.query("p(a, b, c)"))
    assert len({next(found) for _ in range(100)}) == 100
    assert len(db.query("p(5, b, c), c < 10")) == 10
    assert len(db.insert("e", (100_000, 0))["p"]) == 100_000
    gone = db.delete("f", (0, 7))["p"]
    assert len(gone) == 100_001
    assert next(iter(gone.items()))[1] == -1
    assert (3, 0, 7) in gone
    assert db.size("p") == 99_999 * 100_001
    db.insert_all({"e": [(n, 1) for n in many]})  # a large step
    assert db.size("p") == 99_999 * 100_001


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p(a, b, c) :- e(a, b), p(b, c, _).", "view `p` depends on itself"),
        ("p(1, 2, 3).", "it has facts of its own"),
        (".input p", "it has facts of its own"),
        (".limitsize p(n=3)", "it has a size limit"),
        (".insert_only p", "it is `.insert_only`"),
        ("p(a, b, c) :- e(a, b), f(b, c), !g(a).", "neither an atom nor a comparison"),
        ("p(a, b, 1 / a) :- e(a, b).", "a rule of it may fail"),
    ],
)
def test_what_cannot_be_a_view(text: str, why: str) -> None:
    with pytest.raises(DatalogError, match=re.escape(why)):
        compile_text(PATH + text)

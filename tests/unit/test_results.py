"""Queries and results: their meaning, laziness, and the effect of steps."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from everlog import ChangedMeanwhile, Database, DatalogError, EvaluationError, FactError, FunctorError, QueryError
from everlog.api.results import KEPT
from everlog.dsl.check import compile_text

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl blocked(x:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2). edge(2, 3). edge(3, 4). edge(4, 5). blocked(4).
"""


@pytest.fixture
def db() -> Database:
    return Database.from_text(PATHS)


# ── what a query means ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("path(1, x), x > 3, !blocked(x)", ("x",), [(5,)]),
        ("?- path(1, x), x > 3, !blocked(x).", ("x",), [(5,)]),
        ("path(1, x), x > 3, !blocked(x)?", ("x",), [(5,)]),
        (" ?-\n  path(1, x),\n  x > 3 // and so on\n", ("x",), [(4,), (5,)]),
        ("path(y, x), y > 3", ("y", "x"), [(4, 5)]),
        ("path(y, x), y > 3. // that is all", ("y", "x"), [(4, 5)]),
        ("/* now */ path(y, x), /* then */ y > 3? /* and\nthen */ // end", ("y", "x"), [(4, 5)]),
        ('blocked(x), s = "http://a"', ("x", "s"), [(4, "http://a")]),
        ("x = 3", ("x",), [(3,)]),
        ("true", (), [()]),
        ("false", (), []),
        ("path(x, _), x > 2", ("x",), [(3,), (4,)]),
        ("edge(_from, x), x > 3", ("x",), [(4,), (5,)]),
        ("edge(1, 2), edge(2, 3)", (), [()]),
        ("edge(1, 2), edge(2, 9)", (), []),
        ("edge(x, 2) ; edge(x, 4)", ("x",), [(1,), (3,)]),
        ("edge(x, y), (y = 2 ; x = 3)", ("x", "y"), [(1, 2), (3, 4)]),
        ("edge(x, y), z = x * y, z >= 12", ("x", "y", "z"), [(3, 4, 12), (4, 5, 20)]),
        ("n = count : { path(1, _) }", ("n",), [(4,)]),
        ("edge(x, _), n = count : { path(x, _) }, n < 3", ("x", "n"), [(3, 2), (4, 1)]),
        ("m = max y : { edge(_, y) }, edge(x, m)", ("m", "x"), [(5, 4)]),
        ("x = range(3, 6), !edge(x, 5)", ("x",), [(3,), (5,)]),
        ("s = cat(to_string(x), \"!\"), blocked(x)", ("s", "x"), [("4!", 4)]),
        ("edge(x, y), false", ("x", "y"), []),
        # one atom: whole facts, under the names of the relation's columns
        ("path(3, z)", ("z",), [(4,), (5,)]),
        ("?- path(3, z).", ("z",), [(4,), (5,)]),
        ("path(3, z)?", ("z",), [(4,), (5,)]),
        ("path(b, a)", ("b", "a"), [(1, 2), (1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)]),
        ("path(x, _)", ("x",), [(1,), (2,), (3,), (4,)]),
        ("path(3, _)", (), [()]),
        ("path(5, _)", (), []),
        ("path(1, 2)", (), [()]),
        ("path(1 + 2, z)", ("z",), [(4,), (5,)]),
        ("path(a, a + 1), true", ("a",), [(1,), (2,), (3,), (4,)]),
        ("path(a, a + 1)", ("a",), [(1,), (2,), (3,), (4,)]),
    ],
)  # fmt: skip
def test_what_a_query_finds(
    db: Database, text: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]
) -> None:
    result = db.query(text)
    assert result.columns == columns
    assert result == rows
    assert result.rows() == rows
    assert sorted(result) == rows
    assert len(result) == len(rows)
    assert bool(result) is bool(rows)
    assert repr(result) == repr(rows)
    assert sorted(db.query(text)) == rows  # asked again, and gone through at once


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("path(1, x", "DL010", (1, 10)),
        ("?- path(1, x), edge(x,", "DL010", (1, 23)),
        ("path(1, x), !blocked(z)", "DL040", (1, 22)),
        ("path(1, x),\n  y < x", "DL040", (2, 3)),
        ("edge(x, _) ; edge(_, y)", "DL040", (1, 6)),
        ("pth(1, x), x > 3", "DL050", (1, 1)),
        ("blocked(x), edge(x)", "DL051", (1, 13)),
        ('path(1, x), x > "a"', "DL032", (1, 13)),
        ("path(1, x), y = @f(x)", "DL056", (1, 17)),
        ("path(1, x). path(2, x)", "DL010", (1, 13)),
        ("path(1, x), y = autoinc()", "DL044", (1, 17)),
        ("path(x, y) :- edge(x, y)", "DL010", (1, 12)),
    ],
)
def test_a_mistake_has_its_code_and_its_place(db: Database, text: str, code: str, place: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as caught:
        db.query(text)
    first = caught.value.report.as_json()[0]
    assert (first["code"], (first["line"], first["column"]), first["file"]) == (code, place, "<query>")
    assert isinstance(caught.value, DatalogError)
    assert isinstance(caught.value, FactError)
    assert text.splitlines()[place[0] - 1] in str(caught.value)


def test_inlined_relations_and_types_of_the_program() -> None:
    db = Database.from_text("""
      .type City <: symbol  .type Person <: symbol
      .decl lives(who:Person, at:City)  lives("Ada", "London").  lives("Emmy", "Erlangen").
      .decl short(s:symbol) inline  short(s) :- strlen(s) < 7.
      .decl nested(s:symbol) inline  nested(s) :- short(s), s != "Emmy".
    """)
    assert db.query("lives(x, y), short(y)") == [("Ada", "London")]
    assert db.query("lives(x, _), nested(x)") == [("Ada",)]
    assert db.query('short("Bern")') == [()]
    with pytest.raises(QueryError, match="DL031"):
        db.query("lives(x, y), x = y")
    with pytest.raises(QueryError, match="DL040"):
        db.query("short(x)")
    db.drop_rule("short(s) :- strlen(s) < 7.")
    db.add_rule("short(s) :- strlen(s) < 4.")
    assert db.query("lives(x, _), nested(x)") == [("Ada",)]
    assert db.query("lives(_, y), short(y)") == []


def test_a_program_without_text_is_asked_too() -> None:
    db = Database(compile_text(PATHS))
    assert db.query("path(1, x), !blocked(x), x > 2") == [(3,), (5,)]


def test_functors_in_queries() -> None:
    text = ".functor half(number):number  .decl n(x:number)  n(4). n(0)."
    db = Database.from_text(text, functors={"half": lambda x: x // 2})
    assert db.query("n(x), y = @half(x)") == [(0, 0), (4, 2)]
    with pytest.raises(FunctorError, match="@half"):
        Database.from_text(text).query("n(x), y = @half(x)")


def test_an_error_on_the_way_names_the_query(db: Database) -> None:
    with pytest.raises(EvaluationError) as caught:
        db.query("edge(x, y), z = y / (x - 2)").rows()
    assert "edge(x, y), z = y / (x - 2)" in str(caught.value)
    assert "<query>:1" in str(caught.value)
    assert db.query("edge(x, y), x != 2, z = y / (x - 2)").rows()


def test_queries_declare_nothing_and_follow_the_program(db: Database) -> None:
    before = list(db.relations)
    assert db.query("path(1, x), x < 3") == [(2,)]
    assert list(db.relations) == before
    with pytest.raises(QueryError, match="far"):
        db.query("far(x), x > 0")
    db.add_rule(".decl far(x:number)  far(x) :- path(1, x), x > 3.")
    assert db.query("far(x), x > 0") == [(4,), (5,)]
    db.delete("edge", (4, 5))
    assert db.query("far(x), x > 0") == [(4,)]


def test_more_loops_than_python_nests(db: Database) -> None:
    walk = ", ".join(f"edge(x{i}, x{i + 1})" for i in range(30))
    db.insert("edge", [(i, i + 1) for i in range(5, 40)])
    assert len(db.query(f"{walk}, x0 < 3")) == 2


def test_auxiliary_relations_are_read() -> None:
    db = Database.from_text(
        ".decl e(x:number, y:number)  .decl p(x:number, y:number)  e(1, 2).  e(2, 3)."
        "p(x, y) :- e(x, y).  p(x, z) :- p(x, y), e(y, z).",
        strategies={"p": "tc_witness"},
    )
    auxiliary = next(name for name in db.relations if name.startswith("p."))
    columns = ", ".join(f"v{n}" for n in range(db.relations[auxiliary].arity))
    assert db.query(f"{auxiliary}({columns}), true").rows() == db.view(auxiliary)


# ── when rows are found ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def counted() -> tuple[Database, list[int]]:
    """A hundred thousand numbers, and those that a functor of a query was asked about."""
    asked: list[int] = []

    def seen(x: int) -> int:
        asked.append(x)
        return x

    db = Database.from_text(
        ".functor seen(number):number  .decl n(x:number)  .decl big(x:number, y:number)", functors={"seen": seen}
    )
    db.insert("n", [(i,) for i in range(100_000)])
    db.insert("big", [(i % 7, i) for i in range(100_000)])
    return db, asked


@pytest.mark.parametrize(
    "text",
    ["n(x), @seen(x) >= 0", "big(x, y), @seen(y) >= 0", "big(3, y), @seen(y) >= 0", "big(_, y), @seen(y) > -1"],
)
def test_the_first_row_is_there_before_the_second_is_looked_for(
    counted: tuple[Database, list[int]], text: str
) -> None:
    db, asked = counted
    found = iter(db.query(text))
    assert asked == []
    assert next(found)
    assert len(asked) == 1
    next(found)
    assert len(asked) == 2
    assert db.query(text)
    assert len(asked) == 3


def test_a_long_result_is_not_written_out(counted: tuple[Database, list[int]]) -> None:
    db, asked = counted
    text = repr(db.query("n(x), @seen(x) >= 0"))
    assert len(asked) < 2000
    assert len(text) < 500
    assert text.startswith("<Result (x): more than 1000 rows: (")
    assert repr(db.query("n(x), x < 3")) == "[(0,), (1,), (2,)]"


def test_the_size_of_a_relation_needs_no_rows(counted: tuple[Database, list[int]]) -> None:
    db, _ = counted
    result = db.query("big(x, y)")
    assert len(result) == 100_000
    assert result._sorted is None
    assert result[0] == (0, 0)
    assert result[-2:] == [(6, 99_987), (6, 99_994)]


# ── steps in between ─────────────────────────────────────────────────────────────────────────


def test_a_loop_over_few_rows_may_write(db: Database) -> None:
    for row in db.query("edge(x, y)"):
        db.delete("edge", row)
    assert db.view("path") == []


def test_a_small_result_stays_what_it_was(db: Database) -> None:
    before, lazy = db.facts("path(1, x)"), iter(db.query("edge(x, y), x > 1"))
    first = next(lazy)
    db.delete("edge", (2, 3))
    assert before == [(1, 2), (1, 3), (1, 4), (1, 5)]
    assert sorted([first, *lazy]) == [(2, 3), (3, 4), (4, 5)]
    assert db.query("path(1, x)") == [(2,)]


def test_a_large_result_says_that_the_database_has_stepped_on() -> None:
    db = Database.from_text(".decl n(x:number)", facts={"n": [(i,) for i in range(KEPT + 1)]})
    result, kept, other = db.query("n(x)"), db.query("n(x)"), db.query("n(x), x >= 0")
    under_way, other_under_way = iter(result), iter(other)
    next(under_way), next(other_under_way)
    rows = kept.rows()
    db.insert("n", (-1,))
    uses = [
        lambda: next(under_way),
        lambda: next(other_under_way),
        lambda: next(iter(result)),
        lambda: len(result),
    ]
    uses += [result.rows, other.rows, lambda: other == [], lambda: repr(result), lambda: bool(result)]
    for use in uses:
        with pytest.raises(ChangedMeanwhile, match="ask it again"):
            use()
    assert kept.rows() == rows
    assert len(kept) == KEPT + 1
    assert len(db.query("n(x)")) == KEPT + 2


@pytest.mark.parametrize("write", ["step", "failing step", "program", "transaction"])
def test_whatever_may_change_the_tables_ends_a_large_result(write: str) -> None:
    text = ".decl n(x:number)  .decl m(x:number)  m(10 / (x - 5000000)) :- n(x)."
    db = Database.from_text(text, facts={"n": [(i,) for i in range(KEPT + 1)]})
    found = iter(db.query("n(x)"))
    next(found)
    if write == "step":
        db.insert("n", [(-1,), (-2,)])
    elif write == "failing step":
        with pytest.raises(EvaluationError):
            db.insert("n", (5_000_000,))
    elif write == "program":
        db.add_rule("n(-1).")
    else:
        with db.transaction() as tx:
            tx.insert("n", (-1,))
            next(found)  # nothing has changed yet
    with pytest.raises(ChangedMeanwhile):
        next(found)


def test_what_nobody_holds_any_more_costs_no_step_anything() -> None:
    calls: list[int] = []

    def find() -> Iterator[tuple[int]]:
        calls.append(1)
        return iter(())

    db = Database.from_text(".decl n(x:number)")
    for _ in range(3):
        result = db.query("n(x)")
        result._find = find
    del result
    gc.collect()
    db.insert("n", (1,))
    assert calls == []
    assert not db._writer.state.open


def test_a_result_is_like_a_list(db: Database) -> None:
    result = db.facts("path(2, x)")
    assert result == db.facts("path(2, _)") != db.facts("path(1, _)")
    assert result != [(2, 3)]
    assert result != "path"
    assert (2, 3) in result
    assert (3, 2) not in result
    assert result.index((2, 4)) == 1
    assert list(reversed(result)) == [(2, 5), (2, 4), (2, 3)]
    with pytest.raises(TypeError):
        hash(result)
    rows = result.rows()
    rows.clear()
    assert len(result) == 3


def test_facts_are_whole(db: Database) -> None:
    assert db.facts("path(3, _)") == db.facts("path(3, z)") == [(3, 4), (3, 5)]
    assert db.facts("path(3, _)").columns == ("x", "y")
    assert db.facts("path(1 + 2, z)") == db.facts("path($a, z)", a=3) == [(3, 4), (3, 5)]
    with pytest.raises(ValueError, match="is not one atom; `query` answers any body of a rule"):
        db.facts("path(3, z), z > 4")


def test_a_filter_does_not_change_the_shape_of_an_answer(db: Database) -> None:
    for atom in ("path(3, z)", "path(x, y)", "path(x, x)", "path(x, _)", "path(_, _)", "path(1, 2)"):
        plain, filtered = db.query(atom), db.query(f"{atom}, true")
        assert (plain.columns, plain.kinds, plain.rows()) == (filtered.columns, filtered.kinds, filtered.rows())

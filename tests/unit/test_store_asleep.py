"""Databases that are opened without loading them: reads from the file are reads of an engine."""

from __future__ import annotations

import math
import sqlite3
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from durable import PATHS, assert_right, grown, reopened, views
from hypothesis import given
from hypothesis import strategies as st

from everlog import Database, EvaluationError
from everlog.core.native import availability
from everlog.core.program import Row
from everlog.core.runtime.guards import Limits
from everlog.store import records, sorted_rows
from everlog.store.errors import Damaged, StateLost, StoreError
from everlog.store.file_format import DERIVED


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture(params=["native", "pure"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How rows are sorted: on the compiled machine, if there is one, or in Python."""
    if request.param == "pure":
        monkeypatch.setattr(sorted_rows, "why_not", lambda: "it is not wanted")
    elif availability.why_not():
        pytest.skip(availability.why_not())
    return str(request.param)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CHUNK", 3)
    monkeypatch.setattr(sorted_rows, "BLOCKS", 2)


def made(path: Path, number: int = 30) -> Database:
    """A database that sleeps."""
    with Database.open(path, text=PATHS, facts={"edge": [(x, x + 1) for x in range(number)]}) as db:
        db.insert("path", (5, 3))
        db.checkpoint(state=True)
    db = Database.open(path)
    assert db.asleep
    return db


def damage(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute(statement).rowcount
    connection.commit()
    connection.close()


# ── reads ────────────────────────────────────────────────────────────────────────────────────


def test_reads_of_single_relations_do_not_wake_it(path: Path, small_blocks: None, machine: str) -> None:
    db = made(path)
    paths = [(x, y) for x in range(30) for y in range(x + 1, 31)]
    paths += [(5, 3), (5, 4), (5, 5)]
    assert db.size("path") == len(paths)
    assert db.view("path") == sorted(paths)
    assert db.query("path(7, x)") == [(x,) for x in range(8, 31)]
    assert db.query("path(7, 9)")
    assert not db.query("path(9, 7)")
    assert db.query("path(27, _)") == [()]
    assert not db.query("path($x, _)", x=30)
    assert db.query("path(x, _)") == [(x,) for x in range(30)]
    assert db.query("path(x, x)") == [(5,)]
    assert db.query("path(x, 2)") == [(0,), (1,)]
    assert db.facts("path($x, _)", x=29) == [(29, 30)]
    assert db.holds("path", (5, 3))
    assert not db.holds("path", (50, 3))
    assert (4, 5) in db["path"]
    assert db.given("path") == [(5, 3)]
    assert len(db.given("edge")) == 30
    assert db.lookup("path", {0: "other"}) == []
    assert f"{len(paths) + 30} facts" in repr(db)
    assert db.asleep
    db.close()


JOINS = [  # with parameters
    ("path(7, x), edge(x, y), y > 12", {}),
    ("path(27, x), !edge(x, _)", {}),
    ("edge(3, x), path(x, y), path(y, 6)", {}),
    ("edge($from, x), edge(x, y), x = y - 1", {"from": 4}),
    ("path(2, x), x != 3, x <= $most order by x desc limit 2", {"most": 6}),
    ("edge(1, x); edge(2, x); path(28, x)", {}),
    ("edge(1, x), 1 = x", {}),
    ("edge(4, x), path(x, x), edge(x, _)", {}),
]


@pytest.mark.parametrize(("query", "given"), JOINS)
def test_queries_that_look_ups_answer_do_not_wake_it(
    path: Path, small_blocks: None, query: str, given: dict[str, Any]
) -> None:
    with made(path) as db:
        found = list(db.query(query, **given))
        assert db.asleep
        db.insert("edge", (98, 99))
        assert found == list(db.query(query, **given)), query


@pytest.mark.parametrize(
    "query", ["path(x, y), edge(y, 9)", "edge(1, x), n = count : { path(x, _) }", "edge(3, y), 12 / y = 3"]
)
def test_other_queries_wake_it(path: Path, small_blocks: None, query: str) -> None:
    with made(path) as db:
        assert len(db.query(query))
        assert not db.asleep


def test_a_query_of_too_many_look_ups_wakes_it_on_the_way(path: Path, small_blocks: None) -> None:
    with made(path) as db:
        query = "edge(1, a), path(a, b), path(b, c), path(c, d)"
        rows = iter(db.query(query))
        first = next(rows)
        assert db.asleep
        found = [first, *rows]
        assert not db.asleep
        assert len(found) == len(set(found)), "each once"
        assert set(found) == set(db.query(query))


def test_all_relations_are_as_they_were(path: Path, small_blocks: None, machine: str) -> None:
    db = grown(path)
    db.checkpoint(state=True)
    before, base = views(db), {name: db.given(name) for name in db.relations}
    db = reopened(db)
    assert repr(views(db)) == repr(before)
    assert {name: db.given(name) for name in db.relations} == base
    assert db.asleep
    assert_right(db)
    assert not db.asleep
    assert repr(views(db)) == repr(before)
    db.close()


COLUMNS = {
    "number": st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "unsigned": st.integers(0, 3) | st.just(2**64 - 1),
    "symbol": st.sampled_from(["", "a", "b", "é", "\udc80", "😀", "a\0"]),
    "float": st.sampled_from([-1.0, 0.0, 0.5, math.inf, -math.inf, math.nan]),
}


@given(data=st.data(), kinds=st.lists(st.sampled_from(sorted(COLUMNS)), max_size=3))
def test_rows_are_found_by_any_columns(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kinds: list[str]
) -> None:
    """By each set of columns, what is found is what all rows have that agree there."""
    rows = data.draw(st.lists(st.tuples(*[COLUMNS[kind] for kind in kinds]), max_size=25))
    declared = ", ".join(f"c{place}:{kind}" for place, kind in enumerate(kinds))
    text = f".decl r({declared})"
    for native, chunk in product((True, False), (2, 100)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "CHUNK", chunk)
            if not native:
                patch.setattr(sorted_rows, "why_not", lambda: "it is not wanted")
            path = tmp_path_factory.mktemp("rows") / "data.db"
            with Database.open(path, text=text, facts={"r": rows}) as db:
                db.checkpoint(state=True)
                found = db.view("r")
            with Database.open(path) as db:
                assert repr(db.view("r")) == repr(found)
                for number in range(len(kinds) + 1):
                    for columns in combinations(range(len(kinds)), number):
                        assert_found(db, found, columns)
                assert db.asleep or number == 0


def assert_found(db: Database, rows: list[Row], columns: tuple[int, ...]) -> None:
    stored = db._engine._stored.rows["r"]
    for row in rows:
        bound: dict[int, Any] = {column: row[column] for column in columns}
        agree = [other for other in rows if all(same(other[at], value) for at, value in bound.items())]
        assert sorted(map(repr, stored.matching(bound))) == sorted(map(repr, agree)), bound
        assert row in stored


def same(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)


def test_reading_all_rows_again_and_again_wakes_it(path: Path) -> None:
    """Without an index, each such lookup would read the whole relation."""
    db = made(path, 200)
    asleep = []
    for _ in range(10):
        assert db.query("path(x, 3)") == [(0,), (1,), (2,), (5,)]
        asleep.append(db.asleep)
    assert asleep[0]
    assert not asleep[-1]
    db.close()


# ── waking ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "wake",
    [
        lambda db: list(db.query("n = count : { path(_, _) }")),
        lambda db: db.why("path", (1, 3)),
        lambda db: db.add_rule(".decl n(x:number)  n(x) :- edge(x, _)."),
        lambda db: db.insert("edge", (40, 41)),
        lambda db: db.delete("edge", (4, 5)),
        lambda db: db.apply("+edge(1, 9).\n-edge(2, 3)."),
        lambda db: db.what_if("+edge(1, 9)."),
        lambda db: db.stats(),
        lambda db: db.checkpoint(),
        lambda db: db.subscribe("path(1, x)", print) and db.insert("edge", (41, 42)),
    ],
)
def test_everything_else_wakes_it(path: Path, wake: Any) -> None:
    db = made(path)
    wake(db)
    assert not db.asleep
    assert_right(db)
    db = reopened(db)
    assert_right(db)
    db.close()


def test_a_row_that_does_not_fit_is_refused_and_does_no_harm(path: Path) -> None:
    """The engine wakes in the middle of a step that fails."""
    db = made(path)
    with pytest.raises(Exception, match="nothing"):
        db._engine.insert({"nothing": [(1,)]})
    assert_right(db)
    db.insert("edge", (70, 71))
    assert db.step == 2
    db.close()


def test_if_waking_fails_it_sleeps_on(path: Path) -> None:
    made(path).close()
    damage(path, "DELETE FROM state")
    db = Database.open(path, limits=Limits(facts=5))
    for _ in range(2):
        with pytest.raises(EvaluationError, match="facts"), pytest.warns(StateLost):
            db.insert("edge", (40, 41))
    assert db.asleep
    assert db.step == 1
    assert db.query("path(29, x)") == [(30,)]
    db.close()
    with Database.open(path) as db:
        assert not db.holds("edge", (40, 41))


def test_an_answer_that_is_being_read_goes_on(path: Path, small_blocks: None) -> None:
    db = made(path)
    rows = iter(db.query("path(x, y)"))
    first = [next(rows) for _ in range(10)]
    db.why("path", (1, 3))
    assert not db.asleep
    assert sorted([*first, *rows]) == db.view("path")
    db.close()


def test_steps_since_the_checkpoint_are_read_by_an_engine(path: Path) -> None:
    db = made(path)
    db.insert("edge", (50, 51))
    db = reopened(db)
    assert not db.asleep
    assert db.holds("path", (50, 51))
    db.checkpoint(state=False)
    db = reopened(db)
    assert not db.asleep
    db.close()


def test_large_databases_can_be_opened_asleep_without_being_asked(path: Path) -> None:
    with Database.open(path, text=PATHS, facts={"edge": [(x, x + 1) for x in range(10)]}) as db:
        db.checkpoint()
    with Database.open(path) as db:
        assert not db.asleep
        db.insert("edge", [(x, x + 1) for x in range(100)])
        db.checkpoint()
    with Database.open(path) as db:
        assert db.asleep


def test_relations_without_rules_sleep_too(path: Path) -> None:
    with Database.open(path, text=".decl n(x:number)", facts={"n": [(x,) for x in range(3000)]}) as db:
        db.checkpoint()
    with Database.open(path) as db:
        assert db.holds("n", (77,))
        assert db.asleep


# ── readers and other versions ───────────────────────────────────────────────────────────────


def test_a_reader_sleeps_in_its_own_state(path: Path, small_blocks: None) -> None:
    """Whatever a writer does: also if it drops the steps in between."""
    made(path).close()
    with Database.open(path, read_only=True) as reader, Database.open(path) as db:
        before = views(reader)
        db.delete("edge", (4, 5))
        db.checkpoint(history=0, state=True)
        assert reader.asleep
        assert views(reader) == before
        assert reader.step == 1
        changes = reader.refresh()
        assert not reader.asleep
        assert views(reader) == views(db)
        assert (4, 5) in changes.deleted("path")
        assert_right(reader)


def test_after_closing_nothing_is_read(path: Path) -> None:
    db = made(path)
    db.close()
    with pytest.raises(StoreError, match="closed"):
        db.view("path")
    assert db.size("path") == 468


def test_a_file_of_an_earlier_version(path: Path) -> None:
    """Without the table, and with base facts that it wrote alone."""
    made(path).close()
    damage(path, "UPDATE about SET name = 'other' WHERE name = 'derived'")
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE derived")
    connection.close()
    with Database.open(path) as db:
        assert not db.asleep
        db.checkpoint(state=True)
    with Database.open(path) as db:
        assert db.asleep
        assert db.size("path") == 468
    connection = sqlite3.connect(path)
    made_before = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'derived'").fetchone()[0]
    connection.close()
    assert made_before.split("(", 1)[1] == DERIVED.split("(", 1)[1]


# ── damage ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "how",
    [
        "UPDATE derived SET check_sum = check_sum + 1 WHERE piece = {}",
        "UPDATE derived SET data = zeroblob(length(data)) WHERE piece = {}",
        "DELETE FROM derived WHERE piece = {}",
    ],
)
@pytest.mark.parametrize("piece", [0, 20, 155])
def test_derived_facts_that_are_lost_are_computed_again(
    path: Path, small_blocks: None, how: str, piece: int
) -> None:
    db = made(path)
    before = db.view("path")
    db.close()
    damage(path, how.format(piece))
    with Database.open(path) as db:
        rows = iter(db.query("path(x, y)"))
        with pytest.warns(StateLost, match="computed from the base facts"):
            found = list(rows)
        assert sorted(found) == before
        assert not db.asleep
        assert_right(db)
    with Database.open(path) as db:
        reached = [row for row in before if row[0] == before[3 * piece][0]]
        with pytest.warns(StateLost):
            assert db.facts(f"path({before[3 * piece][0]}, _)") == reached
        db.checkpoint(state=True)
    with Database.open(path) as db:
        assert db.view("path") == before
        assert db.asleep


def opened_and_changed(path: Path) -> Database:
    db = Database.open(path)
    db.insert("edge", (70, 71))
    return db


@pytest.mark.parametrize("what", ["about SET check_sum = 1 WHERE name = 'derived'", "state SET check_sum = 1"])
def test_a_state_that_is_lost_is_computed_again(path: Path, what: str) -> None:
    db = made(path)
    before = db.view("path")
    db.close()
    damage(path, f"UPDATE {what}")
    with pytest.warns(StateLost, match="computed from the base facts"):
        db = opened_and_changed(path)
    assert db.size("path") == len(before) + 1
    assert_right(db)
    db.close()


def test_base_facts_that_are_lost_are_reported(path: Path, small_blocks: None) -> None:
    made(path).close()
    damage(path, "UPDATE facts SET check_sum = check_sum + 1 WHERE piece = 5")
    before = path.read_bytes()
    with Database.open(path) as db:
        assert db.query("path(7, 8)")
        with pytest.raises(Damaged, match="facts of edge"):
            db.view("edge")
        with pytest.raises(Damaged, match="facts of edge"):
            db.insert("edge", (70, 71))
    assert path.read_bytes() == before


def test_views_are_not_written(path: Path) -> None:
    """Nobody could write the facts of a view of ten thousand million."""
    text = """.decl r(a:number, b:number)  .decl s(b:number, c:number)  .decl p(a:number, b:number, c:number)
        .view p  p(a, b, c) :- r(a, b), s(b, c)."""
    many = range(100_000)
    with Database.open(path, text=text, facts={"r": [(n, 0) for n in many], "s": [(0, n) for n in many]}) as db:
        db.checkpoint(state=True)
    with Database.open(path) as db:
        assert list(db.query("r(7, x)")) == [(0,)]
        assert db.size("p") == 10**10
        assert (7, 0, 8) in db["p"]
        db.delete("s", (0, 8))
        assert (7, 0, 8) not in db["p"]

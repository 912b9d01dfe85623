"""The past of a database, and its checkpoints and copies."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from durable import PATHS, assert_right, grown, reopened, views

from everlog import Database, FactError
from everlog.store import recovery, states
from everlog.store.errors import (
    NoSuchStep,
    ReadOnly,
    StoreError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


# ── the past ─────────────────────────────────────────────────────────────────────────────────


def test_states_of_the_past(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    states_then, rules_then = [views(db)], [dict(db.rules)]
    moves: list[Callable[[], object]] = [
        lambda: db.insert("edge", [(2, 3), (3, 4)]),
        lambda: db.delete("edge", (1, 2)),
        lambda: db.add_rule(".decl n(x:number)  n(x) :- path(x, _).  n(77)."),
        lambda: db.insert("n", (5,)),
        lambda: db.drop_rule("path#2"),
        lambda: db.drop_relation("n"),
        lambda: db.add_rule(".decl n(x:float)  n(1.0)."),
        lambda: db.insert("edge", (4, 5)),
    ]
    for move in moves:
        move()
        states_then.append(views(db))
        rules_then.append(dict(db.rules))
    for _ in range(2):
        assert [views(db.as_of(n)) for n in range(9)] == states_then
        assert repr(db.as_of(7).view("n")) == "[(1.0,)]"
        assert [dict(db.as_of(n).rules) for n in range(9)] == rules_then
        for n, m in [(0, 8), (8, 0), (3, 5), (5, 3), (2, 2), (0, 1), (7, 8)]:
            for name in ("edge", "path"):
                before, after = set(states_then[n].get(name, ())), set(states_then[m].get(name, ()))
                changes = db.diff(n, m, name)
                assert (set(changes.inserted(name)), set(changes.deleted(name))) == (
                    after - before,
                    before - after,
                )
        assert db.diff(3, 4) == {"n": {(5,): 1}}
        db.checkpoint(history="all")
        db = reopened(db)
    past = db.history("path")
    assert [entry.step for entry in past] == [1, 2, 5, 8]
    assert past[0].changes == {"path": {(1, 3): 1, (1, 4): 1, (2, 3): 1, (2, 4): 1, (3, 4): 1}}
    assert str(past[1]) == "step 2\n-path(1, 2).\n-path(1, 3).\n-path(1, 4)."
    assert [entry.step for entry in db.history("edge")] == [1, 2, 8]
    assert [entry.step for entry in db.history("n")] == [3, 4, 6, 7]
    with pytest.raises(FactError, match="undefined relation"):
        db.history("none")
    with pytest.raises(FactError, match="undefined relation"):
        db.diff(0, 1, "none")
    with pytest.raises(NoSuchStep, match="no step 9 yet"):
        db.as_of(9)
    with pytest.raises(NoSuchStep):
        db.as_of(-1)
    old = db.as_of(2)
    with pytest.raises(ReadOnly, match="state after step 2"):
        old.insert("edge", (1, 1))
    db.close()


def test_history_of_base_facts_needs_no_evaluation(path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", (2, 3))
        db.delete("edge", [(1, 2), (2, 3)])
        assert [dict(entry.changes) for entry in db.history("edge")] == [
            {"edge": {(2, 3): 1}},
            {"edge": {(1, 2): -1, (2, 3): -1}},
        ]
        assert db.history("edge")[0].time <= db.history("edge")[1].time


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────


def test_checkpoints_drop_history_and_shrink_the_file(path: Path) -> None:
    db = Database.open(path, text=PATHS, history=20)
    for number in range(200):
        db.insert("edge", [(number * 1000 + i, i) for i in range(50)])
    for number in range(195):
        db.delete("edge", [(number * 1000 + i, i) for i in range(50)])
    db = reopened(db)
    before, size = views(db), path.stat().st_size
    db.checkpoint()
    assert db.oldest == db.step - 20
    assert path.stat().st_size < size
    assert db.as_of(db.oldest).size("edge") == 1 + 25 * 50
    with pytest.raises(NoSuchStep, match="history goes back to step 375"):
        db.as_of(db.oldest - 1)
    db = reopened(db)
    assert (views(db), db.step, db.oldest) == (before, 395, 375)
    db.checkpoint(history=0)
    assert db.oldest == 395
    db = reopened(db, history="all")
    assert (views(db), db.step, db.oldest) == (before, 395, 395)
    db.insert("edge", (1, 1))
    db.checkpoint()
    assert db.oldest == 395
    db = reopened(db)
    db.checkpoint()
    assert db.oldest == 395
    db.close()


def test_a_long_log_is_shortened_at_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlog.store.recovery.LONG", 30)
    db = Database.open(path, text=PATHS)
    for number in range(40):
        db.insert("edge", (number, 3))
        db.delete("edge", (number, 3))
    db = reopened(db)
    assert db._file.base == 80
    assert db.oldest == 0
    assert db.as_of(1).holds("edge(0, 3)")
    db.close()


@pytest.mark.parametrize(
    "strategies", [{}, {"tc": "ranked_python"}, {"*": "view_tree"}, {"tc": "ranked_python", "sg": "recompute"}]
)
def test_the_state_of_a_checkpoint_is_as_good_as_evaluation(
    path: Path, strategies: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All stored units come back with ranks and counts, and follow updates."""
    db = grown(path, strategies=strategies)
    db.delete("e", db.view("e")[:3])
    db.checkpoint(state=True)
    kept = []
    decoded = states.decoded
    monkeypatch.setattr(recovery, "decoded", lambda units: kept.append(units) or decoded(units))
    generator = random.Random(4)
    for _ in range(3):
        before = views(db)
        db = reopened(db, strategies=strategies)
        assert db.asleep
        assert repr(views(db)) == repr(before)
        assert db.strategy_of("tc") == strategies.get("tc", db.strategy_of("tc"))
        assert not db.asleep
        assert "tri" in kept.pop()
        assert not kept
        assert repr(views(db)) == repr(before)
        assert_right(db)
        for _ in range(15):
            row = (generator.randrange(12), generator.randrange(12))
            (db.insert if generator.random() < 0.5 else db.delete)("e", row)
            assert_right(db)
        db.why(f"words{db.view('words')[0]}".replace("'", '"'))
        db.checkpoint(state=True)
    db.close()


def test_a_state_is_believed_by_the_same_program_engine_and_strategies_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = grown(path)
    db.checkpoint(state=True)
    db.insert("e", (3, 3))
    right = views(db)
    seen: list[bool] = []

    def looked(*given: Any) -> bool:
        seen.append(states.usable(*given))
        return seen[-1]

    monkeypatch.setattr(recovery, "usable", looked)
    db = reopened(db)
    db = reopened(db, strategies={"tc": "ranked_python"})
    with monkeypatch.context() as patch:
        patch.setattr(states, "engine_digest", lambda: "another engine")
        db = reopened(db)
    db = reopened(db)
    assert seen == [True, False, False, True]
    assert views(db) == right
    db.add_rule("tc(60, 60).")
    db = reopened(db)  # another program since: the state is not even looked at
    assert seen == [True, False, False, True]
    assert_right(db)
    db.close()


def test_rules_that_came_and_went_before_a_checkpoint(path: Path) -> None:
    """Witnesses refer to rules by numbers, which differ in an engine with a history."""
    db = grown(path)
    for _ in range(3):
        db.drop_rule("tc#2" if "tc#2" in db.rules else sorted(r for r in db.rules if r.startswith("tc#"))[-1])
        db.add_rule("tc(x, z) :- tc(x, y), e(y, z).")
    db.checkpoint(state=True)
    db = reopened(db)
    assert_right(db)
    db.why("tc", db.view("tc")[-1])
    db.add_rule("tc(x, x) :- sg(x, _).")
    assert_right(db)
    db.close()


def test_what_functors_say_is_never_kept(path: Path) -> None:
    text = ".functor f(x:number):number  .decl a(x:number)  .decl b(x:number)  b(@f(x)) :- a(x)."
    db = Database.open(path, text=text, functors={"f": lambda x: x + 1})
    db.insert("a", [(x,) for x in range(10)])
    db.checkpoint(state=True)
    db = reopened(db, functors={"f": lambda x: x + 2})
    assert db.view("b")[0] == (2,)
    db.close()


def test_what_is_faster_is_measured(path: Path) -> None:
    """A state is stored if it loads faster than its rules run, or if that is unknown."""
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", [(x, x + 1) for x in range(100)])
        for seconds, kept in ((0.0, False), (100.0, True)):
            db._engine.computed["path"] = seconds, db.size("path")
            found = states.worth_keeping(db._engine, "", {})
            assert (found is not None and "path" in found.units) is kept
        db._engine.computed.clear()
        found = states.worth_keeping(db._engine, "", {})
        assert found is not None
        assert set(found.units) == {"path"}


# ── copies ───────────────────────────────────────────────────────────────────────────────────


def test_saving_to_another_file(tmp_path: Path, path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", (2, 3))
        db.save(tmp_path / "copy.db")
        with pytest.raises(StoreError, match="already exists"):
            db.save(tmp_path / "copy.db")
        db.save(tmp_path / "folder")
        db.insert("edge", (3, 4))
    assert (tmp_path / "folder" / "edge.facts").read_text() == "1\t2\n2\t3\n"
    with Database.open(tmp_path / "copy.db") as copy:
        assert (copy.step, copy.size("path")) == (1, 3)
        assert copy.as_of(0).size("path") == 1
        copy.insert("edge", (9, 9))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.db", "data.db", "folder"]


def test_a_database_in_memory_is_saved_as_a_file(tmp_path: Path) -> None:
    db = Database.from_text(PATHS)
    db.insert("edge", (2, 3))
    db.delete("edge", (1, 2))
    db.add_rule(".decl n(x:number)  n(x) :- edge(x, _).")
    db.save(tmp_path / "new.everlog")
    with pytest.raises(StoreError, match="already exists"):
        db.save(tmp_path / "new.everlog")
    with Database.open(tmp_path / "new.everlog") as copy:
        assert (views(copy), dict(copy.rules), copy.step) == (views(db), dict(db.rules), 0)
        copy.drop_rule("n#1")

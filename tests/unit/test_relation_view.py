"""`db["edge"]`: a relation as a set of rows; changes as an asynchronous iterator."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog import ChangedMeanwhile, Changes, Database, FactError, NestedWrite, Update
from everlog.api.results import KEPT

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def db() -> Database:
    return Database.from_text(PATHS)


def test_rows_come_and_go(db: Database) -> None:
    db["edge"] += [(1, 2), (2, 3)]
    assert str(db.changes).count("\n") == 4
    db["edge"] += (3, 4)
    edge, path = db["edge"], db["path"]
    assert (len(edge), len(path)) == (3, 6)
    assert (1, 4) in path
    assert [1, 4] in path
    assert (4, 1) not in path
    edge -= (2, 3)
    assert db["path"].rows() == path.rows() == [(1, 2), (3, 4)]
    assert sorted(path) == [(1, 2), (3, 4)]
    assert str(edge.insert((4, 5))) == "+edge(4, 5).\n+path(3, 5).\n+path(4, 5)."
    assert str(edge.delete([(4, 5), (9, 9)])) == "-edge(4, 5).\n-path(3, 5).\n-path(4, 5)."
    assert repr(edge) == "<edge(x:number, y:number): 2 facts>"
    assert (edge.columns, edge.kinds) == (("x", "y"), ("number", "number"))
    assert path.given() == []


def test_assignment_replaces_base_facts_in_one_step(db: Database) -> None:
    db["edge"] = [(1, 2), (2, 3)]
    told: list[Changes] = []
    db["path"].subscribe(told.append)
    db["edge"] = [(2, 3), (3, 4)]
    assert str(told[0]) == "-path(1, 2).\n-path(1, 3).\n+path(2, 4).\n+path(3, 4)."
    assert len(told) == 1
    db["edge"] = db.query("path(x, y), y > 3")
    assert db["edge"].rows() == [(2, 4), (3, 4)]
    db["edge"] = []
    assert len(db["path"]) == 0
    db["edge"] = Database.from_text(PATHS + "edge(7, 8).")["path"]
    assert db["edge"].rows() == [(7, 8)]


def test_errors_are_reported(db: Database) -> None:
    with pytest.raises(FactError, match="did you mean `edge`"):
        db["egde"]
    with pytest.raises(FactError, match="undefined"):
        db["egde"] = [(1, 2)]
    with pytest.raises(FactError, match="'a' is not a number"):
        db["edge"] += [("a", 1)]
    with pytest.raises(FactError, match="2 column"):
        _ = (1,) in db["edge"]
    with pytest.raises(FactError):
        db["edge"] = [(1, "2")]
    with pytest.raises(TypeError):
        len(db)  # type: ignore[arg-type]  # of what would it be?
    assert db.view("edge") == []


def test_a_database_names_its_relations(db: Database) -> None:
    assert list(db) == ["edge", "path"]
    assert "edge" in db
    assert "egde" not in db
    assert bool(db)


def test_going_through_a_large_relation_while_it_changes() -> None:
    db = Database.from_text(".decl n(x:number)", facts={"n": [(i,) for i in range(KEPT + 5)]})
    rows = iter(db["n"])
    next(rows)
    db["n"] -= (0,)
    with pytest.raises(ChangedMeanwhile):
        next(rows)
    assert len(list(db["n"])) == KEPT + 4


def test_relations_of_components_and_without_columns() -> None:
    db = Database.from_text(".comp C { .decl r(x:number) }  .init c = C  .decl flag()")
    db["c.r"] += (1,)
    db["flag"] += ()
    assert list(db["c.r"]) == [(1,)]
    assert list(db["flag"]) == [()]
    assert () in db["flag"]


# ── changes that are awaited ─────────────────────────────────────────────────────────────────


def test_each_step_is_awaited(db: Database) -> None:
    async def main() -> list[str]:
        found = []
        async with db.watch("path") as steps:
            db["edge"] += (1, 2)
            db["edge"] += (1, 2)  # no change
            db["edge"] += (2, 3)
            steps.close()
            async for changes in steps:
                found.append(str(changes))
        db["edge"] += (3, 4)  # no subscriber
        return found

    assert asyncio.run(main()) == ["+path(1, 2).", "+path(1, 3).\n+path(2, 3)."]
    assert not db._writer.subscribers


def test_a_reader_waits_for_a_step_of_another_thread(db: Database) -> None:
    async def main() -> list[str]:
        async with db["edge"].watch() as steps:
            reading = asyncio.ensure_future(anext(steps))
            await asyncio.sleep(0)
            assert not reading.done()
            writer = threading.Thread(target=lambda: db.insert("edge", (1, 2)))
            writer.start()
            first = await reading
            writer.join()
            return [str(first)]

    assert asyncio.run(main()) == ["+edge(1, 2)."]


def test_closing_wakes_waiting_readers(db: Database) -> None:
    async def main() -> None:
        steps = db.watch()
        reading = asyncio.ensure_future(anext(steps, None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        steps.close()
        assert await asyncio.wait_for(reading, 10) is None

    asyncio.run(main())


def test_a_watch_outlives_its_event_loop(db: Database) -> None:
    steps = db.watch("edge")

    async def one() -> str:
        return str(await anext(steps))

    db["edge"] += (1, 2)
    assert asyncio.run(one()) == "+edge(1, 2)."
    db["edge"] += (2, 3)  # the loop that waited is closed
    assert asyncio.run(one()) == "+edge(2, 3)."

    async def another() -> str:
        reading = asyncio.ensure_future(one())
        await asyncio.sleep(0)
        db["edge"] += (3, 4)
        return await reading

    assert asyncio.run(another()) == "+edge(3, 4)."


def test_a_reader_may_write(db: Database) -> None:
    """Unlike a callback: the step is over when the reader gets its changes."""

    async def main() -> None:
        async with db.watch("edge") as steps:
            db["edge"] += (1, 2)
            async for changes in steps:
                [(_, y)] = changes.inserted("edge")
                if y == 4:
                    break
                db["edge"] += (y, y + 1)

    asyncio.run(main())
    assert db["edge"].rows() == [(1, 2), (2, 3), (3, 4)]
    with pytest.raises(ExceptionGroup) as caught, db.subscribe("edge", lambda _: db.insert("edge", (8, 9))):
        db["edge"] += (7, 8)
    assert caught.group_contains(NestedWrite)


@given(
    steps=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=3),
        max_size=12,
    ),
    limit=st.integers(1, 4),
    reads=st.lists(st.integers(0, 11), max_size=5),
)
def test_a_slow_reader_misses_nothing(
    steps: list[list[tuple[int, int, bool]]], limit: int, reads: list[int]
) -> None:
    """What is read sums to the relation, and at most `limit` steps wait."""
    db = Database.from_text(PATHS)

    async def main() -> None:
        sums: dict[tuple[object, ...], int] = {}
        known: set[tuple[object, ...]] = set()

        def take(changes: Changes) -> None:
            for row, sign in changes["path"].items():
                sums[row] = sums.get(row, 0) + sign
                assert sums[row] in (0, 1)
            known.clear()
            known.update(row for row, sum_ in sums.items() if sum_)

        async with db.watch("path", limit=limit) as waiting:
            for number, step in enumerate(steps):
                db.apply([Update("edge", (x, y), insert) for x, y, insert in step])
                assert waiting.waiting <= limit
                if number in reads and waiting.waiting:
                    take(await anext(waiting))
            waiting.close()
            async for changes in waiting:
                assert changes
                take(changes)
        assert known == set(db.view("path"))

    asyncio.run(main())


def test_a_watch_of_nothing_is_refused(db: Database) -> None:
    with pytest.raises(FactError, match="undefined"):
        db.watch("pth")
    with pytest.raises(ValueError, match="at least 1"):
        db.watch("path", limit=0)

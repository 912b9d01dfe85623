"""Two threads at one `Database`: the second gets an error that names the remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from everlog import ChangedMeanwhile, Database, NestedWrite, OtherThread, SharedDatabase

PROGRAM = """
    .decl edge(x:number, y:number)  .decl path(x:number, y:number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    .functor wait(number):number
    .decl slow(x:number)  .decl n(x:number)
    slow(@wait(x)) :- n(x).
"""


class Elsewhere:
    """A functor or callback that stops in its own thread until it is released."""

    def __init__(self) -> None:
        self.inside, self.go = Event(), Event()

    def wait(self, value: Any = 0) -> Any:
        self.inside.set()
        assert self.go.wait(20)
        return value

    @contextmanager
    def doing(self, act: Callable[[], object]) -> Iterator[None]:
        """Hold a thread in the middle of `act`."""
        failures: list[BaseException] = []

        def run() -> None:
            try:
                act()
            except BaseException as failure:
                failures.append(failure)

        thread = Thread(target=run)
        thread.start()
        assert self.inside.wait(20)
        try:
            yield
        finally:
            self.go.set()
            thread.join()
        assert not failures


@pytest.fixture
def other() -> Elsewhere:
    return Elsewhere()


@pytest.fixture
def db(other: Elsewhere) -> Database:
    return Database.from_text(PROGRAM, functors={"wait": other.wait}, facts={"edge": [(1, 2), (2, 3)]})


def moved_in_transaction(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", (3, 4))


READS: dict[str, Callable[[Database], object]] = {
    "query an atom": lambda db: db.query("path(1, x)").rows(),
    "query a conjunction": lambda db: list(db.query("path(1, x), path(x, y)")),
    "size of a result": lambda db: len(db.query("path(x, y)")),
    "view": lambda db: db.view("path"),
    "rows": lambda db: list(db.rows("path")),
    "given": lambda db: db.given("edge"),
    "holds": lambda db: db.holds("path", (1, 2)),
    "lookup": lambda db: db.lookup("path", {0: 1}),
    "size": lambda db: db.size("path"),
    "why": lambda db: db.why("path", (1, 2)),
    "why_not": lambda db: db.why_not("path", (3, 1)),
    "check": lambda db: db.check(),
    "in": lambda db: (1, 2) in db["edge"],
}
WRITES: dict[str, Callable[[Database], object]] = {
    "insert a row": lambda db: db.insert("edge", (3, 4)),
    "insert rows": lambda db: db.insert("edge", [(3, 4), (4, 5)]),
    "delete": lambda db: db.delete("edge", (1, 2)),
    "apply": lambda db: db.apply("+edge(3, 4).\n-edge(1, 2)."),
    "+=": lambda db: db.__setitem__("edge", db["edge"].__iadd__([(3, 4)])),
    "add_rule": lambda db: db.add_rule("edge(3, 4)."),
    "transaction": lambda db: moved_in_transaction(db),
}
NAMED = r"another thread .* uses the same database.*`everlog.SharedDatabase\(db\)`"


@pytest.mark.parametrize("use", [*READS, *WRITES])
def test_a_database_is_refused_during_a_step_of_another_thread(db: Database, other: Elsewhere, use: str) -> None:
    with other.doing(lambda: db.insert("n", (7,))), pytest.raises(OtherThread, match=NAMED):
        (READS | WRITES)[use](db)
    assert db.view("slow") == [(7,)]
    assert db.view("edge") == [(1, 2), (2, 3)]
    (READS | WRITES)[use](db)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("asked", [".rows()", "row by row", "holds"])
def test_writes_are_refused_while_another_thread_reads(
    db: Database, other: Elsewhere, write: str, asked: str
) -> None:
    def read() -> None:
        result = db.query("edge(x, _), y = @wait(x), y > 1")
        if asked == "row by row":
            assert next(iter(result)) == (2, 2)
        elif asked == "holds":
            db._writer.state.read(other.wait)
        else:
            assert result.rows() == [(2, 2)]

    with other.doing(read), pytest.raises(OtherThread, match="another thread is reading"):
        WRITES[write](db)
    assert db.view("edge") == [(1, 2), (2, 3)]
    WRITES[write](db)


@pytest.mark.parametrize("write", WRITES)
def test_a_transaction_of_another_thread_keeps_writers_out_and_readers_not(
    db: Database, other: Elsewhere, write: str
) -> None:
    def transact() -> None:
        with db.transaction() as tx:
            tx.insert("edge", (8, 9))
            other.wait()

    with other.doing(transact):
        with pytest.raises(OtherThread, match="another thread has a transaction open"):
            WRITES[write](db)
        assert db.view("edge") == [(1, 2), (2, 3)]
    assert db.view("edge") == [(1, 2), (2, 3), (8, 9)]


def test_a_transaction_is_of_the_thread_that_opened_it(db: Database) -> None:
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            tx.insert("edge", (8, 9))
        except OtherThread as error:
            caught.append(error)

    with db.transaction() as tx:
        thread = Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert len(caught) == 1
    assert not tx.changes


def test_while_subscribers_run_others_read_and_do_not_write(db: Database, other: Elsewhere) -> None:
    db.subscribe("edge", other.wait)
    with other.doing(lambda: db.insert("edge", (3, 4))):
        assert db.holds("path", (1, 4))
        with pytest.raises(OtherThread, match="another thread is calling the subscribers of a step"):
            db.insert("edge", (4, 5))
    db.insert("edge", (4, 5))


def test_a_watch_may_begin_while_another_thread_writes(db: Database, other: Elsewhere) -> None:
    with other.doing(lambda: db.insert("n", (7,))):
        steps = db.watch("slow")
    assert steps.waiting == 1


def test_a_database_may_go_from_thread_to_thread(db: Database, other: Elsewhere) -> None:
    """One thread at a time suffices: any thread may use it, with results left over."""
    left = db.query("path(x, y)")
    rows = iter(left)
    next(rows)
    for number in range(3):
        thread = Thread(target=lambda number=number: db.insert("edge", (3 + number, 4 + number)))
        thread.start()
        thread.join()
    assert len(list(rows)) == 2
    assert left.rows() == [(1, 2), (1, 3), (2, 3)]
    assert db.size("edge") == 5


def test_a_write_by_the_same_thread_is_no_matter_of_threads(db: Database) -> None:
    """Writes of a functor in a step or a query, or of a callback, get their own error."""
    caught: list[BaseException] = []

    def writes(value: Any) -> Any:
        try:
            db.insert("edge", (9, 9))
        except NestedWrite as error:
            caught.append(error)
        return 1

    db = Database.from_text(PROGRAM, functors={"wait": writes})
    db.insert("n", (1,))
    db.query("n(x), y = @wait(x)").rows()
    list(db.query("n(x), y = @wait(x)"))
    db.subscribe("edge", writes)
    db.insert("edge", (1, 2))
    assert {type(error) for error in caught} == {NestedWrite}
    assert [str(error).split(":")[0] for error in caught] == [
        "a step is in progress",
        "a query is being answered",
        "a query is being answered",
        "subscribers are being called",
    ]
    assert db.view("edge") == [(1, 2)]


def test_threads_that_do_not_wait_for_each_other_harm_nothing() -> None:
    """They get these errors, and the relations stay what an evaluation gives."""
    rows = [(i, (i * 3 + 1) % 40) for i in range(40)]
    db = Database.from_text(PROGRAM, functors={"wait": lambda x: x}, facts={"edge": rows})
    done, unclear = Event(), list[BaseException]()
    told = 0

    def work(act: Callable[[int], object], rounds: int | None) -> None:
        nonlocal told
        number = 0
        while number < rounds if rounds is not None else not done.is_set():
            number += 1
            try:
                act(number)
            except (OtherThread, ChangedMeanwhile):
                told += 1
            except BaseException as error:
                unclear.append(error)

    def write(number: int) -> None:
        (db.delete if number % 2 else db.insert)("edge", rows[number // 2 % 40])

    def read(number: int) -> None:
        list(db.query("path($x, y), path(y, z)", x=number % 40))
        db.view("path")
        list(db.query(f"path(x, {number % 40}), x > {number % 7}"))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [Thread(target=work, args=(write, 300)), *(Thread(target=work, args=(read, None)) for _ in "ab")]
        for thread in threads:
            thread.start()
        threads[0].join()
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not unclear
    assert db.check() == []
    db.insert("edge", (100, 101))
    assert db.holds("path", (100, 101))


def test_shared_databases_join_a_transaction_of_the_same_thread(db: Database) -> None:
    shared = SharedDatabase(db)
    with shared.transaction() as tx:
        assert not shared.insert("edge", (3, 4))
        tx.delete("edge", (1, 2))
        shared.apply("+edge(1, 5).", positions={"source": "1"})
        thread = Thread(target=lambda: shared.insert("edge", (7, 8)))
        thread.start()
        thread.join()
        assert shared.view("edge") == [(1, 2), (2, 3), (7, 8)]
        with pytest.raises(NestedWrite, match="open transaction"), shared.transaction():
            pass
    assert shared.view("edge") == [(1, 5), (2, 3), (3, 4), (7, 8)]
    assert tx.changes["edge"] == {(3, 4): 1, (1, 5): 1, (1, 2): -1}
    assert shared.positions == {"source": "1"}
    assert shared.insert("edge", (9, 9))

"""One database for many threads: no thread sees half of a step."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everlog import Changes, Database, EvaluationError, NestedWrite, SharedDatabase
from everlog.api.fair_lock import FairLock
from everlog.store.errors import NotWritten, ReadOnly

TOKENS = 24
PROGRAM = """
// each token is here or there, never both, never none
.decl here(t:number)
.decl there(t:number)
.decl all(t:number)
all(t) :- here(t).
all(t) :- there(t).
.decl both(t:number)
both(t) :- here(t), there(t).
.decl counted(n:number)
counted(n) :- n = count : { all(_) }.
.decl next(t:number, u:number)
next(t, t + 1) :- all(t).
.decl reach(t:number, u:number)
reach(t, u) :- next(t, u), here(t).
reach(t, v) :- reach(t, u), next(u, v), here(u).
"""


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    """Threads change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_all(workers: list[Callable[[], object]]) -> None:
    """Run each in a thread of its own; raise the first error."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def begun(path: Path | None) -> SharedDatabase:
    facts = {"here": [(t,) for t in range(TOKENS)]}
    if path is None:
        return SharedDatabase(Database.from_text(PROGRAM, facts=facts))
    return SharedDatabase(Database.open(path, text=PROGRAM, facts=facts))


@pytest.mark.parametrize("durable", [False, True])
def test_no_read_is_torn(tmp_path: Path, durable: bool) -> None:
    """Tokens go to and fro in steps, while readers look at several relations."""
    shared = begun(tmp_path / "data.db" if durable else None)
    stop = threading.Event()
    looked = [0] * 4

    def writer(seed: int) -> Callable[[], None]:
        def work() -> None:
            chance = random.Random(seed)
            for _ in range(60):
                tokens = chance.sample(range(TOKENS), chance.choice([1, 2, 12]))
                with shared.reading():
                    there = {t for (t,) in shared.view("there")}
                with shared.transaction() as tx:
                    for token in tokens:
                        # others may have moved it since: either way it is in one place afterwards
                        tx.delete("there" if token in there else "here", (token,))
                        tx.insert("here" if token in there else "there", (token,))

        return work

    def reader(number: int) -> Callable[[], None]:
        def work() -> None:
            while not stop.is_set():
                with shared.reading():
                    here, there = set(shared.view("here")), set(shared.query("there(t)"))
                    assert len(here) + len(there) == TOKENS
                    assert not here & there
                    assert set(shared.view("all")) == here | there
                    assert shared.size("both") == 0
                assert shared.query("counted(n)") == [(TOKENS,)]
                assert shared.query("all(t), !here(t), !there(t)") == []
                reach = shared.view("reach")
                assert all(u > t for t, u in reach)
                assert len({t for t, _ in reach}) <= TOKENS
                looked[number] += 1

        return work

    writers = [writer(seed) for seed in range(3)]

    def all_writers() -> None:
        try:
            run_all(writers)  # type: ignore[arg-type]
        finally:
            stop.set()

    run_all([all_writers, *(reader(number) for number in range(4))])
    assert min(looked) > 0
    assert shared._database.check() == []
    shared.close()


def test_changes_are_reported_in_the_order_of_steps(tmp_path: Path) -> None:
    shared = begun(tmp_path / "data.db")
    with shared.reading():  # the state, and all that follows it
        state = {name: set(shared.view(name)) for name in shared.relations}
        heard: list[tuple[int, Changes]] = []
        shared.subscribe("*", lambda changes: heard.append((shared.step, changes)))

    def work() -> None:
        for token in range(TOKENS, TOKENS + 20):
            shared.insert("here", (token,))
            shared.delete("here", (token,))

    run_all([work] * 3)
    assert [step for step, _ in heard] == list(range(1, shared.step + 1))
    for _, changes in heard:
        for name in changes:
            state[name] = (state[name] - set(changes.deleted(name))) | set(changes.inserted(name))
    assert state == {name: set(shared.view(name)) for name in shared.relations}
    assert {name: set(rows) for name, rows in state.items() if name == "here"} == {
        "here": {(t,) for t in range(TOKENS)}
    }
    shared.close()


def test_writing_while_reading_is_refused() -> None:
    shared = begun(None)
    with shared.reading():
        with shared.reading():
            pass
        for write in (
            lambda: shared.insert("here", (99,)),
            lambda: shared.add_rule("here(99)."),
            lambda: shared.transaction().__exit__(None, None, None),
        ):
            with pytest.raises(NestedWrite, match=r"inside `with shared\.reading"):
                write()
    heard: list[bool] = []

    def callback(changes: Changes) -> None:
        heard.append(shared.holds("here(99)"))
        with pytest.raises(NestedWrite):
            shared.insert("here", (100,))

    shared.subscribe("here", callback)
    shared.insert("here", (99,))
    assert heard == [True]


def test_a_transaction_is_dropped_by_an_exception() -> None:
    shared = begun(None)
    tx = shared.transaction()

    def failing() -> None:
        with tx:
            tx.insert("here", (99,))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with pytest.raises(RuntimeError, match="it is discarded"):
        _ = tx.changes
    assert not shared.holds("here", (99,))
    with shared.transaction() as tx:
        tx.apply("+here(99).\n-here(0).")
    assert tx.changes is not None
    assert tx.changes["all"] == {(99,): 1, (0,): -1}


def test_a_step_that_fails_in_one_thread_is_seen_by_no_other(tmp_path: Path) -> None:
    shared = begun(tmp_path / "data.db")
    shared.add_rule(".decl bad(x:number)  bad(1 / (t - 50)) :- here(t), t > 40.")
    stop = threading.Event()

    def failing() -> None:
        try:
            for _ in range(50):
                with pytest.raises(EvaluationError):
                    shared.insert("here", [(41,), (50,)])
        finally:
            stop.set()

    def looking() -> None:
        while not stop.is_set():
            assert shared.size("here") == TOKENS

    run_all([failing, looking, looking])
    shared.close()
    with pytest.raises(ReadOnly):
        shared.insert("here", (30,))


def test_the_past_is_for_all_threads(tmp_path: Path) -> None:
    shared = begun(tmp_path / "data.db")
    for token in range(10):
        shared.apply([("here", (token,), -1), ("there", (token,), 1)])

    def look() -> None:
        for step in range(0, 10, 3):
            old = shared.as_of(step)
            assert old.size("there") == step
            assert shared.diff(0, step, "there").inserted("there") == [(t,) for t in range(step)]
        assert len(shared.history("there")) >= 10

    def write() -> None:
        for token in range(10, 15):
            shared.apply([("here", (token,), -1), ("there", (token,), 1)])

    limit = sys.getrecursionlimit()
    run_all([look, look, write])
    assert sys.getrecursionlimit() == limit
    shared.checkpoint()
    assert (shared.step, shared.oldest, shared.positions) == (15, 0, {})
    shared.save(tmp_path / "copy.db")
    shared.close()
    with Database.open(tmp_path / "copy.db") as copy:
        assert copy.step == 15
    with pytest.raises(TypeError, match="not in a file"):
        begun(None).as_of(0)


def test_the_fair_lock_goes_to_the_longest_waiting_thread() -> None:
    """A thread that asks again and again does not keep others from their turn."""
    lock = FairLock()
    order: list[int] = []
    stop = threading.Event()

    def greedy() -> None:
        while not stop.is_set():
            with lock, lock:
                order.append(0)

    def modest(number: int) -> Callable[[], None]:
        def work() -> None:
            for _ in range(20):
                with lock:
                    order.append(number)

        return work

    def all_modest() -> None:
        try:
            run_all([modest(number) for number in range(1, 6)])
        finally:
            stop.set()

    run_all([greedy, all_modest])
    assert not lock.mine
    for number in range(1, 6):
        assert order.count(number) == 20


def test_interrupted_waiting_leaves_the_queue() -> None:
    lock = FairLock()
    entered = threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with lock:
            entered.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait()

    def wait_in_vain() -> None:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with lock:
            pass

    with pytest.raises(KeyboardInterrupt):
        wait_in_vain()
    leave.set()
    holder.join()
    with lock:
        assert lock.mine
    assert not lock._waiting


def test_a_disk_that_fails_is_reported_to_the_thread_that_wrote(tmp_path: Path) -> None:
    shared = begun(tmp_path / "data.db")
    connection = shared._database._file._connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA query_only = ON")

    def work() -> None:
        with pytest.raises(NotWritten):
            shared.insert("here", (99,))
        assert shared.size("here") == TOKENS

    run_all([work] * 5)
    connection.execute("PRAGMA query_only = OFF")
    shared.insert("here", (99,))
    shared.close()


def test_positions_are_kept_with_a_step_in_memory_as_well() -> None:
    shared = SharedDatabase(Database.from_text(".decl n(x:number)"))
    shared.apply("+n(1).", positions={"orders": "17"})
    assert shared.positions == {"orders": "17"}

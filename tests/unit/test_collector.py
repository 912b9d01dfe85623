"""Pauses of the garbage collector: dropped objects are still freed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

from everlog.core.runtime import collector
from everlog.core.runtime.collector import collector_paused


class Cycle:
    def __init__(self) -> None:
        self.me = self


def test_few_objects_do_not_grow_old() -> None:
    gc.collect()
    with collector_paused():
        few = [Cycle() for _ in range(10)]
    old = {id(one) for one in gc.get_objects(generation=2)}
    assert not any(id(one) in old for one in few)


def test_many_objects_count_as_old_and_go_when_as_many_have_been_made() -> None:
    gc.collect()
    with collector_paused():
        many = [Cycle() for _ in range(collector._FEW + 1)]
    one = weakref.ref(many[0])
    assert gc.get_count()[0] < 1000
    del many
    assert one() is not None
    rounds = 0
    while one() is not None:  # a quarter of what there is, a few hundred thousand objects at least
        rounds += 1
        assert rounds < 1000
        with collector_paused():
            kept = [Cycle() for _ in range(collector._LEAST // 10)]
        del kept


def test_dropped_databases_leave_memory() -> None:
    """A database is full of cycles; made in a loop, the old ones must not stay."""
    script = """
from everlog import Database
from everlog.core.runtime.guards import memory_in_use
text = ".decl e(x:number, y:number)  .decl p(x:number, y:number)  p(x, z) :- e(x, y), e(y, z)."
facts = {"e": [(x, x * 7 % 20_000) for x in range(20_000)]}
for number in range(24):
    database = Database.from_text(text, facts=facts)
    assert database.size("p") == 20_000
    if number == 7:
        before = memory_in_use()
print((memory_in_use() - before) >> 20)
"""
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60, done.stdout  # megabytes; one of the sixteen databases has about ten

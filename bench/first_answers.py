"""Opening a database of ten million derived facts: time to the first answers, and memory.

A closure of ten million pairs, and the pairs of the same generation in a wide tree, are loaded and
written by `checkpoint`.  Then processes of their own open the file: one that asks point queries,
one that reads all derived facts, and one that makes a step, which wakes the engine.  Last, the
file is opened by evaluation, as without a checkpoint.  Wall and CPU seconds, and peak memory of
each process; `EVERLOG_PURE=1` measures everything in Python.

    python -P bench/first_answers.py [--small]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, options

from everlog import Database, DurableDatabase

Facts = dict[str, list[tuple[object, ...]]]
SAME = """
.decl parent(child:number, p:number)
.decl same(x:number, y:number)
same(x, y) :- parent(x, p), parent(y, p).
same(x, y) :- parent(x, a), same(a, b), parent(y, b).
"""
ASKED = 200  # point queries


def closure(facts: int) -> tuple[str, Facts]:
    """The edges of a path; its closure has about that many pairs."""
    nodes = int((2 * facts) ** 0.5)
    return CLOSURE, {"edge": [(node, node + 1) for node in range(nodes)]}


def same_generation(facts: int) -> tuple[str, Facts]:
    """A tree in which nodes have ten children each: all of a generation belong together."""
    nodes = int((1.8 * facts) ** 0.5)
    return SAME, {"parent": [(child, child // 10) for child in range(1, nodes)]}


WORKLOADS: dict[str, tuple[Callable[[int], tuple[str, Facts]], str]] = {
    "closure": (closure, "path"),
    "same generation": (same_generation, "same"),
}


def make(path: Path, name: str, size: int) -> dict[str, object]:
    text, facts = WORKLOADS[name][0](size)
    with Database.open(path, text=text, facts=facts) as db:
        number = db.size(WORKLOADS[name][1])
        start = time.perf_counter()
        db.checkpoint()
        return {"derived": number, "then": time.perf_counter() - start}


def ask(db: DurableDatabase, relation: str) -> dict[str, object]:
    """Point queries, spread over all keys; `then` is the time of one of them."""
    begun = time.perf_counter()
    keys = range(1, 3000, 3000 // ASKED)
    found = sum(len(db.facts(f"{relation}($key, $other)", key=key, other=key + 1)) for key in keys)
    return {"found": found, "then": (time.perf_counter() - begun) / len(keys)}


def read(db: DurableDatabase, relation: str) -> dict[str, object]:
    begun = time.perf_counter()
    found = sum(1 for _ in db.query(f"{relation}(x, y)"))
    return {"found": found, "then": time.perf_counter() - begun}


def change(db: DurableDatabase, relation: str) -> dict[str, object]:
    """The first step, and the second one."""
    (base,) = (other for other in db.relations if other != relation)
    seconds = []
    for place in (-1, -2):
        begun = time.perf_counter()
        db.insert(base, (place, 1))
        seconds.append(time.perf_counter() - begun)
    return {"then": seconds[0], "second": seconds[1]}


PARTS = {"ask": ask, "read": read, "change": change}


def measured(part: str, path: Path, name: str, size: int) -> dict[str, object]:
    """Run a part in a process of its own."""
    command = [sys.executable, "-P", __file__, part, str(path), name, str(size)]
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def run(part: str, path: Path, name: str, size: int) -> None:
    """What a part finds and takes, as a line of JSON; `opening` is until the database is there."""
    begun, used = time.perf_counter(), time.process_time()
    if part == "make":
        found = {"opening": 0.0, **make(path, name, size)}
    else:
        with Database.open(path) as db:
            found = {"opening": time.perf_counter() - begun}
            found |= {**PARTS[part](db, WORKLOADS[name][1]), "asleep": db.asleep}
    found["cpu"] = time.process_time() - used
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


def main() -> None:
    asked = options(__doc__)
    size = 100_000 if asked.small else 10_000_000
    heads = "opening", "then", "cpu", "megabytes"
    print(f"{'':<17}{'':<22}" + "".join(f"{head:>12}" for head in heads))
    with tempfile.TemporaryDirectory(prefix="everlog-bench-") as folder:
        for number, name in enumerate(WORKLOADS):
            path = Path(folder).resolve() / f"{number}.db"

            def show(title: str, found: dict[str, object], name: str = name) -> None:
                rest = {key: value for key, value in found.items() if key not in heads}
                print(
                    f"{name:<17}{title:<22}" + "".join(f"{found[head]:>12.4f}" for head in heads), rest, flush=True
                )

            show("load, checkpoint", measured("make", path, name, size))
            print(f"{'':<17}{os.path.getsize(path) / 2**20:.0f} MB")
            show("point queries", measured("ask", path, name, size))
            show("reading all", measured("read", path, name, size))
            show("first step", measured("change", path, name, size))
            show("the same, awake", measured("change", path, name, size))


if __name__ == "__main__":
    if len(sys.argv) == 5:
        run(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        main()

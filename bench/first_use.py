"""How long the first use of a rule takes: each version of each rule of programs/, compiled and bound.

A version is one rule for one thing that may happen (a body atom gains, loses, …); it becomes Python at
its first run, on the indexes that it needs, which are built then.  Here every program is loaded with its
facts, each of its versions is made, and each way of a single update through the program (a function
per given relation) is written out.  The least of several fresh databases counts.

    python -P bench/first_use.py [--small] [--rounds 3]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_most, options

from everlog import Database
from everlog.core.engine.engine import Engine
from everlog.core.engine.store import RunRule, Task
from everlog.core.engine.unrolled import unrolled


def main() -> None:
    asked = options(__doc__, rounds=3)
    folder = Path(__file__).parent.parent / "programs"
    times: dict[tuple[str, str], float] = {}
    ways: dict[tuple[str, str], float] = {}
    for _ in range(1 if asked.small else asked.rounds):
        for path in sorted(folder.glob("*/*.dl")):
            for what, seconds, is_way in uses(path):
                key, of = (path.stem, what), ways if is_way else times
                of[key] = min(of.get(key, seconds), seconds)
    tell("version of a rule", times)
    tell("way of a single update", ways)


def tell(what: str, times: dict[tuple[str, str], float]) -> None:
    slowest = sorted(times.items(), key=lambda item: -item[1])
    print(f"{len(times)} times a {what}, {sum(times.values()) * 1e3:.0f} ms in all; the slowest:")
    for (program, use), seconds in slowest[:3]:
        print(f"  {seconds * 1e3:6.2f} ms  {program}: {use}")
    at_most(f"first use of a {what}", slowest[0][1] * 1e3, 20, "ms")


def uses(path: Path) -> Iterator[tuple[str, float, bool]]:
    """What was made for the first time, how long it took, and whether it is the way of an update."""
    made: list[tuple[str, float]] = []
    bind = Task.bind

    def timed_bind(task: Task) -> RunRule:
        start = time.process_time()
        run = bind(task)
        made.append((f"{task.mode.__name__} {task.position} {task.rule}", time.process_time() - start))
        return run

    Task.bind = timed_bind  # type: ignore[method-assign]
    try:
        database = Database.from_file(path, facts=path.parent / "facts")
        network = engine_of(database)._network
        for keeper in network.keepers:
            for task in keeper.tasks():
                if task.run is None:
                    task.bind()
    finally:
        Task.bind = bind  # type: ignore[method-assign]
    for use, seconds in made:
        yield use, seconds, False
    for name, keeper in network.home.items():
        if keeper.planned.strategy == "given":
            start = time.process_time()
            unrolled(network, name)
            yield f"the way of an update of {name}", time.process_time() - start, True


def engine_of(database: Database) -> Engine:
    return database._engine


if __name__ == "__main__":
    main()

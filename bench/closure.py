"""The closure of a random graph: 2 000 nodes, 4 000 edges, 2.57 million pairs.

Ours (`everlog run`, the whole command, facts read and the relation written) against Soufflé's
interpreter if it is on the PATH, a set-at-a-time and a tuple-at-a-time Python loop.  All from this
run; a ratio is the other's time over ours, so above 1 we are faster.

    python bench/closure.py [--nodes 2000] [--edges 4000]
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = """.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def random_graph(nodes: int, edges: int) -> list[tuple[int, int]]:
    draw = random.Random(1)
    out: set[tuple[int, int]] = set()
    while len(out) < edges:
        out.add((draw.randrange(nodes), draw.randrange(nodes)))
    return sorted(out)


def tuple_at_a_time(edges: list[tuple[int, int]]) -> int:
    successors: dict[int, list[int]] = {}
    for x, y in edges:
        successors.setdefault(x, []).append(y)
    path = set(edges)
    delta = path
    while delta:
        new = set()
        for x, y in delta:
            for z in successors.get(y, ()):
                if (x, z) not in path:
                    new.add((x, z))
        path |= new
        delta = new
    return len(path)


def set_at_a_time(edges: list[tuple[int, int]]) -> int:
    successors: dict[int, set[int]] = {}
    for x, y in edges:
        successors.setdefault(x, set()).add(y)
    total = 0
    for source in successors:
        reached: set[int] = set()
        frontier = successors[source]
        while frontier:
            reached |= frontier
            frontier = set().union(*(successors[y] for y in frontier if y in successors)) - reached
        total += len(reached)
    return total


def timed(work: Callable[[], int]) -> tuple[float, int]:
    start = time.perf_counter()
    size = work()
    return time.perf_counter() - start, size


def command(words: list[str], folder: Path) -> int:
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return sum(1 for _ in (folder / "path.csv").open())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--edges", type=int, default=4000)
    arguments = parser.parse_args()
    edges = random_graph(arguments.nodes, arguments.edges)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "closure.dl").write_text(PROGRAM)
        (folder / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in edges))
        ours, size = timed(lambda: command([sys.executable, "-P", "-m", "everlog", "run", "closure.dl"], folder))
        others: dict[str, Callable[[], int]] = {
            "Python, set at a time (no files)": lambda: set_at_a_time(edges),
            "Python, tuple at a time (no files)": lambda: tuple_at_a_time(edges),
        }
        if shutil.which("souffle"):
            others["Soufflé's interpreter, whole command"] = lambda: command(["souffle", "closure.dl"], folder)
        else:
            print("Soufflé is not installed: left out")
        print(f"{arguments.nodes} nodes, {arguments.edges} edges, {size} pairs; everlog run: {ours:.2f} s")
        for what, work in others.items():
            seconds, found = timed(work)
            assert found == size, f"{what}: {found} pairs, not {size}"
            print(f"  {what:<38} {seconds:6.2f} s   {seconds / ours:5.2f} × ours")


if __name__ == "__main__":
    main()

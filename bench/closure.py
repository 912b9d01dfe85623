"""The closure of a random graph as a whole command.

The graph has 2 000 nodes and 4 000 edges, its closure 2.57 million pairs.  Every side reads
`edge.facts` and writes the sorted pairs to a file; the files must be equal, byte by byte.  Ours are
`everlog run` (once) and `everlog run --updates` with an empty stream (the living
engine).  The others are a tuple-at-a-time and a set-at-a-time loop in
Python, and Soufflé's interpreter if it is on the PATH.

Sides take turns.  A ratio is of CPU time (user and system, of a whole command), the other's over
ours in the same round, the median of the rounds: above 1 we are faster.  Memory is the peak of the
process.

    python -P bench/closure.py [--small] [--nodes 2000] [--edges 4000] [--rounds 3]
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, at_least, at_most, options, random_graph, ratio_of

LIVING = "everlog run --updates (living)"
ONCE = "everlog run (once)"
TUPLES = "Python, tuple at a time"
SETS = "Python, set at a time"
SOUFFLE = "Soufflé's interpreter"


# ── the loops in Python ──────────────────────────────────────────────────────────────────────


def tuple_at_a_time(edges: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
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
    return sorted(path)


def set_at_a_time(edges: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    successors: dict[int, set[int]] = {}
    for x, y in edges:
        successors.setdefault(x, set()).add(y)
    for source in sorted(successors):
        reached: set[int] = set()
        frontier = successors[source]
        while frontier:
            reached |= frontier
            frontier = set().union(*(successors[y] for y in frontier if y in successors)) - reached
        for target in sorted(reached):
            yield source, target


LOOPS = {"tuples": tuple_at_a_time, "sets": set_at_a_time}


def loop_as_command(name: str, folder: Path) -> None:
    """`python bench/closure.py --loop NAME FOLDER`: reads facts, writes pairs."""
    with (folder / "edge.facts").open() as file:
        edges = [(int(x), int(y)) for x, y in map(str.split, file)]
    with (folder / f"{name}/path.csv").open("w") as file:
        file.writelines([f"{x}\t{y}\n" for x, y in LOOPS[name](edges)])


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def run(words: list[str], folder: Path) -> tuple[float, float, float]:
    """Wall clock, CPU seconds and peak megabytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"failed: {' '.join(words)}")
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale


def commands(folder: Path) -> dict[str, tuple[list[str], Path]]:
    """The commands to run, and the files of their pairs."""
    python = [sys.executable, "-P"]
    ours = [*python, "-m", "everlog", "run", "closure.dl", "-F", "."]
    loop = [*python, str(Path(__file__).resolve()), "--loop"]
    out = {
        LIVING: ([*ours, "-D", "living", "--updates", "empty.txt"], "living"),
        ONCE: ([*ours, "-D", "once"], "once"),
        TUPLES: ([*loop, "tuples", "."], "tuples"),
        SETS: ([*loop, "sets", "."], "sets"),
    }
    souffle = shutil.which("souffle")
    if souffle:
        out[SOUFFLE] = ([souffle, "closure.dl", "-F", ".", "-D", "souffle"], "souffle")
    else:
        print("Soufflé is not installed: its line is left out")
    for _, where in out.values():
        (folder / where).mkdir()
    return {what: (words, folder / where / "path.csv") for what, (words, where) in out.items()}


def main() -> None:
    if sys.argv[1:2] == ["--loop"]:
        loop_as_command(sys.argv[2], Path(sys.argv[3]))
        return
    asked = options(__doc__, nodes=2000, edges=4000, rounds=3)
    if asked.small:
        asked.nodes, asked.edges, asked.rounds = 300, 600, 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "closure.dl").write_text(CLOSURE)
        (folder / "empty.txt").touch()
        edges = random_graph(asked.nodes, asked.edges)
        (folder / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in edges))
        measure(folder, asked.rounds, asked.small, f"{asked.nodes} nodes, {asked.edges} edges")


def measure(folder: Path, rounds: int, small: bool, title: str) -> None:
    sides = commands(folder)
    wall: dict[str, list[float]] = {what: [] for what in sides}
    cpu: dict[str, list[float]] = {what: [] for what in sides}
    memory = dict.fromkeys(sides, 0.0)
    for _ in range(rounds):
        for what, (words, _) in sides.items():
            seconds, busy, peak = run(words, folder)
            wall[what].append(seconds)
            cpu[what].append(busy)
            memory[what] = max(memory[what], peak)
    pairs = sides[LIVING][1].read_bytes()
    for what, (_, path) in sides.items():
        assert path.read_bytes() == pairs, f"{what} found other pairs"
    lines = pairs.count(b"\n")
    print(f"{title}, {lines} pairs; whole commands, the median of {rounds}; the same file from all")
    for what in sides:
        print(
            f"  {what:<40} {statistics.median(wall[what]):6.2f} s wall  {statistics.median(cpu[what]):6.2f} s CPU"
            f"  {memory[what]:6.0f} MB   {ratio_of(cpu[what], cpu[LIVING]):5.2f} × ours, living"
        )
    at_least(f"closure, {TUPLES}", ratio_of(cpu[TUPLES], cpu[LIVING]), 3, small)
    if SOUFFLE in sides:
        at_least(f"closure, {SOUFFLE}", ratio_of(cpu[SOUFFLE], cpu[LIVING]), 1, small)
    at_most("closure, peak memory, living", memory[LIVING] / 1000, 1.2, "GB", small)


if __name__ == "__main__":
    main()

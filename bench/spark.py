"""Spark beside a plain PySpark loop and the in-process engine.

The same programs run in one session, in turn.  The plain loop is what a programmer writes first:
join, distinct, left-anti join with the known rows, count, union.  With `cache` alone its plan
doubles with each round and Java runs out of memory after ten, so it has one improvement:
`localCheckpoint` cuts the lineage in each round.

Ours is `spark_backend.evaluate` with its own choice of methods, and with each method of recursion
requested.  Sides take turns in one session with the same settings; results are counted and must
agree.  Clocks are wall time, since the work is in other processes; a ratio is the median of the
rounds, each the other's time over ours in the same round.  Inputs are Parquet files.

The second table shows from which size on Spark beats the in-process engine on this machine, for a
join with an aggregate above it: both read the same Parquet file and count the groups.  Memory is
the peak of all processes of a side.

    python -P bench/spark.py [--small] [--rounds 3] [--scale 100] [--rows 4000000]
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, at_least, fail, options, random_graph, ratio_of

SAME_GENERATION = """.decl parent(x:number, y:number)
.input parent
.decl sg(x:number, y:number)
.output sg
sg(x, y) :- parent(p, x), parent(p, y), x != y.
sg(x, y) :- parent(a, x), sg(a, b), parent(b, y).
"""
TRIANGLES = """.decl edge(x:number, y:number)
.input edge
.decl triangle(x:number, y:number, z:number)
.output triangle
triangle(x, y, z) :- edge(x, y), edge(y, z), edge(x, z), x < y, y < z.
"""
GROUPED = """.decl r(a:number, b:number)
.input r
.decl s(b:number, c:number)
.input s
.decl total(a:number, n:number)
.output total
total(a, n) :- r(a, _), n = sum c : { r(a, b), s(b, c) }.
"""


# ── plain PySpark ────────────────────────────────────────────────────────────────────────────


def plain_closure(spark: Any, folder: Path) -> int:
    edges = spark.read.parquet(str(folder / "edge")).toDF("x", "y")
    step = edges.toDF("y", "z")
    return fixpoint(edges, lambda delta: delta.join(step, "y").select("x", "z").toDF("x", "y"))


def plain_same_generation(spark: Any, folder: Path) -> int:
    parent = spark.read.parquet(str(folder / "parent")).toDF("p", "c")
    left, right = parent.toDF("a", "x"), parent.toDF("b", "y")
    first = parent.toDF("p", "x").join(parent.toDF("p", "y"), "p").where("x <> y").select("x", "y").distinct()
    return fixpoint(first, lambda delta: delta.toDF("a", "b").join(left, "a").join(right, "b").select("x", "y"))


def fixpoint(first: Any, follow: Callable[[Any], Any]) -> int:
    known = delta = first.distinct().localCheckpoint()
    while True:
        new = follow(delta).distinct().join(known, ["x", "y"], "left_anti").localCheckpoint()
        if new.count() == 0:
            return int(known.count())
        known = known.union(new)
        delta = new


def plain_triangles(spark: Any, folder: Path) -> int:
    edges = spark.read.parquet(str(folder / "edge")).where("c0 < c1").distinct().cache()
    first, second, third = edges.toDF("x", "y"), edges.toDF("y", "z"), edges.toDF("x", "z")
    return int(first.join(second, "y").join(third, ["x", "z"]).distinct().count())


# ── ours ─────────────────────────────────────────────────────────────────────────────────────


def ours(spark: Any, text: str, relation: str, **settings: str) -> Callable[[Path], int]:
    from everlog.dsl.check import compile_text
    from everlog.spark_backend.evaluate import evaluate
    from everlog.spark_backend.settings import Settings

    program = compile_text(text)

    def run(folder: Path) -> int:
        inputs = {d.relation: spark.read.parquet(str(folder / d.relation)) for d in program.inputs}
        found = evaluate(spark, program, inputs, Settings(**settings), wanted=[relation])
        size = int(found[relation].count())
        found.release()
        return size

    return run


def in_process(text: str, relation: str) -> Callable[[Path], int]:
    import pyarrow.parquet as pq

    from everlog.core.evaluate.seminaive import evaluate
    from everlog.dsl.check import compile_text

    program = compile_text(text)

    def run(folder: Path) -> int:
        tables = {d.relation: pq.read_table(folder / d.relation) for d in program.inputs}
        inputs = {name: list(zip(*(c.to_pylist() for c in t.columns), strict=True)) for name, t in tables.items()}
        return evaluate(program, inputs).size(relation)

    return run


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def compare(
    spark: Any, title: str, folder: Path, sides: dict[str, Callable[[Path], int]], rounds: int
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    sizes: dict[str, int] = {}
    for _ in range(rounds):
        for name, run in sides.items():
            spark.catalog.clearCache()
            start = time.perf_counter()
            sizes[name] = run(folder)
            seconds[name].append(time.perf_counter() - start)
    if len(set(sizes.values())) != 1:
        fail(f"{title}: the sides disagree: {sizes}")
    print(f"{title}: {next(iter(sizes.values()))} facts; median of {rounds}")
    for name in sides:
        print(f"  {name:<40} {median(seconds[name]):8.2f} s", flush=True)
    return seconds


def write(folder: Path, name: str, rows: list[tuple[int, int]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / name).mkdir()
    columns = list(zip(*rows, strict=True))
    pq.write_table(
        pa.table({f"c{n}": pa.array(values, pa.int64()) for n, values in enumerate(columns)}),
        folder / name / "part.parquet",
    )


def tree(depth: int, width: int) -> list[tuple[int, int]]:
    """A complete tree, edges from parent to child."""
    out, level, fresh = [], [0], 1
    for _ in range(depth):
        below = []
        for node in level:
            for _ in range(width):
                out.append((node, fresh))
                below.append(fresh)
                fresh += 1
        level = below
    return out


def pairs(rows: int, left: int, right: int, seed: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    return list({(draw.randrange(left), draw.randrange(right)) for _ in range(rows)})


def power_law(rows: int, nodes: int) -> list[tuple[int, int]]:
    """Edges between nodes drawn in proportion to 1 / rank, as in social networks."""
    draw = random.Random(5)
    names = draw.sample(range(nodes), nodes)
    weights = list(accumulate(1 / rank for rank in range(1, nodes + 1)))
    ends = [draw.choices(names, cum_weights=weights, k=rows) for _ in range(2)]
    return list(set(zip(*ends, strict=True)))


def ratios(spark: Any, folder: Path, scale: int, rounds: int, small: bool) -> None:
    cases = {
        "closure": ({"edge": random_graph(10 * scale, 50 * scale)}, CLOSURE, "path", plain_closure, 3.0),
        "same generation": (
            {"parent": tree(4, 3 + scale // 40)},
            SAME_GENERATION,
            "sg",
            plain_same_generation,
            1.5,
        ),
        "triangles": (
            {"edge": power_law(5000 * scale, 1000 * scale)},
            TRIANGLES,
            "triangle",
            plain_triangles,
            1.5,
        ),
        "triangles, uniform": (
            {"edge": pairs(4000 * scale, 30 * scale, 30 * scale, 2)},
            TRIANGLES,
            "triangle",
            plain_triangles,
            None,
        ),
    }
    for name, (inputs, text, relation, plain, bar) in cases.items():
        where = folder / name.replace(" ", "_").replace(",", "")
        where.mkdir()
        for one, rows in inputs.items():
            write(where, one, rows)
        sides: dict[str, Callable[[Path], int]] = {"plain PySpark": lambda path, plain=plain: plain(spark, path)}
        sides["ours"] = ours(spark, text, relation)
        ways = {
            "closure": [{"recursion": "decomposed"}, {"recursion": "iterated"}],
            "same generation": [{"recursion": "iterated"}],
            "triangles": [{"cyclic": "plan"}],
            "triangles, uniform": [{"cyclic": "cube"}],
        }[name]
        sides |= {f"ours, {way}": ours(spark, text, relation, **one) for one in ways for way in one.values()}
        sides["in process, no Spark"] = in_process(text, relation)
        seconds = compare(spark, name, where, sides, rounds)
        at_least(
            f"{name}: plain PySpark over ours", ratio_of(seconds["plain PySpark"], seconds["ours"]), bar, small
        )
        for way in (way for one in ways for way in one.values()):
            at_least(
                f"{name}: plain PySpark over {way}",
                ratio_of(seconds["plain PySpark"], seconds[f"ours, {way}"]),
                None,
            )


# ── from what size on ────────────────────────────────────────────────────────────────────────


def crossover(folder: Path, most: int, small: bool) -> None:
    """Each side runs in a process of its own, for separate memory figures."""
    print(
        "a join with a sum above it, from one Parquet file: seconds (start of the process left out), peak memory"
    )
    size = 2000 if small else 125_000
    first = None
    while size <= most:
        where = folder / f"join{size}"
        where.mkdir()
        write(where, "r", pairs(size, size // 10, size // 20, 3))
        write(where, "s", pairs(size // 4, size // 20, 1000, 4))
        told = {}
        for side in ("in process", "spark"):
            done = subprocess.run(
                [sys.executable, "-P", __file__, "--side", side, str(where)], capture_output=True, text=True
            )
            if done.returncode:
                fail(done.stderr[-2000:])
            told[side] = [float(word) for word in done.stdout.split()[-3:]]
        (mine, memory, groups), (theirs, heap, others) = told["in process"], told["spark"]
        if groups != others:
            fail(f"{size} rows: {groups} groups in process, {others} on Spark")
        print(
            f"  {size:>9} rows   in process {mine:7.2f} s {memory:6.0f} MB   Spark {theirs:7.2f} s {heap:6.0f} MB",
            flush=True,
        )
        if theirs < mine and first is None:
            first = size
        size *= 4 if small else 2
    print(f"  Spark is faster from {first} rows on" if first else f"  in process is faster up to {most} rows")


def side_as_command(side: str, folder: Path) -> None:
    """`--side SIDE FOLDER`: seconds, peak megabytes, groups."""
    if side == "in process":
        run = in_process(GROUPED, "total")
        start = time.perf_counter()
        size = run(folder)
        print(time.perf_counter() - start, peak_megabytes(), size)
        return
    from everlog.spark_backend.spark_session import spark_session

    spark = spark_session("local[2]", memory="3g")
    spark.range(10).count()
    start = time.perf_counter()
    size = ours(spark, GROUPED, "total")(folder)
    seconds = time.perf_counter() - start
    print(seconds, peak_megabytes(), size)
    spark.stop()


def peak_megabytes() -> float:
    """The peaks of this process and of all its children, added."""
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
            waiting += [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except (OSError, StopIteration):
            continue
    return total / 1024


def main() -> None:
    if sys.argv[1:2] == ["--side"]:
        side_as_command(sys.argv[2], Path(sys.argv[3]))
        return
    asked = options(__doc__, rounds=3, scale=100, rows=4_000_000)
    if asked.small:
        asked.rounds, asked.scale, asked.rows = 1, 10, 8000
    from everlog.spark_backend.spark_session import spark_session

    try:
        spark = spark_session("local[2]", memory="3g")
    except Exception as error:
        print(f"no Spark here: {error}")
        return
    with tempfile.TemporaryDirectory() as name:
        ratios(spark, Path(name), asked.scale, asked.rounds, asked.small)
        spark.stop()
        crossover(Path(name), asked.rows, asked.small)


if __name__ == "__main__":
    main()

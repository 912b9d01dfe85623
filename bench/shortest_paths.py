"""Least values through recursion: loads and single updates, beside other systems.

    python -P bench/shortest_paths.py [--nodes 20000] [--arcs 100000] [--updates 1000]

Shortest paths from one node, connected components by least label and earliest arrivals, on a random
graph.  A load is compared with networkx or plain Python for the same answer, with DuckDB (`USING
KEY`) and with Soufflé (subsumption), if it is on the PATH; an update with the load.  Times are CPU
times of one run, with one thread, and for Soufflé those of its process, reading included.  The
answers are compared: those of the other systems after the load, ours also after the last update.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import networkx as nx
import pyarrow as pa

from everlog import Database, compile_text, evaluate

PATHS = """.decl arc(x:number, y:number, w:number)  .decl best(x:number, d:number)  best(0, 0).
    best(y, min(d + w)) :- best(x, d), arc(x, y, w)."""
LABELS = """.decl arc(x:number, y:number, w:number)  .decl best(x:number, l:number)
    best(x, min(x)) :- arc(x, _, _) ; arc(_, x, _).
    best(y, min(l)) :- best(x, l), (arc(x, y, _) ; arc(y, x, _))."""
RIDES = """.decl arc(x:number, y:number, w:number)  .decl best(x:number, t:number)  best(0, 0).
    .decl day(n:number)  day(n) :- n = range(0, 20).
    best(y, min(w + 1000 * n + 5)) :- best(x, t), arc(x, y, w), day(n), t <= w + 1000 * n."""
Arcs = dict[tuple[int, int], int]

# Of a query `USING KEY`: where it begins; value, join, node and test of its recursive part.
KEYED = {
    PATHS: ("SELECT 0 AS x, 0 AS v", "b.v + a.w", "a.x = b.x", "a.y", "true"),
    LABELS: (
        "SELECT x, min(x) AS v FROM (SELECT x FROM arc UNION SELECT y FROM arc) AS n(x) GROUP BY x",
        "b.v",
        "a.x = b.x",
        "a.y",
        "true",
    ),
    RIDES: (
        "SELECT 0 AS x, 0 AS v",
        "a.w + 1000 * n + 5",
        "a.x = b.x JOIN range(20) AS day(n) ON b.v <= a.w + 1000 * n",
        "a.y",
        "true",
    ),
}
SOUFFLE = {
    PATHS: "best(0, 0). best(y, d + w) :- best(x, d), arc(x, y, w).",
    LABELS: "best(x, x) :- arc(x, _, _) ; arc(_, x, _). best(y, l) :- best(x, l), (arc(x, y, _) ; arc(y, x, _)).",
    RIDES: ".decl day(n:number) day(n) :- n = range(0, 20). best(0, 0). "
    "best(y, w + 1000 * n + 5) :- best(x, t), arc(x, y, w), day(n), t <= w + 1000 * n.",
}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    found = work()
    return process_time() - start, found


def distances(arcs: Arcs) -> tuple[float, dict[int, int]]:
    graph = nx.DiGraph()
    graph.add_node(0)
    graph.add_weighted_edges_from((x, y, w) for (x, y), w in arcs.items())
    return timed(lambda: dict(nx.single_source_dijkstra_path_length(graph, 0)))


def labels(arcs: Arcs) -> tuple[float, dict[int, int]]:
    graph = nx.Graph(arcs.keys())

    def found() -> dict[int, int]:
        return {x: least for part in nx.connected_components(graph) for least in (min(part),) for x in part}

    return timed(found)


def arrivals(arcs: Arcs) -> tuple[float, dict[int, int]]:
    """Earliest arrivals in plain Python: a ride leaves at `w` each day, and takes 5."""
    after: dict[int, list[tuple[int, int]]] = {}
    for (x, y), w in arcs.items():
        after.setdefault(x, []).append((y, w))

    def found() -> dict[int, int]:
        times, waiting = {0: 0}, [(0, 0)]
        while waiting:
            t, x = heappop(waiting)
            if t > times[x]:
                continue
            for y, w in after.get(x, ()):
                there = w + max(0, -((w - t) // 1000)) * 1000 + 5
                if there < times.get(y, there + 1):
                    times[y] = there
                    heappush(waiting, (there, y))
        return times

    return timed(found)


def in_duckdb(text: str, arcs: Arcs) -> tuple[float, set[tuple[int, int]]]:
    first, value, joined, node, test = KEYED[text]
    connection = duckdb.connect(config={"threads": 1})
    rows = [(x, y, w) for (x, y), w in arcs.items()]
    given = pa.table({name: [row[n] for row in rows] for n, name in enumerate("xyw")})
    connection.register("given", given)
    both = " UNION ALL SELECT y, x, w FROM given" if text == LABELS else ""
    connection.execute(f"CREATE TABLE arc AS SELECT x, y, w FROM given{both}")
    query = f"""WITH RECURSIVE best(x, v) USING KEY (x) AS ({first} UNION
        SELECT {node} AS x, min({value}) AS v FROM best AS b JOIN arc AS a ON {joined}
        LEFT JOIN recurring.best AS known ON known.x = {node}
        WHERE {test} AND (known.v IS NULL OR {value} < known.v) GROUP BY {node}) SELECT * FROM best"""
    took, found = timed(lambda: connection.execute(query).fetchall())
    return took, {(int(x), int(v)) for x, v in found}


def in_souffle(text: str, arcs: Arcs) -> tuple[float, set[tuple[int, int]]] | None:
    program = shutil.which("souffle")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.dl").write_text(
            ".decl arc(x:number, y:number, w:number)  .input arc  .decl best(x:number, v:number) btree_delete\n"
            f"{SOUFFLE[text]}  best(x, v) <= best(x, u) :- u < v.  .output best\n"
        )
        (folder / "arc.facts").write_text("".join(f"{x}\t{y}\t{w}\n" for (x, y), w in arcs.items()))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "p.dl"], cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = (folder / "best.csv").read_text().splitlines()
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return took, {(int(x), int(v)) for x, v in (line.split("\t") for line in lines)}


def measured(name: str, text: str, oracle: Callable[[Arcs], Any], asked: argparse.Namespace) -> None:
    chance = random.Random(1)
    arcs: Arcs = {}
    while len(arcs) < asked.arcs:
        arcs[chance.randrange(asked.nodes), chance.randrange(asked.nodes)] = chance.randrange(1, 1000)
    other, _ = oracle(arcs)
    db = Database.from_text(text)
    rows = [(x, y, w) for (x, y), w in arcs.items()]
    load, _ = timed(lambda: db.insert("arc", rows))
    answer = set(oracle(arcs)[1].items())
    beside = {"DuckDB": in_duckdb(text, arcs), "Soufflé": in_souffle(text, arcs)}
    whole, _ = timed(lambda: evaluate(compile_text(text), {"arc": rows}))
    for system, found in beside.items():
        assert found is None or found[1] == answer, (name, system)
    keys, times = list(arcs), []
    for number in range(asked.updates):
        if number % 2:
            pair = chance.randrange(asked.nodes), chance.randrange(asked.nodes)
            if pair in arcs:
                continue
            arcs[pair] = chance.randrange(1, 1000)
            keys.append(pair)
            took, _ = timed(lambda row=(*pair, arcs[pair]): db.insert("arc", row))
        else:
            at = chance.randrange(len(keys))
            keys[at], keys[-1] = keys[-1], keys[at]
            pair = keys.pop()
            weight = arcs.pop(pair)
            took, _ = timed(lambda row=(*pair, weight): db.delete("arc", row))
        times.append(took)
    assert set(db["best"]) == set(oracle(arcs)[1].items()), name
    median, mean, worst = statistics.median(times), statistics.mean(times), max(times)
    others = ", ".join(
        f"{system} not on the PATH" if found is None else f"{system} {found[0]:.3f} s"
        for system, found in beside.items()
    )
    print(f"{name}: load {load:.3f} s, {load / other:.1f} times the algorithm in Python ({other:.3f} s)")
    print(f"  evaluated once {whole:.3f} s; {others}")
    print(
        f"  an update: median load/{load / median:.0f}, mean load/{load / mean:.0f}, worst {worst / load:.2f} load"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--arcs", type=int, default=100_000)
    parser.add_argument("--updates", type=int, default=1_000)
    asked = parser.parse_args()
    measured("shortest paths", PATHS, distances, asked)
    measured("connected components", LABELS, labels, asked)
    measured("earliest arrivals", RIDES, arrivals, asked)


if __name__ == "__main__":
    main()

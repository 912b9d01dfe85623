"""Least values through recursion: loads and single updates, beside networkx.

    python -P bench/shortest_paths.py [--nodes 20000] [--arcs 100000] [--updates 1000]

Shortest paths from one node and connected components by least label, on a random graph.  A load
is compared with the algorithm of networkx for the same answer, an update with the load.  Times are
CPU times of one run; the answers are compared after the last update.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

import networkx as nx

from everlog import Database

PATHS = """.decl arc(x:number, y:number, w:number)  .decl best(x:number, d:number)  best(0, 0).
    best(y, min(d + w)) :- best(x, d), arc(x, y, w)."""
LABELS = """.decl arc(x:number, y:number, w:number)  .decl best(x:number, l:number)
    best(x, min(x)) :- arc(x, _, _) ; arc(_, x, _).
    best(y, min(l)) :- best(x, l), (arc(x, y, _) ; arc(y, x, _))."""
Arcs = dict[tuple[int, int], int]


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


def measured(name: str, text: str, oracle: Callable[[Arcs], Any], asked: argparse.Namespace) -> None:
    chance = random.Random(1)
    arcs: Arcs = {}
    while len(arcs) < asked.arcs:
        arcs[chance.randrange(asked.nodes), chance.randrange(asked.nodes)] = chance.randrange(1, 1000)
    other, _ = oracle(arcs)
    db = Database.from_text(text)
    load, _ = timed(lambda: db.insert("arc", [(x, y, w) for (x, y), w in arcs.items()]))
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
    print(f"{name}: load {load:.3f} s, {load / other:.1f} times networkx ({other:.3f} s)")
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


if __name__ == "__main__":
    main()

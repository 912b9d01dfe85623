"""Closure tables by SQLite triggers, against SQLite's own recursive query.

The graph has 300 nodes and 900 edges.  Single edges are deleted and inserted again by plain SQL;
the mean of both is compared with the least time of the recursive query, which runs between them, in
the faster of its two directions.  `tc_witness` has a random graph, `tc_counts` and `tc_acyclic` a
random acyclic one; at the end the table equals the query's answer.  Inserting an edge again often
changes nothing, so the mean is about half a delete: both are printed beside it.

    python -P bench/ies_sql.py [--small] [--edges 100] [--rounds 3]
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_least, fail, milliseconds, options, random_graph

from everlog.ies.sql import sql_text

FORWARD = """WITH RECURSIVE closure(x, y) AS (
  SELECT x, y FROM edge UNION SELECT c.x, e.y FROM closure AS c JOIN edge AS e ON e.x = c.y
) SELECT x, y FROM closure"""
BACKWARD = """WITH RECURSIVE closure(x, y) AS (
  SELECT x, y FROM edge UNION SELECT e.x, c.y FROM closure AS c JOIN edge AS e ON e.y = c.x
) SELECT x, y FROM closure"""
BARS = {"tc_witness": 20.0, "tc_counts": 20.0, "tc_acyclic": 20.0}


def acyclic_graph(nodes: int, edges: int, seed: int = 1) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    out: set[tuple[int, int]] = set()
    while len(out) < edges:
        a, b = draw.randrange(nodes), draw.randrange(nodes)
        if a != b:
            out.add((min(a, b), max(a, b)))
    return sorted(out)


def opened(name: str, edges: list[tuple[int, int]]) -> sqlite3.Connection:
    """The system with these edges, loaded row by row through its triggers."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(sql_text(name, "sqlite"))
    database.execute("CREATE INDEX IF NOT EXISTS edge_backward ON edge (y, x)")  # for the recursive query
    database.execute("BEGIN")
    database.executemany("INSERT INTO edge VALUES (?, ?)", edges)
    database.execute("COMMIT")
    return database


def clocked(database: sqlite3.Connection, statement: str, row: tuple[int, ...] = ()) -> float:
    """CPU seconds of a statement; its rows are counted, not converted to Python."""
    start = time.process_time()
    database.execute(statement, row).fetchall()
    return time.process_time() - start


def measure(name: str, edges: list[tuple[int, int]], number: int) -> tuple[float, float, float]:
    """Means of a delete and of an insert, and the least time of the recursive query."""
    database = opened(name, edges)
    draw = random.Random(2)
    deletes, inserts, queries = [], [], []
    for step in range(number):
        edge = draw.choice(edges)
        deletes.append(clocked(database, "DELETE FROM edge WHERE x = ? AND y = ?", edge))
        inserts.append(clocked(database, "INSERT INTO edge VALUES (?, ?)", edge))
        if step % max(1, number // 5) == 0:
            queries += [clocked(database, f"SELECT count(*) FROM ({q})") for q in (FORWARD, BACKWARD)]
    if set(database.execute(FORWARD)) != set(database.execute("SELECT * FROM path")):
        fail(f"the table of {name} differs from the recursive query")
    return sum(deletes) / number, sum(inserts) / number, min(queries)


def main() -> None:
    asked = options(__doc__, edges=100, rounds=3)
    nodes, number = (40, 10) if asked.small else (300, asked.edges)
    for name, bar in BARS.items():
        edges = (random_graph if name == "tc_witness" else acyclic_graph)(nodes, 3 * nodes)
        rounds = [measure(name, edges, number) for _ in range(1 if asked.small else asked.rounds)]
        delete, insert, query = (min(times) for times in zip(*rounds, strict=True))
        times = {"delete": delete, "insert": insert, "query": query}
        print(f"  {name}: {', '.join(f'{what} {milliseconds(seconds)}' for what, seconds in times.items())}")
        print(f"    deletes {query / delete:.1f} ×, inserts {query / insert:.1f} ×")
        ratio = 2 * query / (delete + insert)
        at_least(f"SQLite triggers of {name} against its recursive query", ratio, bar, small=asked.small)


if __name__ == "__main__":
    main()

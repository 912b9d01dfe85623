"""One random edge deleted, then inserted, under a closure, against recomputation.

A random graph of 2 000 nodes and 4 000 edges (2.57 million pairs), a dense one of 300 nodes and 9
000 edges (all 90 000 pairs), and a grid of 30 × 30 nodes.  See bench/_updates.py for the method.

    python -P bench/updates.py [--small] [--edges 100] [--rounds 5]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, grid, options, random_graph
from _updates import compare


def main() -> None:
    asked = options(__doc__, edges=100, rounds=5)
    graphs = [
        ("closure, random 2 000/4 000", random_graph(2000, 4000), 80),
        ("closure, dense 300/9 000", random_graph(300, 9000), 400),
        ("closure, grid 30×30", grid(30), None),
    ]
    if asked.small:
        graphs = [
            ("closure, random 300/600", random_graph(300, 600), 80),
            ("closure, dense 60/900", random_graph(60, 900), 400),
            ("closure, grid 10×10", grid(10), None),
        ]
    for title, edges, bar in graphs:
        compare(title, CLOSURE, {"edge": edges}, asked.edges, asked.rounds, bar, asked.small)


if __name__ == "__main__":
    main()

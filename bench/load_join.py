"""One million facts loaded through a join, against the same join written by hand.

    q(a, c) :- r(a, b), s(b, c).

r and s have 500 000 rows each.  Ours is a `Database`: it checks its rows, stores the number of
derivations of each fact, and can delete any fact afterwards.  By hand: s grouped by b in a dict of
lists, a loop over r, and each (a, c) added to a set.  Both start from the same lists of tuples, and
the results are compared.  Ours is timed in two ways: all in one step (`Database(program,
facts=…)`), and one `insert` per relation.  The hand-written join is also timed with Python's
collector paused, as in ours, and with r and s stored as sets, as a maintained view would need; the
bar is against the plain one.

    python -P bench/load_join.py [--small] [--facts 1000000] [--rounds 3]
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_most, by_turns, fail, options, ratio_of

from everlog import Database, compile_text
from everlog.core.runtime.collector import collector_paused

PROGRAM = compile_text(
    """.decl r(a:number, b:number)
    .decl s(b:number, c:number)
    .decl q(a:number, c:number)
    q(a, c) :- r(a, b), s(b, c)."""
)
Pairs = list[tuple[int, int]]


def by_hand(r: Pairs, s: Pairs) -> set[tuple[int, int]]:
    c_of: dict[int, list[int]] = {}
    for b, c in s:
        c_of.setdefault(b, []).append(c)
    q = set()
    for a, b in r:
        for c in c_of.get(b, ()):
            q.add((a, c))
    return q


def by_hand_paused(r: Pairs, s: Pairs) -> set[tuple[int, int]]:
    with collector_paused():
        return by_hand(r, s)


def by_hand_kept(r: Pairs, s: Pairs) -> tuple[set[tuple[int, int]], ...]:
    return set(r), set(s), by_hand(r, s)


def one_step(r: Pairs, s: Pairs) -> Database:
    return Database(PROGRAM, facts={"r": r, "s": s})


def two_inserts(r: Pairs, s: Pairs) -> Database:
    database = Database(PROGRAM)
    database.insert("r", r)
    database.insert("s", s)
    return database


def rows(facts: int) -> tuple[Pairs, Pairs]:
    """Distinct rows in random order; each `b` has 3 rows in r and in s, on average."""
    draw = random.Random(6)
    half = facts // 2
    domain = half // 3

    def pairs(left: int, right: int) -> Pairs:
        out: dict[tuple[int, int], None] = {}
        while len(out) < half:
            out[draw.randrange(left), draw.randrange(right)] = None
        return list(out)

    return pairs(half // 10, domain), pairs(domain, half // 10)


def main() -> None:
    asked = options(__doc__, facts=1_000_000, rounds=3)
    r, s = rows(20_000 if asked.small else asked.facts)
    expected = by_hand(r, s)
    for make in (one_step, two_inserts):
        if set(make(r, s).rows("q")) != expected:
            fail(f"{make.__name__}: another join")
    print(f"{len(r)} r, {len(s)} s, {len(expected)} q, the same by hand")
    times = by_turns(
        asked.rounds,
        hand=lambda: by_hand(r, s),
        paused=lambda: by_hand_paused(r, s),
        kept=lambda: by_hand_kept(r, s),
        step=lambda: one_step(r, s),
        inserts=lambda: two_inserts(r, s),
    )
    names = {
        "hand": "by hand",
        "paused": "by hand, collector paused",
        "kept": "by hand, r and s kept as sets",
        "step": "Database, one step",
        "inserts": "Database, an insert per relation",
    }
    for side, what in names.items():
        against = {to: ratio_of(times[side], times[to]) for to in ("hand", "paused", "kept")}
        ratios = ", ".join(f"{ratio:5.2f} × {to}" for to, ratio in against.items())
        print(f"  {what:<34} {statistics.median(times[side]):6.2f} s   {ratios}")
    for side in ("step", "inserts"):
        at_most(f"load through a join, {names[side]}", ratio_of(times[side], times["hand"]), 2, small=asked.small)


if __name__ == "__main__":
    main()

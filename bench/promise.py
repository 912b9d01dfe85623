"""What `explain` prints against what happens: hostile streams through `Database`.

For each stream: the printed exponent, the fitted slope of the counted work and of CPU time per
update, and whether both hold (work: at most 0.15 above what is printed; time: 0.25, for caches).
Facts that are told count as updates: their readers pay for them.  Sizes are powers of two; each
stream first runs until its rules have had time to move.

With `--random N`, N rules and streams are made up instead, from `--seed` on; those whose answers
take too long are left out.

With `--against`, the same streams, and benign ones (the rules with random facts), are played by
another everlog as well, given by the path of its Python, or with another strategy: ratios of CPU
time per update, of moves and all.

    python -P bench/promise.py [--small] [--only TEXT] [--least 10] [--most 16] [--seconds 2]
    python -P bench/promise.py --random 100 [--seed 1] --least 9 --most 13 [--seconds 2]
    python -P bench/promise.py --against PYTHON --least 12 --most 14 [--only TEXT] [--seconds 1]
    python -P bench/promise.py --against delta --only benign --above 1.2 --least 12 --most 14
"""

from __future__ import annotations

import argparse
import itertools
import math
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _hostile_streams import BENIGN, CASES, declared
from _random_streams import Case, Stream, Update, random_case
from _side_by_side import Side, compared

from everlog import Database

WORK, TIME = 0.15, 0.25  # how far a slope may be above what is printed


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def work_of(db: Database) -> int:
    return sum(rule.work for rule in db.stats().rules)


def played(
    db: Database, stream: Stream, on: set[Update], number: int, seconds: float, batch: int, least: int = 1
) -> tuple[int, int]:
    """Toggle facts, up to a number or a time, and at least a few; how many, and facts told."""
    done = told = 0
    start = time.process_time()
    while done < number and (done < least or time.process_time() - start < seconds):
        part = list(itertools.islice(stream, batch))
        if batch == 1:
            name, row = part[0]
            changes = (db.delete if part[0] in on else db.insert)(name, row)
            on ^= {part[0]}
        else:
            with db.transaction() as step:
                for update in part:
                    (db.delete if update in on else db.insert)(*update)
                    on ^= {update}
            changes = step.changes
        done += len(part)
        given = {name for name, _ in part}
        told += sum(len(changes[name]) for name in changes if name not in given)
    return done, told


def measured(case: Case, size: int, seconds: float) -> tuple[float, float, Fraction | None, str]:
    """Work and microseconds for one update, what is printed, and the strategies at the end."""
    facts = case.facts(size)
    db = Database.from_text(declared(case.rules), facts=facts)
    on = {(name, row) for name, rows in facts.items() for row in rows}
    stream = case.stream(size)
    played(db, stream, on, 6000, seconds, case.batch, least=100)
    before = work_of(db)
    start = time.process_time()
    done, told = played(db, stream, on, 2000, seconds, case.batch)
    taken = time.process_time() - start
    work = work_of(db) - before
    rules = db.explanation()["rules"]
    printed = [rule["in_use"]["exponent"] for rule in rules]  # none of a recursive rule
    exponent = max((Fraction(text) for text in printed if text is not None), default=None)
    used = [use for rule in rules for use in (rule["in_use"], *rule["in_use"]["parts"])]
    now = {use["strategy"] for use in used} - {"flow", "delta"}
    per = done + told
    return max(1.0, work / per), max(1e-3, taken / per * 1e6), exponent, " ".join(sorted(now)) or "delta"


def slope(sizes: list[int], values: list[float]) -> float:
    """Of the line through the logarithms, by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main() -> None:
    asked = arguments().parse_args()
    least, most, by = (8, 11, 1) if asked.small else (asked.least, asked.most, asked.by)
    sizes = [2**power for power in range(least, most + 1, by)]
    seconds = 0.2 if asked.small else asked.seconds
    seeds = range(asked.seed, asked.seed + asked.random)
    made = [(seed, case) for seed in seeds if (case := random_case(seed)) is not None]
    if asked.against:
        compare(asked, made, sizes, seconds)
        return
    print(f"{'stream':<40} {'printed':>8} {'work':>6} {'time':>6}  {'µs at each size':<34} in use")
    if asked.random:
        verdicts = [held(case, sizes, seconds, patience=20) for _, case in made]
    else:
        verdicts = [held(case, sizes, seconds) for case in CASES if asked.only in case.name]
    found = [verdict for verdict in verdicts if verdict is not None]
    print(f"{sum(found)} of {len(found)} streams hold")
    if not all(found) and not asked.small:
        sys.exit(1)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="sizes 2^8 to 2^11: to see that it runs")
    parser.add_argument("--only", default="", help="streams whose name has this text")
    parser.add_argument("--least", type=int, default=10)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--by", type=int, default=2, help="between two powers")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each of two parts of a stream")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="that many random rules instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--against", default="", metavar="SIDE", help="a Python with another everlog, or a strategy"
    )
    parser.add_argument("--above", type=float, default=1.3, help="ratios that are too high")
    parser.add_argument("--updates", type=int, default=20_000, help="the most of a stream that is compared")
    return parser


def compare(asked: argparse.Namespace, made: list[tuple[int, Case]], sizes: list[int], seconds: float) -> None:
    """Print ratios of CPU time: ours over that of another side."""
    strategy = "" if "/" in asked.against else asked.against
    other = sys.executable if strategy else asked.against
    cases = made or [(0, case) for case in (*CASES, *BENIGN) if asked.only in case.name]
    sides = [Side(sys.executable), Side(other, strategy)]
    print(f"{'stream':<60} ratio of CPU time at sizes {', '.join(map(str, sizes))}")
    worst = []
    for seed, case in cases:
        ratios = []
        for size in sizes:
            ours, theirs = compared(sides, case, seed, size, seconds, asked.updates)
            ratios.append(ours / theirs)
        worst.append(max(ratios))
        shown = " ".join(f"{ratio:6.2f}" for ratio in ratios)
        print(f"{case.name:<60} {shown}{'  too slow' if worst[-1] > asked.above else ''}", flush=True)
    for side in sides:
        side.stop()
    print(
        f"{sum(ratio <= asked.above for ratio in worst)} of {len(worst)} streams take at most {asked.above} of it"
    )


class Impatient(Exception):
    """A random rule has too many answers."""


def held(case: Case, sizes: list[int], seconds: float, patience: int = 0) -> bool | None:
    """Whether a stream keeps what is printed; None if it took too long.  Random rules are held to
    steps alone, for their streams are short.
    """

    def give_up(*_: object) -> None:
        raise Impatient

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, patience)
    try:
        rows = [measured(case, size, seconds) for size in sizes]
    except Exception as error:  # wherever it was raised, an engine may be broken by it
        if patience and (isinstance(error, Impatient) or isinstance(error.__context__, Impatient)):
            return None
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    exponent = rows[-1][2]
    works, times = (slope(sizes, [row[n] for row in rows]) for n in (0, 1))
    if patience:  # the last step, too: constants weigh less
        works = min(works, slope(sizes[-2:], [row[0] for row in rows[-2:]]))
    holds = exponent is None or (works <= exponent + WORK and (patience > 0 or times <= exponent + TIME))
    shown = " ".join(f"{row[1]:.0f}" if row[1] >= 10 else f"{row[1]:.1f}" for row in rows)
    printed = "none" if exponent is None else str(exponent)
    verdict = "holds" if holds else "does not hold"
    line = f"{case.name:<40} {printed:>8} {works:6.2f} {times:6.2f}  {shown:<34} {rows[-1][3]}; {verdict}"
    print(line, flush=True)
    return holds


if __name__ == "__main__":
    main()

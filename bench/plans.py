"""Rules that were cliffs: time as data grows, beside the best form that one would write by hand.

    python -P bench/plans.py [--small] [--living | --updates] [--only NAME]
    python -P bench/plans.py --rules 20000
    python -P bench/plans.py --planning

Each case is a rule as a user would write it, the same answer by hand-split rules, and data that
doubles.  Printed are CPU seconds of both, their ratio, and the growth per doubling: of a whole
evaluation (in Python with EVERLOG_PURE=1), of a load of a living engine, or of single updates.

`--rules N` checks, plans and runs N rules of three atoms over hardly any facts, so that plans
are all the work.  `--planning` orders a body of five atoms over 20 000 rows each: the samples of
its tables, the order with new samples (cold), and once more (warm).
"""

from __future__ import annotations

import argparse
import time
from random import Random

from everlog import Database, compile_text, evaluate
from everlog.bench._plan_cases import CASES, Rows
from everlog.core.codegen.join_order import Ordering
from everlog.core.program import Atom, Variable
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import statistics_of

UPDATES = 50  # of each relation


def _once(text: str, rows: Rows, mode: str) -> tuple[float, int]:
    """CPU seconds, and the answers of the last rule."""
    program = compile_text(text)
    last = program.rules[-1].head.relation
    start = time.process_time()
    if mode == "whole":
        answers = evaluate(program, rows).relation(last)
        return time.process_time() - start, len(answers)
    db = Database(program, facts=rows)
    size = len(db.view(last))
    if mode == "updates":
        random, names = Random(0), sorted(rows)
        chosen = [(name, random.choice(rows[name])) for _ in range(UPDATES) for name in names]
        for name, row in chosen[: len(names)]:  # indexes are made at the first change
            db.delete(name, row)
            db.insert(name, row)
        start = time.process_time()
        for name, row in chosen[len(names) :]:
            db.delete(name, row)
            db.insert(name, row)
    return time.process_time() - start, size


def many_rules(count: int) -> None:
    """Rules of three atoms, each with a relation of its own."""
    random = Random(6)
    lines = [".decl e0(x:number, y:number)"]
    for number in range(1, count + 1):
        a, b, c = (random.randrange(max(0, number - 50), number) for _ in range(3))
        lines += [
            f".decl e{number}(x:number, y:number)",
            f"e{number}(x, w) :- e{a}(x, y), e{b}(y, z), e{c}(z, w).",
        ]
    start = time.process_time()
    program = compile_text("\n".join(lines))
    checked = time.process_time()
    evaluate(program, {"e0": [(1, 2), (2, 3)]})
    print(f"{count} rules: check {checked - start:.2f} s, plan and run {time.process_time() - checked:.2f} s")


def planning() -> None:
    """The order of one body of five atoms."""
    random = Random(7)
    names = [f"r{number}" for number in range(5)]
    tables = {name: {(random.randrange(3000), random.randrange(3000)) for _ in range(20_000)} for name in names}
    variables = [Variable(f"x{number}") for number in range(6)]
    body = [Atom(name, (variables[n], variables[n + 1])) for n, name in enumerate(names)]
    shape = shape_of(2)
    facts = {name: shape.facts_of(rows) for name, rows in tables.items()}
    times: dict[str, list[float]] = {"statistics": [], "cold": [], "warm": []}
    for _ in range(10):
        start = time.process_time()
        known = {name: statistics_of(shape, rows, {}) for name, rows in facts.items()}
        times["statistics"].append(time.process_time() - start)
        for what in ("cold", "warm"):
            start = time.process_time()
            Ordering(body, known).chosen()
            times[what].append(time.process_time() - start)
    for what, found in times.items():
        print(f"5 atoms, {what}: {min(found) * 1000:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tenth of the data")
    parser.add_argument("--living", action="store_true", help="load a living engine instead")
    parser.add_argument("--updates", action="store_true", help="delete and insert rows of each relation instead")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--rules", type=int, default=0, metavar="N", help="plan N small rules instead")
    parser.add_argument("--planning", action="store_true", help="time the order of one body instead")
    asked = parser.parse_args()
    if asked.rules or asked.planning:
        if asked.rules:
            many_rules(asked.rules)
        if asked.planning:
            planning()
        return
    mode = "updates" if asked.updates else "living" if asked.living else "whole"
    for case in CASES:
        if asked.only not in case.name:
            continue
        previous = 0.0
        for size in case.sizes:
            rows = case.data(size // 10 if asked.small else size)
            seconds, answers = _once(case.declarations + case.written, rows, mode)
            best, expected = _once(case.declarations + case.by_hand, rows, mode)
            assert answers == expected, (case.name, answers, expected)
            growth = f"{seconds / previous:5.2f} ×" if previous else "       "
            print(
                f"{case.name:28} {size:8} {seconds:8.3f} s   by hand {best:8.3f} s   "
                f"{seconds / best:6.2f} ×   growth {growth}",
                flush=True,
            )
            previous = seconds


if __name__ == "__main__":
    main()

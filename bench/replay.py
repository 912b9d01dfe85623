"""A stream in steps, one by one, and as one batch: the changes sum to the same.

For the closure of a graph, the join with a count, and points-to, random updates are applied to four
databases with the same initial facts: in steps of random sizes, one update per step, a few large
batches, one batch.  The stream also goes through `everlog run --updates` as text, and its printed
lines are added up.  All sums must be equal, and lead from the initial state to that of an
evaluation from scratch.  Some updates are redundant.

    python -P bench/replay.py [--small] [--updates 4000]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, JOIN_COUNT, add_changes, fail, options, random_graph
from programs_updates import POINTS_TO, points_to

from everlog import Database, Update, compile_text, evaluate
from everlog.api.facts.rows import line_update
from everlog.core.program import Row

Sum = dict[str, dict[Row, int]]


def main() -> None:
    asked = options(__doc__, updates=4000)
    number = 400 if asked.small else asked.updates
    join = {"r": random_graph(200, 1000, seed=11), "s": random_graph(200, 1000, seed=12)}
    closure_text = CLOSURE.replace(".input edge\n", "")
    replay("closure", closure_text, {"edge": random_graph(120, 200, seed=10)}, 120, number)
    replay("join with count", JOIN_COUNT, join, 200, number)
    replay("points-to", POINTS_TO, points_to(400), 400, number)
    print(
        "  sums of changes by steps, one by one, batches and text: equal".ljust(92)
        + "bar: equal              holds"
    )


def replay(title: str, text: str, base: Mapping[str, Sequence[Row]], domain: int, number: int) -> None:
    updates = random_updates(base, domain, number)
    program = compile_text(text)
    sizes = random.Random(13)
    ways = {
        "steps": list(cut(updates, lambda: sizes.choice((1, 1, 2, 5, 20, 100)))),
        "one by one": list(cut(updates, lambda: 1)),
        "four batches": list(cut(updates, lambda: -(-number // 4))),
        "one batch": [updates],
    }
    before = evaluate(program, base)
    after = evaluate(program, state_after(base, updates))
    sums: dict[str, Sum] = {"from scratch": {}}
    for name in program.relations:
        old, new = before.relation(name), after.relation(name)
        sums["from scratch"][name] = dict.fromkeys(old - new, -1) | dict.fromkeys(new - old, 1)
    times = []
    for way, steps in ways.items():
        database = Database(program, facts=base)
        start = time.process_time()
        total: Sum = {name: {} for name in program.relations}
        for step in steps:
            add_changes(total, database.apply(step))
        times.append(f"{way} {time.process_time() - start:.2f} s")
        sums[way] = total
        for name in program.relations:
            if set(database.rows(name)) != after.relation(name):
                fail(f"{title}, {way}: {name} is not what an evaluation from scratch gives")
    sums["as text"] = through_the_command(text, base, ways["steps"])
    for way, total in sums.items():
        if total != sums["from scratch"]:
            fail(f"{title}: {way} gave another sum")
    size = sum(map(len, sums["steps"].values()))
    print(f"  {title}: {number} updates, {len(ways['steps'])} steps, net {size} rows; {', '.join(times)}: equal")


def random_updates(base: Mapping[str, Sequence[Row]], domain: int, number: int) -> list[Update]:
    """Deletes of present facts and inserts in equal parts, a tenth of them redundant."""
    draw = random.Random(14)
    present = {name: list(rows) for name, rows in base.items()}
    out: list[Update] = []
    while len(out) < number:
        name = draw.choice(list(present))
        rows = present[name]
        row: Row = (draw.randrange(domain), draw.randrange(domain))
        if draw.random() < 0.1:  # perhaps of an absent fact, or a present one
            insert = draw.random() < 0.5
            if insert and rows:
                row = draw.choice(rows)
            if not insert and row in rows:
                continue
            out.append(Update(name, row, insert))
        elif rows and draw.random() < 0.5:
            place = draw.randrange(len(rows))
            rows[place], rows[-1] = rows[-1], rows[place]
            out.append(Update(name, rows.pop(), False))
        elif row not in rows:
            rows.append(row)
            out.append(Update(name, row))
    return out


def cut(updates: Sequence[Update], size) -> Iterator[list[Update]]:  # type: ignore[no-untyped-def]
    first = 0
    while first < len(updates):
        last = first + size()
        yield list(updates[first:last])
        first = last


def state_after(base: Mapping[str, Sequence[Row]], updates: Sequence[Update]) -> dict[str, set[Row]]:
    state = {name: set(rows) for name, rows in base.items()}
    for update in updates:
        (state[update.relation].add if update.insert else state[update.relation].discard)(update.row)
    return state


def through_the_command(text: str, base: Mapping[str, Sequence[Row]], steps: Sequence[Sequence[Update]]) -> Sum:
    """The sum of the lines of `everlog run --updates`, with all relations as outputs."""
    relations = compile_text(text).relations
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = f".input {', '.join(base)}\n.output {', '.join(relations)}\n"
        (folder / "program.dl").write_text(text.replace(".output path\n", "") + asked)
        for relation, rows in base.items():
            (folder / f"{relation}.facts").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        lines = ["\n".join(line_of(update) for update in step) + "\n" for step in steps]
        (folder / "stream.txt").write_text("\n".join(lines))
        words = [sys.executable, "-P", "-m", "everlog", "run", "program.dl", "--updates", "stream.txt"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    total: Sum = {name: {} for name in relations}
    for line in done.stdout.splitlines():
        if line.startswith(("+", "-")):
            update = line_update(relations, line)
            add_changes(total, {update.relation: {update.row: 1 if update.insert else -1}})
    return total


def line_of(update: Update) -> str:
    return f"{'+' if update.insert else '-'}{update.relation}({', '.join(map(str, update.row))})."


if __name__ == "__main__":
    main()

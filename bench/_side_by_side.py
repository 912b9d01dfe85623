"""CPU time of streams on several sides: this everlog, another one, or another strategy.

A side is a process of its own, with the Python that its everlog is installed in.  All sides play
the same updates of a stream in turn, some at a time, until one of them has used its time; so noise
of the machine meets all of them.  Loading is not measured; moves to other views are.

    python -P bench/_side_by_side.py        a side: reads questions from standard input
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

from _hostile_streams import BENIGN, CASES, declared
from _random_streams import Case, random_case

PARTS = 20  # turns of a side, about


class Side:
    """A process that plays streams.

    Invariant: each question, a line, is answered by a line before the next one is asked.
    """

    def __init__(self, python: str, strategy: str = "") -> None:
        self.strategy = strategy
        self.process = subprocess.Popen(
            [python, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _ask(self, question: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a side stopped: {self.process.args}")
        return json.loads(answer)

    def begin(self, case: Case, seed: int, size: int) -> None:
        self._ask({"name": case.name, "seed": seed, "size": size, "strategy": self.strategy})

    def play(self, updates: int) -> float:
        """Seconds of CPU for the next updates."""
        return float(self._ask(updates))

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compared(sides: Sequence[Side], case: Case, seed: int, size: int, seconds: float, most: int) -> list[float]:
    """Seconds of CPU of each side for the same updates; it ends when one side has had its time."""
    for side in sides:
        side.begin(case, seed, size)
    spent, done, part, turn = [0.0] * len(sides), 0, 1, list(range(len(sides)))
    while done < most and max(spent) < seconds:
        turn.reverse()
        before = max(spent)
        for n in turn:
            spent[n] += sides[n].play(part)
        done += part
        if max(spent) - before < seconds / PARTS:
            part *= 2
    return spent


# ── a side ───────────────────────────────────────────────────────────────────────────────────


def find(name: str, seed: int) -> Case:
    found = random_case(seed) if seed else next(case for case in (*CASES, *BENIGN) if case.name == name)
    assert found is not None
    return found


def steps(case: Case, size: int) -> Iterator[list[tuple[str, tuple[int, ...], bool]]]:
    """The updates of a stream, a step at a time, with whether they insert."""
    on = {(name, row) for name, rows in case.facts(size).items() for row in rows}
    stream = case.stream(size)
    while True:
        made = []
        for update in itertools.islice(stream, case.batch):
            made.append((*update, update not in on))
            on ^= {update}
        yield made


def serve() -> None:
    """Answer questions: an object begins a stream, a number plays as many of its updates."""
    from everlog import Database  # only here: the other side needs nothing of it

    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, dict):
            case = find(question["name"], question["seed"])
            strategies = {"*": question["strategy"]} if question["strategy"] else None
            facts = case.facts(question["size"])
            db = Database.from_text(declared(case.rules), facts=facts, strategies=strategies)
            stream = steps(case, question["size"])
            print(0, flush=True)
            continue
        played = list(itertools.islice(stream, max(1, question // case.batch)))
        start = time.process_time()
        for step in played:
            if len(step) == 1:
                ((name, row, insert),) = step
                (db.insert if insert else db.delete)(name, row)
            else:
                with db.transaction():
                    for name, row, insert in step:
                        (db.insert if insert else db.delete)(name, row)
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    serve()

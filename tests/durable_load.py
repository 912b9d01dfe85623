"""A load for databases in files: moves from a seed, known to two processes.

`Load(seed)` is a model: the base facts, the rules, and the position of a source, after each step.
A database that got the moves of the same seed must agree with the model, step by step.

As a program it is the process that crash tests kill.  It imports everything once and then, for each
line `SEED PATH` on its input, forks a child that applies moves to the database until it is killed,
and prints each applied step.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from attrs import evolve, frozen

from everlog import Database
from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.core.program.executor import Update
from everlog.dsl.check import compile_text
from everlog.store.durable_database import DurableDatabase

PROGRAM = """
.decl e(x:number, y:number)
.decl s(x:symbol, v:float)
.decl tc(x:number, y:number)
tc(x, y) :- e(x, y).
tc(x, z) :- tc(x, y), e(y, z).
.decl far(x:number, y:number)
far(x, y) :- e(x, _), e(_, y), !tc(x, y).
.decl out(x:number, n:number)
out(x, n) :- e(x, _), n = count : { tc(x, _) }.
.decl v(v:float)
v(m) :- m = max x : { s(_, x) }.
"""
RULES = [
    "tc(x, x) :- s(_, v), x = to_number(to_string(7)), v > 2.0.",
    "tc(y, x) :- e(x, y), x < 3.",
    "far(x, x) :- out(x, n), n > 3.",
    "e(11, 11).",
]
NODES = 9


@frozen
class Move:
    """One step: updates of facts, or a rule that comes or goes."""

    updates: tuple[Update, ...] = ()
    add: str = ""
    drop: str = ""
    position: str = ""

    def apply(self, db: DurableDatabase) -> object:
        if self.add:
            return db.add_rule(self.add)
        if self.drop:
            return db.drop_rule(self.drop)
        if self.position:
            return db.apply(self.updates, positions={"source": self.position})
        if len(self.updates) == 1:
            (update,) = self.updates
            return (db.insert if update.insert else db.delete)(update.relation, update.row)
        with db.transaction() as tx:
            tx.apply(self.updates)
        return tx.changes


class Load:
    """The model: base facts, rules and position of the database after `step`."""

    def __init__(self, seed: int, step: int = 0) -> None:
        self.random = random.Random(seed)
        self.given: dict[str, set[Row]] = {"e": set(), "s": set()}
        self.rules: list[str] = []
        self.position = ""
        self.step = 0
        while self.step < step:
            self.next()

    def next(self) -> Move:
        """The move of the next step, which changes something; the model has made it."""
        self.step += 1
        kind = self.random.random()
        if kind < 0.04:
            return self._rule()
        if kind < 0.08:
            move = Move(tuple(self._updates(self.random.randrange(60, 90))))
        elif kind < 0.3:
            move = Move(tuple(self._updates(self.random.randrange(2, 6))))
        elif kind < 0.5:
            self.position = str(self.step)
            move = Move(tuple(self._updates(2)), position=self.position)
        else:
            move = Move(tuple(self._updates(0)) if self.random.random() < 0.3 else (self._single(),))
        return move

    def _rule(self) -> Move:
        text = self.random.choice(RULES)
        if text in self.rules:
            self.rules.remove(text)
            self.given["e"] -= {(11, 11)} if text == RULES[-1] else set()
            return Move(drop=text)
        self.rules.append(text)
        self.given["e"] |= {(11, 11)} if text == RULES[-1] else set()
        return Move(add=text)

    def _single(self) -> Update:
        name = self.random.choice("eees")
        rows = self.given[name]
        if name == "e":
            row: Row = (self.random.randrange(NODES), self.random.randrange(NODES))
        else:
            row = (self.random.choice(["a", "é", "\udc80", "long " * 200]), self.random.randrange(5) / 2)
        insert = row not in rows
        (rows.add if insert else rows.discard)(row)
        return Update(name, row, insert)

    def _updates(self, number: int) -> Iterable[Update]:
        for _ in range(number):
            yield self._single()
        # a step of updates that cancel each other would be none: this one never does
        insert = (100, 100) not in self.given["e"]
        (self.given["e"].add if insert else self.given["e"].discard)((100, 100))
        yield Update("e", (100, 100), insert)

    # ── what a database must show ────────────────────────────────────────────────────────────

    def views(self) -> dict[str, set[Row]]:
        """Every relation, by the reference evaluator."""
        given = {name: frozenset(rows) for name, rows in self.given.items()}
        return {name: set(rows) for name, rows in _evaluated(tuple(self.rules), tuple(given.items())).items()}

    def assert_shown_by(self, db: DurableDatabase) -> None:
        assert db.step == self.step
        for name, rows in self.views().items():
            assert set(db.view(name)) == rows, f"{name} after step {self.step}"
        assert {name: set(db.given(name)) for name in self.given} == self.given
        assert db.positions.get("source", "") == self.position


@lru_cache(maxsize=64)
def _compiled(rules: tuple[str, ...]) -> Program:
    return compile_text("\n".join([PROGRAM, *rules]))


@lru_cache(maxsize=16)
def _evaluated(rules: tuple[str, ...], given: tuple[tuple[str, frozenset[Row]], ...]) -> dict[str, frozenset[Row]]:
    return dict(reference.evaluate(evolve(_compiled(rules), facts={}), dict(given)))


def opened(path: Path) -> DurableDatabase:
    return Database.open(path, text=PROGRAM) if not path.exists() else Database.open(path)


# ── the process that is killed ───────────────────────────────────────────────────────────────


def work(seed: int, path: Path, tell: Callable[[str], object]) -> None:
    """Apply moves for ever, and report each step; write a checkpoint now and then."""
    with opened(path) as db:
        load = Load(seed, db.step)
        tell(f"open {db.step}\n")
        while True:
            load.next().apply(db)
            tell(f"step {db.step}\n")
            if db.step % 37 == 0:
                db.checkpoint(history=20, state=db.step % 2 == 0)


def main() -> None:
    opened(Path(sys.argv[1])).close()  # all that is imported lazily is there now
    for line in sys.stdin:
        seed, path = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if not child:
            work(int(seed), Path(path), lambda text: os.write(1, text.encode()))
        os.write(1, f"child {child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    main()

"""Delta rules that count their own work, so that a decision about them needs no clock.

A counter has the work done, the matches found, the rows that changed, and a limit: a rule that does
more work than that for one change gives up with `Enough`.  The unit of work is one element of a set
operation in C, three to ten nanoseconds; a turn of a Python loop is `TURN` of them, and each key
that it looks up `LOOK_UP` more.  Counting costs an addition per loop turn, and three per delta rule
and update.

Every way of a step runs these rules: fused, or unit by unit; of one row or of many; on
base or derived relations.  So nothing that delta does goes uncounted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TypeAlias

from attrs import define, field

from everlog.core.ir.uses import Action, Meter, Use

Counter: TypeAlias = list[int]  # work, matches, rows, limit

TURN = 4  # units of work for one turn of a loop in Python
LOOK_UP = 8  # and to look up a key in it
ROW = 300  # units for one row of a change, beside what its rules do: tables, indexes, undo
MATCH = 16  # units for one match: the turn that finds it, and the entry that it makes
UNLIMITED = sys.maxsize
LOCAL = "_n"  # the local that counts in delta rules


def counter() -> Counter:
    return [0, 0, 0, UNLIMITED]


class Enough(Exception):
    """A delta rule has reached the limit of its work; `rule` is its name."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@define(eq=False)
class RuleWork:
    """The counters of one rule: one for each relation that it reads, and for what came and went."""

    counters: dict[tuple[str, int], Counter] = field(factory=dict)
    taken_over: int = 0  # work of views that were given up

    def of(self, relation: str, sign: int) -> Counter:
        return self.counters.setdefault((relation, sign), counter())

    def total(self) -> tuple[int, int, int]:
        """Work, matches and rows, over all relations."""
        work = matches = rows = 0
        for one in self.counters.values():
            work, matches, rows = work + one[0], matches + one[1], rows + one[2]
        return self.taken_over + work + ROW * rows, matches, rows

    def take_over(self, work: int, matches: int, rows: Mapping[str, int], losses: int) -> None:
        """Add what a view has done that is given up."""
        for relation, number in rows.items():
            self.of(relation, 1)[2] += number
            self.taken_over -= ROW * number
        some = self.of(next(iter(rows)), -1)
        some[1] += matches
        some[2] += losses
        self.taken_over += work - ROW * losses


def counted_use(work: Counter, row_by_row: bool = False) -> Use:
    """A delta rule that counts the derivations of each fact, and its own work."""
    meter = Meter(
        work,
        Enough,
        LOCAL,
        TURN,
        begin=f"{LOCAL} = _m = 0",
        end=f"{{0}}[0] += {LOCAL}; {{0}}[1] += _m",
        counts_rows=True,
        counts_matches=True,
        look_up=LOOK_UP,
    )
    return Use(Action.COUNT, row_by_row=row_by_row, meter=meter)


def counting_uses(work: RuleWork | None, relation: str) -> dict[int, Use]:
    """What the delta rules of one relation are for, by their sign."""
    if work is None:
        return {1: Use(Action.COUNT), -1: Use(Action.COUNT)}
    return {sign: counted_use(work.of(relation, sign)) for sign in (1, -1)}

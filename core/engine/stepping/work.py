"""Delta rules that count their own work, so that a decision about them needs no clock.

A counter has the work done, the matches found, the rows that changed, and a limit: a rule that does
more work than that for one change gives up with `Enough`.  The unit of work is one element of a set
operation in C, about ten nanoseconds; a turn of a Python loop is `TURN` of them.  Counting costs an
addition per loop turn, and three per delta rule and update.

Every way of a step runs these rules: fused, unrolled, or unit by unit; of one row or of many; on
relations that are given or derived.  So nothing that delta does goes uncounted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

from attrs import define, field

from everlog.core.codegen.atoms import local
from everlog.core.codegen.code_lines import Line, Loop, Values
from everlog.core.codegen.derivations import FEW, CountWriter, LivingWriter
from everlog.core.codegen.joins import JoinWriter
from everlog.core.program import Atom, Literal, Term, Variable
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import PairShape

Counter: TypeAlias = list[int]  # work, matches, rows, limit

TURN = 4  # units of work for one turn of a loop in Python
ROW = 300  # units for one row of a change, beside what its rules do: tables, indexes, undo
MATCH = 16  # units for one match: the turn that finds it, and the entry that it makes
UNLIMITED = sys.maxsize


def counter() -> Counter:
    return [0, 0, 0, UNLIMITED]


class Enough(Exception):
    """A delta rule has reached the limit of its work; `rule` is its name."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@define(slots=False)  # another writer stands beside it
class WorkWriter(LivingWriter):
    """Adds to a local, `_n`, what a rule does, and to `_m` the matches it finds."""

    done: ClassVar[str] = "_n"  # the local
    turn: ClassVar[int] = TURN
    work: Counter | None = field(default=None, kw_only=True)

    def restricted(self, container: Values, variable: Variable) -> Values:
        indexes = self.leading_indexes(variable)
        if not self.from_delta or not indexes:
            return JoinWriter.restricted(self, container, variable)
        name = self.temporary("_z")
        self.line(f"{name} = {container}")
        cut = local(name).cut_to(indexes)
        self.add_work([name, *indexes])
        return local(f"({name} if _len({name}) < {FEW} else {cut})", name)

    def intersection(self) -> str:
        sets = list(dict.fromkeys(self.sets))
        if len(sets) > 1:
            self.add_work(sets)
        return super().intersection()

    def filter_set(self, literal: Literal) -> None:
        self.add_work([self.single_set()])
        super().filter_set(literal)

    def add_work(self, sets: Sequence[str]) -> None:
        """Count a set operation: it takes as long as the smallest of its sets is large."""
        if len(sets) == 2:
            one, other = sets
            self.line(f"{self.done} += _len({one}) if _len({one}) < _len({other}) else _len({other})")
        elif len(sets) == 1:
            self.line(f"{self.done} += _len({sets[0]})")
        else:
            self.expressions.scope["_min"] = min
            self.line(f"{self.done} += _min({', '.join(f'_len({name})' for name in sets)})")

    def collect_parts(self) -> None:
        self.lines = self.with_counts(self.lines, first=not self.pending)
        for place, part in enumerate(self.pending):
            part.caller = self.with_counts(part.caller, first=place == 0)
        super().collect_parts()

    def with_counts(self, lines: Sequence[Line], first: bool) -> list[Line]:
        """The lines of one function, with a count in each loop.

        In a loop that has another one inside, the limit is looked at: the innermost loops run
        through no more than one relation each.
        """
        loops = [n for n, line in enumerate(lines) if isinstance(line, Loop)]
        outer = {one for one, other in pairwise(loops) if lines[other].depth > lines[one].depth}
        counted: list[Line] = []
        for n, line in enumerate(lines):
            counted.append(line)
            if isinstance(line, Loop):
                counted.append(Line(line.depth + 1, f"{self.done} += {self.turn}"))
            if n in outer and self.work is not None:
                self.expressions.scope["_Enough"] = Enough
                name, done = self.work_name(), self.done
                rule = self.expressions.named("rule", self.written.name)
                stop = f"{name}[0] += {done}; raise _Enough({rule})"
                counted.append(Line(line.depth + 1, f"if {done} > {name}[3]: {stop}"))
        return counted

    def work_name(self) -> str:
        """What the code calls the counter."""
        self.expressions.scope["_work"] = self.work
        return "_work"


@define
class CountWorkWriter(WorkWriter, CountWriter):
    """Counts the derivations of each fact, and its own work."""

    def emit(self, head: Atom, shape: Shape) -> None:
        super().emit(head, shape)
        if self.set_in_head:
            self.line(f"_n += _len({self.sets[0]}); _m += _len({self.sets[0]})")
        else:
            self.line("_m += 1")

    def with_counts(self, lines: Sequence[Line], first: bool) -> list[Line]:
        work = self.work_name()
        begin = [Line(1, "_n = _m = 0")]
        if first:
            begin += self.rows_of_delta()
        end = [Line(1, f"{work}[0] += _n"), Line(1, f"{work}[1] += _m")]
        return [*begin, *super().with_counts(lines, first), *end]

    def rows_of_delta(self) -> list[Line]:
        atom = self.whole[self.delta] if self.delta is not None else None
        if not isinstance(atom, Atom):
            return []
        if isinstance(self.shapes[atom.relation], PairShape):
            return [Line(1, "for _k in _delta.values(): _work[2] += _len(_k)")]
        return [Line(1, "_work[2] += _len(_delta)")]


@define
class TrialWriter(CountWorkWriter):
    """Runs through Δ row by row, in the order of atoms that `core.engine.fused` has."""

    def values_of_key(self, container: Values, arg: Term, atom: Atom) -> None:
        self.values(container, arg)


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


def modes_of(work: RuleWork | None, relation: str) -> Any:
    """How the delta rules of one relation are written, by their sign."""
    if work is None:
        return {1: CountWriter, -1: CountWriter}
    return {sign: partial(CountWorkWriter, work=work.of(relation, sign)) for sign in (1, -1)}


def counter_of(mode: Any) -> Counter | None:
    """The counter that such a mode adds to; None for any other mode."""
    return mode.keywords["work"] if isinstance(mode, partial) else None

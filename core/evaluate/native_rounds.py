"""A unit on the compiled machine: the same rounds, by plans over rows of words.

Rules are planned when their unit begins, as in Python, with the sizes of the relations that they
read.  A derived fact goes straight to its relation: its row number says that it is of this round,
so that no rule reads it before the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import define

from everlog.core import program as p
from everlog.core.codegen.join_order import Ordering
from everlog.core.evaluate.rounds import Collected, Rounds, RoundTask
from everlog.core.evaluate.run_relations import Relations
from everlog.core.ir.lowering import lower
from everlog.core.ir.operations import Plan
from everlog.core.program import Atom, Program, Rule
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts
from everlog.core.storage.table_statistics import Guess, Statistics

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine

Progress = Callable[[str, int, int], None]


def planned(
    program: Program, unit: Unit, rule: Rule, delta: int | None, known: Callable[[str], Statistics]
) -> Plan:
    """The plan of a rule; `known` has statistics of the relations of other units."""
    names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
    own = names.intersection(unit.relations)
    statistics = {n: Guess(program.relations[n].arity) if n in own else known(n) for n in names}
    variables = frozenset(v for literal in rule.body for v in variables_of_literal(literal))
    chosen = Ordering(rule.body, statistics, first=delta, kept=variables).chosen()
    order = [one.position for one in chosen]
    return lower(rule, order, program.relations, unit.positions(rule), delta)


@define
class _Task:
    """A plan that reads the change of `source` (None: of nothing)."""

    rule: Rule
    source: str | None
    plan: machine.Plan

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        self.plan.run()


class NativeRounds(Rounds):
    """The rounds of one unit on the compiled machine."""

    def __init__(
        self, program: Program, unit: Unit, relations: Relations, guard: Guard, progress: Progress | None
    ) -> None:
        invents = any(p.invents(rule) for rule in unit.rules)
        limited = any(name in program.limits for name in unit.relations)
        super().__init__(", ".join(unit.relations), relations.shapes, guard, invents and not limited)
        self.program, self.unit, self.relations, self.progress = program, unit, relations, progress
        self.own = {name: relations.native(name) for name in unit.relations}

    def run(self) -> None:
        rules = [(rule, self.unit.positions(rule) if self.unit.recursive else []) for rule in self.unit.rules]
        self.round([self._task(rule, None) for rule, places in rules if not places], {}, 1)
        delta: dict[str, Facts] = {name: rows for name, one in self.own.items() if (rows := one.restart())}
        if delta and any(places for _, places in rules):
            tasks = [self._task(rule, place) for rule, places in rules for place in places]
            self.run_until_settled(tasks, delta)

    def _task(self, rule: Rule, delta: int | None) -> _Task:
        from everlog.core.native.assembly import assemble  # here: only where the machine was built

        plan = planned(self.program, self.unit, rule, delta, self.relations.statistics)
        names = {rule.head.relation, *(atom.relation for atom, _ in p.atoms_of(rule.body))}
        words = {name: self.relations.native(name) for name in names}
        made = assemble(plan, words, self.relations.symbols, self.guard.look)
        atom = None if delta is None else rule.body[delta]
        return _Task(rule, atom.relation if isinstance(atom, Atom) else None, made)

    # ── a round ──────────────────────────────────────────────────────────────────────────────

    def collector(self, task: RoundTask, new: Collected) -> Facts:
        return ()

    def keep(self, new: Collected) -> dict[str, Facts]:
        return {name: rows for name, one in self.own.items() if (rows := one.advance())}

    def size(self, delta: dict[str, Facts]) -> int:
        return sum(map(len, delta.values()))

    def end_round(self, new: Collected, number: int) -> dict[str, Facts]:
        delta = super().end_round(new, number)
        if self.progress is not None:
            self.progress(self.name, number, self.size(delta))
        return delta

    def is_full(self) -> bool:
        limits = self.program.limits
        return any(name in limits and len(one) >= limits[name] for name, one in self.own.items())

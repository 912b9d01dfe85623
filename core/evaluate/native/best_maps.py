"""Maps to a best value on the compiled machine: rules as plans, run in the order of values.

As in `best_first`, the best value that waits is final while no rule makes a value better than the
one it came from.  Rules offer values to the machine (`core/native/best.h`), which keeps the best
one of each key and passes facts on by itself.  Where the order is lost it goes on in rounds.

`Undefined` is raised where Python must evaluate the unit: for a functor without a value, for NaN,
and for values that improve for ever along a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from everlog.core.codegen.join_estimates import Observed
from everlog.core.evaluate.best_first import ROUNDS, only_adds
from everlog.core.evaluate.counters import Counting
from everlog.core.evaluate.native.rule_task import NativeTask
from everlog.core.evaluate.native.unit_rounds import NativeContext, NativeRounds
from everlog.core.evaluate.reports.shown_plans import plan_of_task
from everlog.core.evaluate.run_relations import Relations
from everlog.core.ir.operations import Plan, Unknown
from everlog.core.native.availability import NotAWord, Undefined, why_not
from everlog.core.native.coverage import uncovered
from everlog.core.native.words import empty_words, new_settling
from everlog.core.program import Atom, Kind, Program, Rule
from everlog.core.program.aggregates.best_values import BestMap
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Key

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine

_MANY = 4096  # facts between two checks of the limits


def why_not_settled(program: Program, unit: Unit, maps: Mapping[str, BestMap]) -> str:
    """Why the compiled machine does not settle a unit of maps; empty if it does."""
    for name, known in maps.items():
        if program.relations[name].columns[known.column].kind is Kind.SYMBOL:
            return f"the values of {name} are symbols, which the compiled machine does not order"
    return why_not() or next(filter(None, map(uncovered, unit.rules)), "")


def settled(relations: Relations, unit: Unit, maps: Mapping[str, BestMap], guard: Guard) -> NativeMaps | None:
    """A unit of maps that the machine has settled; None if Python must evaluate it."""
    before = guard.facts
    try:
        context = NativeContext(relations.program, relations, Counting(relations.program), guard)
        found = NativeMaps(context, unit, maps)
        found.run()
    except (NotAWord, Undefined):
        guard.facts = before
        return None
    return found


class NativeMaps(NativeRounds):
    """A unit of maps while the compiled machine settles it.

    A rule with the head (key…, value) adds to the keys of its map; that is an offer.  Its plan
    reads facts that are settled as Δ.
    """

    def __init__(self, context: NativeContext, unit: Unit, maps: Mapping[str, BestMap]) -> None:
        super().__init__(evolve(context, jobs=1), unit)  # offers are made one after the other
        program, relations = context.program, context.relations
        self.known = maps
        self.settling = new_settling()
        self.base, self.maps = self.own, dict[str, "machine.BestMap"]()
        for name, known in maps.items():
            facts = empty_words(program.relations[name], relations.symbols)
            self.maps[name] = self.settling.add(facts, known.column, known.op == "max")
        self.own = {name: one.facts for name, one in self.maps.items()}

    def run(self) -> None:
        for name, one in self.maps.items():
            one.offer(self.base[name])
        for rule in self.unit.rules:
            places = self.unit.positions(rule)
            task = self._task(self._offering(rule), places[0] if places else None)
            assert isinstance(task, NativeTask)
            if task.source is None:
                self._run(task, None, ())
            else:
                self.maps[task.source].follow(task.made.code)
        self._settle()
        for name, one in self.maps.items():
            self.relations.words[name] = one.settled()
            self.relations.words[name].advance()
            if self.progress is not None:
                self.progress(name, 2, len(self.relations.words[name]))
        if self.profile is not None:
            for task in self.made:
                self.profile.rules[task.owner].plans.append(plan_of_task(task))

    def _settle(self) -> None:
        """Pass on values in order; where that is lost, in rounds."""
        settling = self.settling
        while settling.pending and settling.in_order:
            self.guard.round(self.name, 2, settling.run(_MANY), False)
        adds = only_adds(self.unit, self.known)
        number = 2
        while settling.pending:
            number += 1
            if adds and number > sum(len(one.keys) for one in self.maps.values()) + ROUNDS:
                raise Undefined  # values improve for ever: Python finds the cycle
            self.guard.round(self.name, number, settling.round(), True)

    def values(self) -> dict[str, dict[Key, Any]]:
        """The value of each key."""
        return {name: one.values() for name, one in self.maps.items()}

    def depths(self) -> dict[str, dict[Key, int]]:
        """The depths that are not 0."""
        return {name: one.depths() for name, one in self.maps.items()}

    # ── rules ────────────────────────────────────────────────────────────────────────────────

    def _offering(self, rule: Rule) -> Rule:
        """The rule with the head `(key…, value)`."""
        column, args = self.known[rule.head.relation].column, rule.head.args
        return evolve(rule, head=Atom(rule.head.relation, (*args[:column], *args[column + 1 :], args[column])))

    def _words(self, name: str) -> machine.Relation:
        return self.own[name] if name in self.maps else super()._words(name)

    def _out(self, rule: Rule) -> machine.Relation:
        return self.maps[rule.head.relation].keys

    def _plan(self, rule: Rule, delta: int | None, observed: Observed) -> Plan:
        """The plan of a rule; whether a fact is known says nothing about an offer."""
        plan = super()._plan(rule, delta, observed)
        return evolve(plan, operations=tuple(one for one in plan.operations if not isinstance(one, Unknown)))

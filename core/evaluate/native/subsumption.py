"""Subsumption on the compiled machine: facts that go stay where they are, and are passed over.

The machine never moves a row.  So a relation keeps every fact that was ever derived, which also
keeps one that went from coming back, and beside it stand the facts that have gone.  Each rule reads
a fact only if it is not among those:

    best(y, c + d) :- best(x, c), arc(x, y, d).
    best(y, c + d) :- best(x, c), arc(x, y, d), !gone(x, c), !gone(y, c + d).

At the end of each round rules find what goes (`subsume`).  Where more than half of a relation has
gone, the rest moves to a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core.evaluate.native.rule_task import NativeTask
from everlog.core.evaluate.native.unit_rounds import NativeContext, NativeRounds
from everlog.core.evaluate.subsume import GONE, Dominance
from everlog.core.native.availability import Undefined
from everlog.core.native.words import empty_words
from everlog.core.program import Atom, Call, Comparison, Literal, Negation, Rule, Variable, Wildcard
from everlog.core.program.aggregates.growing import as_joined_maps
from everlog.core.program.aggregates.joined_values import Joined
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import EvaluationError
from everlog.core.storage.shape import Facts
from everlog.core.storage.table_statistics import is_other_size

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine

_NEW, _REST = "%s, new", "%s, the rest"  # for a moment: the change, and what has not gone
_FEW = 1000  # facts that have gone cost less than a move


class NativeSubsumed(NativeRounds):
    """The rounds of a unit with subsumptions whose facts do not dominate each other in a circle."""

    def __init__(self, context: NativeContext, unit: Unit, dominances: dict[str, Dominance]) -> None:
        program = context.program
        self.joined = as_joined_maps(program, unit)
        beside = {
            form % name: evolve(program.relations[name], name=form % name)
            for name in dominances
            for form in (GONE, _NEW, _REST)
        }
        program = evolve(program, relations={**program.relations, **beside})
        unit = evolve(unit, rules=tuple(_passing_over(rule, dominances) for rule in unit.rules))
        super().__init__(evolve(context, program=program), unit)
        self.bindings |= {name: self._empty(name) for name in beside}
        self.forgotten = dict.fromkeys(dominances, 0)  # facts that a move has dropped
        self.judging = [_passing_over(rule, dominances) for one in dominances.values() for rule in one.rules]
        self.judges: list[NativeTask] = []
        self.judged_for = 0  # facts of the unit
        self.dominances = dominances

    def run(self) -> None:
        self._judge({name: rows for name, one in self.own.items() if (rows := one.restart())})
        super().run()
        for name in self.dominances:
            if len(self.bindings[GONE % name]) > self.forgotten[name]:
                self._move(name)
        if self.joined is not None:
            self._check(self.joined.joined)

    def _check(self, maps: Mapping[str, Joined]) -> None:
        """Raise Undefined for a value that has no place in the order: Python then reports it."""
        try:
            for name, how in maps.items():
                how.check(self.own[name].rows())
        except EvaluationError:
            raise Undefined from None

    def _out(self, rule: Rule) -> machine.Relation:
        name = rule.head.relation
        return self.bindings[name] if name in self.bindings else super()._out(rule)

    def is_full(self) -> bool:
        limits = self.program.limits
        return any(name in limits and self._number(name) >= limits[name] for name in self.own)

    def _number(self, name: str) -> int:
        """How many facts have not gone."""
        if name not in self.dominances:
            return len(self.own[name])
        return len(self.own[name]) - len(self.bindings[GONE % name]) + self.forgotten[name]

    # ── what goes ────────────────────────────────────────────────────────────────────────────

    def keep(self, new: dict[str, Facts]) -> dict[str, Facts]:
        delta = super().keep(new)
        self._judge(delta)
        for name in self.dominances:
            if len(self.own[name]) > _FEW + 2 * self._number(name):
                delta.pop(name, None)
                if rows := self._move(name):
                    delta[name] = rows
        return delta

    def _judge(self, delta: dict[str, Facts]) -> None:
        """Find the facts that go."""
        facts = sum(map(len, self.own.values()))
        if not self.judges or is_other_size(self.judged_for, facts):
            self.judged_for = facts
            self.judges = [
                self._apart(rule, place) for rule in self.judging for place in self.unit.positions(rule)
            ]
        for judge in self.judges:
            if judge.source in delta:
                judge(delta[judge.source], ())
        for name in self.dominances:
            self.bindings[GONE % name].advance()

    def _apart(self, rule: Rule, delta: int | None) -> NativeTask:
        """A task for a rule that is not of the program: no report lists it."""
        task = self._task(rule, delta)
        assert isinstance(task, NativeTask)
        self.made.remove(task)
        return task

    # ── what stays ───────────────────────────────────────────────────────────────────────────

    def _move(self, name: str) -> Facts:
        """Move the facts that have not gone to a new relation; return those of the change."""
        gone, new, rest = GONE % name, _NEW % name, _REST % name
        moved = self.bindings[rest]
        self._copy(name, 0, new, without=(gone,))
        self.bindings[new].advance()
        self._copy(name, None, rest, without=(gone, new))
        moved.advance()
        self._copy(new, None, rest)
        self.own[name] = self.relations.words[name] = moved
        self.bindings |= {each: self._empty(each) for each in (new, rest)}
        self.forgotten[name] = len(self.bindings[gone])
        self.tasks, self.judges = [], []  # they read what was left behind
        return moved.advance()

    def _copy(self, name: str, delta: int | None, into: str, without: Iterable[str] = ()) -> None:
        """Add the facts of a relation, or of its change, to another one."""
        args = tuple(Variable(f"?{number}") for number in range(self.program.relations[name].arity))
        absent: list[Literal] = [Negation(Atom(each, args)) for each in without]
        self._apart(Rule(Atom(into, args), (Atom(name, args), *absent)), delta)(None, ())

    def _empty(self, name: str) -> machine.Relation:
        return empty_words(self.program.relations[name], self.relations.symbols)


def _passing_over(rule: Rule, dominances: Collection[str]) -> Rule:
    """The rule without facts that have gone, in its body and in its head."""
    fresh = (Variable(f"?v{number}") for number in count())  # names of the language cannot begin with ?
    body: list[Literal] = []
    for literal in rule.body:
        if isinstance(literal, Atom) and literal.relation in dominances:
            args = tuple(next(fresh) if isinstance(arg, Wildcard) else arg for arg in literal.args)
            body.append(Atom(literal.relation, args))
        else:
            body.append(literal)
    read = [literal for literal in body if isinstance(literal, Atom) and literal.relation in dominances]
    head = rule.head
    if head.relation in dominances:
        computed = {arg: next(fresh) for arg in head.args if isinstance(arg, Call)}
        body += [Comparison("=", variable, call, call.kind) for call, variable in computed.items()]
        head = Atom(head.relation, tuple(computed[arg] if isinstance(arg, Call) else arg for arg in head.args))
        read.append(head)
    body += [Negation(Atom(GONE % atom.relation, atom.args)) for atom in read]
    return evolve(rule, head=head, body=tuple(body))

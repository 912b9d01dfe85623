"""Why a fact is there: the search for its proof.

A base fact needs no step.  For some facts the engine knows the last step.  Any other fact
of a relation that is not recursive needs one rule whose body holds; `Forward` finds the step of a
recursive one.  A loop with an explicit stack proves the facts that a step uses, each once.

A last step does not say which fact matched a wildcard.  A guess may lead back to the fact that is
being proved; then `Forward` proves that unit instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from everlog.core.program import Aggregate, Atom, Comparison, Literal, Negation, Row, Rule, Value, written_body
from everlog.core.program.bodies import Binding
from everlog.core.program.dependencies import Unit, units
from everlog.core.proofs.evidence import Evidence, Fact, Goal, checked, draws, goal_of
from everlog.core.proofs.first_derivations import Numbering
from everlog.core.proofs.forward import Forward, Step, needs_rounds
from everlog.core.proofs.notation import atom_text, fact_text, literal_text
from everlog.core.proofs.proof import AUXILIARY, RULE, Condition, NotDerived, Proof
from everlog.core.proofs.solve import Solver, names_in, same
from everlog.core.runtime.collector import collector_paused

SAMPLES = 3  # matches of an aggregate to show


def why(engine: Evidence, relation: str, row: Row) -> Proof:
    """A proof of a fact, down to base facts.

    >>> from everlog.core.engine import Engine
    >>> from everlog.dsl.check import compile_text
    >>> text = ".decl a(x:number)  .decl b(x:number)  a(1).  b(x + 1) :- a(x), x < 3."
    >>> print(why(Engine(compile_text(text)), "b", (2,)).text())
    b(2)   b#1 at <text>:1:  b(x + 1) :- a(x), x < 3.
    ├── a(1)   given
    └── 1 < 3

    Raises `NotDerived` if the fact is not there; `why_not` then says what is missing.
    """
    fact = checked(engine, relation, row)
    search = Search(engine)
    if not search.solver.has(*fact):
        raise NotDerived(fact_text(engine.program, *fact))
    with collector_paused():
        return search.proof(fact)


class _Circle(Exception):
    """A fact was needed for its own proof."""

    def __init__(self, relation: str) -> None:
        super().__init__(relation)
        self.relation = relation


class Search:
    """The search for one proof, over a state that does not change meanwhile."""

    def __init__(self, engine: Evidence) -> None:
        self.engine, self.program = engine, engine.program
        self.solver = Solver(engine.program, engine.tables)
        self._home = {name: unit for unit in units(engine.program) for name in unit.relations}
        self._goals: dict[int, Goal] = {}
        self._forward: dict[str, Forward] = {}  # by the first relation of the unit
        self._guessed: set[str] = set()  # units with an incomplete last step
        self._distrusted: set[str] = set()
        self._conditions: dict[tuple[int, Row], Condition] = {}

    def proof(self, root: Fact) -> Proof:
        while True:
            try:
                return self._built(root)
            except _Circle as circle:
                unit = self._home[circle.relation].relations
                assert unit[0] in self._guessed, f"the last steps of {', '.join(unit)} are not well-founded"
                assert unit[0] not in self._distrusted, f"{', '.join(unit)}: a fact is needed for itself"
                self._distrusted.add(unit[0])

    def _built(self, root: Fact) -> Proof:
        done: dict[Fact, Proof] = {}
        steps: dict[Fact, Step] = {}  # those not done are on the path from the root to here
        stack = [root]
        while stack:
            fact = stack[-1]
            if fact in done:
                stack.pop()
            elif fact in steps:
                done[fact] = self._node(fact, steps[fact], done)
                stack.pop()
            else:
                steps[fact] = step = self.step(fact)
                for used in step.facts:
                    if used in steps and used not in done:
                        raise _Circle(used[0])
                stack.extend(used for used in reversed(step.facts) if used not in done)
        return done[root]

    # ── one step ─────────────────────────────────────────────────────────────────────────────

    def step(self, fact: Fact) -> Step:
        relation, row = fact
        if row in self.engine.given(relation):
            return Step()
        if self.program.relations[relation].auxiliary_of:
            return Step(AUXILIARY)
        unit = self._home[relation]
        if unit.relations[0] not in self._distrusted and not needs_rounds(self.engine, unit):
            last = self.engine.last_step(relation, row)
            if last is not None:
                binding = self.goal(last.rule).completed(last.binding)
                return self._inferred(last.rule, row, binding, unit)
            if not unit.recursive:
                return self._searched(fact)
        step = self._forward_of(unit).step(fact)
        return step if step.rule is None else self._inferred(step.rule, row, step.binding)

    def _searched(self, fact: Fact) -> Step:
        """A rule of a nonrecursive relation, with a binding that makes its body hold."""
        relation, row = fact
        rules = self.program.rules_of(relation)
        for rule in rules:
            goal = self.goal(rule)
            start = goal.binding(row)
            if isinstance(start, str) or draws(rule.head.args, rule.body):
                continue
            binding = self.solver.first(goal.body, start)
            if binding is not None:
                return self._inferred(rule, row, binding)
        for rule in rules:
            if draws(rule.head.args, rule.body):
                for derived, binding in Numbering(self.engine).derivations(rule):
                    if derived == row:
                        return self._inferred(rule, row, binding)
        raise AssertionError(f"{fact_text(self.program, *fact)} is there, and no rule derives it")

    def _inferred(self, rule: Rule, row: Row, binding: Mapping[str, Value], unit: Unit | None = None) -> Step:
        """The step by a rule; values missing in the binding are searched for."""
        goal = self.goal(rule)
        if not binding.keys() >= goal.names:
            if unit is not None:
                self._guessed.add(unit.relations[0])
            start = goal.binding(row)
            assert not isinstance(start, str), f"a last step of another fact: {rule} for {row}"
            found = self.solver.first(goal.body, start | dict(binding))
            assert found is not None, f"a last step that does not hold: {rule} with {dict(binding)}"
            binding = found
        used = tuple((atom.relation, self.solver.row(atom.args, dict(binding))) for atom in goal.atoms)
        return Step(RULE, rule, binding, used)

    def goal(self, rule: Rule) -> Goal:
        if id(rule) not in self._goals:
            self._goals[id(rule)] = goal_of(rule)
        return self._goals[id(rule)]

    def _forward_of(self, unit: Unit) -> Forward:
        if unit.relations[0] not in self._forward:
            self._forward[unit.relations[0]] = Forward(self.engine, unit, self.solver)
        return self._forward[unit.relations[0]]

    # ── one node ─────────────────────────────────────────────────────────────────────────────

    def _node(self, fact: Fact, step: Step, done: Mapping[Fact, Proof]) -> Proof:
        used = iter(step.facts)
        children: list[Proof | Condition] = []
        if step.rule is None:
            children = [done[one] for one in used]
        else:
            for literal in written_body(step.rule.body):
                held = done[next(used)] if isinstance(literal, Atom) else self._condition(literal, step.binding)
                children.append(held)
        text = fact_text(self.program, *fact)
        dropped = not self.solver.has(*fact)
        return Proof(*fact, text, step.reason, step.rule, step.binding, tuple(children), dropped)

    def _condition(self, literal: Literal, binding: Mapping[str, Value]) -> Condition:
        """A condition with its values; the same aggregate is counted once."""
        key = id(literal), tuple(binding[name] for name in sorted(names_in(literal)))
        if key not in self._conditions:
            self._conditions[key] = self._worded(literal, dict(binding))
        return self._conditions[key]

    def _worded(self, literal: Literal, binding: Binding) -> Condition:
        text = literal_text(self.program, literal, binding)
        match literal:
            case Aggregate():
                outer = {variable.name: binding[variable.name] for variable in literal.outer}
                samples = tuple(islice(self._samples(literal, outer, binding[literal.result.name]), SAMPLES))
                return Condition("aggregate", text, self.solver.counted(literal.body, outer), samples)
            case Negation():
                return Condition("negation", text)
            case Comparison(op):
                return Condition("equality" if op == "=" else "comparison", text)
            case _:
                return Condition("range", text)

    def _samples(self, literal: Aggregate, outer: Binding, value: Value) -> Iterator[str]:
        """Matches of an aggregate as text; for `min` and `max` those that attain it."""
        seen, written = set(), written_body(literal.body)
        for binding in self.solver.solve(literal.body, outer):
            if literal.op in ("min", "max"):
                assert literal.target is not None
                if not same(self.solver.value(literal.target, binding), value):
                    continue
            atoms = [atom_text(self.program, one, binding) for one in written if isinstance(one, Atom)]
            text = ", ".join(atoms)
            if text and text not in seen:
                seen.add(text)
                yield text

"""Which recursive units carry a column along, and their rules in two forms.

    r(c, n) :- s(c, n).                    a source: the facts of s
    r(c, to) :- r(c, from), t(from, to).   steps: along t, whatever c is

in any order of columns and atoms.  If a rule says more, such as

    r(c, to) :- r(c, from), t(from, to, w), !closed(to), w < 9.

its rest becomes a relation of its own, `@steps of r#2(from, to)`, which is counted like any rule
that is not recursive; likewise for a source that is not a copy.  This requires one atom with both
ends of the step, so that there are no more steps than facts of that atom, and a rest that cannot
fail: it is computed even for steps that no set flows along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.program import Atom, Column, Literal, Program, Relation, Rule, Term, Value, Variable
from everlog.core.program.bodies import rule_may_fail, schedule, variables_of_literal
from everlog.core.program.carried import hands_on, own_atom, steps_of
from everlog.core.program.dependencies import Unit
from everlog.core.storage.table_shapes import PairShape

_OWN = "@"  # prefix of variables that no rule of a user has


class NoFlow(Exception):
    """Why sets do not flow through a unit."""


@frozen
class Flow:
    """A unit's rules in the two forms, and the relations and rules this adds.

    The column `value` is carried along.
    """

    value: int
    rules: tuple[Rule, ...]
    relations: Mapping[str, Relation]
    added: tuple[Rule, ...]


@frozen
class Source:
    """A copying rule: elements in column `value` of a relation, nodes in column `key`."""

    rule: str
    relation: str
    key: int
    value: int


@frozen
class StepRule:
    """A rule that takes steps from one column of a relation to another."""

    rule: str
    relation: str
    start: int
    end: int
    start_name: str
    end_name: str

    def binding(self, start: Value, end: Value) -> dict[str, Value]:
        """The ends of a step by the names that the rule's author gave them."""
        pairs = ((self.start_name, start), (self.end_name, end))
        return {name: value for name, value in pairs if not name.startswith(_OWN)}


def sources_and_steps(unit: Unit, shape: PairShape) -> tuple[list[Source], list[StepRule]]:
    """The sources and steps of a unit whose rules are in the two forms."""
    sources, steps = [], []
    for rule in unit.rules:
        head, atoms = rule.head.args, [literal for literal in rule.body if isinstance(literal, Atom)]
        if len(atoms) == 1:
            key = atoms[0].args.index(head[shape.key])
            sources.append(Source(rule.name, atoms[0].relation, key, 1 - key))
            continue
        own, step = own_atom(rule), steps_of(rule, shape.key)
        assert own is not None
        assert step is not None
        names = str(own.args[shape.key]), str(head[shape.key])
        steps.append(StepRule(rule.name, step.relation, step.start, step.end, *names))
    return sources, steps


def flow_of(program: Program, unit: Unit, rules: Sequence[Rule]) -> Flow:
    """A unit's rules in normal form as sources and steps; raises NoFlow."""
    if len(unit.relations) > 1 or program.relations[unit.relations[0]].arity != 2:
        raise NoFlow("not one binary relation")
    (name,) = unit.relations
    recursive = [rule for rule in rules if _own(rule, name)]
    linear = all(len(_own(rule, name)) == 1 for rule in recursive)
    carried = [column for column in (0, 1) if all(hands_on(rule, column) for rule in recursive)]
    if not linear or not carried:
        raise NoFlow("no column that all recursive rules carry along")
    rewriter = _Rewriter(program, program.relations[name], carried[0])
    rewritten = [rewriter.steps(rule) if rule in recursive else rewriter.source(rule) for rule in rules]
    return Flow(carried[0], tuple(rewritten), rewriter.relations, tuple(rewriter.rules))


def classes_of(program: Program, unit: Unit, rules: Sequence[Rule]) -> Flow:
    """The rules of an equivalence relation as sources, which copy pairs."""
    rewriter = _Rewriter(program, program.relations[unit.relations[0]], 1)
    rewritten = tuple(rewriter.source(rule) for rule in rules)
    return Flow(1, rewritten, rewriter.relations, tuple(rewriter.rules))


def _own(rule: Rule, name: str) -> list[Atom]:
    return [atom for atom, _ in p.atoms_of(rule.body) if atom.relation.split("/")[0] == name]


class _Rewriter:
    def __init__(self, program: Program, relation: Relation, value: int) -> None:
        self.program, self.relation, self.value = program, relation, value
        self.relations: dict[str, Relation] = {}
        self.rules: list[Rule] = []

    def source(self, rule: Rule) -> Rule:
        if len(rule.body) == 1 and self._copies(rule.body[0], rule.head.args):
            return rule
        head = Atom(rule.head.relation, self._variables(rule.head.args))
        copied = self._added(f"@source of {rule.name}", self.relation.columns, rule, rule.head.args, rule.body)
        return evolve(rule, head=head, body=(Atom(copied, head.args),))

    def steps(self, rule: Rule) -> Rule:
        key = 1 - self.value
        (own,) = [x for x in rule.body if isinstance(x, Atom) and x.relation == self.relation.name]
        rest = tuple(literal for literal in rule.body if literal is not own)
        ends = own.args[key], rule.head.args[key]
        if len(rest) == 1 and self._copies(rest[0], ends):
            return rule
        self._look(rule, rest, ends)
        names = self._variables(ends)
        columns = (self.relation.columns[key],) * 2
        steps = Atom(self._added(f"@steps of {rule.name}", columns, rule, ends, rest), names)
        carried = rule.head.args[self.value]
        from_, to = (tuple((carried, end) if key else (end, carried)) for end in names)
        body = (Atom(own.relation, from_), steps)
        return evolve(rule, head=Atom(rule.head.relation, to), body=body)

    def _look(self, rule: Rule, rest: tuple[Literal, ...], ends: tuple[Term, Term]) -> None:
        """Raise NoFlow unless the steps can be computed by themselves."""
        atoms = [set(variables_of_literal(literal)) for literal in rest if isinstance(literal, Atom)]
        wide = next((held for held in atoms if held.issuperset(ends)), None)
        if wide is None:
            raise NoFlow(f"no atom of {rule.name} has both ends of a step")
        if any(not held <= wide for held in atoms):
            raise NoFlow(f"the steps of {rule.name} are a join")
        if schedule(rest, set())[1]:
            raise NoFlow(f"the steps of {rule.name} need what they are taken from")
        if rule_may_fail(Rule(rule.head, rest)):
            raise NoFlow(f"{rule.name} may fail on steps that nothing takes")

    def _copies(self, literal: Literal, ends: Sequence[Term]) -> bool:
        """Whether a literal is a plain atom of exactly these two variables."""
        if not isinstance(literal, Atom) or len({arg for arg in ends if isinstance(arg, Variable)}) != 2:
            return False
        relation = self.program.relations.get(literal.relation)
        equivalence = relation is not None and relation.equivalence
        return len(literal.args) == 2 and set(literal.args) == set(ends) and not equivalence

    def _added(
        self, name: str, columns: Sequence[Column], rule: Rule, args: Sequence[Term], body: tuple[Literal, ...]
    ) -> str:
        self.relations[name] = Relation(name, tuple(columns))
        self.rules.append(evolve(rule, head=Atom(name, tuple(args)), body=body, name=f"{name}#1", strategy=""))
        return name

    @staticmethod
    def _variables(terms: Sequence[Term]) -> tuple[Variable, ...]:
        """Variables in the places of terms: the terms themselves where distinct variables."""
        out: list[Variable] = []
        for place, term in enumerate(terms):
            own = isinstance(term, Variable) and term not in out
            out.append(term if own else Variable(f"{_OWN}{place}"))  # type: ignore[arg-type]  # `own` says so
        return tuple(out)

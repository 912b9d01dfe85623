"""Relations of their own for atoms of a query that have constants.

`path(1, z)` asks for one source.  Where the rules allow it, its answers need no column for the 1:

    left     path(x, z) :- path(x, y), edge(y, z).     passes x on: the constant takes its place
             path[1, _](z) :- path[1, _](y), edge(y, z).
    right    path(x, z) :- edge(x, y), path(y, z).     passes z on: first, who is asked for
             path?[1, _](y) :- path?[1, _](x), edge(x, y).   path?[1, _](1).
             path[1, _](z) :- path?[1, _](x), edge(x, z).    then, what they have by other rules

Otherwise paths from each y that 1 reaches would be computed, to find those from 1.

Source: J. Naughton, R. Ramakrishnan, Y. Sagiv, J. Ullman, Argument reduction by factoring,
VLDB 1989.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import define, evolve, field

from everlog.core.program.bodies import binds, names, rule_may_fail, schedule, variables_of_literal
from everlog.core.program.dependencies import units
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Program,
    Range,
    Relation,
    Rule,
    Term,
    Variable,
    atoms_of,
    calls_of,
)

_Constants = Mapping[int, Constant]


def with_constants(
    program: Program, query: Sequence[Rule], special: Collection[str]
) -> tuple[Program, list[Rule]]:
    """The program and the query, with relations of their own for atoms with constants."""
    made = _Made(program, special)
    asked = [evolve(rule, body=tuple(map(made.replaced, rule.body))) for rule in query]
    relations = {**program.relations, **made.relations}
    facts = {**program.facts, **made.facts}
    return evolve(program, relations=relations, rules=(*program.rules, *made.rules), facts=facts), asked


@define
class _Made:
    """The relations, rules and facts that were made so far."""

    program: Program
    special: Collection[str]
    relations: dict[str, Relation] = field(factory=dict)
    rules: list[Rule] = field(factory=list)
    facts: dict[str, tuple[tuple[int | float | str, ...], ...]] = field(factory=dict)

    def replaced(self, literal: Literal) -> Literal:
        """An atom of the query over the relation made for it, if there is one."""
        if not isinstance(literal, Atom) or literal.relation in self.special:
            return literal
        rules = self.program.rules_of(literal.relation)
        constants = {n: arg for n, arg in enumerate(literal.args) if isinstance(arg, Constant)}
        if not rules or not constants or not is_alone(self.program, literal.relation):
            return literal
        left = {n: constant for n, constant in constants.items() if _is_passed_on(rules, n)}
        if left:
            name, known = self._name(literal, left)
            if not known:
                self._base(name, literal.relation, left)
                self.rules += [_with_constants(rule, name, left) for rule in rules]
            return _cut(literal, name, left)
        if is_right_linear(rules, constants):
            name, known = self._name(literal, constants)
            if not known:
                self._from_right(name, literal.relation, rules, constants)
            return _cut(literal, name, constants)
        return literal

    def _name(self, atom: Atom, constants: _Constants) -> tuple[str, bool]:
        """The name of a relation, declared with the columns that are left; whether it was there."""
        relation = self.program.relations[atom.relation]
        name = f"{relation.name}[{', '.join(str(constants.get(n, '_')) for n in range(relation.arity))}]"
        known = name in self.relations
        columns = tuple(column for n, column in enumerate(relation.columns) if n not in constants)
        self.relations[name] = Relation(name, columns)
        base = f"{relation.name}!"
        self.relations[base] = evolve(relation, name=base)
        self.facts[base] = self.program.facts.get(relation.name, ())
        return name, known

    def _base(self, name: str, relation: str, constants: _Constants) -> None:
        """The rule for base facts of the relation."""
        free = [Variable(f"^{n}") for n in range(self.program.relations[relation].arity)]
        fact = Atom(f"{relation}!", tuple(constants.get(n, variable) for n, variable in enumerate(free)))
        head = tuple(variable for n, variable in enumerate(free) if n not in constants)
        self.rules.append(Rule(Atom(name, head), (fact,), name=f"{name}#0"))

    def _from_right(self, name: str, relation: str, rules: Sequence[Rule], constants: _Constants) -> None:
        declared = self.program.relations[relation]
        sources = f"{relation}?{name[len(relation) :]}"
        self.relations[sources] = Relation(sources, tuple(declared.columns[n] for n in constants))
        self.facts[sources] = (tuple(constant.value for constant in constants.values()),)
        free = tuple(Variable(f"^{n}") for n in range(declared.arity))
        asked = Rule(Atom(relation, free), (Atom(f"{relation}!", free),), name=f"{name}#0")
        for rule in (*rules, asked):
            start = Atom(sources, tuple(rule.head.args[n] for n in constants))
            own = own_atom(rule)
            if own is None:
                head = _cut(rule.head, name, constants)
                self.rules.append(evolve(rule, head=head, body=(start, *rule.body)))
            else:
                rest = tuple(literal for literal in rule.body if literal is not own)
                head = Atom(sources, tuple(own.args[n] for n in constants))
                self.rules.append(evolve(rule, head=head, body=(start, *rest)))


# ── which rules allow it ─────────────────────────────────────────────────────────────────────


def is_alone(program: Program, relation: str) -> bool:
    """Whether only rules of the relation itself make it recursive, by positive atoms."""
    unit = next(unit for unit in units(program) if relation in unit.relations)
    uses = {use for rule in unit.rules for atom, use in atoms_of(rule.body) if atom.relation == relation}
    return len(unit.relations) == 1 and uses <= {"positive"}


def _is_passed_on(rules: Sequence[Rule], column: int) -> bool:
    """Whether every rule passes a column on unchanged."""
    for rule in rules:
        variable = rule.head.args[column]
        own = [x for x in rule.body if isinstance(x, Atom) and x.relation == rule.head.relation]
        if not isinstance(variable, Variable) or any(atom.args[column] != variable for atom in own):
            return False
        if any(isinstance(x, Aggregate | Range) and variable in variables_of_literal(x) for x in rule.body):
            return False
    return True


def is_right_linear(rules: Sequence[Rule], constants: Collection[int]) -> bool:
    """Whether each rule passes on the columns that are not asked for, and computes nothing."""
    for rule in rules:
        own = [x for x in rule.body if isinstance(x, Atom) and x.relation == rule.head.relation]
        if len(own) > 1 or rule_may_fail(rule) or any(isinstance(rule.head.args[n], Call) for n in constants):
            return False
        if not own:
            continue
        free = [n for n in range(len(rule.head.args)) if n not in constants]
        passed = [rule.head.args[n] for n in free]
        others = names(v for x in rule.body if x is not own[0] for v in variables_of_literal(x))
        bound = [atom.args[n] for atom in (own[0], rule.head) for n in constants]
        if (
            passed != [own[0].args[n] for n in free]
            or not all(isinstance(arg, Variable) for arg in [*passed, *bound])
            or len(set(passed)) < len(passed)
            or names(passed) & (others | names(bound))
            or any(True for _ in calls_of(rule))
            or not _grounds(rule, own[0], constants)
        ):
            return False
    return True


def _grounds(rule: Rule, own: Atom, constants: Collection[int]) -> bool:
    """Whether the rest of a body binds its variables without the recursive atom."""
    known = names(rule.head.args[n] for n in constants)
    order, left = schedule([literal for literal in rule.body if literal is not own], known)
    bound = known.union(*map(binds, order))
    return not left and names(own.args[n] for n in constants) <= bound


def own_atom(rule: Rule) -> Atom | None:
    return next((x for x in rule.body if isinstance(x, Atom) and x.relation == rule.head.relation), None)


# ── rules with constants ─────────────────────────────────────────────────────────────────────


def _with_constants(rule: Rule, name: str, constants: _Constants) -> Rule:
    """A rule with constants for the variables of these head columns, which go."""
    relation = rule.head.relation
    values: dict[str, Term] = {}
    body: list[Literal] = list(rule.body)
    for n, constant in constants.items():
        variable = rule.head.args[n]
        assert isinstance(variable, Variable)
        if values.setdefault(variable.name, constant) != constant:  # p(x, x) asked for as p(1, 2)
            body.append(Comparison("!=", constant, constant, constant.kind))
    body = [_put(literal, values) for literal in body]
    body = [_cut(x, name, constants) if isinstance(x, Atom) and x.relation == relation else x for x in body]
    head = Atom(relation, tuple(_put_term(arg, values) for arg in rule.head.args))
    return evolve(rule, head=_cut(head, name, constants), body=tuple(body))


def _cut(atom: Atom, name: str, constants: _Constants) -> Atom:
    return Atom(name, tuple(arg for n, arg in enumerate(atom.args) if n not in constants))


def _put(literal: Literal, values: Mapping[str, Term]) -> Literal:
    match literal:
        case Atom(relation, args):
            return Atom(relation, tuple(_put_term(arg, values) for arg in args))
        case Negation(atom):
            return Negation(Atom(atom.relation, tuple(_put_term(arg, values) for arg in atom.args)))
        case Comparison(left=left, right=right):
            return evolve(literal, left=_put_term(left, values), right=_put_term(right, values))
        case Aggregate() | Range():
            return literal  # its variables are others: see `_is_passed_on`


def _put_term(term: Term, values: Mapping[str, Term]) -> Term:
    match term:
        case Variable(name):
            return values.get(name, term)
        case Call(args=args):
            return evolve(term, args=tuple(_put_term(arg, values) for arg in args))
        case _:
            return term

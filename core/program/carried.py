"""Columns that a recursive rule carries along, and the steps of its other column.

    path(x, z) :- path(x, y), edge(y, z).

The head takes x unchanged from an atom of its own unit: the rule *carries* x along.  The other
column moves from y to z along a *step*, a fact of another atom that has both.  Uses:

| use | asks |
|---|---|
| the value column of a binary relation is the carried one | `carried_from` |
| each task of Spark computes its part of the fixpoint | `carried_from`, of every atom |
| sets flow through the components of a graph | `hands_on`, and `steps_of` |
| keys are settled in their order | `steps_of` |
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from everlog.core.program.bodies import binds, names, needs
from everlog.core.program.dependencies import Unit
from everlog.core.program.program import Atom, Program, Rule, Variable


@frozen
class Steps:
    """The steps that a rule takes: from one column of a relation to another."""

    relation: str
    start: int
    end: int


def carried_from(rule: Rule, column: int, unit: Collection[str]) -> list[tuple[Atom, int]]:
    """Atoms of the rule's own unit that have the variable of a head column, and where.

    >>> x, y, z = map(Variable, "xyz")
    >>> rule = Rule(Atom("path", (x, z)), (Atom("path", (x, y)), Atom("edge", (y, z))))
    >>> [(str(atom), place) for atom, place in carried_from(rule, 0, ["path"])]
    [('path(x, y)', 0)]
    >>> carried_from(rule, 1, ["path"])
    []
    """
    variable = rule.head.args[column]
    if not isinstance(variable, Variable):
        return []
    own = [literal for literal in rule.body if isinstance(literal, Atom) and literal.relation in unit]
    return [(atom, place) for atom in own for place, arg in enumerate(atom.args) if arg == variable]


def hands_on(rule: Rule, column: int) -> bool:
    """Whether a rule reads its relation once and passes a column on without using it.

    >>> x, y, z = map(Variable, "xyz")
    >>> step, edge = Atom("path", (x, y)), Atom("edge", (y, z))
    >>> hands_on(Rule(Atom("path", (x, z)), (step, edge)), 0)
    True
    >>> hands_on(Rule(Atom("path", (x, z)), (step, edge, Atom("marked", (x,)))), 0)
    False
    """
    own = own_atom(rule)
    if own is None or carried_from(rule, column, (rule.head.relation,)) != [(own, column)]:
        return False
    seen = names(arg for atom in (rule.head, own) for place, arg in enumerate(atom.args) if place != column)
    for literal in rule.body:
        if literal is not own:
            seen |= names(literal.args) if isinstance(literal, Atom) else needs(literal) | binds(literal)
    return rule.head.args[column].name not in seen  # type: ignore[union-attr]  # carried_from saw a variable


def own_atom(rule: Rule) -> Atom | None:
    """The only positive atom of a rule's own relation; None if not exactly one."""
    own = [x for x in rule.body if isinstance(x, Atom) and x.relation == rule.head.relation]
    return own[0] if len(own) == 1 else None


def steps_of(rule: Rule, key: int) -> Steps | None:
    """The steps of a linear rule: facts with the key of its own atom and of its head.

    >>> x, y, p, q = map(Variable, "xypq")
    >>> above = Atom("parent", (x, p)), Atom("parent", (y, q))
    >>> steps_of(Rule(Atom("same", (x, y)), (*above, Atom("same", (p, q)))), 0)
    Steps(relation='parent', start=1, end=0)
    """
    own = own_atom(rule)
    if own is None:
        return None
    start, end = own.args[key], rule.head.args[key]
    if not isinstance(start, Variable) or not isinstance(end, Variable) or start == end:
        return None
    for literal in rule.body:
        if isinstance(literal, Atom) and literal is not own and start in literal.args and end in literal.args:
            return Steps(literal.relation, literal.args.index(start), literal.args.index(end))
    return None


def is_plain_binary(program: Program, unit: Unit) -> bool:
    """Whether a unit is one binary relation that rules alone define."""
    relation = program.relations[unit.relations[0]]
    if not unit.recursive or len(unit.relations) > 1 or relation.arity != 2:
        return False
    special = relation.equivalence or relation.choices or unit.subsumptions
    return not special and relation.name not in program.limits

"""Recursion whose keys move along given steps takes each key once, in their order.

`same(x, y) :- parent(x, p), parent(y, q), same(p, q)` changes both columns, so no set is carried along.  But what
x has comes from its parents alone: once nothing leads to p any more, its fan is complete, and the rule takes all
of it at once.  Rounds would come to p again for each distance at which something new is found.  Keys that lead to
each other are a component of the steps, and have rounds of their own.

Reads: core.program, core.carried (what a step is), core.strong.  Read by: core.seminaive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from everlog.core.carried import Steps
from everlog.core.dependencies import Unit
from everlog.core.program import Atom, Program, Rule, Variable
from everlog.core.strong import strong_components
from everlog.core.tables import Shape

Part: TypeAlias = tuple[list[Any], bool]  # keys, and whether they lead to each other
_ROUNDS = 8  # keys that must be there for each component with rounds: these cost as much as so many keys


def ordered(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> list[Steps] | None:
    """The steps along which keys of a unit move, if it is one relation and linear; else None."""
    name = unit.relations[0]
    relation, shape = program.relations[name], shapes[name]
    if not unit.recursive or len(unit.relations) > 1 or shape.arity != 2:
        return None
    if relation.equivalence or relation.choices or unit.subsumptions or name in program.limits:
        return None
    steps: list[Steps] = []
    for rule in unit.rules:
        own = [literal for literal in rule.body if isinstance(literal, Atom) and literal.relation == name]
        found = _step(rule, own[0], shape) if len(own) == 1 else None
        if found is not None:
            steps.append(found)
        elif own:
            return None
    return steps


def _step(rule: Rule, own: Atom, shape: Shape) -> Steps | None:
    """`r(to, …) :- r(from, …), s(from, to), …`, with whatever else: an atom that has both keys."""
    start, end = own.args[shape.key], rule.head.args[shape.key]
    if not isinstance(start, Variable) or not isinstance(end, Variable) or start == end:
        return None
    for literal in rule.body:
        if isinstance(literal, Atom) and literal is not own and start in literal.args and end in literal.args:
            return Steps(literal.relation, literal.args.index(start), literal.args.index(end))
    return None


def key_order(keys: Iterable[Any], steps: Sequence[Mapping[Any, Iterable[Any]]]) -> list[Part] | None:
    """All keys that the given ones lead to, sources first; None where rounds over all of them are better.

    >>> key_order([1], [{1: {2}, 2: {3}}])
    [([1], False), ([2], False), ([3], False)]
    >>> key_order([1], [{1: {2}, 2: {1}}]) is None
    True

    Cost: that of the components.
    """

    def follow(node: Any) -> Iterable[Any]:
        return chain.from_iterable(step.get(node, ()) for step in steps) if others else first(node, ())

    first, others = steps[0].get, len(steps) > 1
    groups = strong_components(keys, follow)
    parts = [(group, len(group) > 1 or group[0] in follow(group[0])) for group in reversed(groups)]
    cyclic = sum(cyclic for _, cyclic in parts)
    return parts if cyclic * _ROUNDS <= len(parts) else None

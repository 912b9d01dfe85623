"""Recursion that carries a column along is reachability, and needs no rounds.

`path(x, z) :- path(x, y), edge(y, z)` hands every x that y has on to z, whatever it is: sets flow
along the steps of a graph.  Nodes that lead to each other end with the same set.  So the strongly
connected components of the steps are found first, and then, from the sources on, each has the union
of what flows into it.  Every step is taken once, and the nodes of a component share one set, where
rounds would have taken the steps again and again, and made a set for each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from attrs import frozen

from everlog.core.program import Atom, Program, Rule, Value, Variable, Wildcard
from everlog.core.program.dependencies import Unit
from everlog.core.program.strong import strong_components
from everlog.core.storage.table_shapes import PairFacts, PairShape, Shape, ValueSet


@frozen
class Steps:
    """The steps that a rule takes: from the values of one column of a relation to those of another."""

    relation: str
    start: int
    end: int


def only_binary(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> PairShape | None:
    """The shape of a recursive unit that is one binary relation, with nothing but the rules to
    decide on it.
    """
    name = unit.relations[0]
    relation, shape = program.relations[name], shapes[name]
    if not unit.recursive or len(unit.relations) > 1 or not isinstance(shape, PairShape):
        return None
    if relation.equivalence or relation.choices or unit.subsumptions or name in program.limits:
        return None
    return shape


def carried(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> list[Steps] | None:
    """The steps of a unit, if it is one relation and its recursive rules carry its values along; else
    None.
    """
    name, shape = unit.relations[0], only_binary(program, unit, shapes)
    if shape is None:
        return None
    recursive = [rule for rule in unit.rules if any(isinstance(x, Atom) and x.relation == name for x in rule.body)]
    steps = [_steps(rule, shape) for rule in recursive]
    found = [one for one in steps if one is not None]
    return found if len(found) == len(steps) else None


def _steps(rule: Rule, shape: PairShape) -> Steps | None:
    """`r(c, to) :- r(c, from), s(from, to)`, in any order of columns and atoms; `s` may have
    others, unnamed.
    """
    if len(rule.body) != 2 or not all(isinstance(literal, Atom) for literal in rule.body):
        return None
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    own = [atom for atom in atoms if atom.relation == rule.head.relation]
    if len(own) != 1:
        return None
    (step,) = [atom for atom in atoms if atom is not own[0]]
    column, start, end = own[0].args[shape.value], own[0].args[shape.key], rule.head.args[shape.key]
    named = [arg for arg in step.args if not isinstance(arg, Wildcard)]
    if not all(isinstance(term, Variable) for term in (column, start, end)):
        return None
    if rule.head.args[shape.value] != column or len({column, start, end}) < 3:
        return None
    if named not in ([start, end], [end, start]):
        return None
    return Steps(step.relation, step.args.index(start), step.args.index(end))


def flow(
    given: PairFacts, steps: Sequence[Mapping[Value, Iterable[Value]]]
) -> Iterator[tuple[list[Value], ValueSet]]:
    """Groups of keys with the one set of values that all of them have in the end; what is `given` flows along
    the steps.

    >>> flowed = flow({1: {"a"}, 3: {"b"}}, [{1: {2}, 2: {1, 3}, 3: {4}}])
    >>> [(sorted(keys), sorted(values)) for keys, values in flowed]
    [([1, 2], ['a']), ([3], ['a', 'b']), ([4], ['a', 'b'])]

    Cost: that of the components, and of a union for each step from one to another.
    """

    def follow(node: Value) -> Iterable[Value]:
        return chain.from_iterable(step.get(node, ()) for step in steps) if others else first(node, ())

    first, others = steps[0].get, len(steps) > 1
    groups = strong_components(given, follow)
    home = {node: number for number, group in enumerate(groups) for node in group}
    flowing: dict[int, dict[int, ValueSet]] = {}  # what flows into a component: each set once
    for number in range(len(groups) - 1, -1, -1):
        group = groups[number]
        parts = list(flowing.pop(number, {}).values())
        parts += [given[node] for node in group if node in given]
        values = _union(parts)
        yield group, values
        for target in {home[node] for start in group for node in follow(start)} - {number}:
            flowing.setdefault(target, {})[id(values)] = values


def _union(parts: list[ValueSet]) -> ValueSet:
    """The union of sets, which may be one of them.

    What the largest one lacks is found first: a set to which all of another is added grows as if
    both were disjoint, to twice the memory, and to touch new memory takes longer than all else.
    """
    largest = parts.pop(max(range(len(parts)), key=lambda n: len(parts[n])))
    lacking = [part - largest for part in parts]
    if not any(lacking):
        return largest
    return largest.union(*lacking)

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

from everlog.core.program import Atom, Program, Rule, Value, Wildcard
from everlog.core.program.carried import Steps, hands_on, is_plain_binary, own_atom, steps_of
from everlog.core.program.dependencies import Unit
from everlog.core.program.strong import strong_components
from everlog.core.storage.shape import PairFacts, Shape, ValueSet
from everlog.core.storage.table_shapes import PairShape


def flow_steps(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> list[Steps] | None:
    """The steps of a unit along which sets of values flow; None if some rule does more than that."""
    if not is_plain_binary(program, unit):
        return None
    shape = shapes[unit.relations[0]]
    assert isinstance(shape, PairShape)
    steps = [_plain_steps(rule, shape) for rule in unit.rules if unit.positions(rule)]
    found = [one for one in steps if one is not None]
    return found if len(found) == len(steps) else None


def _plain_steps(rule: Rule, shape: PairShape) -> Steps | None:
    """`r(c, to) :- r(c, from), s(from, to)`, in any order; `s` may have other, unnamed columns."""
    others = [literal for literal in rule.body if literal is not own_atom(rule)]
    if len(others) != 1 or not isinstance(others[0], Atom) or not hands_on(rule, shape.value):
        return None
    named = [arg for arg in others[0].args if not isinstance(arg, Wildcard)]
    return steps_of(rule, shape.key) if len(named) == 2 else None


def flow(
    given: PairFacts, steps: Sequence[Mapping[Value, Iterable[Value]]]
) -> Iterator[tuple[list[Value], ValueSet]]:
    """Groups of keys, each with the set that flows to all of them along the steps.

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

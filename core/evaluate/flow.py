"""Recursion that carries a column along is reachability, and needs no rounds.

`path(x, z) :- path(x, y), edge(y, z)` passes every x that y has on to z: sets flow along the steps
of a graph.  Nodes that reach each other end with the same set.  So this module finds the strongly
connected components of the steps first.  Then, from the sources on, each component gets the union
of the sets that flow into it.  Every step is taken once, and the nodes of a component share one
set; rounds would take the steps again and again, and build a set for each node.
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
    """The steps along which a unit's sets flow; None if some rule does more than that."""
    if not is_plain_binary(program, unit):
        return None
    shape = shapes[unit.relations[0]]
    assert isinstance(shape, PairShape)
    steps = [_plain_steps(rule, shape) for rule in unit.rules if unit.positions(rule)]
    found = [one for one in steps if one is not None]
    return found if len(found) == len(steps) else None


def _plain_steps(rule: Rule, shape: PairShape) -> Steps | None:
    """The steps of `r(c, to) :- r(c, from), s(from, to)`; `s` may have wildcards, too."""
    others = [literal for literal in rule.body if literal is not own_atom(rule)]
    if len(others) != 1 or not isinstance(others[0], Atom) or not hands_on(rule, shape.value):
        return None
    named = [arg for arg in others[0].args if not isinstance(arg, Wildcard)]
    return steps_of(rule, shape.key) if len(named) == 2 else None


def flow(
    base: PairFacts, steps: Sequence[Mapping[Value, Iterable[Value]]]
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
    groups = strong_components(base, follow)
    home = {node: number for number, group in enumerate(groups) for node in group}
    flowing: dict[int, dict[int, ValueSet]] = {}  # the sets that flow into a component, each once
    for number in range(len(groups) - 1, -1, -1):
        group = groups[number]
        parts = list(flowing.pop(number, {}).values())
        parts += [base[node] for node in group if node in base]
        values = _union(parts)
        yield group, values
        for target in {home[node] for start in group for node in follow(start)} - {number}:
            flowing.setdefault(target, {})[id(values)] = values


def _union(parts: list[ValueSet]) -> ValueSet:
    """The union of sets; may be one of them.

    It first computes what the largest one lacks: adding all of another set would allocate as if
    both were disjoint, twice the memory, and touching new memory takes longer than all else.
    """
    largest = parts.pop(max(range(len(parts)), key=lambda n: len(parts[n])))
    lacking = [part - largest for part in parts]
    if not any(lacking):
        return largest
    return largest.union(*lacking)

"""Recursion whose keys move along steps visits each key once, in order.

`same(x, y) :- parent(x, p), parent(y, q), same(p, q)` changes both columns, so it carries no set
along.  But the values of x come from its parents alone: once every key that leads to p is done, all
values of p are known, and the rule reads them at once.  Rounds would visit p again for each
distance at which it gets a new value.  Only keys in or behind a cycle of steps need rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from everlog.core.program import Program, Value
from everlog.core.program.carried import Steps, is_plain_binary, steps_of
from everlog.core.program.dependencies import Unit
from everlog.core.storage.shape import Shape


def key_steps(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> list[Steps] | None:
    """The steps along which a unit's keys move; None unless it is one linear relation."""
    if not is_plain_binary(program, unit):
        return None
    (key,) = shapes[unit.relations[0]].key_columns
    steps = [steps_of(rule, key) for rule in unit.rules if unit.positions(rule)]
    found = [one for one in steps if one is not None]
    return found if len(found) == len(steps) else None


def key_levels(
    keys: Iterable[Value], steps: Sequence[Mapping[Value, Iterable[Value]]]
) -> tuple[list[list[Value]], list[Value]]:
    """All keys that `keys` reach: levels entered from earlier ones only, and the rest.

    >>> key_levels([1, 5], [{1: {2}, 2: {3}, 5: {3, 6}, 6: {7}, 7: {6, 8}}])
    ([[1, 5], [2], [3]], [6, 7, 8])

    Cost: that of the steps, each taken twice.
    """

    def follow(some: Iterable[Value]) -> list[Iterable[Value]]:
        return [step[key] for step in steps for key in some if key in step]

    met = set(keys)
    waits: Counter[Value] = Counter()  # the steps into a key that are still to be taken
    front = set(met)
    while front:
        reached = follow(front)
        waits.update(chain.from_iterable(reached))
        front = set().union(*reached) - met
        met |= front
    levels: list[list[Value]] = []
    level = [key for key in met if key not in waits]
    while level:
        levels.append(level)
        ended: list[Value] = []
        for key in chain.from_iterable(follow(level)):
            waits[key] -= 1
            if not waits[key]:
                ended.append(key)
        level = ended
    return levels, [key for key, steps_left in waits.items() if steps_left]

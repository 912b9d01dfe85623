"""Orders qualifiers: conditions as early as possible, equalities as keys.

A condition after several generators is tested right after the last one that binds a variable of it.
An equality between a part of a generator's element and a bound value becomes a key: the generator
then looks its elements up instead of running over all of them.

    {(x, z) | (x, y) in R, (y', z) in S, y = y'}    runs over R, and looks up y in S by its first
    part.

A condition moves only if it and everything it passes always have values: then only the running time
changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.indexes import Path
from everlog.ies.nrc.term_analysis import Facts
from everlog.ies.nrc.walk import names


@frozen
class Step:
    """One condition, or one generator with its keys.

    A key is a part of the element and the term it must equal.
    """

    generator: t.Generator | None
    condition: t.Term | None = None
    keys: tuple[tuple[Path, t.Term], ...] = ()


def conditions(term: t.Term) -> Iterator[t.Term]:
    """The conjuncts of a condition, from left to right."""
    match term:
        case t.And(left, right) | t.If(left, right, t.Const(False)):
            yield from conditions(left)
            yield from conditions(right)
        case t.Const(True):
            return
        case _:
            yield term


def flat(qualifiers: tuple[t.Qualifier, ...]) -> list[t.Qualifier]:
    """The qualifiers with conjunctions split."""
    found: list[t.Qualifier] = []
    for qualifier in qualifiers:
        if isinstance(qualifier, t.Generator):
            found.append(qualifier)
        else:
            found.extend(conditions(qualifier))
    return found


def planned(qualifiers: list[t.Qualifier], facts: Facts) -> list[Step]:
    """The steps of a list of qualifiers, in evaluation order."""
    waiting = list(qualifiers)
    steps: list[Step] = []
    while waiting:
        first = waiting.pop(0)
        if not isinstance(first, t.Generator):
            steps.append(Step(None, first))
            continue
        ready = _ready(waiting, facts, first)
        waiting = [each for each in waiting if not any(each is other for other in ready)]
        keys, tests = _keys(first, ready, facts)
        steps.append(Step(first, None, keys))
        steps += [Step(None, test) for test in tests]
    return steps


def _ready(waiting: list[t.Qualifier], facts: Facts, first: t.Generator) -> list[t.Term]:
    """The waiting conditions that can be tested now, in their order."""
    ready: list[t.Term] = []
    later: set[str] = set()  # names that later generators bind
    total = True
    for qualifier in waiting:
        if isinstance(qualifier, t.Generator):
            later |= names(qualifier.pattern)
            total = total and facts.total(qualifier.source)
        elif not later and total:
            ready.append(qualifier)
            total = total and facts.total(qualifier)
        elif not later & facts.free(qualifier) and total and facts.total(qualifier):
            ready.append(qualifier)
        else:
            total = total and facts.total(qualifier)
    return ready


def _keys(
    generator: t.Generator, ready: list[t.Term], facts: Facts
) -> tuple[tuple[tuple[Path, t.Term], ...], list[t.Term]]:
    """The conditions that are keys, and those left to test."""
    bound = dict(leaf_names(generator.pattern))
    keys: dict[Path, t.Term] = {}
    tests: list[t.Term] = []
    safe = True  # no earlier condition may fail
    for condition in ready:
        found = _key(condition, bound, facts) if safe else None
        if found is not None and facts.total(found[1]) and found[0] not in keys:
            keys[found[0]] = found[1]
        else:
            tests.append(condition)
            safe = safe and facts.total(condition)
    return tuple(sorted(keys.items(), key=lambda item: item[0])), tests


def _key(condition: t.Term, bound: dict[str, Path], facts: Facts) -> tuple[Path, t.Term] | None:
    if isinstance(condition, t.Equal):
        for part, other in ((condition.left, condition.right), (condition.right, condition.left)):
            path = _path(part, bound)
            if path is not None and not bound.keys() & facts.free(other):
                return path, other
    return None


def _path(term: t.Term, bound: dict[str, Path]) -> Path | None:
    match term:
        case t.Var(name):
            return bound.get(name)
        case t.Project(of, index):
            outer = _path(of, bound)
            return None if outer is None else (*outer, index - 1)
        case _:
            return None


def leaf_names(pattern: t.Pattern, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """The names that a pattern binds, each with its path."""
    match pattern:
        case t.Bind("_"):
            return
        case t.Bind(name):
            yield name, path
        case t.Parts(parts):
            for index, part in enumerate(parts):
                yield from leaf_names(part, (*path, index))


def leaves(pattern: t.Pattern, path: Path = ()) -> Iterator[Path]:
    """The paths of all leaves of a pattern; `_` too."""
    match pattern:
        case t.Bind():
            yield path
        case t.Parts(parts):
            for index, part in enumerate(parts):
                yield from leaves(part, (*path, index))

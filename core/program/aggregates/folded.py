"""Aggregates of the user: `v = @@f x : start, { body }` folds a function over matches.

The value begins with `start`, and each match replaces it by `f(value, x)`.  Matches are taken in
the order of their targets, so the value is the same in every executor, whatever the function does.
It does not depend on that order if the function obeys two laws, which `check --try` tries:

    f(f(v, a), b) = f(f(v, b), a)           the order of two matches does not matter
    f(f(a, b), c) = f(a, f(b, c))           where values and targets are of one type: nor do groups
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product

from attrs import evolve

from everlog.core.program.functors import call_functor
from everlog.core.program.order import rank
from everlog.core.program.program import Aggregate, Functor, Literal, Program, Value
from everlog.core.program.values import NoValue

MOST = 12  # values that are tried in triples


def is_folded(op: str) -> bool:
    """Whether an aggregate is a function of the user.

    >>> is_folded("@lub"), is_folded("max")
    (True, False)
    """
    return op.startswith("@")


def folded(functor: Functor, start: Value, targets: Iterable[Value]) -> Value:
    """The value of an aggregate over some targets, which may repeat.

    >>> from everlog.core.program import Functor, Kind
    >>> minus = Functor("minus", (Kind.NUMBER,) * 2, Kind.NUMBER, lambda a, b: a - b)
    >>> folded(minus, 10, [3, 1, 1])
    5
    """
    return in_order(functor, start, sorted(targets, key=rank))


def in_order(functor: Functor, start: Value, targets: Iterable[Value]) -> Value:
    """The same over targets that are in order."""
    value = start
    for target in targets:
        value = call_functor(functor, (value, target))
    return value


def folds_of(program: Program) -> Iterator[tuple[str, Value]]:
    """Each function that rules fold, with what it begins with."""

    def of_body(body: Iterable[Literal]) -> Iterator[tuple[str, Value]]:
        for literal in body:
            if isinstance(literal, Aggregate):
                if literal.start is not None:
                    yield literal.op[1:], literal.start.value
                yield from of_body(literal.body)

    yield from dict.fromkeys(fold for rule in program.rules for fold in of_body(rule.body))


def noting_targets(program: Program, most: int) -> tuple[Program, dict[str, dict[Value, None]]]:
    """The program with functions that note what they fold, at most so many values of each."""
    noted: dict[str, dict[Value, None]] = {name: {} for name, _ in folds_of(program)}
    functors = {name: _noting(functor, noted.get(name), most) for name, functor in program.functors.items()}
    return evolve(program, functors=functors), noted


def _noting(functor: Functor, noted: dict[Value, None] | None, most: int) -> Functor:
    function = functor.function
    if noted is None or function is None:
        return functor

    def call(*args: Value) -> Value:
        if len(noted) < most:
            noted[args[1]] = None
        return function(*args)

    return evolve(functor, function=call)


def broken_folds(program: Program, targets: Mapping[str, Iterable[Value]]) -> Iterator[tuple[str, list[str]]]:
    """Each function that rules fold, and the laws that it breaks on some targets."""
    for name, start in folds_of(program):
        some = sorted(targets.get(name, ()), key=rank)
        yield name, list(broken_fold_laws(program.functors[name], start, some))


def broken_fold_laws(functor: Functor, start: Value, targets: Sequence[Value]) -> Iterator[str]:
    """The laws that a function breaks on some targets, each with the values.

    >>> from everlog.core.program import Functor, Kind
    >>> minus = Functor("minus", (Kind.NUMBER,) * 2, Kind.NUMBER, lambda a, b: a - b)
    >>> list(broken_fold_laws(minus, 0, [1]))
    ['@@minus is not associative on 1, 1, 1']
    >>> keep = Functor("keep", (Kind.SYMBOL, Kind.NUMBER), Kind.SYMBOL, lambda a, b: a + str(b))
    >>> list(broken_fold_laws(keep, "", [1, 2]))
    ["@@keep depends on the order of 1 and 2: from '' they give '12' and '21'"]
    """
    name, tried = f"@@{functor.name}", list(targets)[:MOST]

    def call(value: Value | None, target: Value | None) -> Value | None:
        if value is None or target is None:
            return None
        with suppress(NoValue):
            return call_functor(functor, (value, target))
        return None

    values = list(dict.fromkeys([start, *(call(start, a) for a in tried)]))
    for a, b in product(tried, repeat=2):
        for value in values:
            one, other = call(call(value, a), b), call(call(value, b), a)
            if one != other:
                yield (
                    f"{name} depends on the order of {a!r} and {b!r}: "
                    f"from {value!r} they give {one!r} and {other!r}"
                )
                return
    if functor.params[0] is not functor.params[1]:
        return
    for a, b, c in product(tried, repeat=3):
        if call(call(a, b), c) != call(a, call(b, c)):
            yield f"{name} is not associative on {a!r}, {b!r}, {c!r}"
            return

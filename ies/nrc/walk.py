"""Walks over terms: subterms, bound names, free variables; small constructors.

A stage that only reads uses `subterms`, and a stage that changes some nodes uses `rebuilt`; this
module alone knows the fields of each construct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import evolve, fields

from everlog.ies.nrc import terms as t


def finite_set(elements: Sequence[t.Term], pos: int = -1, end: int = -1) -> t.Term:
    """{e1, …, en} as balanced unions of singletons, so that it is not a deep term.

    >>> finite_set([t.Const(1), t.Const(2)])
    Union(left=Single(of=Const(value=1)), right=Single(of=Const(value=2)))
    """
    if not elements:
        return t.Empty(pos=pos, end=end)
    if len(elements) == 1:
        return t.Single(elements[0], pos=pos, end=end)
    half = len(elements) // 2
    left, right = finite_set(elements[:half], pos, end), finite_set(elements[half:], pos, end)
    return t.Union(left, right, pos=pos, end=end)


def elements_of(term: t.Term) -> list[t.Term] | None:
    """The elements, if the term has the form that `finite_set` makes.

    >>> elements_of(finite_set([t.Const(1), t.Const(2), t.Const(3)]))
    [Const(value=1), Const(value=2), Const(value=3)]
    """
    found = _singles(term)
    return found if found is not None and _is_balanced(term, len(found)) else None


def _singles(term: t.Term) -> list[t.Term] | None:
    match term:
        case t.Single(of):
            return [of]
        case t.Union(left, right):
            first = _singles(left)
            second = _singles(right) if first is not None else None
            return None if first is None or second is None else first + second
        case _:
            return None


def _is_balanced(term: t.Term, size: int) -> bool:
    if size == 1:
        return isinstance(term, t.Single)
    half = size // 2
    return isinstance(term, t.Union) and _is_balanced(term.left, half) and _is_balanced(term.right, size - half)


def binds(pattern: t.Pattern) -> list[t.Bind]:
    """The variables of a pattern, from left to right; `_` too."""
    match pattern:
        case t.Bind():
            return [pattern]
        case t.Parts(parts):
            return [bind for part in parts for bind in binds(part)]


def names(pattern: t.Pattern) -> set[str]:
    """The names that a pattern binds."""
    return {bind.name for bind in binds(pattern)} - {"_"}


def subterms(term: t.Term) -> Iterator[t.Term]:
    """The terms right below, from left to right; those inside qualifiers too."""
    for attribute in fields(type(term)):
        yield from _terms(getattr(term, attribute.name))


def _terms(value: Any) -> Iterator[t.Term]:
    if isinstance(value, t.Generator):
        yield value.source
    elif isinstance(value, tuple):
        for item in value:
            yield from _terms(item)
    elif type(value).__name__ in _TERM_CLASSES:
        yield value


_TERM_CLASSES = frozenset(
    "Var Const Tuple Project Empty Single Union BigUnion Sum Equal If Arith AtMost Comprehension SumOf Exists "
    "ForAll In Minus Intersect Subset And Or Not Less Let Call".split()
)


def everywhere(term: t.Term) -> Iterator[t.Term]:
    """A term and all its subterms, outermost first."""
    waiting = [term]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(list(subterms(found))))


def rebuilt(term: t.Term, change: Callable[[t.Term], t.Term]) -> t.Term:
    """The same construct with `change` applied to each subterm."""
    changed: dict[str, Any] = {}
    for attribute in fields(type(term)):
        before = getattr(term, attribute.name)
        after = _rebuilt(before, change)
        if after is not before:
            changed[attribute.name] = after
    return evolve(term, **changed) if changed else term


def _rebuilt(value: Any, change: Callable[[t.Term], t.Term]) -> Any:
    if isinstance(value, t.Generator):
        source = change(value.source)
        return value if source is value.source else evolve(value, source=source)
    if isinstance(value, tuple):
        items = tuple(_rebuilt(item, change) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return change(value) if type(value).__name__ in _TERM_CLASSES else value


def free_variables(term: t.Term) -> frozenset[str]:
    """The variables that a term takes from outside; not those of called functions."""
    match term:
        case t.Var(name):
            return frozenset({name})
        case t.BigUnion(body, pattern, source) | t.Sum(body, pattern, source) | t.Let(pattern, source, body):
            return free_variables(source) | (free_variables(body) - names(pattern))
        case t.Comprehension(head, qualifiers) | t.SumOf(head, qualifiers) | t.ForAll(head, qualifiers):
            return _free_after(qualifiers, free_variables(head))
        case t.Exists(qualifiers):
            return _free_after(qualifiers, frozenset())
        case _:
            return frozenset().union(*map(free_variables, subterms(term)))


def _free_after(qualifiers: tuple[t.Qualifier, ...], inside: frozenset[str]) -> frozenset[str]:
    for qualifier in reversed(qualifiers):
        if isinstance(qualifier, t.Generator):
            inside = free_variables(qualifier.source) | (inside - names(qualifier.pattern))
        else:
            inside |= free_variables(qualifier)
    return inside


def is_prime(number: int) -> bool:
    """Primality by Miller-Rabin; exact below 3.3 · 10^24, no failure known above.

    >>> [n for n in range(30) if is_prime(n)], is_prime(2**61 - 1)
    ([2, 3, 5, 7, 11, 13, 17, 19, 23, 29], True)
    """
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    if number < 2 or any(number % base == 0 for base in bases):
        return number in bases
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in bases)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False

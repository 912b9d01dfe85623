"""Facts about terms that the evaluator needs before it generates code.

Terms are numbered, equal ones alike, so that a term that occurs twice is computed once.  For each:
its free variables, whether it is worth caching (it makes a set, or runs over one), whether it
always has a value (only a division may have none), and how often it occurs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import fields

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.walk import names, subterms

_KEPT = (t.Single, t.Union, t.BigUnion, t.Sum, t.Comprehension, t.SumOf, t.Exists, t.ForAll, t.Minus, t.Intersect)
KEPT = (*_KEPT, t.Subset, t.Call)


class Facts:
    """Facts about the subterms of one term, and of the functions it calls.

    They are stored by a term's identity: the terms must live as long as this object.
    """

    def __init__(self, definitions: Mapping[str, t.Definition]) -> None:
        self.definitions = definitions
        self._numbers: dict[int, int] = {}
        self._known: dict[tuple[Any, ...], int] = {}
        self._free: dict[int, frozenset[str]] = {}
        self._total: dict[int, bool] = {}
        self.occurrences: dict[int, int] = {}
        self._alive: list[Any] = []

    def number(self, term: t.Term) -> int:
        """A number that equal terms share, independent of their places."""
        found = self._numbers.get(id(term))
        if found is None:
            self._alive.append(term)
            attributes = [a.name for a in fields(type(term)) if a.name not in ("pos", "end")]
            key = (type(term), *(self._key(getattr(term, name)) for name in attributes))
            found = self._numbers[id(term)] = self._known.setdefault(key, len(self._known))
        return found

    def _key(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._key, value))
        if isinstance(value, t.Generator):
            return (value.pattern, self.number(value.source))
        if isinstance(value, (t.Bind, t.Parts)) or not hasattr(value, "pos"):
            return (type(value), value)
        return self.number(value)

    def count(self, term: t.Term) -> None:
        """Count every occurrence below a term; a function's body counts once."""
        seen: set[str] = set()
        waiting = [term]
        while waiting:
            found = waiting.pop()
            number = self.number(found)
            self.occurrences[number] = self.occurrences.get(number, 0) + 1
            if self.occurrences[number] > 1 and isinstance(found, KEPT):
                continue  # subterms are counted with their first occurrence
            waiting.extend(subterms(found))
            if isinstance(found, t.Call) and found.function not in seen and found.function in self.definitions:
                seen.add(found.function)
                waiting.append(self.definitions[found.function].body)

    def free(self, term: t.Term) -> frozenset[str]:
        """The variables that a term takes from outside, without those of function bodies."""
        number = self.number(term)
        found = self._free.get(number)
        if found is None:
            found = self._free[number] = self._free_in(term)
        return found

    def _free_in(self, term: t.Term) -> frozenset[str]:
        match term:
            case t.Var(name):
                return frozenset({name})
            case t.BigUnion(body, pattern, source) | t.Sum(body, pattern, source) | t.Let(pattern, source, body):
                return self.free(source) | (self.free(body) - names(pattern))
            case t.Comprehension(head, qualifiers) | t.SumOf(head, qualifiers) | t.ForAll(head, qualifiers):
                return self.free_after(qualifiers, self.free(head))
            case t.Exists(qualifiers):
                return self.free_after(qualifiers, frozenset())
            case _:
                return frozenset().union(*map(self.free, subterms(term)))

    def free_after(self, qualifiers: tuple[t.Qualifier, ...], inside: frozenset[str]) -> frozenset[str]:
        for qualifier in reversed(qualifiers):
            if isinstance(qualifier, t.Generator):
                inside = self.free(qualifier.source) | (inside - names(qualifier.pattern))
            else:
                inside |= self.free(qualifier)
        return inside

    def total(self, term: t.Term) -> bool:
        """Whether a term has a value for all values of its variables."""
        number = self.number(term)
        found = self._total.get(number)
        if found is None:
            self._total[number] = False  # a function that calls itself has none
            found = self._total[number] = self._is_total(term)
        return found

    def _is_total(self, term: t.Term) -> bool:
        match term:
            case t.Arith("/", left, t.Const(value), 0) if value != 0:
                return self.total(left)
            case t.Arith(op, _, _, modulus) if op == "/" or modulus:
                return False
            case t.Call(function, arguments):
                definition = self.definitions.get(function)
                return definition is not None and self.total(definition.body) and all(map(self.total, arguments))
            case _:
                return all(map(self.total, subterms(term)))

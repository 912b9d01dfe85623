"""The value of a term by the definition in Section 2: the evaluator's oracle.

Each construct is one clause, evaluated as the paper explains it; nothing is hoisted, indexed or
shared.  `let` and calls of functions are lazy: an unused value is not computed, as under
substitution.

Source: Libkin and Wong, Section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, assert_never

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.arithmetic import divided, modular, plain
from everlog.ies.nrc.errors import CalculusError
from everlog.ies.nrc.types import Value

Scope: TypeAlias = Mapping[str, Callable[[], Value]]


def meaning(
    term: t.Term, environment: Mapping[str, Value], definitions: Mapping[str, t.Definition] | None = None
) -> Value:
    """The value of a term.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> term = parse_term("{(x, z) | (x, y) in R, (y', z) in R, y = y'}")
    >>> sorted(meaning(term, {"R": {(1, 2), (2, 3)}}))
    [(1, 3)]
    """
    scope = {name: _known(value) for name, value in environment.items()}
    return _Meaning(scope, definitions or {}).of(term, scope)


class _Meaning:
    def __init__(self, outermost: Scope, definitions: Mapping[str, t.Definition]) -> None:
        self.outermost, self.definitions = outermost, definitions

    def of(self, term: t.Term, scope: Scope) -> Value:
        match term:
            case t.Var(name):
                if name not in scope:
                    raise CalculusError(f"`{name}` is not known here", term.pos, term.end)
                return scope[name]()
            case t.Const(value):
                return value
            case t.Tuple(parts):
                return tuple(self.of(part, scope) for part in parts)
            case t.Project(of, index):
                return self.of(of, scope)[index - 1]
            case t.Empty():
                return frozenset()
            case t.Single(of):
                return frozenset({self.of(of, scope)})
            case t.Union(left, right):
                return self.of(left, scope) | self.of(right, scope)
            case t.BigUnion(body, pattern, source):
                each = [self.of(body, {**scope, **_bound(pattern, item)}) for item in self.of(source, scope)]
                return frozenset().union(*each)
            case t.Sum(body, pattern, source):
                return plain(sum(self.of(body, {**scope, **_bound(pattern, x)}) for x in self.of(source, scope)))
            case t.Equal(left, right):
                return self.of(left, scope) == self.of(right, scope)
            case t.If(condition, then, other):
                return self.of(then if self.of(condition, scope) else other, scope)
            case t.Arith():
                return self.arithmetic(term, self.of(term.left, scope), self.of(term.right, scope))
            case t.AtMost(left, right):
                return self.of(left, scope) <= self.of(right, scope)
            case _:
                return self.of_short(term, scope)

    def of_short(self, term: t.Short, scope: Scope) -> Value:
        match term:
            case t.Comprehension(head, qualifiers):
                return frozenset(self.of(head, inner) for inner in self.scopes(qualifiers, scope))
            case t.SumOf(head, qualifiers):
                return plain(sum(self.of(head, inner) for inner in self.scopes(qualifiers, scope)))
            case t.Exists(qualifiers):
                return len(list(self.scopes(qualifiers, scope))) > 0
            case t.ForAll(condition, qualifiers):
                return not {self.of(condition, inner) for inner in self.scopes(qualifiers, scope)} - {True}
            case t.In(element, of):
                return self.of(element, scope) in self.of(of, scope)
            case t.Minus(left, right):
                return self.of(left, scope) - self.of(right, scope)
            case t.Intersect(left, right):
                return self.of(left, scope) & self.of(right, scope)
            case t.Subset(left, right):
                return self.of(left, scope) <= self.of(right, scope)
            case t.And(left, right):
                return self.of(left, scope) and self.of(right, scope)
            case t.Or(left, right):
                return self.of(left, scope) or self.of(right, scope)
            case t.Not(of):
                return not self.of(of, scope)
            case t.Less(left, right):
                return self.of(left, scope) < self.of(right, scope)
            case t.Let(pattern, value, body):
                return self.of(body, {**scope, **_by_need(pattern, self._delayed(value, scope))})
            case t.Call(function, arguments):
                definition = self.definitions[function]
                given = {
                    name: self._delayed(argument, scope)
                    for name, argument in zip(definition.parameters, arguments, strict=True)
                }
                return self.of(definition.body, {**self.outermost, **given})
        assert_never(term)

    def arithmetic(self, term: t.Arith, left: Value, right: Value) -> Value:
        if term.modulus:
            return modular(term.op, left, right, term.modulus, term.pos, term.end)
        match term.op:
            case "+":
                return plain(left + right)
            case "-":
                return plain(left - right)
            case "*":
                return plain(left * right)
            case _:
                return divided(left, right, term.pos, term.end)

    def scopes(self, qualifiers: tuple[t.Qualifier, ...], scope: Scope) -> Iterator[Scope]:
        if not qualifiers:
            yield scope
            return
        first, *rest = qualifiers
        if isinstance(first, t.Generator):
            for item in self.of(first.source, scope):
                yield from self.scopes(tuple(rest), {**scope, **_bound(first.pattern, item)})
        elif self.of(first, scope):
            yield from self.scopes(tuple(rest), scope)

    def _delayed(self, term: t.Term, scope: Scope) -> Callable[[], Value]:
        found: list[Value] = []

        def value() -> Value:
            if not found:
                found.append(self.of(term, scope))
            return found[0]

        return value


def _known(value: Value) -> Callable[[], Value]:
    return lambda: value


def _bound(pattern: t.Pattern, value: Value) -> dict[str, Callable[[], Value]]:
    return _by_need(pattern, _known(value))


def _by_need(pattern: t.Pattern, value: Callable[[], Value]) -> dict[str, Callable[[], Value]]:
    match pattern:
        case t.Bind("_"):
            return {}
        case t.Bind(name):
            return {name: value}
        case t.Parts(parts):
            found: dict[str, Callable[[], Value]] = {}
            for index, part in enumerate(parts):
                found |= _by_need(part, lambda index=index: value()[index])  # type: ignore[misc]
            return found

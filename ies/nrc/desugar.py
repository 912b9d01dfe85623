"""Terms to the paper's own constructs, by the equations of the paper.

    {e | x in s, …}  =  union{ {e | …} | x in s }        {e | c, …}  =  if c then {e | …} else {}

Patterns become projections; membership, difference, quantifiers and connectives become
comprehensions and conditionals; `let` and calls of functions are substituted.  Every bound variable
gets a fresh name, so that a substitution captures nothing.

Source: Libkin and Wong, Section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.errors import MAX_CALLS, CalculusError
from everlog.ies.nrc.types import BOOL
from everlog.ies.nrc.walk import free_variables, rebuilt

Scope: TypeAlias = Mapping[str, t.Term]
_TRUE, _FALSE = t.Const(True), t.Const(False)
_NONE, _SOME = t.Empty(BOOL), t.Single(_TRUE)
_PRIME = "'"
_Inner: TypeAlias = Callable[[Scope], t.Term]


def desugar(term: t.Term, definitions: Mapping[str, t.Definition] | None = None) -> t.Term:
    """The term in the constructs of NRC^aggr.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> from everlog.ies.nrc.printer import term_text
    >>> term_text(desugar(parse_term("{x | (x, y) in R, y < 1}")))
    'union{if if 1 <= p.2 then false else true then {p.1} else {} | p in R}'

    Cost: linear in the term and the bodies of the functions it calls, if substituted terms are
    shared.
    """
    return _Desugar(term, definitions or {}).term(term, {})


class _Desugar:
    def __init__(self, term: t.Term, definitions: Mapping[str, t.Definition]) -> None:
        self.definitions = definitions
        self.used = set(free_variables(term))
        for definition in definitions.values():
            self.used |= free_variables(definition.body) - set(definition.parameters)
        self.calls: list[str] = []
        self.called = 0

    def fresh(self, wanted: str) -> str:
        """A name that is bound once, and nowhere free."""
        name, number = wanted, 1
        while name in self.used:
            number += 1
            name = f"{wanted.rstrip(_PRIME)}_{number}"
        self.used.add(name)
        return name

    def term(self, term: t.Term, scope: Scope) -> t.Term:
        at = {"pos": term.pos, "end": term.end}
        match term:
            case t.Var(name):
                return scope.get(name, term)
            case t.Const() | t.Empty():
                return term
            case t.Tuple() | t.Project() | t.Single() | t.Union() | t.Equal() | t.If() | t.Arith() | t.AtMost():
                return rebuilt(term, lambda part: self.term(part, scope))
            case t.BigUnion(body, pattern, source):
                return self._over(t.BigUnion, pattern, source, scope, lambda inner: self.term(body, inner))
            case t.Sum(body, pattern, source):
                return self._over(t.Sum, pattern, source, scope, lambda inner: self.term(body, inner))
            case t.Comprehension(head, qualifiers):
                return self._set(qualifiers, scope, lambda inner: t.Single(self.term(head, inner)), t.Empty())
            case t.SumOf(head, qualifiers):
                return self._qualified(t.Sum, qualifiers, scope, lambda inner: self.term(head, inner), t.Const(0))
            case t.Exists(qualifiers):
                return _not(t.Equal(self._set(qualifiers, scope, lambda _: _SOME, _NONE), _NONE, **at))
            case t.ForAll(condition, qualifiers):
                return self._all(qualifiers, scope, lambda inner: self.term(condition, inner))
            case t.In(element, of):
                return self._member(self.term(element, scope), self.term(of, scope))
            case t.Minus(left, right):
                kept, gone = self.term(left, scope), self.term(right, scope)
                return self._filtered(kept, lambda item: _not(self._member(item, gone)))
            case t.Intersect(left, right):
                first, second = self.term(left, scope), self.term(right, scope)
                return self._filtered(first, lambda item: self._member(item, second))
            case t.Subset(left, right):
                inside, whole = t.Var(self.fresh("x")), self.term(right, scope)
                missing = t.If(self._member(inside, whole), _NONE, _SOME)
                return t.Equal(t.BigUnion(missing, t.Bind(inside.name), self.term(left, scope)), _NONE, **at)
            case t.And(left, right):
                return t.If(self.term(left, scope), self.term(right, scope), _FALSE, **at)
            case t.Or(left, right):
                return t.If(self.term(left, scope), _TRUE, self.term(right, scope), **at)
            case t.Not(of):
                return _not(self.term(of, scope))
            case t.Less(left, right):
                return _not(t.AtMost(self.term(right, scope), self.term(left, scope), **at))
            case t.Let(pattern, value, body):
                return self.term(body, {**scope, **_projections(pattern, self.term(value, scope))})
            case t.Call(function, arguments):
                return self._called(term, function, [self.term(argument, scope) for argument in arguments])
        assert_never(term)

    def _called(self, term: t.Call, function: str, arguments: list[t.Term]) -> t.Term:
        definition = self.definitions.get(function)
        if definition is None or len(definition.parameters) != len(arguments) or function in self.calls:
            raise CalculusError(f"`{function}` cannot be called here", term.pos, term.end)
        self.called += 1
        if self.called > MAX_CALLS:
            raise CalculusError(f"functions call functions more than {MAX_CALLS:,} times", term.pos, term.end)
        self.calls.append(function)
        body = self.term(definition.body, dict(zip(definition.parameters, arguments, strict=True)))
        self.calls.pop()
        return body

    # ── what binds ───────────────────────────────────────────────────────────────────────────

    def _over(
        self, make: Callable[..., Any], pattern: t.Pattern, source: t.Term, scope: Scope, body: _Inner
    ) -> t.Term:
        """union{ body | x in source }, or a sum; parts of a pattern are projections of x."""
        over = self.term(source, scope)
        wanted = pattern.name if isinstance(pattern, t.Bind) and pattern.name != "_" else "p"
        name = self.fresh(wanted)
        inner = {**scope, **_projections(pattern, t.Var(name))}
        return make(body(inner), t.Bind(name), over)  # type: ignore[no-any-return]

    def _qualified(
        self,
        make: Callable[..., Any],
        qualifiers: tuple[t.Qualifier, ...],
        scope: Scope,
        leaf: _Inner,
        nothing: t.Term,
    ) -> t.Term:
        if not qualifiers:
            return leaf(scope)
        first, rest = qualifiers[0], qualifiers[1:]

        def inside(inner: Scope) -> t.Term:
            return self._qualified(make, rest, inner, leaf, nothing)

        if isinstance(first, t.Generator):
            return self._over(make, first.pattern, first.source, scope, inside)
        return t.If(self.term(first, scope), inside(scope), nothing)

    def _set(self, qualifiers: tuple[t.Qualifier, ...], scope: Scope, leaf: _Inner, nothing: t.Term) -> t.Term:
        return self._qualified(t.BigUnion, qualifiers, scope, leaf, nothing)

    def _all(self, qualifiers: tuple[t.Qualifier, ...], scope: Scope, holds: _Inner) -> t.Term:
        return t.Equal(self._set(qualifiers, scope, lambda inner: t.If(holds(inner), _NONE, _SOME), _NONE), _NONE)

    def _member(self, element: t.Term, of: t.Term) -> t.Term:
        item = self.fresh("x")
        found = t.If(t.Equal(t.Var(item), element), _SOME, _NONE)
        return _not(t.Equal(t.BigUnion(found, t.Bind(item), of), _NONE))

    def _filtered(self, source: t.Term, holds: Callable[[t.Term], t.Term]) -> t.Term:
        item = t.Var(self.fresh("x"))
        return t.BigUnion(t.If(holds(item), t.Single(item), t.Empty()), t.Bind(item.name), source)


def _not(term: t.Term) -> t.Term:
    return t.If(term, _FALSE, _TRUE, pos=term.pos, end=term.end)


def _projections(pattern: t.Pattern, of: t.Term) -> dict[str, t.Term]:
    """The term of each name of a pattern that is matched with `of`."""
    match pattern:
        case t.Bind("_"):
            return {}
        case t.Bind(name):
            return {name: of}
        case t.Parts(parts):
            found: dict[str, t.Term] = {}
            for index, part in enumerate(parts, 1):
                found |= _projections(part, t.Project(of, index))
            return found

"""Builds terms: one method for each production of `grammar.lark`.

The automaton makes nodes while it runs, each with its place.  The builder reports errors that the
grammar cannot see: a pattern that binds a name twice, a modulus that is not prime, a term that is
nested too deeply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve
from lark import Token, Transformer

from everlog.dsl.diagnostics import Diagnostic, Label, Report
from everlog.ies.nrc import terms as t
from everlog.ies.nrc.errors import MAX_DEPTH
from everlog.ies.nrc.lexer import unquoted
from everlog.ies.nrc.types import Base, Product, SetOf, Type
from everlog.ies.nrc.walk import binds, finite_set, is_prime

_COMPARED: dict[str, Callable[..., t.Term]] = {
    "EQ": lambda a, b, **at: t.Equal(a, b, **at),
    "NE": lambda a, b, **at: t.Not(t.Equal(a, b, **at), **at),
    "LT": lambda a, b, **at: t.Less(a, b, **at),
    "LE": lambda a, b, **at: t.AtMost(a, b, **at),
    "GT": lambda a, b, **at: t.Less(b, a, **at),
    "GE": lambda a, b, **at: t.AtMost(b, a, **at),
    "SUBSET": lambda a, b, **at: t.Subset(a, b, **at),
}
_SET_OPERATIONS: dict[str, Callable[..., t.Term]] = {
    "UNION": t.Union,
    "MINUS": t.Minus,
    "INTERSECT": t.Intersect,
}


def span(children: list[Any]) -> dict[str, Any]:
    """The span from the first to the last child."""
    first, last = children[0], children[-1]
    pos = first.start_pos if isinstance(first, Token) else first.pos
    end = last.end_pos if isinstance(last, Token) else last.end
    return {"pos": pos, "end": end}


def nodes(children: list[Any]) -> tuple[Any, ...]:
    return tuple(child for child in children if not isinstance(child, Token))


class TypeAt:
    """A type with its place."""

    def __init__(self, type_: Type, pos: int, end: int) -> None:
        self.type, self.pos, self.end = type_, pos, end


class TermBuilder(Transformer[Token, Any]):
    """One method per production; `report` belongs to the text being parsed."""

    report: Report

    def begin(self, report: Report) -> None:
        self.report = report
        self._depths: dict[int, int] = {}
        self._enclosed: dict[int, t.Term] = {}  # terms in parentheses, by identity
        self._too_deep = False

    def finish(self) -> None:
        self._depths, self._enclosed = {}, {}

    def made(self, node: Any, children: list[Any]) -> Any:
        """Record the depth of a node; a term past the limit is reported and cut."""
        depth = 1 + max((self._depths.get(id(child), 0) for child in children), default=0)
        if depth > MAX_DEPTH:
            if not self._too_deep:
                message = f"this is nested more than {MAX_DEPTH} levels deep"
                hint = "name a part of it with `def` or `let`"
                self.report.items.append(Diagnostic("NRC011", message, node.pos, node.pos + 1, hint=hint))
            self._too_deep = True
            node, depth = t.Const(0, pos=node.pos, end=node.end), 1
        self._depths[id(node)] = depth
        return node

    def error(self, code: str, message: str, node: Any, *labels: Label, hint: str = "") -> None:
        pos, end = span([node]).values()
        self.report.items.append(Diagnostic(code, message, pos, end, labels, hint))

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def term(self, children: list[Any]) -> t.Term:
        return children[0]  # type: ignore[no-any-return]

    def definitions(self, children: list[Any]) -> list[t.Definition]:
        return children

    def definition(self, children: list[Any]) -> t.Definition:
        name, *parameters = [child for child in children if isinstance(child, Token) and child.type == "NAME"]
        self._distinct([(str(p), p) for p in parameters], "parameter")
        return t.Definition(str(name), tuple(map(str, parameters)), children[-1], **span(children))

    def let(self, children: list[Any]) -> t.Term:
        pattern, value, body = nodes(children)
        self.check_pattern(pattern)
        return self.made(t.Let(pattern, value, body, **span(children)), children)  # type: ignore[no-any-return]

    def conditional(self, children: list[Any]) -> t.Term:
        return self._plain(t.If, children)

    def or_(self, children: list[Any]) -> t.Term:
        return self._plain(t.Or, children)

    def and_(self, children: list[Any]) -> t.Term:
        return self._plain(t.And, children)

    def not_(self, children: list[Any]) -> t.Term:
        return self._plain(t.Not, children)

    def in_(self, children: list[Any]) -> t.Term:
        return self._plain(t.In, children)

    def not_in(self, children: list[Any]) -> t.Term:
        at = span(children)
        return self.made(t.Not(t.In(children[0], children[-1], **at), **at), children)  # type: ignore[no-any-return]

    def compare(self, children: list[Any]) -> t.Term:
        left, operator, right = children
        node = _COMPARED[operator.type](left, right, **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def set_operation(self, children: list[Any]) -> t.Term:
        return self._plain(_SET_OPERATIONS[children[1].type], children)

    def arithmetic(self, children: list[Any]) -> t.Term:
        left, operator, right = children
        modulus = 0
        if len(operator.value) > 100:
            self.error("NRC013", "this modulus has too many digits", operator)
        elif len(operator.value) > 1:
            modulus = int(operator.value[2:-1])
            if not is_prime(modulus):
                message = f"{modulus} is not a prime number"
                self.error("NRC013", message, operator, hint="only a prime makes a field")
        node = t.Arith(operator.value[0], left, right, modulus, **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def negative(self, children: list[Any]) -> t.Term:
        sign, of = children
        if len(sign.value) > 1:
            hint = f"write `0 {sign.value} e`"
            self.error("NRC013", f"`{sign.value}` needs something before it", sign, hint=hint)
        at = span(children)
        match of:
            case t.Const(int() as value) if (
                type(value) is int and value > 0 and of.end - of.pos <= len(str(value))
            ):
                return self.made(t.Const(-value, **at), [])  # type: ignore[no-any-return]
        return self.made(t.Arith("-", t.Const(0, **at), of, **at), children)  # type: ignore[no-any-return]

    def project(self, children: list[Any]) -> t.Term:
        of, _, index = children
        return self.made(t.Project(of, self._int(index), **span(children)), children)  # type: ignore[no-any-return]

    def variable(self, children: list[Any]) -> t.Term:
        return t.Var(str(children[0]), **span(children))

    def number(self, children: list[Any]) -> t.Term:
        return t.Const(self._int(children[0]), **span(children))

    def text(self, children: list[Any]) -> t.Term:
        return t.Const(unquoted(children[0], self.report), **span(children))

    def truth(self, children: list[Any]) -> t.Term:
        return t.Const(children[0].type == "TRUE", **span(children))

    def call(self, children: list[Any]) -> t.Term:
        node = t.Call(str(children[0]), nodes(children), **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def parenthesised(self, children: list[Any]) -> t.Term:
        inside = children[1]
        node: t.Term = evolve(inside, **span(children))  # the span includes the parentheses
        self._depths[id(node)] = self._depths.get(id(inside), 1)
        self._enclosed[id(node)] = node
        return node

    def tuple_(self, children: list[Any]) -> t.Term:
        return self.made(t.Tuple(nodes(children), **span(children)), children)  # type: ignore[no-any-return]

    def empty(self, children: list[Any]) -> t.Term:
        return t.Empty(**span(children))

    def typed_empty(self, children: list[Any]) -> t.Term:
        stated: TypeAt = children[4]
        if isinstance(stated.type, SetOf):
            return t.Empty(stated.type.element, **span(children))
        self.error("NRC030", f"an empty set has a set type, not {stated.type}", stated, hint=f"{{{stated.type}}}")
        return t.Empty(**span(children))

    def finite(self, children: list[Any]) -> t.Term:
        node = finite_set(nodes(children), **span(children))
        self.made(node, children)
        return node

    def comprehension(self, children: list[Any]) -> t.Term:
        head, *rest = nodes(children)
        node = t.Comprehension(head, self._qualified(rest), **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def big_union(self, children: list[Any]) -> t.Term:
        body, *rest = nodes(children)
        match self._qualified(rest):
            case (t.Generator(pattern, source),):
                node = t.BigUnion(body, pattern, source, **span(children))
                return self.made(node, children)  # type: ignore[no-any-return]
        hint = "write `union{ e | pattern in set }`, one inside another for more of them"
        self.error("NRC014", "`union{…}` takes one generator", children[0], hint=hint)
        return body  # type: ignore[no-any-return]

    def sum_of(self, children: list[Any]) -> t.Term:
        head, *rest = nodes(children)
        match self._qualified(rest):
            case (t.Generator(pattern, source),):
                node: t.Term = t.Sum(head, pattern, source, **span(children))
            case qualifiers:
                node = t.SumOf(head, qualifiers, **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def exists(self, children: list[Any]) -> t.Term:
        node = t.Exists(self._qualified(list(nodes(children))), **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def for_all(self, children: list[Any]) -> t.Term:
        condition, *rest = nodes(children)
        node = t.ForAll(condition, self._qualified(rest), **span(children))
        return self.made(node, children)  # type: ignore[no-any-return]

    def _plain(self, make: Callable[..., Any], children: list[Any]) -> t.Term:
        return self.made(make(*nodes(children), **span(children)), children)  # type: ignore[no-any-return]

    def _int(self, token: Token) -> int:
        if len(token.value) > 4000:  # Python's own limit for reading integers
            self.error("NRC010", "this number has too many digits", token)
            return 1
        return int(token.value)

    # ── qualifiers and patterns ──────────────────────────────────────────────────────────────

    def _qualified(self, terms: list[t.Term]) -> tuple[t.Qualifier, ...]:
        return tuple(map(self._qualifier, terms))

    def _qualifier(self, term: t.Term) -> t.Qualifier:
        if isinstance(term, t.In) and id(term) not in self._enclosed:
            pattern = _as_pattern(term.element)
            if pattern is not None:
                self.check_pattern(pattern)
                return t.Generator(pattern, term.of, pos=term.pos, end=term.end)
        return term

    def bind(self, children: list[Any]) -> t.Pattern:
        return t.Bind(str(children[0]), **span(children))

    def same_pattern(self, children: list[Any]) -> t.Pattern:
        return children[1]  # type: ignore[no-any-return]

    def parts(self, children: list[Any]) -> t.Pattern:
        node = t.Parts(nodes(children), **span(children))
        self.made(node, children)
        return node

    def check_pattern(self, pattern: t.Pattern) -> None:
        """Check that a pattern binds every name once."""
        self._distinct([(bind.name, bind) for bind in binds(pattern) if bind.name != "_"], "pattern variable")

    def _distinct(self, names: list[tuple[str, Any]], what: str) -> None:
        first: dict[str, Any] = {}
        for name, node in names:
            if name in first:
                label = Label(**span([first[name]]), text="first here")
                hint = "take two names, and compare them with `=`" if what == "pattern variable" else ""
                self.error("NRC012", f"{what} `{name}` stands twice", node, label, hint=hint)
            first.setdefault(name, node)

    # ── types ────────────────────────────────────────────────────────────────────────────────

    def type(self, children: list[Any]) -> TypeAt:
        parts = nodes(children)
        at = span(children)
        found = parts[0].type if len(parts) == 1 else Product(tuple(part.type for part in parts))
        return TypeAt(found, at["pos"], at["end"])

    def base_type(self, children: list[Any]) -> TypeAt:
        return TypeAt(Base(str(children[0])), **span(children))

    def set_type(self, children: list[Any]) -> TypeAt:
        return TypeAt(SetOf(children[1].type), **span(children))

    def same_type(self, children: list[Any]) -> TypeAt:
        return TypeAt(children[1].type, **span(children))


def _as_pattern(term: t.Term) -> t.Pattern | None:
    """The term read as a pattern, if it is one."""
    match term:
        case t.Var(name):
            return t.Bind(name, pos=term.pos, end=term.end)
        case t.Tuple(parts):
            inner = [_as_pattern(part) for part in parts]
            found = tuple(part for part in inner if part is not None)
            return t.Parts(found, pos=term.pos, end=term.end) if len(found) == len(inner) else None
        case _:
            return None

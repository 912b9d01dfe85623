"""Every name of a program with what it means: the index behind definition, references and rename.

The syntax tree says what a name is; the tokens say exactly where it stands.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, field, frozen

from everlog.dsl import ast
from everlog.dsl.lexer import Lexeme
from everlog.dsl.walk import everything_below
from everlog.editor.name_scopes import NameScope, Symbol

DECLARATION, DEFINITION, USE = "declaration", "definition", "use"


@frozen
class Occurrence:
    """A name in the text; its role is `declaration`, `definition` (of a head) or `use`."""

    symbol: Symbol
    pos: int
    end: int
    role: str = USE


@define(eq=False)
class Names:
    """The names of a program, in the order of its text, and its scopes."""

    found: list[Occurrence]
    scopes: list[tuple[int, int, NameScope]]  # of the program and its components, outermost first

    def at(self, offset: int) -> Occurrence | None:
        """The name that an offset touches; at its end counts, as a cursor stands behind it."""
        near = bisect_left(self.found, offset, key=lambda one: one.end)
        while near < len(self.found) and self.found[near].pos <= offset:
            return self.found[near]
        return None

    def of(self, symbol: Symbol) -> list[Occurrence]:
        return [one for one in self.found if one.symbol == symbol]

    def scope_at(self, offset: int) -> NameScope:
        """The innermost scope around an offset."""
        return [scope for pos, end, scope in self.scopes if pos <= offset <= end][-1]


def names_of(program: ast.Program, tokens: list[Lexeme]) -> Names:
    """The names of a program.

    Cost: linear in the program.
    """
    index = _Index(tokens, [token.pos for token in tokens])
    outer = NameScope()
    index.scopes.append((0, 1 << 60, outer))
    index.declare(program.statements, outer)
    index.statements(program.statements, outer)
    index.found.sort(key=lambda one: (one.pos, one.end))
    return Names(index.found, index.scopes)


@define(eq=False)
class _Index:
    tokens: list[Lexeme]
    starts: list[int]
    found: list[Occurrence] = field(factory=list)
    scopes: list[tuple[int, int, NameScope]] = field(factory=list)
    inside: dict[int, NameScope] = field(factory=dict)  # by the identity of a component

    def statements(self, items: list[Any], scope: NameScope) -> None:
        for item in items:
            if isinstance(item, ast.Component):
                self._component(item, scope)
            else:
                self._statement(item, scope)

    def add(self, symbol: Symbol | None, pos: int, end: int, role: str = USE) -> None:
        if symbol is not None:
            self.found.append(Occurrence(symbol, pos, end, role))

    # ── declarations ─────────────────────────────────────────────────────────────────────────

    def declare(self, items: list[Any], scope: NameScope) -> None:
        """Declare all names, at every depth: a name may be used before its declaration."""
        for item in items:
            self._declare(item, scope)

    def _declare(self, item: Any, scope: NameScope) -> None:
        inside = scope.component.type.name if scope.component else ""
        match item:
            case ast.RelationDecl(names=names):
                for name in names:
                    scope.declare(Symbol("relation", name.name, name.pos, name.end, inside, item))
            case ast.TypeDecl() | ast.FunctorDecl() | ast.Init():
                kind = {ast.TypeDecl: "type", ast.FunctorDecl: "functor", ast.Init: "instance"}[type(item)]
                named = self._second(item)
                if named is not None:
                    scope.declare(Symbol(kind, item.name, named.pos, named.end, inside, item))
            case ast.Component(type=named):
                end = named.pos + len(named.name)
                scope.declare(Symbol("component", named.name, named.pos, end, inside, item))
                inner = self.inside[id(item)] = NameScope(scope, item)
                scope.inner.setdefault(named.name, inner)
                for parameter in self._parameters(named):
                    symbol = Symbol("parameter", parameter.name, parameter.pos, parameter.end, named.name)
                    inner.names.setdefault(("type", parameter.name), symbol)
                self.declare(item.items, inner)
            case _:
                pass

    def _second(self, node: ast.Node, after: int = 1) -> ast.Name | None:
        """The name after the directive that begins a node, or after more tokens."""
        at = bisect_left(self.starts, node.pos) + after
        found = self.tokens[at] if at < len(self.tokens) else None
        return found if isinstance(found, ast.Name) else None

    def _declared(self, kind: str, item: Any, scope: NameScope) -> None:
        named = self._second(item)
        if named is not None:
            own = scope.names.get((kind, item.name))
            self.add(own, named.pos, named.end, DECLARATION)

    # ── statements ───────────────────────────────────────────────────────────────────────────

    def _statement(self, item: Any, scope: NameScope) -> None:
        match item:
            case ast.FactLine(name=name, pos=pos):
                self.add(scope.find("relation", [name]), pos, pos + len(name), DEFINITION)
            case ast.Clause() | ast.Subsumption():
                self._clause(item, scope)
            case ast.RelationDecl():
                self._relation(item, scope)
            case ast.TypeDecl(bases=bases):
                self._declared("type", item, scope)
                for base in bases:
                    if base.end:
                        self._path("type", base, scope)
            case ast.FunctorDecl(params=params, result=result):
                self._declared("functor", item, scope)
                for attribute in (*params, result):
                    self._type_of(attribute, scope)
            case ast.Directive(relations=relations):
                for relation in relations:
                    self._path("relation", relation, scope)
            case ast.Init(component=used):
                self._declared("instance", item, scope)
                self._component_use(used, scope)
            case ast.Override(name=name):
                named = self._second(item)
                if named is not None:
                    self.add(scope.find("relation", [name]), named.pos, named.end)
            case _:
                pass

    def _relation(self, item: ast.RelationDecl, scope: NameScope) -> None:
        for name in item.names:
            self.add(scope.names.get(("relation", name.name)), name.pos, name.end, DECLARATION)
        columns: dict[str, Symbol] = {}
        for attribute in item.attributes:
            end = attribute.pos + len(attribute.name)
            inside = item.names[0].name
            column = Symbol("column", attribute.name, attribute.pos, end, inside, attribute)
            columns.setdefault(attribute.name, column)
            self.add(column, attribute.pos, end, DECLARATION)
            self._type_of(attribute, scope)
        for choice in item.choices:
            for key in choice.keys:
                self.add(columns.get(key.name), key.pos, key.end)

    def _component(self, item: ast.Component, scope: NameScope) -> None:
        named = item.type
        self.add(scope.names.get(("component", named.name)), named.pos, named.pos + len(named.name), DECLARATION)
        inner = self.inside[id(item)]
        self.scopes.append((item.pos, item.end, inner))
        for parameter in self._parameters(named):
            self.add(inner.names.get(("type", parameter.name)), parameter.pos, parameter.end, DECLARATION)
        for base in item.bases:
            self._component_use(base, scope, inner)
        self.statements(item.items, inner)

    def _component_use(self, used: ast.ComponentType, scope: NameScope, inner: NameScope | None = None) -> None:
        symbol = scope.find("component", [used.name]) or scope.find("type", [used.name])
        self.add(symbol, used.pos, used.pos + len(used.name))
        for parameter in self._parameters(used):
            self.add((inner or scope).find("type", [parameter.name]), parameter.pos, parameter.end)

    def _parameters(self, node: ast.ComponentType) -> Iterator[ast.Name]:
        """The names between `<` and `>`."""
        return (name for name in self._between(node.pos + len(node.name), node.end))

    def _between(self, pos: int, end: int) -> Iterator[ast.Name]:
        at = bisect_left(self.starts, pos)
        while at < len(self.tokens) and self.tokens[at].pos < end:
            token = self.tokens[at]
            if isinstance(token, ast.Name):
                yield token
            at += 1

    def _type_of(self, attribute: ast.Attribute, scope: NameScope) -> None:
        parts = list(self._between(attribute.pos, attribute.end))
        if attribute.name and len(parts) > 1:
            parts = parts[1:]
        self._parts("type", parts, scope)

    # ── clauses ──────────────────────────────────────────────────────────────────────────────

    def _clause(self, clause: ast.Clause | ast.Subsumption, scope: NameScope) -> None:
        heads: list[ast.Atom]
        if isinstance(clause, ast.Subsumption):
            heads = [clause.dominated, clause.dominating]
        else:
            heads = clause.heads
        variables: dict[str, Symbol] = {}
        for head in heads:
            self._atom(head, scope, DEFINITION)
            self._terms(head.args, scope, variables, clause)
        if clause.body is not None:
            self._terms([clause.body], scope, variables, clause)

    def _terms(self, nodes: Iterable[Any], scope: NameScope, variables: dict[str, Symbol], clause: Any) -> None:
        for root in nodes:
            for node in everything_below(root):
                kind = node.__class__
                if kind is ast.Name:
                    symbol = variables.get(node.name)
                    if symbol is None:
                        symbol = Symbol("variable", node.name, node.pos, node.end, "", clause)
                        variables[node.name] = symbol
                    self.add(symbol, node.pos, node.end)
                elif kind is ast.Atom:
                    self._atom(node, scope, USE)
                elif kind is ast.UserFunctor:
                    named = self._second(node)
                    if named is not None:
                        self.add(scope.find("functor", [node.name]), named.pos, named.end)
                elif kind is ast.Aggregate and node.start is not None:
                    named = self._second(node, 2)  # `@@f`
                    if named is not None:
                        self.add(scope.find("functor", [named.name]), named.pos, named.end)
                elif kind is ast.Cast:
                    last = list(self._between(node.term.end, node.end))
                    self._parts("type", last, scope)

    def _atom(self, atom: ast.Atom, scope: NameScope, role: str) -> None:
        if "." not in atom.name:
            self.add(scope.find("relation", [atom.name]), atom.pos, atom.pos + len(atom.name), role)
            return
        at = bisect_left(self.starts, atom.pos)
        parts = self.tokens[at : at + 2 * atom.name.count(".") + 1 : 2]
        self._parts("relation", [part for part in parts if isinstance(part, ast.Name)], scope, role)

    def _path(self, kind: str, name: ast.Name, scope: NameScope) -> None:
        self._parts(kind, list(self._between(name.pos, name.end)), scope)

    def _parts(self, kind: str, parts: list[ast.Name], scope: NameScope, role: str = USE) -> None:
        """A dotted name: instances, and at last a relation or a type."""
        path = [part.name for part in parts]
        for depth, part in enumerate(parts, 1):
            last = depth == len(parts)
            symbol = scope.find(kind if last else "instance", path[:depth])
            self.add(symbol, part.pos, part.end, role if last else USE)

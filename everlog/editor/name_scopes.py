"""Which declaration a name means, inside and outside components.

A scope is a list of statements: the program, or the body of a component.  A name is looked for in
its own scope, then in the bases of a component, then in the scope around it.  `c.r` is the relation
`r` of the component that the instance `c` is made of.  The checker resolves names on copies of
components, one per instance; an editor needs the places in the text, of which there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field, frozen

from everlog.dsl import ast


@frozen
class Symbol:
    """Something that has a name: `pos` is where its declaration names it, and makes it unique.

    `kind` is relation, type, functor, component, instance, column, parameter or variable.
    """

    kind: str
    name: str
    pos: int
    end: int = field(eq=False)
    inside: str = field(default="", eq=False)  # the component or relation around it
    node: ast.Node | None = field(default=None, eq=False, repr=False)


@define(eq=False)
class NameScope:
    """The names of one list of statements, with the scope around it and the bases it inherits."""

    around: NameScope | None = None
    component: ast.Component | None = None
    names: dict[tuple[str, str], Symbol] = field(factory=dict)  # by kind and name; the first wins
    inner: dict[str, NameScope] = field(factory=dict)  # the scopes of components
    _lineage: list[NameScope] | None = None

    def declare(self, symbol: Symbol) -> None:
        self.names.setdefault((symbol.kind, symbol.name), symbol)

    def find(self, kind: str, path: list[str]) -> Symbol | None:
        """The declaration of `a.b.name`, given as a list."""
        if len(path) == 1:
            return next((s for scope in self._outwards() if (s := scope.own(kind, path[0]))), None)
        scope = self.instance(path[:-1])
        return None if scope is None else scope.own(kind, path[-1])

    def instance(self, path: list[str]) -> NameScope | None:
        """The scope of the component that the instance `a.b` is made of."""
        symbol = self.find("instance", path)
        if symbol is None or not isinstance(symbol.node, ast.Init):
            return None
        home: NameScope | None = self if len(path) == 1 else self.instance(path[:-1])
        return None if home is None else home.component_scope(symbol.node.component.name)

    def component_scope(self, name: str) -> NameScope | None:
        """The scope inside a component that is visible here."""
        for scope in self._outwards():
            for each in scope.lineage():
                if name in each.inner:
                    return each.inner[name]
        return None

    def own(self, kind: str, name: str) -> Symbol | None:
        """The declaration in this scope or in its bases."""
        return next((s for scope in self.lineage() if (s := scope.names.get((kind, name)))), None)

    def visible(self, kind: str) -> dict[str, Symbol]:
        """All names of a kind that can be used here, the innermost first."""
        found: dict[str, Symbol] = {}
        for scope in self._outwards():
            for each in scope.lineage():
                for (one, name), symbol in each.names.items():
                    if one == kind:
                        found.setdefault(name, symbol)
        return found

    def _outwards(self) -> Iterator[NameScope]:
        scope: NameScope | None = self
        while scope is not None:
            yield scope
            scope = scope.around

    def lineage(self) -> list[NameScope]:
        """This scope and those of all components that it inherits from, each once.

        Cost: that of a lookup after the first call, which needs all declarations.
        """
        if self._lineage is None:
            found = {id(self): self}
            todo = [self]
            while todo:
                for base in todo.pop(0)._bases():
                    if id(base) not in found:
                        found[id(base)] = base
                        todo.append(base)
            self._lineage = list(found.values())
        return self._lineage

    def _bases(self) -> Iterator[NameScope]:
        if self.component is not None and self.around is not None:
            for base in self.component.bases:
                scope = self.around.component_scope(base.name)
                if scope is not None:
                    yield scope

"""Expands `.comp` and `.init` into a flat list of statements with dotted names.

An instance `.init c = C<A>` copies the declarations of C and its bases: relation `r` becomes `c.r`,
types likewise, and an actual type replaces each formal type parameter.  A name that the instance
does not declare is looked up in the scopes around it, innermost first.  Bases come first; a
relation that a component overrides is left out of its bases.  A rule whose head is not a relation
of the instance belongs to the scope around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from attrs import define, evolve, field

from everlog.dsl import ast
from everlog.dsl.checks.auxiliaries import auxiliary_names
from everlog.dsl.diagnostics import Label, Report
from everlog.dsl.walk import rebuilt

MAX_DEPTH = 200
MAX_COPIES = 200_000
_N = TypeVar("_N")


@define
class _Scope:
    """The components that are visible here, with the scope around them."""

    components: dict[str, ast.Component] = field(factory=dict)
    around: _Scope | None = None

    def find(self, name: str) -> tuple[ast.Component, _Scope] | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.components:
                return scope.components[name], scope
            scope = scope.around
        return None


def flatten(program: ast.Program, report: Report) -> list[ast.Statement]:
    """The statements of a program with every component instance expanded."""
    statements = program.statements
    if not any(isinstance(s, ast.Component | ast.Init | ast.Override) for s in statements):
        return statements
    scope = _Scope(_components(statements, report))
    _check_components(statements, scope, report)
    twice = _check_instances(statements, report)
    copies = _Copies()
    out: list[ast.Statement] = []
    for statement in statements:
        match statement:
            case ast.Component():
                pass
            case ast.Init() if id(statement) in twice:
                pass
            case ast.Override():
                report.error("DL073", "`.override` stands outside a component", statement)
            case ast.Init():
                content = _instance(statement, scope, {}, report, 0, copies)
                out += content.items + content.orphans
            case _:
                out.append(statement)
    _check_clashes(statements, report)
    return out


def _inner_scope(component: ast.Component, scope: _Scope) -> _Scope:
    """The scope inside a component: its own components, its bases', the outer ones."""
    visible: dict[str, ast.Component] = {}
    for current in _lineage([(component, scope)]):
        for item in current.items:
            if isinstance(item, ast.Component):
                visible.setdefault(item.type.name, item)
    return _Scope(visible, scope)


def _bases(component: ast.Component, scope: _Scope) -> list[tuple[ast.Component, _Scope]]:
    return [found for base in component.bases if (found := scope.find(base.name)) is not None]


def _lineage(start: list[tuple[ast.Component, _Scope]]) -> Iterator[ast.Component]:
    """Components and all components that they inherit from, each once."""
    todo = start
    seen: set[int] = set()
    while todo:
        current, home = todo.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            todo += _bases(current, home)


# ── instances ────────────────────────────────────────────────────────────────────────────────


@define
class _Content:
    """The statements of an instance.

    `orphans` are clauses whose head belongs to a scope further out.
    """

    items: list[ast.Statement] = field(factory=list)
    orphans: list[ast.Statement] = field(factory=list)


@define
class _Copies:
    """Number of statements expanded from components so far."""

    made: int = 0

    def too_many(self, more: int, node: ast.Node, report: Report) -> bool:
        """Count more statements; past the limit, report it once and return True."""
        before, self.made = self.made, self.made + more
        if before <= MAX_COPIES < self.made:
            message = f"components expand to more than {MAX_COPIES} statements"
            report.error("DL072", message, node)
        return self.made > MAX_COPIES


def _instance(
    init: ast.Init, scope: _Scope, binding: Mapping[str, str], report: Report, depth: int, copies: _Copies
) -> _Content:
    if copies.too_many(1, init, report):
        return _Content()
    if depth >= MAX_DEPTH:
        report.error("DL072", f"component instantiation is nested more than {MAX_DEPTH} deep", init)
        return _Content()
    name = binding.get(init.component.name, init.component.name)
    found = scope.find(name)
    if found is None:
        report.error("DL070", f"undefined component `{name}`", init.component)
        return _Content()
    component, home = found
    active = _bound(component, init.component, binding, report)
    if active is None:
        return _Content()
    content = _Content()
    _collect(component, active, home, set(), content, report, depth, copies)
    if copies.too_many(len(content.items) + len(content.orphans), init, report):
        return _Content()
    content.items = _without_redefined_types(component, content.items, report)
    return _renamed_content(content, init.name)


def _bound(
    component: ast.Component, use: ast.ComponentType, binding: Mapping[str, str], report: Report
) -> dict[str, str] | None:
    formal, actual = component.type.params, use.params
    if len(formal) != len(actual):
        report.error(
            "DL071",
            f"component `{component.type.name}` takes {len(formal)} type parameter(s), {len(actual)} given",
            use,
            Label(component.type.pos, component.type.end, "declared here"),
        )
        return None
    return dict(binding) | {f: binding.get(a, a) for f, a in zip(formal, actual, strict=True)}


def _collect(
    component: ast.Component,
    binding: Mapping[str, str],
    scope: _Scope,
    overridden: set[str],
    content: _Content,
    report: Report,
    depth: int,
    copies: _Copies,
    trail: tuple[str, ...] = (),
) -> None:
    """Collect all declarations of `component` and its bases, bases first."""
    if component.type.name in trail:
        return  # a cycle of inheritance, reported by _check_components
    if copies.too_many(1 + len(component.items) + len(content.items) // 8, component, report):
        return
    inner = _inner_scope(component, scope)
    for base in component.bases:
        found = scope.find(binding.get(base.name, base.name))
        if found is None:
            continue
        parent, home = found
        active = _bound(parent, base, binding, report)
        if active is None:
            continue
        dropped = overridden | {item.name for item in component.items if isinstance(item, ast.Override)}
        _collect(parent, active, home, dropped, content, report, depth, copies, (*trail, component.type.name))
    for item in component.items:
        if isinstance(item, ast.Init):
            nested = _instance(item, inner, binding, report, depth + 1, copies)
            content.items += nested.items
            content.orphans += nested.orphans
    _add_local(component, binding, overridden, content)


def _add_local(
    component: ast.Component, binding: Mapping[str, str], overridden: set[str], content: _Content
) -> None:
    local = [i for i in component.items if not isinstance(i, ast.Component | ast.Init | ast.Override)]
    content.items += [_with_types(i, binding) for i in local if not _heads(i)]
    declared = _declared(content.items, ast.RelationDecl)
    for item in local:
        heads = _heads(item)
        if not heads or heads[0].split(".")[0] in overridden:
            continue
        target = content.items if heads[0] in declared else content.orphans
        target.append(_with_types(item, binding))
    found = [o for o in content.orphans if _heads(o)[0] in declared]
    content.orphans = [o for o in content.orphans if _heads(o)[0] not in declared]
    content.items += found


def _heads(item: ast.Statement) -> list[str]:
    match item:
        case ast.Clause(heads=heads):
            return [h.name for h in heads]
        case ast.Subsumption(dominated=head):
            return [head.name]
        case ast.FactLine(name=name):
            return [name]
        case _:
            return []


def _declared(items: Iterable[ast.Statement], kind: type) -> set[str]:
    out: set[str] = set()
    for item in items:
        if isinstance(item, ast.RelationDecl) and kind is ast.RelationDecl:
            out |= {n.name for n in item.names}
        elif isinstance(item, ast.TypeDecl) and kind is ast.TypeDecl:
            out.add(item.name)
    return out


# ── renaming ─────────────────────────────────────────────────────────────────────────────────


def _renamed_content(content: _Content, instance: str) -> _Content:
    declared = _declared(content.items, ast.RelationDecl)
    auxiliary = {name for name in auxiliary_names(content.items) if name.rpartition(".")[0] in declared}
    relations = {n: f"{instance}.{n}" for n in declared | auxiliary}
    types = {n: f"{instance}.{n}" for n in _declared(content.items, ast.TypeDecl)}
    return _Content(
        [_renamed(i, relations, types) for i in content.items],
        [_renamed(o, relations, types) for o in content.orphans],
    )


def _with_types(item: ast.Statement, binding: Mapping[str, str]) -> ast.Statement:
    return _renamed(item, {}, binding)


def _renamed(node: _N, relations: Mapping[str, str], types: Mapping[str, str]) -> _N:
    """A copy of `node` in which names of relations and types are replaced."""

    def go(node: Any) -> Any:
        match node:
            case ast.Atom():
                return evolve(rebuilt(node, go), name=relations.get(node.name, node.name))
            case ast.FactLine():
                return evolve(node, name=relations.get(node.name, node.name))
            case ast.Cast():
                return evolve(rebuilt(node, go), type_name=types.get(node.type_name, node.type_name))
            case ast.Attribute():
                return evolve(node, type_name=types.get(node.type_name, node.type_name))
            case ast.RelationDecl():
                names = [evolve(n, name=relations.get(n.name, n.name)) for n in node.names]
                return evolve(node, names=names, attributes=[go(a) for a in node.attributes])
            case ast.TypeDecl():
                bases = [evolve(b, name=types.get(b.name, b.name)) for b in node.bases]
                return evolve(node, name=types.get(node.name, node.name), bases=bases)
            case ast.Directive():
                renamed = [evolve(r, name=relations.get(r.name, r.name)) for r in node.relations]
                return evolve(node, relations=renamed)
            case _:
                return rebuilt(node, go)

    made: _N = go(node)
    return made


# ── checks ───────────────────────────────────────────────────────────────────────────────────


def _components(items: Iterable[ast.Statement], report: Report) -> dict[str, ast.Component]:
    out: dict[str, ast.Component] = {}
    for item in items:
        if isinstance(item, ast.Component):
            first = out.setdefault(item.type.name, item)
            if first is not item:
                report.error(
                    "DL020",
                    f"component `{item.type.name}` is declared twice",
                    item.type,
                    Label(first.type.pos, first.type.end, "first declared here"),
                )
    return out


def _check_components(
    items: Iterable[ast.Statement], scope: _Scope, report: Report, params: frozenset[str] = frozenset()
) -> None:
    """Check that used components exist, get their parameters, and have no cycle."""
    for item in items:
        match item:
            case ast.Init(component=use):
                _check_use(use, scope, report, params)
            case ast.Component():
                visible = params | set(item.type.params)
                for base in item.bases:
                    _check_use(base, scope, report, visible)
                    found = scope.find(base.name)
                    if found is not None and any(c.type.name == item.type.name for c in _lineage([found])):
                        report.error("DL072", f"component `{item.type.name}` inherits from itself", item.type)
                _components(item.items, report)
                _check_components(item.items, _inner_scope(item, scope), report, visible)
                _check_overrides(item, scope, report)


def _check_use(use: ast.ComponentType, scope: _Scope, report: Report, params: frozenset[str]) -> None:
    found = scope.find(use.name)
    if found is None:
        if use.name not in params:
            report.error("DL070", f"undefined component `{use.name}`", use)
    else:
        _bound(found[0], use, {}, report)


def _check_overrides(item: ast.Component, scope: _Scope, report: Report) -> None:
    """Check that each overridden relation is declared `overridable` in a base."""
    qualified: dict[str, tuple[bool, ast.Name]] = {}
    for current in _lineage(_bases(item, scope)):
        for decl in current.items:
            if isinstance(decl, ast.RelationDecl):
                overridable = any(q.name == "overridable" for q in decl.qualifiers)
                qualified |= {n.name: (overridable, n) for n in decl.names}
    own = _declared(item.items, ast.RelationDecl)
    for override in item.items:
        if isinstance(override, ast.Override):
            known = qualified.get(override.name)
            here = Label(override.pos, override.end, "overridden here")
            name = item.type.name
            if override.name in own:
                message = f"component `{name}` overrides `{override.name}`, which it declares itself"
                report.error("DL073", message, item.type, here)
            elif known is not None and not known[0]:
                report.error(
                    "DL073",
                    f"component `{name}` overrides `{override.name}`, which is not overridable",
                    item.type,
                    here,
                    Label(known[1].pos, known[1].end, "declared here"),
                    hint="add `overridable` to its declaration",
                )


def _without_redefined_types(
    component: ast.Component, items: list[ast.Statement], report: Report
) -> list[ast.Statement]:
    """Drop and report types that a base of the instance already declares.

    `dsl.declarations` does the same for relations.
    """
    seen: dict[str, ast.TypeDecl] = {}
    out: list[ast.Statement] = []
    for item in items:
        if isinstance(item, ast.TypeDecl) and seen.setdefault(item.name, item) is not item:
            first = seen[item.name]
            labels = (Label(first.pos, first.end, "first declared here"), Label(item.pos, item.end, "again here"))
            report.error("DL020", f"type `{item.name}` is declared twice", component.type, *labels)
        else:
            out.append(item)
    return out


def _check_clashes(statements: list[ast.Statement], report: Report) -> None:
    """Check that top-level types, relations, components and instances share no name."""
    names: dict[str, Any] = {}
    for item in statements:
        if isinstance(item, ast.RelationDecl):
            names |= {n.name: n for n in item.names}
        elif isinstance(item, ast.TypeDecl):
            names[item.name] = item
    later: list[tuple[str, str, Any]] = []
    later += [("component", s.type.name, s.type) for s in statements if isinstance(s, ast.Component)]
    later += [("instance", s.name, s) for s in statements if isinstance(s, ast.Init)]
    for what, name, node in later:
        first = names.setdefault(name, node)
        if first is not node and type(first) is not type(node):
            label = Label(first.pos, first.end, "first declared here")
            report.error("DL020", f"{what} `{name}` has the name of something else", node, label)


def _check_instances(statements: Iterable[ast.Statement], report: Report) -> set[int]:
    """Report instances with the name of an earlier one, and return them."""
    seen: dict[str, ast.Init] = {}
    twice: set[int] = set()
    for statement in statements:
        if isinstance(statement, ast.Init):
            first = seen.setdefault(statement.name, statement)
            if first is not statement:
                twice.add(id(statement))
                label = Label(first.pos, first.end, "first instance")
                report.error("DL074", f"component instance `{statement.name}` is made twice", statement, label)
    return twice

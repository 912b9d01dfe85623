"""The declarations of a program: relations, types and functors, each checked."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from attrs import define, field

from everlog.core.program import Functor, Kind, Value
from everlog.core.program.program import Lattice
from everlog.dsl import ast
from everlog.dsl.checks.types import PRIMITIVES, Types, constant_of, declared_types
from everlog.dsl.diagnostics import Label, Report

_STRUCTURES = ("brie", "btree", "btree_delete", "eqrel")


@define
class Signature:
    """A declared relation: kinds and (canonical) types of its columns, its qualifiers."""

    name: str
    node: ast.Name
    attributes: list[ast.Attribute]
    kinds: list[Kind]
    types: list[str]
    qualifiers: frozenset[str]
    choices: list[ast.Choice]
    sound: bool = True
    auxiliary_of: str = ""
    lattices: tuple[tuple[int, Lattice], ...] = ()
    view: bool = False
    tests: str = ""  # the relation whose sums it tests, in their own recursion

    @property
    def arity(self) -> int:
        return len(self.attributes)

    @property
    def inline(self) -> bool:
        return "inline" in self.qualifiers and "no_inline" not in self.qualifiers

    @property
    def unfolded(self) -> bool:
        """Whether rules that read the relation have the bodies of its rules instead."""
        return self.inline or self.view


@define
class Declarations:
    types: Types
    relations: dict[str, Signature] = field(factory=dict)
    functors: dict[str, Functor] = field(factory=dict)
    lattices: dict[str, Lattice] = field(factory=dict)
    directives: list[ast.Directive] = field(factory=list)
    pragmas: dict[str, str] = field(factory=dict)

    def similar(self, name: str) -> str:
        """A hint for a relation that does not exist."""
        close = get_close_matches(name, self.relations, 1)
        return f"did you mean `{close[0]}`?" if close else f"declare it: .decl {name}(…)"


def declarations(statements: Iterable[ast.Statement], report: Report) -> Declarations:
    """All declarations; errors are reported and unsound ones are marked."""
    statements = list(statements)
    out = Declarations(declared_types(statements, report))
    for statement in statements:
        match statement:
            case ast.RelationDecl():
                _relation(statement, out, report)
            case ast.FunctorDecl():
                _functor(statement, out, report)
            case ast.Pragma(key=key, value=value):
                out.pragmas[key] = value
            case ast.Directive():
                out.directives.append(statement)
            case _:
                pass
    for statement in statements:
        if isinstance(statement, ast.Lattice):
            declare_lattice(statement, out, report)
    for signature in out.relations.values():
        find_lattices(signature, out, report)
    for directive in out.directives:
        for named in directive.relations:
            if directive.kind == "view" and named.name in out.relations:
                out.relations[named.name].view = True
    for name in out.pragmas.get("inline-exclude", "").split(","):
        if name.strip() in out.relations:
            out.relations[name.strip()].qualifiers |= {"no_inline"}
    for name, signature in out.relations.items():
        if name in out.types.canonical and name not in PRIMITIVES:
            report.error("DL020", f"`{name}` is declared both as a type and as a relation", signature.node)
    return out


def _relation(decl: ast.RelationDecl, out: Declarations, report: Report) -> None:
    if decl.delta_of is not None:
        report.error("DL092", "`debug_delta` is not supported", decl)
        return
    kinds: list[Kind] = []
    types: list[str] = []
    sound = True
    seen: dict[str, ast.Attribute] = {}
    for attribute in decl.attributes:
        first = seen.setdefault(attribute.name, attribute)
        if first is not attribute:
            label = Label(first.pos, first.end, "first here")
            report.error("DL026", f"column `{attribute.name}` is declared twice", attribute, label)
        type_name = attribute.type_name.removesuffix("<>")
        if type_name not in out.types:
            if type_name not in out.types.declared:
                hint = out.types.suggestion(type_name)
                message = f"undefined type `{type_name}` of column `{attribute.name}`"
                report.error("DL022", message, attribute, hint=hint)
            sound = False
        if sound:
            kinds.append(out.types.kind(type_name))
            types.append(out.types.canonical[type_name])
    _qualifiers(decl, report)
    _choices(decl, seen, report)
    for name in decl.names:
        signature = Signature(
            name.name,
            name,
            decl.attributes,
            kinds if sound else [],
            types if sound else [],
            frozenset(q.name for q in decl.qualifiers),
            decl.choices,
            sound,
        )
        first_decl = out.relations.setdefault(name.name, signature)
        if first_decl is not signature:
            label = Label(first_decl.node.pos, first_decl.node.end, "first declared here")
            report.error("DL020", f"relation `{name.name}` is declared twice", name, label)
        if "eqrel" in signature.qualifiers:
            _equivalence(signature, name, report)
        if "btree_delete" in signature.qualifiers and not decl.attributes:
            report.error("DL055", f"relation `{name.name}` is `btree_delete` but has no columns", name)
        _deprecated_io(decl, name, out, report)


def _qualifiers(decl: ast.RelationDecl, report: Report) -> None:
    seen: dict[str, ast.Qualifier] = {}
    structure: ast.Qualifier | None = None
    for qualifier in decl.qualifiers:
        if seen.setdefault(qualifier.name, qualifier) is not qualifier:
            report.error("DL027", f"qualifier `{qualifier.name}` is given twice", qualifier)
        elif qualifier.name in _STRUCTURES:
            if structure is not None:
                report.error("DL027", f"`{qualifier.name}` and `{structure.name}` exclude each other", qualifier)
            structure = qualifier


def _choices(decl: ast.RelationDecl, columns: dict[str, ast.Attribute], report: Report) -> None:
    for choice in decl.choices:
        for key in choice.keys:
            if key.name not in columns:
                report.error("DL028", f"`{key.name}` of the choice-domain is no column of the relation", choice)


def _equivalence(signature: Signature, name: ast.Name, report: Report) -> None:
    if signature.arity != 2:
        report.error("DL029", f"equivalence relation `{name.name}` is not binary", name)
    elif signature.sound and signature.attributes[0].type_name != signature.attributes[1].type_name:
        report.error("DL029", f"the columns of equivalence relation `{name.name}` have different types", name)


def _deprecated_io(decl: ast.RelationDecl, name: ast.Name, out: Declarations, report: Report) -> None:
    for qualifier in decl.qualifiers:
        if qualifier.name in ("input", "output", "printsize"):
            report.warn(
                "DL093",
                f"qualifier `{qualifier.name}` is old style",
                qualifier,
                hint=f"write .{qualifier.name} {name.name}",
            )
            out.directives.append(ast.Directive(qualifier.name, [name], pos=qualifier.pos, end=qualifier.end))


def _functor(decl: ast.FunctorDecl, out: Declarations, report: Report) -> None:
    sound = True
    for attribute in (*decl.params, decl.result):
        if attribute.type_name not in out.types:
            message = f"undefined type `{attribute.type_name}` of functor `{decl.name}`"
            report.error("DL022", message, attribute, hint=out.types.suggestion(attribute.type_name))
            sound = False
    if decl.name in out.functors:
        report.error("DL020", f"functor `{decl.name}` is declared twice", decl)
    elif sound:
        params = tuple(out.types.kind(p.type_name) for p in decl.params)
        out.functors[decl.name] = Functor(decl.name, params, out.types.kind(decl.result.type_name))


# ── lattices ─────────────────────────────────────────────────────────────────────────────────


def declare_lattice(statement: ast.Lattice, out: Declarations, report: Report) -> None:
    """Check a `.lattice`: its type, its functors, its constants."""
    name = statement.name
    if name not in out.types:
        message = f"lattice `{name}` has no type of this name"
        report.error("DL091", message, statement, hint=f"declare it: .type {name} <: symbol")
        return
    if name in out.lattices:
        report.error("DL020", f"lattice `{name}` is declared twice", statement)
        return
    kind, functors, constants = out.types.kind(name), dict[str, str](), dict[str, Value]()
    before = len(report.items)
    for operator, term in statement.operators:
        if operator in _CONSTANTS:
            value = constant_of(term, kind)
            if value is None:
                report.error("DL091", f"`{operator}` of lattice `{name}` is no constant of its type", term)
            else:
                constants[operator] = value
        elif operator in _FUNCTORS:
            functor = out.functors.get(term.name) if isinstance(term, ast.UserFunctor) else None
            result = Kind.NUMBER if operator == "Leq" else kind
            if functor is None or functor.params != (kind, kind) or functor.result is not result:
                kinds = f"({name}, {name}):{'number' if operator == 'Leq' else name}"
                hint = f"declare it: .functor {operator.lower()}{kinds}"
                report.error("DL091", f"`{operator}` of lattice `{name}` is no functor {kinds}", term, hint=hint)
            else:
                functors[operator] = functor.name
        else:
            hint = f"there are {', '.join((*_CONSTANTS, *_FUNCTORS))}"
            report.error("DL091", f"lattice `{name}` has no operator `{operator}`", statement, hint=hint)
    if "Lub" not in functors and len(report.items) == before:
        hint = f"add `Lub -> @lub(_, _)`, a functor that joins two values of `{name}`"
        report.error("DL091", f"lattice `{name}` has no `Lub`", statement, hint=hint)
    if len(report.items) == before:
        glb, leq = functors.get("Glb", ""), functors.get("Leq", "")
        found = Lattice(name, functors["Lub"], constants.get("Bottom"), glb, leq, constants.get("Top"))
        out.lattices[name] = found


_CONSTANTS = ("Bottom", "Top")
_FUNCTORS = ("Lub", "Glb", "Leq")


def find_lattices(signature: Signature, out: Declarations, report: Report) -> None:
    """Note the lattice columns of a relation."""
    columns = [(n, a) for n, a in enumerate(signature.attributes) if a.type_name.endswith("<>")]
    if not columns:
        return
    found = []
    for n, attribute in columns:
        name = attribute.type_name.removesuffix("<>")
        if name in out.lattices:
            found.append((n, out.lattices[name]))
        elif signature.sound:
            hint = f"declare it: .lattice {name}<> {{ Bottom -> …, Lub -> @lub(_, _) }}"
            report.error("DL091", f"column `{attribute.name}`: there is no lattice `{name}`", attribute, hint=hint)
    signature.lattices = tuple(found)
    wrong: list[str] = [word for word in ("eqrel", "inline") if word in signature.qualifiers]
    wrong += ["choice-domain"] if signature.choices else []
    if wrong:
        message = f"`{signature.name}` has a lattice column and is declared `{wrong[0]}`"
        report.error("DL091", message, signature.node, hint=f"declare it without `{wrong[0]}`")

"""Declared types: the kind of each, and which is a subtype of which.

A program's types form a small order below the four primitive ones: `.type A <: number` puts A below
number, `.type U = A | B` puts A and B below U, `.type S = A` is another name of A.  A variable that
stands in several columns has every type that is below all of theirs.  Two types that are not
comparable have common subtypes only if both are unions: the members that they share.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from attrs import define, field

from everlog.core.program import Kind, Value
from everlog.core.program.strong import strong_components
from everlog.dsl import ast
from everlog.dsl.diagnostics import Label, Report
from everlog.dsl.walk import MAX_DEPTH

PRIMITIVES: dict[str, Kind] = {kind.value: kind for kind in Kind}

# Names that other languages give to the primitive types.
_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("string", "str", "text", "varchar", "char", "istring", "bytes", "uuid"), "symbol"),
    **dict.fromkeys(("int", "integer", "long", "bigint", "smallint", "int32", "int64", "i32", "i64"), "number"),
    **dict.fromkeys(("uint", "uint32", "uint64", "u32", "u64"), "unsigned"),
    **dict.fromkeys(("double", "real", "float32", "float64", "f32", "f64"), "float"),
    **dict.fromkeys(("bool", "boolean"), "number"),
}


@define
class Types:
    """The order of types; `canonical` resolves aliases.

    >>> types = Types()
    >>> types.is_subtype("number", "number"), types.kind("symbol")
    (True, <Kind.SYMBOL: 'symbol'>)
    """

    canonical: dict[str, str] = field(factory=lambda: {name: name for name in PRIMITIVES})
    kinds: dict[str, Kind] = field(factory=lambda: dict(PRIMITIVES))
    supertypes: dict[str, frozenset[str]] = field(factory=lambda: {name: frozenset({name}) for name in PRIMITIVES})
    unions: dict[str, list[str]] = field(factory=dict)
    declared: frozenset[str] = frozenset()  # includes unsound ones, which were reported
    _meets: dict[tuple[str, str], frozenset[str]] = field(factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.canonical

    def kind(self, name: str) -> Kind:
        return self.kinds[self.canonical[name]]

    def is_subtype(self, lower: str, upper: str) -> bool:
        return self.canonical[upper] in self.supertypes[self.canonical[lower]]

    def meet(self, a: str, b: str) -> frozenset[str]:
        """The types below both (canonical names): the lower one, or shared members.

        Cost: a lookup after the first time.
        """
        if (a, b) not in self._meets:
            if b in self.supertypes[a]:
                met = frozenset((a,))
            elif a in self.supertypes[b]:
                met = frozenset((b,))
            else:
                met = self._shared(a, b) if b in self.unions else frozenset()
            self._meets[a, b] = met
        return self._meets[a, b]

    def meet_all(self, a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
        return frozenset(m for s in a for t in b for m in self.meet(s, t))

    def _shared(self, a: str, b: str) -> frozenset[str]:
        """The members of union `a`, at every depth, that are below `b`."""
        out: set[str] = set()
        seen: set[str] = set()
        todo = [a]
        while todo:
            for member in self.unions.get(todo.pop(), ()):
                if b in self.supertypes[member]:
                    out.add(member)
                elif member not in seen:
                    seen.add(member)
                    todo.append(member)
        return frozenset(out)

    def only_unions(self, types: frozenset[str] | None) -> bool:
        """Whether all known types are unions, which arithmetic does not take."""
        return bool(types) and bool(self.unions) and all(t in self.unions for t in types or ())

    def suggestion(self, name: str) -> str:
        return suggested_type(name, self.canonical)


def suggested_type(name: str, known: Iterable[str]) -> str:
    """A hint for an undefined type: a type of this meaning, or of a similar name.

    >>> suggested_type("string", PRIMITIVES), suggested_type("nubmer", PRIMITIVES)
    ('did you mean `symbol`?', 'did you mean `number`?')
    """
    names = list(known)
    close = get_close_matches(name, names, 1) or get_close_matches(name.lower(), names, 1)
    meant = _ELSEWHERE.get(name.lower())
    if meant is None and not close:
        meant = next((_ELSEWHERE[word] for word in get_close_matches(name.lower(), _ELSEWHERE, 1, 0.75)), None)
    if meant is None:
        return f"did you mean `{close[0]}`?" if close else "declare it with `.type`"
    how = "; 1 for true, 0 for false" if name.lower().startswith("bool") else ""
    return f"did you mean `{meant}`?{how}"


def declared_types(statements: Iterable[ast.Statement], report: Report) -> Types:
    """The types of a program; unsound declarations are reported and left out."""
    decls: dict[str, ast.TypeDecl] = {}
    for decl in statements:
        if not isinstance(decl, ast.TypeDecl):
            continue
        if decl.name in PRIMITIVES:
            report.error("DL021", f"`{decl.name}` is a type of the language and cannot be declared again", decl)
        elif decl.form == "nonflat":
            report.error(
                "DL090",
                f"`{decl.name}` is a record or algebraic type; relations are flat here",
                decl,
                hint="give each field a column of its own, or a relation with an id and one column per field",
            )
            decls.setdefault(decl.name, decl)
        elif (first := decls.setdefault(decl.name, decl)) is not decl:
            label = Label(first.pos, first.end, "first declared here")
            report.error("DL020", f"type `{decl.name}` is declared twice", decl, label)
    return _ordered(decls, report)


def _ordered(decls: dict[str, ast.TypeDecl], report: Report) -> Types:
    types = Types(declared=frozenset(decls))
    sound = {n: d for n, d in decls.items() if _defined(d, decls, report)}
    depth = dict.fromkeys(PRIMITIVES, 0)
    groups = strong_components(sound, lambda name: [b.name for b in sound[name].bases if b.name in sound])
    cyclic = {name for group in groups for name in group if _is_cyclic(group, sound)}
    for name in [name for name in sound if name in cyclic]:
        report.error("DL023", f"type `{name}` is defined by itself", sound[name])
    for (name,) in [group for group in groups if cyclic.isdisjoint(group)]:  # dependencies first
        decl = sound[name]
        if all(b.name in types for b in decl.bases):
            depth[name] = 1 + max((depth[b.name] for b in decl.bases), default=0)
            if depth[name] <= MAX_DEPTH:
                _add(decl, types, report)
            elif depth[name] == MAX_DEPTH + 1:
                report.error("DL016", f"more than {MAX_DEPTH} types defined by each other", decl)
    _close_unions(types)
    return types


def _is_cyclic(group: list[str], decls: dict[str, ast.TypeDecl]) -> bool:
    return len(group) > 1 or any(b.name == group[0] for b in decls[group[0]].bases)


def _defined(decl: ast.TypeDecl, decls: dict[str, ast.TypeDecl], report: Report) -> bool:
    sound = True
    for base in decl.bases:
        if base.name not in PRIMITIVES and base.name not in decls:
            hint = suggested_type(base.name, [*PRIMITIVES, *decls])
            report.error(
                "DL022", f"undefined type `{base.name}` in the definition of `{decl.name}`", decl, hint=hint
            )
            sound = False
    return sound and decl.form != "nonflat"


def _add(decl: ast.TypeDecl, types: Types, report: Report) -> None:
    kinds = {types.kind(b.name) for b in decl.bases}
    if len(kinds) > 1:
        listed = ", ".join(sorted(kinds))
        report.error(
            "DL024", f"union type `{decl.name}` mixes {listed}", decl, hint="all members must be of one kind"
        )
        return
    if decl.form == "equals" and len(decl.bases) == 1:
        types.canonical[decl.name] = types.canonical[decl.bases[0].name]
        return
    if decl.form == "subset" and (base := types.canonical[decl.bases[0].name]) in types.unions:
        report.error("DL025", f"subset type `{decl.name}` cannot be derived from the union `{base}`", decl)
        return
    types.canonical[decl.name] = decl.name
    types.kinds[decl.name] = kinds.pop()
    types.supertypes[decl.name] = frozenset({decl.name})
    if decl.form == "equals":
        types.unions[decl.name] = [types.canonical[b.name] for b in decl.bases]
    else:
        types.supertypes[decl.name] |= types.supertypes[types.canonical[decl.bases[0].name]]


def _close_unions(types: Types) -> None:
    """Put the members of each union, and their subtypes, below it.

    A union is itself below each type that all of its members are below.
    """
    if not types.unions:
        return
    unions_of: dict[str, list[str]] = {}  # a member → its unions
    for union, members in types.unions.items():
        for member in dict.fromkeys(members):
            unions_of.setdefault(member, []).append(union)
    subsets: dict[str, list[str]] = {}
    for name, supers in types.supertypes.items():
        for upper in supers:
            subsets.setdefault(upper, []).append(name)
    above: dict[str, set[str]] = {name: set(supers) for name, supers in types.supertypes.items()}
    for upper in types.supertypes:
        below: set[str] = set()
        missing: dict[str, int] = {}  # number of members of a union not yet known to be below
        todo = [upper]
        while todo:
            name = todo.pop()
            if name in below:
                continue
            below.add(name)
            above[name].add(upper)
            todo += [*subsets.get(name, ()), *types.unions.get(name, ())]
            for union in unions_of.get(name, ()):
                missing[union] = missing.get(union, len(set(types.unions[union]))) - 1
                if not missing[union]:
                    todo.append(union)
    types.supertypes.update({name: frozenset(supers) for name, supers in above.items()})


def constant_of(term: ast.Term, kind: Kind) -> Value | None:
    """The value of a literal of a kind; None for anything else."""
    match term, kind:
        case ast.String(value=value), Kind.SYMBOL:
            return value
        case ast.Float(text=text), Kind.FLOAT:
            return float(text)
        case ast.Number(text=text), Kind.NUMBER | Kind.FLOAT if len(text) < 20:
            return float(int(text, 0)) if kind is Kind.FLOAT else int(text, 0)
        case ((ast.Number(text=text) | ast.Unsigned(text=text)), Kind.UNSIGNED) if len(text) < 20:
            return int(text.rstrip("u"), 0)
    return None

"""Infers kinds and types of a clause's terms from the columns they stand in.

*Kind*: is a term a number, an unsigned, a float or a symbol?  Columns decide it for variables; a
bare `1` takes the kind of the term it meets; an operator takes the kind of its operands.  *Type*:
is a variable of a declared subtype?  A positive atom gives its column's type to a variable; several
columns give the types below all of theirs; a head or a negated atom only requires a type.  Results
of functors and constants fit every type of their kind.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field

from everlog.core.program import Kind
from everlog.dsl import ast
from everlog.dsl.checks.clauses import LEAVES, Hoisted, Literal
from everlog.dsl.checks.declarations import Declarations, Signature
from everlog.dsl.diagnostics import Diagnostic, Label, Report

# Infix operators; the others are written as calls, or before one operand.
INFIX = frozenset("+ - * / ^ % band bor bxor bshl bshr bshru land lor lxor".split())

NUMBER, UNSIGNED, FLOAT, SYMBOL = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
_INTEGERS = frozenset({NUMBER, UNSIGNED})
_NUMERIC = frozenset({NUMBER, UNSIGNED, FLOAT})

# name → (kinds the operands may have, number of operands or None for "at least one")
OVERLOADED: dict[str, tuple[frozenset[Kind], tuple[int, int]]] = {
    "+": (frozenset(Kind), (2, 2)),  # of symbols: concatenation
    **dict.fromkeys(("-", "*", "/", "^"), (_NUMERIC, (2, 2))),
    **dict.fromkeys(
        ("%", "band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"), (_INTEGERS, (2, 2))
    ),
    **dict.fromkeys(("bnot", "lnot"), (_INTEGERS, (1, 1))),
    "neg": (frozenset({NUMBER, FLOAT}), (1, 1)),
    **{op: (frozenset(Kind), (1, 10_000)) for op in ("min", "max")},
    "range": (_NUMERIC, (2, 3)),
}
# name → (kinds of the operands, kind of the result); None: any kind
FIXED: dict[str, tuple[tuple[Kind | None, ...], Kind]] = {
    "strlen": ((SYMBOL,), NUMBER),
    "substr": ((SYMBOL, NUMBER, NUMBER), SYMBOL),
    "ord": ((None,), NUMBER),
    "to_string": ((None,), SYMBOL),
    "to_number": ((None,), NUMBER),
    "to_unsigned": ((None,), UNSIGNED),
    "to_float": ((None,), FLOAT),
    "itof": ((NUMBER,), FLOAT),
    "itou": ((NUMBER,), UNSIGNED),
    "utoi": ((UNSIGNED,), NUMBER),
    "utof": ((UNSIGNED,), FLOAT),
    "ftoi": ((FLOAT,), NUMBER),
    "ftou": ((FLOAT,), UNSIGNED),
}
STRING_TESTS = frozenset({"match", "contains", "not_match", "not_contains"})


@define
class Inference:
    """The kinds of one clause: of variables by name, of other terms by identity."""

    declarations: Declarations
    report: Report
    variables: dict[str, Kind] = field(factory=dict)
    types: dict[str, frozenset[str]] = field(factory=dict)
    first: dict[str, ast.Name] = field(factory=dict)
    reported: set[str] = field(factory=set)
    changed: bool = False

    def _all_known(self, literals: list[Literal], atoms: list[ast.Atom]) -> bool:
        """Whether positive atoms decide every variable's kind, and no types are shared."""
        terms: list[ast.Term] = [a for x in atoms for a in x.args]
        for literal in literals:
            match literal:
                case ast.Atom(args=args) | ast.Not(formula=ast.Atom(args=args)):
                    terms += args
                case ast.Constraint(op=op, left=left, right=right) if op != "=":
                    both = isinstance(left, ast.Name) and isinstance(right, ast.Name)
                    if both and self.types.get(left.name) != self.types.get(right.name):  # type: ignore[union-attr]
                        return False
                    terms += (left, right)
                case _:
                    return False
        variables = self.variables
        for term in terms:
            if term.__class__ is ast.Name:
                if term.name not in variables:
                    return False
            elif term.__class__ is ast.Parameter:
                if term.variable not in variables:
                    return False
            elif term.__class__ not in LEAVES:
                return False
        return True

    # ── positive atoms give kinds and types ──────────────────────────────────────────────────

    def _source(self, atom: ast.Atom, signature: Signature | None) -> bool:
        """Take kinds and types from a positive atom; True if all arguments are variables."""
        if signature is None or len(signature.kinds) != len(atom.args):
            return False
        simple = True
        for arg, kind, type_name in zip(atom.args, signature.kinds, signature.types, strict=True):
            if arg.__class__ is ast.Name:
                name = arg.name
                known = self.variables.get(name)
                if known is None:
                    self.variables[name] = kind
                    self.types[name] = frozenset((type_name,))
                    self.first[name] = arg
                elif known is not kind:
                    self._mismatch(arg, known, kind)
                else:
                    self._narrow(arg, type_name)
            elif arg.__class__ is not ast.Underscore:
                simple = False
        return simple

    def _narrow(self, name: ast.Name, type_name: str) -> None:
        types = self.types.get(name.name)
        if types is None:
            self.types[name.name] = frozenset((type_name,))
        elif types != {type_name}:
            met = self.declarations.types.meet_all(types, frozenset((type_name,)))
            if not met and name.name not in self.reported:
                self.reported.add(name.name)
                others = " and ".join(f"`{t}`" for t in sorted(types))
                self._report_name(
                    name,
                    "DL031",
                    f"no type fits variable `{shown(name)}`: it is {others} and `{type_name}`",
                    "compare the columns' declared types; one must be a subtype of the other",
                )
            self.types[name.name] = met

    def _mismatch(self, name: ast.Name, known: Kind, kind: Kind) -> None:
        if name.name in self.reported:
            return
        self.reported.add(name.name)
        message = f"variable `{shown(name)}` is {article(known)} and {article(kind)}"
        self._report_name(name, "DL030", message, "the columns in which it stands must be of one kind")

    def _report_name(self, name: ast.Name, code: str, message: str, hint: str) -> None:
        first = self.first.get(name.name)
        labels: tuple[Label, ...] = ()
        if first is not None and first.pos != name.pos:
            labels = (Label(first.pos, first.end, "first used here"),)
        self.report.items.append(Diagnostic(code, message, name.pos, name.end, labels, hint))

    # ── everything else ──────────────────────────────────────────────────────────────────────

    def _literals(self, body: list[Literal]) -> None:
        for literal in body:
            match literal:
                case ast.Atom():
                    self._columns(literal)
                case ast.Not(formula=ast.Atom() as atom):
                    self._columns(atom)
                case ast.Constraint():
                    self._constraint(literal)
                case Hoisted():
                    self._hoisted(literal)

    def _columns(self, atom: ast.Atom) -> None:
        signature = self.declarations.relations.get(atom.name)
        if signature is not None and len(signature.kinds) == len(atom.args):
            for arg, kind in zip(atom.args, signature.kinds, strict=True):
                self.push(arg, kind)

    def _constraint(self, constraint: ast.Constraint) -> None:
        if constraint.op in STRING_TESTS:
            self.push(constraint.left, SYMBOL)
            self.push(constraint.right, SYMBOL)
            self._share_types(constraint.left, constraint.right)
            return
        kind = self.kind(constraint.left) or self.kind(constraint.right)
        if kind is None:
            self.kind(constraint.left)
            return
        self.push(constraint.left, kind)
        self.push(constraint.right, kind)
        self._share_types(constraint.left, constraint.right)

    def type_of(self, term: ast.Term) -> frozenset[str] | None:
        """The types of a variable or a cast; None if it fits every type of its kind."""
        if isinstance(term, ast.Name):
            return self.types.get(term.name)
        if isinstance(term, ast.Cast):
            name = self.declarations.types.canonical.get(term.type_name)
            return None if name is None else frozenset((name,))
        return None

    def _share_types(self, left: ast.Term, right: ast.Term) -> None:
        a, b = self.type_of(left), self.type_of(right)
        if a is None and b is None:
            return
        shared = a if b is None else b if a is None else a if a == b else self.declarations.types.meet_all(a, b)
        if not shared:
            self._unshared(left, right)
            return
        for side in (left, right):
            if isinstance(side, ast.Name) and self.types.get(side.name) != shared:
                self.types[side.name], self.changed = shared, True

    def _unshared(self, left: ast.Term, right: ast.Term) -> None:
        """Report, once, that the types of two sides have nothing in common."""
        names = {t.name for t in (left, right) if isinstance(t, ast.Name)}
        if names & self.reported or self.type_of(left) == frozenset() or self.type_of(right) == frozenset():
            return
        self.reported |= names
        if isinstance(right, ast.Name):
            left, right = right, left
        if not isinstance(left, ast.Name):
            return  # two casts: reported when terms are verified
        message = f"no type fits both `{shown(right)}` and `{shown(left)}`"
        self._report_name(left, "DL031", message, "convert one of them with as(…, type)")

    def _hoisted(self, hoisted: Hoisted) -> None:
        node = hoisted.node
        if isinstance(node, ast.Functor):
            kind = next((k for a in (hoisted.result, *node.args) if (k := self.kind(a)) is not None), None)
            if kind is not None:
                for term in (hoisted.result, *node.args):
                    self.push(term, kind)
            return
        for literal in hoisted.body:
            if isinstance(literal, ast.Atom):
                self._source(literal, self.declarations.relations.get(literal.name))
        self._literals(hoisted.body)
        if node.start is not None:
            functor = self.declarations.functors.get(node.op[1:])
            if functor is not None and node.target is not None:
                self.push(hoisted.result, functor.result)
                self.push(node.target, functor.params[1] if len(functor.params) > 1 else functor.result)
        elif node.op == "count":
            self.push(hoisted.result, NUMBER)
        elif node.op == "mean":
            self.push(hoisted.result, FLOAT)
        elif node.target is not None:
            kind = self.kind(node.target) or self.variables.get(hoisted.result.name)
            if kind is not None:
                self.push(hoisted.result, kind)
                self.push(node.target, kind)
                if isinstance(node.target, ast.Name) and node.op in ("min", "max", "sum"):
                    self._share_types(hoisted.result, node.target)

    # ── kinds of terms ───────────────────────────────────────────────────────────────────────

    def kind(self, term: ast.Term) -> Kind | None:
        """The kind of a term if it is known; None for a literal that fits several kinds."""
        match term:
            case ast.Name(name=name):
                return self.variables.get(name)
            case ast.Parameter():
                return self.variables.get(term.variable)
            case ast.String():
                return SYMBOL
            case ast.Float():
                return FLOAT
            case ast.Unsigned():
                return UNSIGNED
            case ast.Counter() | ast.IterationCounter():
                return NUMBER
            case ast.Functor(name="cat"):
                for arg in term.args:
                    self.push(arg, SYMBOL)
                return SYMBOL
            case ast.Functor(name=name, args=args) if name in FIXED:
                params, result = FIXED[name]
                for arg, kind in zip(args, params, strict=False):
                    if kind is not None:
                        self.push(arg, kind)
                    else:
                        self.kind(arg)
                return result
            case ast.Functor():
                operands = _operands(term)
                found = next((k for a in operands if (k := self.kind(a)) is not None), None)
                if found is not None:
                    for arg in operands:
                        self.push(arg, found)
                return found
            case ast.UserFunctor(name=name, args=args):
                functor = self.declarations.functors.get(name)
                if functor is None:
                    return None
                for arg, kind in zip(args, functor.params, strict=False):
                    self.push(arg, kind)
                return functor.result
            case ast.Cast(term=inner, type_name=type_name):
                self.kind(inner)
                types = self.declarations.types
                return types.kind(type_name) if type_name in types else None
            case _:
                return None

    def push(self, term: ast.Term, kind: Kind) -> None:
        """Require a kind of a term: decides variables and literals that were open."""
        match term:
            case ast.Name(name=name):
                if name not in self.variables:
                    self.variables[name] = kind
                    self.first.setdefault(name, term)
                    self.changed = True
            case ast.Parameter() if term.variable not in self.variables:
                self.variables[term.variable] = kind
                self.changed = True
            case ast.Functor(name=name) if name not in FIXED and name != "cat":
                for arg in _operands(term):
                    self.push(arg, kind)
            case ast.Functor() | ast.UserFunctor() | ast.Cast():
                self.kind(term)
            case _:
                pass

    def settled(self, term: ast.Term) -> Kind:
        """The kind of a term after inference; undecided numbers are `number`."""
        return self.kind(term) or NUMBER


def _operands(term: ast.Functor) -> list[ast.Term]:
    """The operands of a tree of overloaded operators, all of one kind.  Cost: linear."""
    out: list[ast.Term] = []
    todo: list[ast.Term] = [term]
    while todo:
        current = todo.pop()
        if isinstance(current, ast.Functor) and current.name in OVERLOADED:
            todo += reversed(current.args)
        else:
            out.append(current)
    return out


def article(kind: Kind) -> str:
    """A kind with its article.

    >>> article(Kind.UNSIGNED)
    'an unsigned'
    """
    return f"an {kind}" if kind is UNSIGNED else f"a {kind}"


def shown(term: Any) -> str:
    if isinstance(term, ast.Cast):
        return f"as({shown(term.term)}, {term.type_name})"
    return term.name.split("@")[0] if isinstance(term, ast.Name) else "…"

"""Checks that each term has the kind and type that its place needs.

`dsl.inference` finds every kind that can be known.  This module compares each term's kind with its
place, and the type of each head variable with its column.
"""

from __future__ import annotations

import math
from typing import Any

from attrs import define

from everlog.core.program import Kind
from everlog.core.program.fact_rows import exact_float
from everlog.core.program.values import integer
from everlog.dsl import ast
from everlog.dsl.builder import LONG
from everlog.dsl.checks.clauses import FlatClause, Hoisted, Literal
from everlog.dsl.checks.inference import (
    FIXED,
    FLOAT,
    INFIX,
    NUMBER,
    OVERLOADED,
    STRING_TESTS,
    SYMBOL,
    UNSIGNED,
    Inference,
    article,
    shown,
)
from everlog.dsl.checks.types import constant_of
from everlog.dsl.diagnostics import Label

LITERALS = (ast.Number, ast.Float, ast.Unsigned, ast.String)


@define
class ClauseKinds(Inference):
    """The kinds of one clause: of its variables by name; of its terms on request."""

    column_of: tuple[Any, str, str] = (None, "", "")  # the argument being checked, its column and relation

    def infer(self, clause: FlatClause) -> None:
        clause.kinds = self
        atoms = [clause.head] if clause.dominating is None else [clause.head, clause.dominating]
        relations = self.declarations.relations
        rest: list[Literal] = []
        for literal in clause.body:
            if literal.__class__ is not ast.Atom or not self._source(literal, relations.get(literal.name)):
                rest.append(literal)
        if not self._all_known(rest, atoms):
            for _ in range(len(clause.body) + 3):
                self.changed = False
                for atom in atoms:
                    self._columns(atom)
                self._literals(rest)
                if not self.changed:
                    break
        self._verify(rest)
        for atom in atoms:
            self._check_atom(atom)
            self._sink(atom)

    # ── verification: now every kind is known, say what does not fit ─────────────────────────

    def _verify(self, body: list[Literal]) -> None:
        for literal in body:
            match literal:
                case ast.Atom():
                    self._check_atom(literal)
                    self._check_computed(literal)
                case ast.Not(formula=ast.Atom() as atom):
                    self._check_atom(atom)  # under `!` only kinds are checked
                case ast.Constraint():
                    self._check_constraint(literal)
                case Hoisted(node=node, result=result, body=inner):
                    self._verify(inner)
                    if isinstance(node, ast.Functor):
                        self.check_term(node, self.settled(result))
                    else:
                        self._check_aggregate(literal)

    def _check_atom(self, atom: ast.Atom) -> None:
        signature = self.declarations.relations.get(atom.name)
        if signature is not None and len(signature.kinds) == len(atom.args):
            for arg, kind, attribute in zip(atom.args, signature.kinds, signature.attributes, strict=True):
                if arg.__class__ is not ast.Name or self.variables.get(arg.name) is not kind:
                    self.column_of = arg, attribute.name, atom.name
                    self.check_term(arg, kind)

    def _check_constraint(self, constraint: ast.Constraint) -> None:
        if constraint.op in STRING_TESTS:
            self.check_term(constraint.left, SYMBOL)
            self.check_term(constraint.right, SYMBOL)
            self._check_sides(constraint)
            return
        left, right = self.kind(constraint.left), self.kind(constraint.right)
        if left is not None and right is not None and left is not right:
            self.reported |= {t.name for t in (constraint.left, constraint.right) if isinstance(t, ast.Name)}
            self.report.error(
                "DL032",
                f"cannot compare {article(left)} with {article(right)}",
                constraint,
                hint="convert one side: to_number, to_unsigned, to_float or to_string",
            )
            return
        kind = left or right or NUMBER
        self.check_term(constraint.left, kind)
        self.check_term(constraint.right, kind)
        self._check_sides(constraint)

    def _check_computed(self, atom: ast.Atom) -> None:
        """Check types: a computed, typed argument of a positive atom fits its column."""
        signature = self.declarations.relations.get(atom.name)
        if signature is None or len(signature.types) != len(atom.args):
            return
        for arg, wanted, attribute in zip(atom.args, signature.types, signature.attributes, strict=True):
            if isinstance(arg, ast.Functor):
                self._no_union(arg, frozenset((wanted,)), arg)
            elif isinstance(arg, ast.Cast) and not self._meet(arg, frozenset((wanted,))):
                label = Label(attribute.pos, attribute.end, f"declared `{attribute.type_name}` here")
                message = f"no value is of type `{arg.type_name}` and of type `{attribute.type_name}`"
                self.report.error("DL031", message, arg, label)

    def _check_sides(self, constraint: ast.Constraint) -> None:
        """Check types: two casts share a type; a computed value is not of a union."""
        left, right = constraint.left, constraint.right
        a, b = self.type_of(left), self.type_of(right)
        if isinstance(left, ast.Cast) and isinstance(right, ast.Cast) and not self._meet(left, b):
            message = f"no value is of type `{left.type_name}` and of type `{right.type_name}`"
            self.report.error("DL031", message, constraint)
        self._no_union(left, b, left)
        self._no_union(right, a, right)

    def _meet(self, cast: ast.Cast, types: frozenset[str] | None) -> bool:
        """Whether a cast gives one of the types, as far as they are known."""
        given = self.type_of(cast)
        return given is None or types is None or bool(self.declarations.types.meet_all(given, types))

    def _no_union(self, computed: ast.Term, types: frozenset[str] | None, at: Any) -> None:
        """Report an operator on values of a union: no member type would be right."""
        if not isinstance(computed, ast.Functor) or computed.name not in INFIX:
            return
        if self.declarations.types.only_unions(types):
            name = ", ".join(f"`{t}`" for t in sorted(types or ()))
            self.report.error(
                "DL033",
                f"`{computed.name}` is not defined for values of the union {name}",
                at,
                hint="give the values a type that is no union, as in as(x, number)",
            )

    def _check_aggregate(self, hoisted: Hoisted) -> None:
        node = hoisted.node
        assert isinstance(node, ast.Aggregate)
        result = self.settled(hoisted.result)
        if node.start is not None:
            self._check_folded(node, result)
            return
        if node.target is None:
            self._fits(node, NUMBER, result)
            return
        kind = self.kind(node.target) or (NUMBER if node.op == "mean" else result)
        self._fits(node, FLOAT if node.op == "mean" else kind, result)
        if kind is SYMBOL:
            self.report.error(
                "DL033",
                f"`{node.op}` needs numbers, its target is a symbol",
                node,
                hint="aggregate over ord(…) or a number that stands for the symbol" if node.op != "sum" else "",
            )
        else:
            self.check_term(node.target, kind)
            self._no_union(node.target, self.type_of(hoisted.result), node.target)

    def _check_folded(self, node: ast.Aggregate, result: Kind) -> None:
        """`@f` of `@@f x : start, { … }` takes the value so far and `x`, and gives the next."""
        functor = self.declarations.functors.get(node.op[1:])
        if functor is None or node.start is None or node.target is None:
            return
        if len(functor.params) != 2 or functor.params[0] is not functor.result:
            message = f"functor `{node.op}` does not take a value and a target, and give the next value"
            hint = f"declare it so: .functor {functor.name}(value:T, x:U):T"
            self.report.error("DL133", message, node, hint=hint)
            return
        self._fits(node, functor.result, result)
        self.check_term(node.target, functor.params[1])
        if constant_of(node.start, functor.result) is None:
            message = f"what `@{node.op}` begins with is no {functor.result} constant"
            self.report.error("DL133", message, node.start, hint="write a constant between `:` and `{`")

    def check_term(self, term: ast.Term, wanted: Kind) -> None:
        """Report where a term, or a part of it, is not of the kind that its place needs."""
        match term:
            case ast.Name():
                known = self.variables.get(term.name, wanted)
                if known is not wanted:
                    self._mismatch(term, known, wanted)
            case ast.Parameter():
                known = self.variables.get(term.variable, wanted)
                if known is not wanted:
                    message = f"parameter `${term.name}` is {article(known)} and {article(wanted)}"
                    hint = "the places in which it stands must be of one kind"
                    self.report.error("DL030", message, term, hint=hint)
            case ast.Number():
                self._check_number(term, wanted)
                self._check_float(term, wanted)
            case ast.Float():
                self._fits(term, FLOAT, wanted)
                self._check_float(term, wanted)
            case ast.Unsigned():
                self._fits(term, UNSIGNED, wanted)
                self._check_number(term, UNSIGNED)
            case ast.Functor(name=name):
                self._check_functor(term, wanted)
            case ast.UserFunctor(name=name, args=args):
                functor = self.declarations.functors.get(name)
                if functor is None:
                    return
                if len(args) != len(functor.params):
                    self.report.error(
                        "DL034",
                        f"functor `@{name}` takes {len(functor.params)} argument(s), {len(args)} given",
                        term,
                    )
                for arg, kind in zip(args, functor.params, strict=False):
                    self.check_term(arg, kind)
                self._fits(term, functor.result, wanted)
            case ast.Cast(term=inner, type_name=type_name):
                if type_name in self.declarations.types:
                    kind = self.declarations.types.kind(type_name)
                    self.check_term(inner, kind if isinstance(inner, LITERALS) else self.settled(inner))
                    self._fits(term, kind, wanted)
            case ast.Underscore() | ast.Nonflat():
                pass
            case _:
                self._fits(term, self.settled(term), wanted)

    def _fits(self, term: Any, kind: Kind, wanted: Kind) -> None:
        if kind is not wanted:
            self.report.error("DL030", f"{self._expected(term, wanted)}, this is {article(kind)}", term)

    def _expected(self, term: Any, wanted: Kind) -> str:
        """What the place of a term needs; an argument of an atom stands in a named column."""
        arg, column, relation = self.column_of
        if term is arg:
            return f"column `{column}` of `{relation}` takes {article(wanted)}"
        return f"{article(wanted)} is expected here"

    def _check_number(self, term: ast.Number | ast.Unsigned, wanted: Kind) -> None:
        if wanted is SYMBOL:
            message = f"{self._expected(term, wanted)}, `{term.text}` is a number"
            self.report.error("DL030", message, term, hint=f'write "{term.text}"')
        elif wanted is not FLOAT:
            value = number_value(term.text)
            low, high = (-(2**63), 2**63 - 1) if wanted is NUMBER else (0, 2**64 - 1)
            if not low <= value <= high and not (
                wanted is UNSIGNED and -(2**63) <= value < 0 and term.text[:1] != "-"
            ):
                self.report.error("DL035", f"`{term.text}` does not fit a 64-bit {wanted}", term)

    def _check_float(self, term: ast.Number | ast.Float, wanted: Kind) -> None:
        problem = not_a_float(term, wanted)
        if problem is not None:
            self.report.error("DL035", problem, term)

    def _check_functor(self, term: ast.Functor, wanted: Kind) -> None:
        name, args = term.name, term.args
        if name == "cat":
            if not args:
                self.report.error("DL034", "`cat` needs arguments", term)
            for arg in args:
                self.check_term(arg, SYMBOL)
            self._fits(term, SYMBOL, wanted)
            return
        if name in FIXED:
            params, result = FIXED[name]
            if len(args) != len(params):
                self.report.error("DL034", f"`{name}` takes {len(params)} argument(s), {len(args)} given", term)
                return
            for arg, kind in zip(args, params, strict=True):
                self.check_term(arg, kind or self.settled(arg))
            self._fits(term, result, wanted)
            return
        kinds, (least, most) = OVERLOADED[name]
        if not least <= len(args) <= most and not (name in INFIX and len(args) > LONG):  # a long chain
            self.report.error("DL034", f"`{name}` takes {least} to {most} arguments, {len(args)} given", term)
            return
        if wanted not in kinds:
            known = next((k for a in args if (k := self.kind(a)) is not None), None)
            if known in kinds:
                self._fits(term, known, wanted)
            else:
                allowed = ", ".join(k.value for k in Kind if k in kinds)
                self.report.error(
                    "DL033",
                    f"`{_operator(name)}` is not defined for {article(known or wanted)}; it takes {allowed}",
                    term,
                )
            return
        for arg in args:
            self.check_term(arg, wanted)
            self._no_union(term, self.type_of(arg), arg)

    # ── heads ask for types ────────────────────────────────────────────────

    def _sink(self, atom: ast.Atom) -> None:
        """Check types: a term in a head has its column's type."""
        signature = self.declarations.relations.get(atom.name)
        if signature is None or len(signature.types) != len(atom.args):
            return
        types = self.declarations.types
        for arg, wanted, kind, attribute in zip(
            atom.args, signature.types, signature.kinds, signature.attributes, strict=True
        ):
            given: frozenset[str] | None = None
            if arg.__class__ is ast.Name:
                known = self.variables.get(arg.name)
                if known is not None and known is not kind:
                    self._mismatch(arg, known, kind)
                    continue
                given = self.types.get(arg.name)
            elif isinstance(arg, ast.Cast) and arg.type_name in types and types.kind(arg.type_name) is kind:
                given = frozenset((types.canonical[arg.type_name],))
            if not given or (isinstance(arg, ast.Name) and arg.name in self.reported):
                continue
            for name in given:
                if wanted not in types.supertypes[name]:
                    label = Label(attribute.pos, attribute.end, f"declared `{attribute.type_name}` here")
                    self.report.error(
                        "DL031",
                        f"`{shown(arg)}` is of type `{name}`, which is no subtype of `{attribute.type_name}`",
                        arg,
                        label,
                        hint=f"convert it with as({shown(arg)}, {attribute.type_name})",
                    )
                    break


def number_value(text: str) -> int:
    """The value of an integer literal in any base.

    >>> number_value("0x1F"), number_value("-0b11"), number_value("007")
    (31, -3, 7)
    """
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
    return sign * integer(digits[2:] if base != 10 else digits, base)


def _operator(name: str) -> str:
    return "-" if name == "neg" else name


def not_a_float(term: Any, kind: Kind) -> str | None:
    """Why a literal is not a float; None if it is one, up to its last digits."""
    if kind is not Kind.FLOAT or not isinstance(term, ast.Float | ast.Number):
        return None
    if isinstance(term, ast.Number):
        try:
            exact_float(number_value(term.text))
        except ValueError as problem:
            return str(problem)
        return None
    value = float(term.text)
    if math.isinf(value) or (not value and term.text.lower().partition("e")[0].strip("+-0.")):
        return f"`{term.text}` is too {'large' if value else 'small'} for a 64-bit float"
    return None

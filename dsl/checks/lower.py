"""Flat, checked clauses to `core` rules.

Kinds are known now: literals get their values, operators their overloads.  Renaming removes
equalities between variables, and substitution removes equalities with constants, so that the engine
sees constants in place.  Expressions that are too deep for generated code are cut into pieces with
names of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, assert_never

from everlog.core import program as core
from everlog.core.program import Kind
from everlog.core.program.functors import BUILTINS
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, Hoisted, Literal
from everlog.dsl.checks.inference import FIXED, INFIX
from everlog.dsl.checks.kinds import ClauseKinds, number_value
from everlog.dsl.checks.types import constant_of
from everlog.dsl.walk import everything_below

MAX_DEPTH = 12


class Lowering:
    """One clause on its way to a core rule.

    A query has `parameters`: variables of the rule, which the first atom of its body binds.
    """

    def __init__(self, kinds: ClauseKinds, counting: bool = False, parameters: Sequence[str] = ()) -> None:
        self.kinds, self.counting = kinds, counting
        self.parameters = [core.Variable(name) for name in parameters]
        self.extra: list[core.Literal] = []
        self.cuts = 0

    def rule(self, clause: FlatClause, name: str, origin: core.Origin) -> core.Rule:
        head = self.atom(clause.head)
        body = self.body(clause.body) + self.extra
        if self.parameters:
            body.insert(0, core.Atom(core.PARAMETERS, tuple(self.parameters)))
        if self.counting and any(call.name == "autoinc" for call in core.calls_of(core.Rule(head, tuple(body)))):
            body = [_counted(x, i) for i, x in enumerate(body)]
        if any(isinstance(x, core.Comparison) and x.op == "=" for x in body):
            head, body = _substituted(head, body)
        return core.Rule(head, tuple(body), name, origin)

    def subsumption(self, clause: FlatClause, origin: core.Origin) -> core.Subsumption:
        assert clause.dominating is not None
        dominated, dominating = self.atom(clause.head), self.atom(clause.dominating)
        body = self.body(clause.body) + self.extra
        return core.Subsumption(dominated, dominating, tuple(body), origin)

    def body(self, literals: list[Literal]) -> list[core.Literal]:
        outer, self.extra = self.extra, []
        out = [self.literal(x) for x in literals]
        out = self.extra + out
        self.extra = outer
        return out

    def literal(self, literal: Literal) -> core.Literal:
        match literal:
            case ast.Atom():
                return self.atom(literal)
            case ast.Not(formula=ast.Atom() as atom):
                return core.Negation(self.atom(atom))
            case ast.Constraint(op=op, left=left, right=right):
                kind = self.kinds.kind(left) or self.kinds.kind(right) or Kind.NUMBER
                if op in ("match", "contains", "not_match", "not_contains"):
                    kind = Kind.SYMBOL
                return core.Comparison(op, self.term(left, kind), self.term(right, kind), kind)
            case Hoisted(node=ast.Functor() as node, result=result):
                kind = self.kinds.settled(result)
                args = [self.term(a, kind) for a in node.args]
                step = args[2] if len(args) > 2 else None
                return core.Range(core.Variable(result.name), args[0], args[1], step, kind)
            case Hoisted(node=ast.Aggregate()):
                return self.aggregate(literal)
            case _:
                raise AssertionError(f"not a literal: {literal}")

    def aggregate(self, hoisted: Hoisted) -> core.Aggregate:
        node = hoisted.node
        assert isinstance(node, ast.Aggregate)
        body = self.body(hoisted.body)
        kind = self.kinds.settled(hoisted.result)
        target: core.Term | None = None
        if node.target is not None:
            default = Kind.NUMBER if node.op == "mean" else kind
            if node.start is not None:
                default = self.kinds.declarations.functors[node.op[1:]].params[1]
            target = self.term(node.target, self.kinds.kind(node.target) or default)
        parameters = {n.variable for n in everything_below(node) if isinstance(n, ast.Parameter)}
        outer = tuple(core.Variable(n) for n in sorted(hoisted.outer | parameters))
        value = None if node.start is None else constant_of(node.start, kind)
        start = None if value is None else core.Constant(value, kind)
        result = core.Variable(hoisted.result.name)
        return core.Aggregate(result, node.op, target, tuple(body), outer, kind, start=start)

    def atom(self, atom: ast.Atom) -> core.Atom:
        kinds = self.kinds.declarations.relations[atom.name].kinds
        args: list[core.Term] = []
        for arg, kind in zip(atom.args, kinds, strict=True):
            if arg.__class__ is ast.Name:
                args.append(core.Variable(arg.name))
            else:
                args.append(self.term(arg, kind))
        return core.Atom(atom.name, tuple(args))

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def term(self, term: ast.Term, kind: Kind) -> core.Term:
        lowered, _ = self.sized(term, kind)
        return lowered

    def sized(self, term: ast.Term, kind: Kind) -> tuple[core.Term, int]:
        """A term and its depth, cut where it gets too deep."""
        match term:
            case ast.Name(name=name):
                return core.Variable(name), 0
            case ast.Parameter():
                return core.Variable(term.variable), 0
            case ast.Underscore():
                return core.Wildcard(), 0
            case ast.Number() | ast.Unsigned() | ast.Float() | ast.String():
                return constant(term, kind), 0
            case ast.Counter():
                return core.Call("autoinc", (), Kind.NUMBER, Kind.NUMBER), 1
            case ast.Cast(term=inner, type_name=type_name):
                target = self.kinds.declarations.types.kind(type_name)
                if isinstance(inner, ast.Number) and target is not Kind.SYMBOL:
                    return constant(inner, target), 0  # a literal has the type that it is cast to
                source = self.kinds.settled(inner)
                value, depth = self.sized(inner, source)
                return (
                    (value, depth) if source is target else (core.Call("as", (value,), source, target), depth + 1)
                )
            case ast.UserFunctor(name=name, args=args):
                functor = self.kinds.declarations.functors[name]
                return self.call(f"@{name}", args, list(functor.params), functor.result, functor.result)
            case ast.Functor(name="cat", args=args):
                return self.call("cat", args, [Kind.SYMBOL] * len(args), Kind.SYMBOL, Kind.SYMBOL)
            case ast.Functor(name=name, args=args) if name in FIXED:
                wanted = [k or self.kinds.settled(a) for k, a in zip(FIXED[name][0], args, strict=True)]
                return self.call(name, args, wanted, wanted[0], FIXED[name][1])
            case ast.Functor(name=name, args=[first, *rest]) if name in INFIX and len(rest) > 1:
                done = self.sized(first, kind)
                for arg in rest:  # a long chain leans to the left
                    both, result = [done, self.sized(arg, kind)], BUILTINS[name, kind].result
                    done = self.applied(name, both, [kind] * 2, kind, result)
                return done
            case ast.Functor(name=name, args=args):
                result = BUILTINS[name, kind].result
                return self.call(name, args, [kind] * len(args), kind, result)
            case _:
                raise AssertionError(f"not a flat term: {term}")

    def call(
        self, name: str, args: list[ast.Term], kinds: list[Kind], operand: Kind, result: Kind
    ) -> tuple[core.Term, int]:
        sized = [self.sized(arg, kind) for arg, kind in zip(args, kinds, strict=True)]
        return self.applied(name, sized, kinds, operand, result)

    def applied(
        self, name: str, args: list[tuple[core.Term, int]], kinds: list[Kind], operand: Kind, result: Kind
    ) -> tuple[core.Term, int]:
        """A functor applied to terms with their depths; terms too deep get names."""
        lowered: list[core.Term] = []
        depth = 0
        for (value, inner), kind in zip(args, kinds, strict=True):
            if inner >= MAX_DEPTH:
                self.cuts += 1
                variable = core.Variable(f"cut@{self.cuts}")
                self.extra.append(core.Comparison("=", variable, value, kind))
                value, inner = variable, 0
            lowered.append(value)
            depth = max(depth, inner)
        return core.Call(name, tuple(lowered), operand, result), depth + 1


def _counted(literal: core.Literal, position: int) -> core.Literal:
    """The literal with a variable for each `_`: a numbered rule counts every column."""
    if not isinstance(literal, core.Atom):
        return literal
    args = [
        core.Variable(f"_@{position}.{i}") if isinstance(a, core.Wildcard) else a
        for i, a in enumerate(literal.args)
    ]
    return core.Atom(literal.relation, tuple(args))


def constant(term: Any, kind: Kind) -> core.Constant:
    """The value of a literal where `kind` is expected."""
    if isinstance(term, ast.String):
        return core.Constant(term.value, Kind.SYMBOL)
    if isinstance(term, ast.Float):
        return core.Constant(float(term.text) + 0.0, Kind.FLOAT)
    value = number_value(term.text)
    if kind is Kind.FLOAT:
        return core.Constant(_as_float(value), kind)
    return core.Constant(value, kind)


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


# ── equalities ───────────────────────────────────────────────────────────────────────────────


def _substituted(head: core.Atom, body: list[core.Literal]) -> tuple[core.Atom, list[core.Literal]]:
    """Use up equalities of a variable with a variable or a constant."""
    names, rest = _Renaming(), []
    for literal in body:
        if not (isinstance(literal, core.Comparison) and literal.op == "=" and names.takes(literal)):
            rest.append(literal)
    if not names.binding:
        return head, body
    return names.atom(head), [made for literal in rest for made in names.literals(literal)]


class _Renaming:
    """Variables, each with what it was equated with."""

    def __init__(self) -> None:
        self.binding: dict[str, core.Term] = {}

    def takes(self, equality: core.Comparison) -> bool:
        """Whether an equality is used up here."""
        left, right = self.find(equality.left), self.find(equality.right)
        if left == right and isinstance(left, core.Variable):
            return True
        if isinstance(left, core.Variable) and isinstance(right, core.Variable | core.Constant):
            self.binding[left.name] = right
            return True
        if isinstance(right, core.Variable) and isinstance(left, core.Constant):
            self.binding[right.name] = left
            return True
        return False

    def find(self, term: core.Term) -> core.Term:
        while isinstance(term, core.Variable) and term.name in self.binding:
            term = self.binding[term.name]
        return term

    def term(self, term: core.Term) -> core.Term:
        match term:
            case core.Call(name, args, operand, kind):
                return core.Call(name, tuple(map(self.term, args)), operand, kind)
            case _:
                return self.find(term)

    def atom(self, atom: core.Atom) -> core.Atom:
        return core.Atom(atom.relation, tuple(map(self.term, atom.args)))

    def literals(self, literal: core.Literal) -> list[core.Literal]:
        """The literal; and a test, where its result was equated with a constant."""
        match literal:
            case core.Atom():
                return [self.atom(literal)]
            case core.Negation(atom):
                return [core.Negation(self.atom(atom))]
            case core.Comparison(op, left, right, kind):
                return [core.Comparison(op, self.term(left), self.term(right), kind)]
            case core.Range(result, start, stop, step, kind):
                by = None if step is None else self.term(step)
                return self._with_result(result, core.Range, (self.term(start), self.term(stop), by, kind))
            case core.Aggregate(result, op, target, inner, outer, kind, start=start):
                shared = tuple(dict.fromkeys(v for o in outer if isinstance(v := self.find(o), core.Variable)))
                body = tuple(one for each in inner for one in self.literals(each))
                of = None if target is None else self.term(target)
                made = partial(core.Aggregate, start=start)
                return self._with_result(result, made, (op, of, body, shared, kind))
        assert_never(literal)

    def _with_result(self, result: core.Variable, node: Any, fields: tuple[Any, ...]) -> list[core.Literal]:
        """An aggregate or range whose result was equated with a constant keeps its variable and a
        test.
        """
        found = self.find(result)
        if isinstance(found, core.Variable):
            return [node(found, *fields)]
        return [node(result, *fields), core.Comparison("=", result, found, fields[-1])]

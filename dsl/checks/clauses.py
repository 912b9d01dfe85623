"""Rules as written to flat clauses: one head, a plain list of literals.

Disjunctions are multiplied out and negation is pushed down to atoms and constraints.  Aggregates
and ranges move out of terms and become literals of their own: `p(x + count : {q(_)})` becomes `p(x
+ n), n ← count : {q(_)}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from typing import Any, TypeAlias

from attrs import define, evolve, field

from everlog.core.program.functors import NEGATED
from everlog.dsl import ast
from everlog.dsl.diagnostics import Report
from everlog.dsl.walk import everything_below

MAX_BODIES = 10_000
LEAVES = (ast.Name, ast.Underscore, ast.Number, ast.String, ast.Float, ast.Unsigned, ast.Parameter)


@define(hash=False)
class Hoisted:
    """`result ← node`: an aggregate or a range taken out of a term.

    Of an aggregate, `dsl.checks.scopes` fills in the literals of its body and the `outer` variables
    that it shares with the clause around it.
    """

    result: ast.Name
    node: ast.Aggregate | ast.Functor
    body: list[Literal] = field(factory=list)
    outer: frozenset[str] = frozenset()
    closed: bool = False
    had_aggregate: bool = False  # an inner one, which was moved out of it
    targets: frozenset[str] = frozenset()  # the variables of its target, which are local

    @property
    def pos(self) -> int:
        return self.node.pos

    @property
    def end(self) -> int:
        return self.node.end


Literal: TypeAlias = ast.Atom | ast.Not | ast.Constraint | Hoisted


@define(hash=False)
class Written:
    """A head and one conjunction of its body, as written."""

    head: ast.Atom
    body: list[ast.Formula]


@define(hash=False)
class FlatClause:
    """One head and a list of literals.

    `kinds` are filled in by `dsl.checks.kinds`.  If the head has aggregates, `aggregated` is what
    is `written`, and `head` has the values that are aggregated in their place.
    """

    head: ast.Atom
    body: list[Literal]
    origin: ast.Clause | ast.Subsumption
    false: bool = False
    dominating: ast.Atom | None = None
    kinds: Any = None
    aggregated: Written | None = None
    written: Written | None = None


_fresh = [count(1)]


def fresh(prefix: str, node: Any) -> ast.Name:
    """A name that no program can write."""
    return ast.Name(f"{prefix}@{next(_fresh[0])}", node.pos, node.end)


def restart_fresh_names(first: int = 1) -> None:
    """Restart numbering, so that a program is always lowered to the same rules."""
    _fresh[0] = count(first)


def flat_clauses(clause: ast.Clause | ast.Subsumption, report: Report) -> list[FlatClause]:
    """The clauses of a rule: every head with every alternative of the body."""
    if isinstance(clause, ast.Subsumption):
        bodies = alternatives(clause.body, report, clause)
        return [flat_clause(clause.dominated, body, clause, clause.dominating) for body in bodies]
    if clause.body is None:
        return [flat_clause(clause.heads[0], [], clause)]
    bodies = alternatives(clause.body, report, clause)
    return [flat_clause(head, body, clause) for head in clause.heads for body in bodies]


def flat_clause(
    head: ast.Atom,
    body: list[ast.Formula],
    clause: ast.Clause | ast.Subsumption,
    dominating: ast.Atom | None = None,
) -> FlatClause:
    literals: list[Literal] = []
    false = False
    aggregated, written = None, Written(head, body)
    if any(isinstance(arg, ast.HeadAggregate) for arg in head.args):
        aggregated = written
        head = evolve(head, args=[_candidate(arg) for arg in head.args])
    new_head = _hoist_atom(head, literals)
    if dominating is not None:
        dominating = _hoist_atom(dominating, literals)
    for formula in body:
        if isinstance(formula, ast.Truth):
            false = false or not formula.value
        else:
            literals.append(_hoist(formula, literals))
    return FlatClause(new_head, literals, clause, false, dominating, None, aggregated, written)


def _candidate(arg: ast.Term) -> ast.Term:
    """The value that one derivation contributes to a column of the head."""
    if not isinstance(arg, ast.HeadAggregate):
        return arg
    if arg.target is None:
        return ast.Number("1", arg.pos, arg.end)
    if arg.op == "mean":
        return ast.Functor("to_float", [arg.target], pos=arg.pos, end=arg.end)
    return arg.target


# ── disjunctive normal form ──────────────────────────────────────────────────────────────────


def alternatives(formula: ast.Formula, report: Report, clause: Any) -> list[list[ast.Formula]]:
    """The formula in disjunctive normal form, as a list of conjunctions.

    Cost: the size of the result; more than `MAX_BODIES` conjunctions are an error.
    """
    if isinstance(formula, ast.Atom | ast.Constraint | ast.Truth):
        return [[formula]]
    if isinstance(formula, ast.And) and all(isinstance(p, ast.Atom | ast.Constraint) for p in formula.parts):
        return [formula.parts]
    bodies = _dnf(formula)
    if bodies is None:
        report.error(
            "DL015",
            f"this body multiplies out to more than {MAX_BODIES} alternatives",
            clause,
            hint="give a part of it a relation of its own",
        )
        return []
    return bodies


def _dnf(formula: ast.Formula) -> list[list[ast.Formula]] | None:
    match formula:
        case ast.Or(parts=parts):
            out: list[list[ast.Formula]] = []
            for part in parts:
                inner = _dnf(part)
                if inner is None or len(out) + len(inner) > MAX_BODIES:
                    return None
                out += inner
            return out
        case ast.And(parts=parts):
            factors = []
            size = 1
            for part in parts:
                inner = _dnf(part)
                if inner is None or (size := size * len(inner)) > MAX_BODIES:
                    return None
                factors.append(inner)
            return [[literal for part in choice for literal in part] for choice in product(*factors)]
        case ast.Not(formula=ast.Atom()):
            return [[formula]]
        case ast.Not(formula=inner_formula):
            return _dnf(negated(inner_formula))
        case _:
            return [[formula]]


def negated(formula: ast.Formula) -> ast.Formula:
    """The negation of a formula, with `!` pushed inwards."""
    match formula:
        case ast.Atom():
            return ast.Not(formula, pos=formula.pos, end=formula.end)
        case ast.Not(formula=inner):
            return inner
        case ast.Constraint():
            return evolve(formula, op=NEGATED[formula.op])
        case ast.Truth():
            return evolve(formula, value=not formula.value)
        case ast.And(parts=parts):
            return ast.Or([negated(p) for p in parts], pos=formula.pos, end=formula.end)
        case ast.Or(parts=parts):
            return ast.And([negated(p) for p in parts], pos=formula.pos, end=formula.end)


# ── hoisting ─────────────────────────────────────────────────────────────────────────────────


def _hoist(formula: ast.Formula, out: list[Literal]) -> Any:
    match formula:
        case ast.Atom():
            return _hoist_atom(formula, out)
        case ast.Not(formula=ast.Atom() as atom):
            return evolve(formula, formula=_hoist_atom(atom, out))
        case ast.Constraint(left=left, right=right):
            if isinstance(left, LEAVES) and isinstance(right, LEAVES):
                return formula
            left, right = (fresh("_", t) if isinstance(t, ast.Underscore) else t for t in (left, right))
            return evolve(formula, left=_hoist_term(left, out), right=_hoist_term(right, out))
        case _:
            raise AssertionError(f"not a literal: {formula}")


def _hoist_atom(atom: ast.Atom, out: list[Literal]) -> ast.Atom:
    for arg in atom.args:
        if not isinstance(arg, LEAVES):
            return evolve(atom, args=[_hoist_term(a, out) for a in atom.args])
    return atom


def _hoist_term(term: ast.Term, out: list[Literal]) -> ast.Term:
    if isinstance(term, LEAVES):
        return term
    match term:
        case ast.Functor(name="range"):
            result = fresh("range", term)
            args = [_hoist_term(a, out) for a in term.args]
            out.append(Hoisted(result, evolve(term, args=args)))
            return result
        case ast.Aggregate():
            result = fresh(term.op.removeprefix("@"), term)
            out.append(Hoisted(result, _with_plain_target(term), targets=target_names(term)))
            return result
        case ast.Functor() | ast.UserFunctor() | ast.Nonflat():
            return evolve(term, args=[_hoist_term(a, out) for a in term.args])
        case ast.Cast():
            return evolve(term, term=_hoist_term(term.term, out))
        case _:
            return term


def target_names(node: ast.Aggregate) -> frozenset[str]:
    return frozenset(n.name for n in everything_below(node.target) if isinstance(n, ast.Name))


def _with_plain_target(node: ast.Aggregate) -> ast.Aggregate:
    """Move an aggregate or a range inside the target into the body, under a name."""
    found: list[Literal] = []
    if node.target is None or (_hoist_term(node.target, found), not found)[1]:
        return node
    name = fresh("target", node.target)
    equality = ast.Constraint("=", name, node.target, pos=node.target.pos, end=node.target.end)
    body = ast.And([node.body, equality], pos=node.body.pos, end=node.body.end)
    return evolve(node, target=name, body=body)


def hoist_body(formulas: list[ast.Formula]) -> tuple[list[Literal], bool]:
    """The literals of one conjunction, and whether it can hold at all."""
    out: list[Literal] = []
    possible = True
    for formula in formulas:
        if isinstance(formula, ast.Truth):
            possible = possible and formula.value
        else:
            out.append(_hoist(formula, out))
    return out, possible


# ── walks ────────────────────────────────────────────────────────────────────────────────────


def names_of(term: ast.Term | None) -> Iterator[ast.Name]:
    """The variables of a term, from left to right (hoisted terms are already out)."""
    return (node for node in everything_below(term) if isinstance(node, ast.Name))


def names_of_literal(literal: Literal) -> Iterator[ast.Name]:
    """The variables of a literal at its own level, not those inside an aggregate."""
    match literal:
        case ast.Atom(args=args) | ast.Not(formula=ast.Atom(args=args)):
            for arg in args:
                yield from names_of(arg)
        case ast.Constraint(left=left, right=right):
            yield from names_of(left)
            yield from names_of(right)
        case Hoisted(result=result, node=node):
            yield result
            if isinstance(node, ast.Functor):
                yield from names_of(node)

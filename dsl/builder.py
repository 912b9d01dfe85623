"""Nodes of the syntax tree, one method per production of the grammar.

The parser calls a method as soon as its production is complete, with the children in order, tokens
included.  No parse tree is built in between.
"""

from __future__ import annotations

from typing import Any, TypeVar

from lark import Transformer

from everlog.dsl import ast
from everlog.dsl.lexer import Token

BINDS: dict[str, int] = {"lor": 1, "lxor": 2, "land": 3, "bor": 4, "bxor": 5, "band": 6, "bshl": 7, "bshr": 7}
BINDS |= {"bshru": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "^": 11}
PREFIX_BINDS = 10
LONG = 64  # equal operators in a row that make one flat node


class _Prefixed:
    """`- operand` inside a chain, before precedence is known: `-x ^ 2` is `-(x ^ 2)`."""

    __slots__ = ("op", "operand")

    def __init__(self, op: Token, operand: Any) -> None:
        self.op, self.operand = op, operand


def _term_of(items: list[Any]) -> ast.Term:
    """The term of a chain of operators and operands, by precedence.

    A loop, not a recursion: chains may be long.
    """
    operands: list[_Operand] = []
    waiting: list[tuple[int, Token, bool]] = []  # level, operator, whether it is a prefix

    def apply() -> None:
        _, op, prefix = waiting.pop()
        right = operands.pop()
        operands.append(
            _Operand(_applied(op, right.term)) if prefix else operands.pop().with_operator(op, right.term)
        )

    for at, item in enumerate(items):
        if at % 2:
            level = BINDS[item.value]
            while waiting and (waiting[-1][0] > level or (waiting[-1][0] == level and item.value != "^")):
                apply()
            waiting.append((level, item, False))
            continue
        while isinstance(item, _Prefixed):
            waiting.append((PREFIX_BINDS, item.op, True))
            item = item.operand
        operands.append(_Operand(item))
    while waiting:
        apply()
    return operands.pop().term


class _Operand:
    """A term in a chain, and how many times in a row one operator was applied to it.

    `a + b + c` is `(a + b) + c`; from LONG operators on it is one `+` of all operands, so that a
    long sum is not a deep term.
    """

    __slots__ = ("op", "row", "term")

    def __init__(self, term: ast.Term, op: str = "", row: int = 0) -> None:
        self.term, self.op, self.row = term, op, row

    def with_operator(self, op: Token, right: ast.Term) -> _Operand:
        left, row = self.term, self.row + 1 if self.op == op.value else 1
        if row == LONG:
            args = [right]
            for _ in range(row - 1):
                assert isinstance(left, ast.Functor)
                args.append(left.args[1])
                left = left.args[0]
            args.append(left)
            return _Operand(ast.Functor(op.value, args[::-1], pos=self.term.pos, end=right.end), op.value, row)
        if row > LONG:
            assert isinstance(left, ast.Functor)
            left.args.append(right)
            left.end = right.end
            return _Operand(left, op.value, row)
        return _Operand(ast.Functor(op.value, [left, right], pos=left.pos, end=right.end), op.value, row)


def _applied(op: Token, operand: ast.Term) -> ast.Term:
    if op.value == "-":
        if isinstance(operand, ast.Number | ast.Float | ast.Unsigned) and not operand.text.startswith("-"):
            return type(operand)("-" + operand.text, op.pos, operand.end)
        return ast.Functor("neg", [operand], pos=op.pos, end=operand.end)
    return ast.Functor(op.value, [operand], pos=op.pos, end=operand.end)


def small(text: str) -> int:
    """A count in a plan; a very long number becomes a large one."""
    return int(text, 0 if text[:2] in ("0x", "0b") else 10) if len(text) < 40 else 10**40


class Builder(Transformer[Any, Any]):
    """One method per production; `c` are its children, tokens included."""

    def start(self, c: list[Any]) -> ast.Program:
        return ast.Program(c)

    def first(self, c: list[Any]) -> list[Any]:
        return [c[0]]

    def more(self, c: list[Any]) -> list[Any]:
        c[0].append(c[2])
        return c[0]  # type: ignore[no-any-return]

    # clauses
    def fact(self, c: list[Any]) -> ast.Clause:
        return ast.Clause([c[0]], None, pos=c[0].pos, end=c[1].end)

    def rule(self, c: list[Any]) -> ast.Clause:
        plan = next((x for x in c[4:] if isinstance(x, ast.Plan)), None)
        strategy = next((x for x in c[4:] if isinstance(x, ast.Strategy)), None)
        return ast.Clause(c[0], c[2], plan, strategy, pos=c[0][0].pos, end=c[3].end)

    def subsumption(self, c: list[Any]) -> ast.Subsumption:
        plan = c[6] if len(c) > 6 else None
        return ast.Subsumption(c[0], c[2], c[4], plan, pos=c[0].pos, end=c[5].end)

    def disjunction(self, c: list[Any]) -> ast.Or:
        return _joined(ast.Or, c[0], c[2])

    def conjuncts(self, c: list[Any]) -> ast.And:
        return _joined(ast.And, c[0], c[2])

    def constraint(self, c: list[Any]) -> ast.Constraint:
        return ast.Constraint(c[1].value, c[0], c[2], pos=c[0].pos, end=c[2].end)

    def string_test(self, c: list[Any]) -> ast.Constraint:
        return ast.Constraint(c[0].value, c[2], c[4], pos=c[0].pos, end=c[5].end)

    def truth(self, c: list[Any]) -> ast.Truth:
        return ast.Truth(c[0].value == "true", pos=c[0].pos, end=c[0].end)

    def group(self, c: list[Any]) -> Any:
        # A conjunction in parentheses stays a node of its own.  `(a, b), c` means the same, but
        # appending to `a, b` would change a tree that another node may hold.
        if isinstance(c[1], ast.And | ast.Or):
            return type(c[1])(c[1].parts, pos=c[0].pos, end=c[2].end)
        return c[1]

    def negation(self, c: list[Any]) -> ast.Not:
        return ast.Not(c[1], pos=c[0].pos, end=c[1].end)

    def nullary_atom(self, c: list[Any]) -> ast.Atom:
        return ast.Atom(c[0].name, [], pos=c[0].pos, end=c[2].end)

    def atom(self, c: list[Any]) -> ast.Atom:
        return ast.Atom(c[0].name, c[2], pos=c[0].pos, end=c[3].end)

    def qualified(self, c: list[Any]) -> ast.Name:
        return ast.Name(f"{c[0].name}.{c[2].name}", c[0].pos, c[2].end)

    # terms
    def finished(self, c: list[Any]) -> ast.Term:
        items = c[0] if isinstance(c[0], list) else [c[0]]
        return _term_of(items)

    def chain_first(self, c: list[Any]) -> list[Any]:
        return c

    def chain_more(self, c: list[Any]) -> list[Any]:
        c[0] += (c[1], c[2])
        return c[0]  # type: ignore[no-any-return]

    def prefixed(self, c: list[Any]) -> _Prefixed:
        return _Prefixed(c[0], c[1])

    def counter(self, c: list[Any]) -> ast.Counter:
        return ast.Counter(pos=c[0].pos, end=c[-1].end)

    def iteration(self, c: list[Any]) -> ast.IterationCounter:
        return ast.IterationCounter(pos=c[0].pos, end=c[-1].end)

    def paren(self, c: list[Any]) -> ast.Term:
        return c[1]  # type: ignore[no-any-return]

    def cast(self, c: list[Any]) -> ast.Cast:
        return ast.Cast(c[2], c[4].name, pos=c[0].pos, end=c[5].end)

    def user_functor(self, c: list[Any]) -> ast.UserFunctor:
        return ast.UserFunctor(c[1].name, c[3] if len(c) > 4 else [], pos=c[0].pos, end=c[-1].end)

    def functor(self, c: list[Any]) -> ast.Functor:
        return ast.Functor(c[0].value, c[2] if len(c) > 3 else [], pos=c[0].pos, end=c[-1].end)

    def minmax(self, c: list[Any]) -> ast.Functor:
        return ast.Functor(c[0].value, [c[2], *c[4]], pos=c[0].pos, end=c[5].end)

    def aggregate(self, c: list[Any]) -> ast.Aggregate:
        targets = c[1] if isinstance(c[1], list) else []
        end = c[-1].end
        body = c[-2] if isinstance(c[-1], Token) else c[-1]
        if len(targets) > 1:
            return ast.Aggregate(f"{c[0].value}/{len(targets)}", targets[0], body, pos=c[0].pos, end=end)
        return ast.Aggregate(c[0].value, targets[0] if targets else None, body, pos=c[0].pos, end=end)

    def folded(self, c: list[Any]) -> ast.Aggregate:
        op, targets = f"@{c[2].name}", c[3]
        body = c[-2] if isinstance(c[-1], Token) else c[-1]
        if len(targets) > 1:
            op += f"/{len(targets)}"
        return ast.Aggregate(op, targets[0], body, c[5], pos=c[0].pos, end=c[-1].end)

    def head_aggregate(self, c: list[Any]) -> ast.HeadAggregate:
        return ast.HeadAggregate(c[0].value, c[2] if len(c) > 3 else None, pos=c[0].pos, end=c[-1].end)

    def nonflat(self, c: list[Any]) -> ast.Nonflat:
        what = {"NIL": "nil", "LBRACKET": "record"}.get(c[0].type, "branch")
        args = next((x for x in c if isinstance(x, list)), [])
        return ast.Nonflat(what, args, pos=c[0].pos, end=c[-1].end)

    # declarations
    def relation_decl(self, c: list[Any]) -> ast.RelationDecl:
        attributes = c[3] if isinstance(c[3], list) else []
        qualifiers, choices = c[-2], c[-1]
        end = max([c[-3].end, *(q.end for q in qualifiers), *(x.end for x in choices)])
        return ast.RelationDecl(c[1], attributes, qualifiers, choices, pos=c[0].pos, end=end)

    def delta_decl(self, c: list[Any]) -> ast.RelationDecl:
        return ast.RelationDecl([c[1]], [], c[7], [], c[5].name, pos=c[0].pos, end=c[6].end)

    def attribute(self, c: list[Any]) -> ast.Attribute:
        return ast.Attribute(c[0].name, c[2].name, pos=c[0].pos, end=c[2].end)

    def lattice_attribute(self, c: list[Any]) -> ast.Attribute:
        return ast.Attribute(c[0].name, c[2].name + "<>", pos=c[0].pos, end=c[4].end)

    def qualifiers(self, c: list[Any]) -> list[ast.Qualifier]:
        return [ast.Qualifier(t.value, pos=t.pos, end=t.end) for t in c]

    def choices(self, c: list[Any]) -> list[ast.Choice]:
        return c[1] if c else []

    def choice(self, c: list[Any]) -> ast.Choice:
        return ast.Choice(c[1] if len(c) == 3 else [c[0]], pos=c[0].pos, end=c[-1].end)

    def subset_type(self, c: list[Any]) -> ast.TypeDecl:
        return ast.TypeDecl(c[1].name, "subset", [c[3]], pos=c[0].pos, end=c[3].end)

    def equal_type(self, c: list[Any]) -> ast.TypeDecl:
        return ast.TypeDecl(c[1].name, "equals", c[3], pos=c[0].pos, end=c[3][-1].end)

    def record_type(self, c: list[Any]) -> ast.TypeDecl:
        return ast.TypeDecl(c[1].name, "nonflat", [], pos=c[0].pos, end=c[2].end)

    def legacy_type(self, c: list[Any]) -> ast.TypeDecl:
        base = "number" if c[0].type == "NUMBER_TYPE" else "symbol"
        return ast.TypeDecl(c[1].name, "legacy", [ast.Name(base)], pos=c[0].pos, end=c[1].end)

    def functor_decl(self, c: list[Any]) -> ast.FunctorDecl:
        params = c[3] if isinstance(c[3], list) else []
        result = ast.Attribute("", c[-2].name, pos=c[-2].pos, end=c[-2].end)
        return ast.FunctorDecl(c[1].name, params, result, c[-1], pos=c[0].pos, end=result.end)

    def param(self, c: list[Any]) -> ast.Attribute:
        name = c[0].name if len(c) == 3 else ""
        return ast.Attribute(name, c[-1].name, pos=c[0].pos, end=c[-1].end)

    def stateful(self, c: list[Any]) -> bool:
        return bool(c)

    def directive(self, c: list[Any]) -> ast.Directive:
        settings = c[3] if len(c) == 5 else []
        end = c[-1].end if len(c) > 2 else c[1][-1].end
        return ast.Directive(c[0].value[1:], c[1], settings, pos=c[0].pos, end=end)

    def setting(self, c: list[Any]) -> tuple[str, str]:
        value = c[2]
        if isinstance(value, ast.Name):
            return c[0].name, value.name
        if isinstance(value, ast.Number):
            return c[0].name, value.text
        return c[0].name, value.value

    def pragma(self, c: list[Any]) -> ast.Pragma:
        return ast.Pragma(c[1].value, c[2].value if len(c) > 2 else "", pos=c[0].pos, end=c[-1].end)

    def lattice(self, c: list[Any]) -> ast.Lattice:
        return ast.Lattice(c[1].name, c[5], pos=c[0].pos, end=c[-1].end)

    def operators(self, c: list[Any]) -> list[tuple[str, ast.Term]]:
        return c[::2]

    def operator(self, c: list[Any]) -> tuple[str, ast.Term]:
        return c[0].name, c[2]

    def strategy(self, c: list[Any]) -> ast.Strategy:
        return ast.Strategy(c[1].name, pos=c[1].pos, end=c[1].end)

    def plan(self, c: list[Any]) -> ast.Plan:
        return ast.Plan(c[1], pos=c[0].pos, end=c[0].end)

    def order(self, c: list[Any]) -> tuple[int, list[int]]:
        positions = c[3] if len(c) == 5 else []
        return small(c[0].text), [small(n.text) for n in positions]

    # components
    def component(self, c: list[Any]) -> ast.Component:
        return ast.Component(c[1], c[2], c[4], pos=c[0].pos, end=c[5].end)

    def bases(self, c: list[Any]) -> list[ast.ComponentType]:
        return c[1::2]

    def component_items(self, c: list[Any]) -> list[ast.Statement]:
        return c

    def component_type(self, c: list[Any]) -> ast.ComponentType:
        params = [n.name for n in c[2]] if len(c) > 1 else []
        return ast.ComponentType(c[0].name, params, pos=c[0].pos, end=c[-1].end)

    def init(self, c: list[Any]) -> ast.Init:
        return ast.Init(c[1].name, c[3], pos=c[0].pos, end=c[3].end)

    def override(self, c: list[Any]) -> ast.Override:
        return ast.Override(c[1].name, pos=c[0].pos, end=c[1].end)


_Group = TypeVar("_Group", ast.And, ast.Or)


def _joined(node: type[_Group], left: Any, right: Any) -> _Group:
    """`a, b, c` as one flat node; a parenthesized part stays a part of its own."""
    if isinstance(left, node) and left.pos == left.parts[0].pos:
        left.parts.append(right)
        left.end = right.end
        return left
    return node([left, right], pos=left.pos, end=right.end)

"""Facts as text: `edge(1, "a").` to a row and back, and updates `+edge(1, 2).`"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Constant, Kind, Relation, Row, Value, values
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import with_article
from everlog.dsl import ast
from everlog.dsl.checks.kinds import not_a_float, number_value
from everlog.dsl.checks.lower import constant
from everlog.dsl.diagnostics import Diagnostic, Report
from everlog.dsl.lexer import Token, lex
from everlog.dsl.parser import parse_text
from everlog.dsl.query_text import ParsedQuery
from everlog.dsl.source import Source

ValueOf: TypeAlias = Callable[[str, Kind], Value]  # the value of a parameter for a column of this kind


class FactTextError(ValueError):
    """A text that is not a fact of a declared relation; the message says why."""


@frozen
class PatternText:
    """A query of one atom, such as `path(1, y)`.

    It holds the relation, the constants and the parameters by column (None and "" elsewhere), and
    for each column the first column with the same variable (or itself).
    """

    relation: str
    constants: tuple[Value | None, ...]
    parameters: tuple[str, ...]
    same: tuple[int, ...]


def fact_text(relation: Relation, row: Row) -> str:
    """A fact as the language writes it.

    >>> from everlog.core.program import Column
    >>> fact_text(Relation("p", (Column("x", Kind.NUMBER), Column("y", Kind.SYMBOL))), (1, "a"))
    'p(1, "a")'
    """
    values = (str(Constant(v, c.kind)) for v, c in zip(row, relation.columns, strict=True))
    return f"{relation.name}({', '.join(values)})"


def is_fact(statement: ast.Statement) -> bool:
    """Whether a statement is a fact of constants, which is stored.

    A fact that computes is a rule without a body.

    >>> program, _ = parse_text("p(1). p(-1.5, -inf). p(2 + 3). p(x) :- q(x).")
    >>> [is_fact(statement) for statement in program.statements]
    [True, True, False, False]
    """
    match statement:
        case ast.FactLine():
            return True
        case ast.Clause(heads=[head], body=None):
            return all(map(_is_constant, head.args))
    return False


def _is_constant(term: ast.Term) -> bool:
    match term:
        case ast.Number() | ast.Unsigned() | ast.Float() | ast.String() | ast.Name(name="inf" | "nan"):
            return True
        case ast.Functor(name="neg", args=[ast.Name(name="inf")]):
            return True
    return False


def read_update(text: str, relations: Mapping[str, Relation]) -> Update:
    """Read `+fact.` or `fact.` (insert) or `-fact.` (delete); the `.` is optional."""
    body = text.strip()
    insert = not body.startswith("-")
    name, row = read_fact(body[1:] if body[:1] in ("+", "-") else body, relations)
    return Update(name, row, insert)


def read_fact(text: str, relations: Mapping[str, Relation], value_of: ValueOf | None = None) -> tuple[str, Row]:
    """The relation and the row of a fact.

    `value_of` gives the values of parameters, where parameters are allowed.
    """
    atom, relation = _declared_atom(text, relations)
    row: list[Value] = []
    for at, (arg, column) in enumerate(zip(atom.args, relation.columns, strict=True)):
        if isinstance(arg, ast.Parameter) and value_of is not None:
            row.append(value_of(arg.name, column.kind))
        else:
            row.append(_value(arg, relation, at, text))
    return atom.name, tuple(row)


def pattern_text(query: ParsedQuery, relations: Mapping[str, Relation]) -> PatternText:
    """The pattern that a query of one atom is, or FactTextError."""
    text, atom = query.text, query.atom
    if atom is None:
        raise FactTextError(f"`{cut(text)}`: {query.syntax_error() or 'this is not one atom'}")
    relation = _declared(atom, relations)
    constants: list[Value | None] = [None] * relation.arity
    parameters = [""] * relation.arity
    same = list(range(relation.arity))
    seen: dict[str, int] = {}
    for column, arg in enumerate(atom.args):
        match arg:
            case ast.Name(name=name):
                same[column] = seen.setdefault(name, column)
            case ast.Parameter(name=name):
                parameters[column] = name
            case ast.Underscore():
                pass
            case _:
                constants[column] = _value(arg, relation, column, text)
    return PatternText(atom.name, tuple(constants), tuple(parameters), tuple(same))


def read_constant(text: str) -> Value | None:
    """The value of a constant of the language; None if the text is not one.

    >>> [read_constant(text) for text in ('"a b"', "-3", "7u", "1.5", "a")]
    ['a b', -3, 7, 1.5, None]
    """
    report = Report(Source(text))
    words = [word.value if isinstance(word, Token) else word for word in lex(text, report)]
    match [] if report.items else words:
        case ["-", (ast.Number() | ast.Float()) as term]:
            kind = Kind.FLOAT if isinstance(term, ast.Float) else Kind.NUMBER
            return -constant(term, kind).value  # type: ignore[operator]  # no symbol
        case [(ast.Number() | ast.Unsigned() | ast.Float() | ast.String()) as term]:
            return constant(term, Kind.NUMBER).value
    return None


def _declared_atom(text: str, relations: Mapping[str, Relation]) -> tuple[ast.Atom, Relation]:
    atom = _atom(text)
    return atom, _declared(atom, relations)


def _declared(atom: ast.Atom, relations: Mapping[str, Relation]) -> Relation:
    relation = relations.get(atom.name)
    if relation is None:
        close = get_close_matches(atom.name, relations, 1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        raise FactTextError(f"undefined relation `{cut(atom.name)}`{hint}")
    if len(atom.args) != relation.arity:
        raise FactTextError(f"`{relation}` has {relation.arity} column(s), {len(atom.args)} given")
    return relation


def _atom(text: str) -> ast.Atom:
    body = text.strip()
    whole = body if body.endswith(".") else body + "."
    tree, report = parse_text(whole, "fact")
    if report.errors:
        first = report.errors[0]
        problem = _problem(first)
        if whole != body and first.end == len(whole):  # at the full stop that was added
            problem = problem.replace("unexpected `.`", "unexpected end of the fact")
        raise FactTextError(f"`{cut(text)}`: {problem}")
    match tree.statements:
        case [ast.Clause(heads=[atom], body=None)]:
            return atom
        case [ast.FactLine(name=name, values=values)]:
            args: list[ast.Term] = [ast.String(v) if isinstance(v, str) else ast.Number(str(v)) for v in values]
            return ast.Atom(name, args)
        case _:
            raise FactTextError(f"`{cut(text)}` is not one fact")


def _problem(error: Diagnostic) -> str:
    return error.message + (f"; {error.hint}" if error.hint else "")


def cut(text: str, most: int = 80) -> str:
    """A text for a message: its beginning, if it is long.

    >>> cut(" edge(1, 2). "), cut("x" * 100, 5)
    ('edge(1, 2).', 'xxxx…')
    """
    text = text.strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _value(term: ast.Term, relation: Relation, at: int, text: str) -> Value:
    kind = relation.columns[at].kind
    if kind is Kind.FLOAT and isinstance(term, ast.Name | ast.Functor):
        sign, name = (-1.0, term.args[0]) if isinstance(term, ast.Functor) and term.name == "neg" else (1.0, term)
        if isinstance(name, ast.Name) and name.name in ("inf", "nan"):
            return values.NAN if name.name == "nan" else sign * math.inf
    fits = {
        ast.String: (Kind.SYMBOL,),
        ast.Number: (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT),
        ast.Unsigned: (Kind.UNSIGNED,),
        ast.Float: (Kind.FLOAT,),
    }.get(type(term), ())
    if isinstance(term, ast.Parameter):
        raise FactTextError(f"`{cut(text)}`: a parameter stands in a query; a fact has the value itself")
    if kind not in fits:
        takes = f"column `{relation.columns[at].name}` of `{relation.name}` takes {with_article(kind)}"
        raise FactTextError(f"`{cut(text)}`: {takes}, {_described(term)}")
    if isinstance(term, ast.Number | ast.Unsigned) and kind is not Kind.FLOAT:
        low, high = (-(2**63), 2**63 - 1) if kind is Kind.NUMBER else (0, 2**64 - 1)
        if not low <= number_value(term.text) <= high:
            raise FactTextError(f"`{cut(text)}`: `{term.text}` does not fit a 64-bit {kind}")
    problem = not_a_float(term, kind)
    if problem is not None:
        raise FactTextError(f"`{cut(text)}`: {problem}")
    return constant(term, kind).value


def _described(term: ast.Term) -> str:
    """A term that does not fit, in words."""
    match term:
        case ast.String(value=value):
            return f'"{cut(value, 40)}" is a symbol'
        case ast.Number(text=text):
            return f"{cut(text, 40)} is a number"
        case ast.Unsigned(text=text):
            return f"{cut(text, 40)}u is an unsigned"
        case ast.Float(text=text):
            return f"{cut(text, 40)} is a float"
        case ast.Name(name=name):
            return f"`{cut(name, 40)}` is a variable; a symbol stands in double quotes"
        case ast.Underscore():
            return "`_` is no value"
    return "this is no constant"

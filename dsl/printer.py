"""Syntax tree to text; reading the text gives the same tree again.

This module decides the words of a statement, with the parentheses it needs, and blanks anywhere.
`dsl.formatter.lay_out` decides the layout for trees and files alike: a printed program is a
formatted one.

A line that is one ground fact is read as a `FactLine`, any other fact as a `Clause`.  Clauses that
would be read as fact lines share a line, or stand below an empty one, and so remain clauses.  The
tree does not keep all of records, branches and lattices: made-up names stand for the missing parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TypeAlias, assert_never

from everlog.dsl import ast
from everlog.dsl.builder import BINDS, PREFIX_BINDS
from everlog.dsl.diagnostics import Report
from everlog.dsl.formatter import INDENT, WIDTH, Word, lay_out
from everlog.dsl.lexer import lex
from everlog.dsl.source import Source

_Counter: TypeAlias = ast.Counter | ast.IterationCounter
_Call: TypeAlias = (
    ast.Functor | ast.UserFunctor | ast.Cast | ast.Aggregate | ast.HeadAggregate | ast.Nonflat | _Counter
)

_PREFIXES = {"neg": "-", "bnot": "bnot ", "lnot": "lnot "}
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPED = str.maketrans(_ESCAPES | {'"': '\\"', "\\": "\\\\"})


def print_program(program: ast.Program) -> str:
    """A program as text: one statement below the other.

    >>> fact = ast.Clause([ast.Atom("p", [ast.Name("x")])], None)
    >>> print_program(ast.Program([ast.Override("q"), fact]))
    '.override q\\np(x).\\n'
    """
    return "".join(f"{line}\n" for line in _block(program.statements, WIDTH, after_dot=True))


def print_statement(statement: ast.Statement, width: int = WIDTH) -> str:
    """One statement, without a newline at its end.

    >>> body = ast.And([ast.Atom("edge", [ast.Name("x")]), ast.Not(ast.Atom("cut", []))])
    >>> print_statement(ast.Clause([ast.Atom("p", [ast.Name("x")])], body))
    'p(x) :- edge(x), !cut().'
    >>> print(print_statement(ast.Clause([ast.Atom("p", [ast.Name("x")])], body), width=20))
    p(x) :-
        edge(x),
        !cut().
    """
    return "\n".join(_lines(statement, width))


# ── statements one below the other ───────────────────────────────────────────────────────────


def _block(statements: Iterable[ast.Statement], width: int, after_dot: bool) -> list[str]:
    """The lines of statements; `after_dot`: the statement above them ends in a dot."""
    lines: list[str] = []
    for loose, group in groupby(statements, _passes_for_a_line):
        if not loose:
            for statement in group:
                lines += _lines(statement, width)
                after_dot = _ends_in_dot(statement)
            continue
        for row in _rows(group, width):
            if after_dot and len(row) == 1:
                lines += [""] if lines else ["", ""]
            lines.append(" ".join(row))
            after_dot = True
    return lines


def _passes_for_a_line(statement: ast.Statement) -> bool:
    if not isinstance(statement, ast.Clause) or statement.body is not None:
        return False
    text = "\n".join(_lines(statement, WIDTH))
    return isinstance(next(iter(lex(text, Report(Source(text))))), ast.FactLine)


def _ends_in_dot(statement: ast.Statement) -> bool:
    if isinstance(statement, ast.Clause | ast.Subsumption):
        return statement.plan is None and getattr(statement, "strategy", None) is None
    return isinstance(statement, ast.FactLine)


def _rows(facts: Iterable[ast.Statement], width: int) -> list[list[str]]:
    """Facts side by side, as many as fit."""
    rows: list[list[str]] = []
    used = width
    for fact in facts:
        (text,) = _lines(fact, width)
        used += 1 + len(text)
        if used > width:
            rows.append([])
            used = len(text)
        rows[-1].append(text)
    return rows


def _lines(statement: ast.Statement, width: int) -> list[str]:
    match statement:
        case ast.FactLine(name=name, values=values):
            constants = (f'"{value}"' if isinstance(value, str) else str(value) for value in values)
            return [f"{name}({', '.join(constants)})."]
        case ast.Component(items=items):
            (header,) = lay_out(_words(_component(statement)), width)
            inside = _block(items, width - len(INDENT), after_dot=False)
            return [header, *(INDENT + line if line else "" for line in inside), "}"] if items else [header + "}"]
        case _:
            return lay_out(_words(_statement(statement)), width)


def _words(text: str) -> list[Word]:
    """The words of a text; form feeds keep a fact from being read as a fact line."""
    return [(word.type, text[word.pos : word.end]) for word in lex(text + "\f", Report(Source(text)))]


# ── statements as words ──────────────────────────────────────────────────────────────────────


def _statement(statement: ast.Statement) -> str:
    match statement:
        case ast.Clause(heads=heads, body=body, plan=plan, strategy=strategy):
            rest = "" if body is None else f" :- {_formula(body)}"
            chosen = "" if strategy is None else f" .strategy {strategy.name}"
            return f"{', '.join(map(_formula, heads))}{rest}.{_plan(plan)}{chosen}"
        case ast.Subsumption(dominated=low, dominating=high, body=body, plan=plan):
            return f"{_formula(low)} <= {_formula(high)} :- {_formula(body)}.{_plan(plan)}"
        case ast.Directive(kind=kind, relations=relations, params=params):
            settings = ", ".join(f"{key}={_quoted(value)}" for key, value in params)
            return f".{kind} {_names(relations)}{f'({settings})' if params else ''}"
        case ast.Pragma(key=key, value=value):
            return f".pragma {_quoted(key)} {_quoted(value) if value else ''}"
        case ast.Init(name=name, component=component):
            return f".init {name} = {_component_type(component)}"
        case ast.Override(name=name):
            return f".override {name}"
        case ast.Lattice(name=name, operators=operators):
            listed = ", ".join(f"{operator} -> {_term(term)}" for operator, term in operators)
            return f".lattice {name}<> {{ {listed} }}"
        case ast.RelationDecl() | ast.TypeDecl() | ast.FunctorDecl():
            return _declaration(statement)
        case ast.FactLine() | ast.Component():
            raise TypeError("printed line by line")
        case _:
            assert_never(statement)


def _declaration(statement: ast.RelationDecl | ast.TypeDecl | ast.FunctorDecl) -> str:
    match statement:
        case ast.RelationDecl(names=names, attributes=attributes, qualifiers=qualifiers, choices=choices):
            words = " ".join(q.name for q in qualifiers)
            if statement.delta_of is not None:
                return f".decl {_names(names)} = debug_delta({statement.delta_of}) {words}"
            keys = ", ".join(f"({_names(c.keys)})" if len(c.keys) > 1 else c.keys[0].name for c in choices)
            return f".decl {_names(names)}({_attributes(attributes)}) {words} {keys and 'choice-domain ' + keys}"
        case ast.TypeDecl(name=name, form="subset", bases=[base]):
            return f".type {name} <: {_qname(base.name)}"
        case ast.TypeDecl(name=name, form="legacy", bases=[base]):
            return f".{base.name}_type {name}"
        case ast.TypeDecl(name=name, bases=bases):
            return f".type {name} = {' | '.join(_qname(b.name) for b in bases) or '[]'}"
        case ast.FunctorDecl(name=name, params=params, result=result, stateful=stateful):
            word = "stateful" if stateful else ""
            return f".functor {name}({_attributes(params)}) : {_qname(result.type_name)} {word}"
        case _:
            assert_never(statement)


def _attributes(attributes: list[ast.Attribute]) -> str:
    return ", ".join(f"{a.name}{':' if a.name else ''}{_qname(a.type_name)}" for a in attributes)


def _component(component: ast.Component) -> str:
    bases = ", ".join(map(_component_type, component.bases))
    return f".comp {_component_type(component.type)} {bases and ':'} {bases} {{"


def _component_type(type: ast.ComponentType) -> str:
    return f"{type.name}<{', '.join(type.params)}>" if type.params else type.name


def _plan(plan: ast.Plan | None) -> str:
    if plan is None:
        return ""
    return " .plan " + ", ".join(f"{number}:({', '.join(map(str, order))})" for number, order in plan.orders)


def _names(names: list[ast.Name]) -> str:
    return ", ".join(_qname(name.name) for name in names)


def _qname(name: str) -> str:
    """With blanks after the dots: in `a.decl` a directive would begin."""
    return name.replace(".", ". ")


def _quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPED)}"'


# ── formulas and terms as words ──────────────────────────────────────────────────────────────


def _formula(formula: ast.Formula, binds: int = 0) -> str:
    """A formula, in parentheses if it binds weaker than `binds`.

    `binds` is 1 inside `;`, 2 inside `,`, 3 under `!`.
    """
    match formula:
        case ast.Or(parts=parts):
            text, level = " ; ".join(_formula(p, 1) for p in parts), 0
        case ast.And(parts=parts):
            text, level = ", ".join(_formula(p, 2) for p in parts), 1
        case ast.Constraint(op="match" | "contains" as op, left=left, right=right):
            text, level = f"{op}({_term(left)}, {_term(right)})", 3
        case ast.Constraint(op=op, left=left, right=right):
            text, level = f"{_term(left)} {op} {_term(right)}", 2
        case ast.Atom(name=name, args=args):
            text, level = f"{_qname(name)}({_terms(args)})", 3
        case ast.Not(formula=inner):
            text, level = f"!{_formula(inner, 3)}", 3
        case ast.Truth(value=value):
            text, level = "true" if value else "false", 3
        case _:
            assert_never(formula)
    return f"({text})" if level < binds else text


def _terms(terms: Iterable[ast.Term]) -> str:
    return ", ".join(map(_term, terms))


def _term(term: ast.Term, binds: int = 0) -> str:
    """A term, in parentheses if it is an operation that binds weaker than `binds`."""
    match term:
        case ast.Number(text=text) | ast.Float(text=text) | ast.Unsigned(text=text):
            text += "u" * isinstance(term, ast.Unsigned)
            return f"({text})" if text[0] == "-" and binds > PREFIX_BINDS else text
        case ast.Functor(name=name, args=[left, right]) if name in BINDS:
            text = _chain(name, left, right)
            return f"({text})" if BINDS[name] < binds else text
        case ast.Functor(name=name, args=[first, *rest]) if name in BINDS and len(rest) > 1:
            text = "".join([_term(first, BINDS[name]), *(f" {name} {_term(x, BINDS[name] + 1)}" for x in rest)])
            return f"({text})" if BINDS[name] < binds else text
        case ast.Functor(name=name, args=[operand]) if name in _PREFIXES:
            text = _PREFIXES[name] + _term(operand, PREFIX_BINDS)
            return f"({text})" if binds > PREFIX_BINDS else text
        case ast.Name(name=name):
            return name
        case ast.Underscore():
            return "_"
        case ast.Parameter(name=name):
            return f"${name}"
        case ast.String(value=value):
            return _quoted(value)
        case _:
            return _call(term)


def _chain(name: str, left: ast.Term, right: ast.Term) -> str:
    """`left name right`.

    A chain leans to the left and may be long, so this is a loop, not a recursion.
    """
    openings, ends = 0, []
    while True:
        power = name == "^"
        ends.append(f" {name} {_term(right, PREFIX_BINDS if power else BINDS[name] + 1)}")
        binds = BINDS[name] + power
        match left:
            case ast.Functor(name=inner, args=[first, second]) if inner in BINDS:
                if BINDS[inner] < binds:
                    openings += 1
                    ends.append(")")
                name, left, right = inner, first, second
            case _:
                return "(" * openings + _term(left, binds) + "".join(reversed(ends))


def _call(term: _Call) -> str:
    match term:
        case ast.Functor(name=name, args=args):
            return f"{name}({_terms(args)})"
        case ast.UserFunctor(name=name, args=args):
            return f"@{name}({_terms(args)})"
        case ast.Cast(term=inner, type_name=type_name):
            return f"as({_term(inner)}, {_qname(type_name)})"
        case ast.Aggregate(op=op, target=target, body=body, start=start):
            name, _, count = op.partition("/")  # for several targets the tree keeps the first and their number
            targets = [] if target is None else [target] * int(count or 1)
            if start is not None:
                return f"@{name} {_terms(targets)} : {_term(start)}, {{ {_formula(body)} }}"
            return f"{name} {_terms(targets)} : {{ {_formula(body)} }}"
        case ast.HeadAggregate(op=op, target=target):
            return f"{op}({'' if target is None else _term(target)})"
        case ast.Counter():
            return "autoinc()"
        case ast.IterationCounter():
            return "recursive_iteration_cnt()"
        case ast.Nonflat(what="nil"):
            return "nil"
        case ast.Nonflat(what=what, args=args):
            return f"[{_terms(args)}]" if what == "record" else f"$Branch({_terms(args)})"
        case _:
            assert_never(term)

"""Laws of printing and formatting, over random trees and shipped programs.

The trees are those that the parser can make: a minus before a literal is part of the literal, an
`And` has two parts or more, a `FactLine` is below something that ends in a dot.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.dsl import ast
from everlog.dsl.builder import BINDS
from everlog.dsl.formatter import format_text
from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.dsl.parser import parse_text
from everlog.dsl.preprocess import preprocess_text
from everlog.dsl.printer import print_program, print_statement

PROGRAMS = sorted((Path(__file__).parents[2] / "programs").rglob("*.dl"))

# ── trees ────────────────────────────────────────────────────────────────────────────────────

names = st.sampled_from(["x", "y1", "edge", "?v", "_z", "Type", "choice", "a_rather_long_name_of_something"])
names |= st.sampled_from([word[1:] for word in DIRECTIVES if word[1:] not in KEYWORDS])
qnames = st.lists(names, min_size=1, max_size=3).map(".".join)
name_nodes = names.map(ast.Name)
qname_nodes = qnames.map(ast.Name)
symbols = st.text(max_size=6) | st.text('"\\\n\t/*#. a', max_size=6) | st.just("a long symbol " * 6)
integers = st.sampled_from(["0", "7", "007", "0x1F", "0b101", "99999999999999999999"])
floats = st.sampled_from(["0.5", "1.0e10", "2.25E-3"])


def signed(texts: Any) -> Any:
    return texts | texts.map(lambda text: "-" + text)


def some(strategy: Any, most: int = 3, least: int = 0) -> Any:
    return st.lists(strategy, min_size=least, max_size=most)


def negated(operand: ast.Term) -> ast.Term:
    """What the parser makes of `-operand`."""
    if isinstance(operand, ast.Number | ast.Float | ast.Unsigned) and operand.text[0] != "-":
        return type(operand)("-" + operand.text)
    return ast.Functor("neg", [operand])


leaves = (
    name_nodes
    | st.builds(ast.Underscore)
    | st.builds(ast.Parameter, st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True))
    | signed(integers).map(ast.Number)
    | signed(integers).map(ast.Unsigned)
    | signed(floats).map(ast.Float)
    | symbols.map(ast.String)
    | st.builds(ast.Counter)
    | st.builds(ast.IterationCounter)
    | st.just(ast.Nonflat("nil", []))
)
BINARY = [*BINDS, "^", "^"]
RELATIONS = ["=", "!=", "<", "<=", ">", ">=", "match", "contains"]


@cache
def terms_within(depth: int) -> Any:
    return leaves if depth == 0 else leaves | st.deferred(lambda: operations(terms_within(depth - 1), depth))


def operations(inner: Any, depth: int) -> Any:
    several, body = some(inner), formulas_within(depth - 1)
    return (
        st.builds(lambda op, a, b: ast.Functor(op, [a, b]), st.sampled_from(BINARY), inner, inner)
        | inner.map(negated)
        | st.builds(lambda op, a: ast.Functor(op, [a]), st.sampled_from(["bnot", "lnot"]), inner)
        | st.builds(ast.Functor, st.sampled_from(["cat", "range", "ord", "to_number"]), several)
        | st.builds(ast.Functor, st.sampled_from(["max", "min"]), some(inner, least=2))
        | st.builds(ast.UserFunctor, names, several)
        | st.builds(ast.Cast, inner, qnames)
        | st.builds(ast.Nonflat, st.sampled_from(["record", "branch"]), several)
        | st.builds(ast.Aggregate, st.just("count"), st.none(), body)
        | st.builds(ast.Aggregate, st.sampled_from(["sum", "max", "mean", "min/2"]), inner, body)
    )


@cache
def formulas_within(depth: int) -> Any:
    return st.deferred(lambda: literals(depth) if depth == 0 else literals(depth) | groups(depth))


def literals(depth: int) -> Any:
    inner = terms_within(depth)
    return (
        st.builds(ast.Atom, qnames, some(inner))
        | st.builds(ast.Constraint, st.sampled_from(RELATIONS), inner, inner)
        | st.builds(ast.Truth, st.booleans())
    )


def groups(depth: int) -> Any:
    inner = formulas_within(depth - 1)
    parts = some(inner, least=2)
    return parts.map(ast.And) | parts.map(ast.Or) | inner.map(ast.Not)


terms, formulas = terms_within(3), formulas_within(3)
atoms = st.builds(ast.Atom, qnames, some(terms))
ground_atoms = st.builds(ast.Atom, names, some(integers.map(ast.Number) | symbols.map(ast.String), least=1))
numbers = st.integers(0, 9)
plans = st.none() | some(st.tuples(numbers, some(numbers)), least=1).map(ast.Plan)
attributes = some(st.builds(ast.Attribute, names, qnames | qnames.map(lambda name: name + "<>")))
params = some(st.builds(ast.Attribute, st.just("") | names, qnames))
qualifiers = some(st.sampled_from(["input", "brie", "inline"]).map(ast.Qualifier))
choices = some(some(name_nodes, least=1).map(ast.Choice))
directives = st.sampled_from(["input", "output", "printsize", "limitsize", "insert_only"])
wishes = st.none() | st.builds(ast.Strategy, names)
component_types = st.builds(ast.ComponentType, names, some(names))
plain_symbols = st.text(st.characters(blacklist_characters='"\\\n'), max_size=6)
fact_lines = st.builds(ast.FactLine, names, some(st.integers() | plain_symbols, least=1))

NUMBER, SYMBOL = ast.Name("number"), ast.Name("symbol")
facts = st.builds(lambda head: ast.Clause([head], None), atoms | ground_atoms)
statements = (
    fact_lines
    | facts
    | st.builds(ast.Clause, some(atoms, least=1), formulas, plans, wishes)
    | st.builds(ast.Subsumption, atoms, atoms, formulas, plans)
    | st.builds(ast.RelationDecl, some(name_nodes, least=1), attributes, qualifiers, choices)
    | st.builds(lambda n, q, of: ast.RelationDecl([n], [], q, [], of), name_nodes, qualifiers, names)
    | st.builds(ast.TypeDecl, names, st.just("subset"), some(qname_nodes, 1, 1))
    | st.builds(ast.TypeDecl, names, st.just("equals"), some(qname_nodes, 9, 1))
    | st.builds(ast.TypeDecl, names, st.just("nonflat"), st.just([]))
    | st.builds(ast.TypeDecl, names, st.just("legacy"), st.sampled_from([[NUMBER], [SYMBOL]]))
    | st.builds(ast.FunctorDecl, names, params, qnames.map(lambda n: ast.Attribute("", n)), st.booleans())
    | st.builds(ast.Directive, directives, some(qname_nodes, least=1), some(st.tuples(names, symbols)))
    | st.builds(ast.Pragma, symbols, symbols)
    | st.builds(ast.Init, names, component_types)
    | names.map(ast.Override)
    | st.builds(ast.Lattice, names, some(st.tuples(names, terms), least=1))
)


def placed(items: list[ast.Statement], after_dot: bool) -> list[ast.Statement]:
    """Without the fact lines that stand where the lexer looks for none."""
    out: list[ast.Statement] = []
    for item in items:
        if isinstance(item, ast.FactLine) and not after_dot:
            continue
        out.append(item)
        clause = (
            isinstance(item, ast.Clause | ast.Subsumption)
            and item.plan is None
            and getattr(item, "strategy", None) is None
        )
        after_dot = clause or isinstance(item, ast.FactLine)
    return out


def with_components(inner: Any) -> Any:
    items = some(inner).map(lambda found: placed(found, after_dot=False))
    return inner | st.builds(ast.Component, component_types, some(component_types), items)


programs = st.lists(st.recursive(statements, with_components, max_leaves=4), max_size=6).map(
    lambda found: ast.Program(placed(found, after_dot=True))
)


def read(text: str) -> ast.Program:
    program, report = parse_text(text)
    assert not report.items, f"{report.text()}\n{text}"
    return program


def expanded(text: str) -> str:
    """The text with its macros replaced."""
    source, problems = preprocess_text(text, "<text>", [])
    assert not problems
    return source.text


# ── printing ─────────────────────────────────────────────────────────────────────────────────


@given(programs)
def test_a_printed_program_reads_back_as_the_same_tree(program: ast.Program) -> None:
    assert read(print_program(program)) == program


@given(terms)
def test_a_printed_term_reads_back_as_the_same_term(term: ast.Term) -> None:
    clause = ast.Clause([ast.Atom("p", [])], ast.Constraint("=", ast.Name("x"), term))
    assert read(print_statement(clause)) == ast.Program([clause])


@given(statements, st.integers(1, 60))
def test_where_lines_break_does_not_matter(statement: ast.Statement, width: int) -> None:
    assert joined(read(print_statement(statement, width))) == joined(ast.Program([statement]))


@given(programs)
def test_a_printed_program_is_already_formatted(program: ast.Program) -> None:
    printed = print_program(program)
    assert format_text(printed, "x.dl")[0] == printed.lstrip("\n")


# ── formatting ───────────────────────────────────────────────────────────────────────────────


def joined(program: ast.Program) -> ast.Program:
    """Facts as clauses, however they stand on their lines."""
    return ast.Program([_joined(statement) for statement in program.statements])


def _joined(statement: ast.Statement) -> ast.Statement:
    match statement:
        case ast.Component(type=type, bases=bases, items=items):
            return ast.Component(type, bases, [_joined(item) for item in items])
        case ast.FactLine(name=name, values=values):
            args: list[ast.Term] = [ast.String(v) if isinstance(v, str) else ast.Number(str(v)) for v in values]
            return ast.Clause([ast.Atom(name, args)], None)
        case ast.Clause(heads=[ast.Atom(name=name, args=args)], body=None):
            return ast.Clause([ast.Atom(name, [_decimal(arg) for arg in args])], None)
        case _:
            return statement


def _decimal(term: ast.Term) -> ast.Term:
    if isinstance(term, ast.Number) and re.fullmatch("-?[0-9]+", term.text):
        return ast.Number(str(int(term.text)))
    return term


COMMENTS = ["// why", "//", "/* so */", "/* one\n   two */", "/**/", '// "', "// a.b(1).", "/* // */"]
LINES = [
    "#define N 3",
    "#ifdef A",
    "  #endif",
    "#define LONG \\\n   1",
    '.include "other.dl"',
    "    .once // first",
]
blanks = st.sampled_from(["", " ", "\n", "\n\n\n", "\t "])
remarks = st.sampled_from(COMMENTS).map(lambda text: f" {text}{' ' if text.endswith('*/') else chr(10)}")
lines = st.sampled_from(LINES).map(lambda text: f"\n{text}\n")


@st.composite
def files(draw: st.DrawFn, gap: Any, inside: Any) -> str:
    """A program as a user may type it, with gaps at line ends and inside of lines."""
    out = [draw(gap)]
    for word in re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]+|\s', print_program(draw(programs))):
        out.append(word)
        if word.isspace():
            out.append(draw(gap if word == "\n" else inside))
    return "".join(out)


blank_files = files(blanks, blanks)
any_files = files(some(blanks | remarks | lines).map("".join), blanks | blanks | blanks | remarks | lines)
_LINE = re.compile(r"(?m)^[ \t]*#(?:\\\n|[^\n])*|\.include .*|\.once")
_SAID = re.compile(r'("(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/)|\s+', re.DOTALL)


def said(text: str) -> str:
    """The text without its blanks outside strings and comments."""
    return _SAID.sub(lambda found: found[1] or "", text)


@given(any_files)
def test_formatting_keeps_every_word_and_every_comment(text: str) -> None:
    formatted, report = format_text(text, "x.dl")
    assert not report.items
    assert said(formatted) == said(text)


@given(any_files)
def test_formatting_changes_no_meaning_and_has_no_more_to_say_the_second_time(text: str) -> None:
    formatted = format_text(text, "x.dl")[0]
    assert joined(read(_LINE.sub("", formatted))) == joined(read(_LINE.sub("", text)))
    assert format_text(formatted, "x.dl")[0] == formatted


@given(blank_files)
def test_formatting_leaves_no_blanks_at_line_ends_and_single_empty_lines(text: str) -> None:
    formatted = format_text(text, "x.dl")[0]
    assert re.search(r"\A\n|\n\n\n|\n\n\Z|[ \t]\n", formatted) is None
    assert formatted == "" or formatted.endswith("\n")


# ── what we ship ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_program_we_ship_prints_and_formats(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    program = read(expanded(text))
    assert read(print_program(program)) == program
    formatted, report = format_text(text, str(path))
    assert not report.items
    assert joined(read(expanded(formatted))) == joined(program)
    assert format_text(formatted, str(path))[0] == formatted

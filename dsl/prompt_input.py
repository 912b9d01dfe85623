"""Text typed at a prompt: marked statements, and whether the input is complete.

The grammar has no `+edge(1, 2).`, `-edge(1, 2).` or `?- path(1, x), x > 3.`  The parser itself
decides where a mark can stand: a sign, or `?-`, is a mark exactly where the text could also end.
This module takes it out of the tokens (for `?-` it puts in the head of a rule).  So the grammar
stays as it is, messages point at the right places, and several statements may share a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from everlog.core.runtime.collector import collector_paused
from everlog.dsl import ast
from everlog.dsl.answer_order import NONE, Ordering, OrderingReader
from everlog.dsl.automaton import automaton
from everlog.dsl.diagnostics import Report
from everlog.dsl.lexer import Token
from everlog.dsl.parser import Parser
from everlog.dsl.query_text import ParsedQuery, parsed
from everlog.dsl.source import Source

QUERY = "?-"


@frozen
class Typed:
    """A statement with its mark (none, `+`, `-` or `?-`) and the mark's offset."""

    mark: str
    statement: ast.Statement
    pos: int
    end: int


@frozen
class Reading:
    """A typed text: its statements, its errors, and whether it is incomplete."""

    source: Source
    statements: tuple[Typed, ...]
    report: Report
    more: bool
    unclosed: bool = False  # whether a comment or a symbol is open at the end
    orderings: Mapping[int, tuple[int, Ordering]] = field(factory=dict)  # by the end of a query

    def query(self, typed: Typed) -> ParsedQuery:
        """The query that a statement with the mark `?-` is.

        >>> reading = read_typed("+edge(1, 2). ?- path(1, x), x > 3.")
        >>> reading.query(reading.statements[1]).text
        'path(1, x), x > 3'
        """
        clause, report = typed.statement, Report(self.source)
        if isinstance(clause, ast.Clause) and (extra := clause.plan or clause.strategy):
            report.error("DL010", "a query has no plan and no strategy", extra)
        return self._parsed(typed.pos, typed.end, [clause], report)

    def only_query(self) -> ParsedQuery | None:
        """The query that the whole text is, right or wrong; None if it has other statements, too.

        >>> read_typed("?- path(1, x). +edge(1, 2).").only_query() is None
        True
        """
        if len(self.statements) > 1:
            return None
        if self.report.errors:
            return self._parsed(0, len(self.source.text), [], self.report)
        return self.query(self.statements[0])

    def _parsed(self, pos: int, end: int, clauses: list[ast.Statement], report: Report) -> ParsedQuery:
        written = self.source.text[pos + len(QUERY) : end - 1]
        blanks = len(written) - len(written.lstrip())
        ends, ordering = self.orderings.get(end, (None, NONE))
        return parsed(written.strip(), clauses, report, pos + len(QUERY) + blanks, ordering, ends)


def read_typed(text: str, file: str = "<typed>") -> Reading:
    """Read the statements of a typed text.

    >>> reading = read_typed("+edge(1, 2). -edge(3, 4). ?- path(1, x), x > 3.")
    >>> [(typed.mark, type(typed.statement).__name__) for typed in reading.statements]
    [('+', 'Clause'), ('-', 'Clause'), ('?-', 'Clause')]
    >>> read_typed("path(x, z) :- path(x, y),").more, read_typed("path(x, z) :- path(x, y)) .").more
    (True, False)
    """
    source = Source(text, file)
    report = Report(source)
    parser = Parser(automaton(), source, report)
    marks: dict[int, tuple[str, int]] = {}  # start of a statement → its mark and the mark's offset
    orderings = OrderingReader(parser, report)
    with collector_paused():
        program = parser.run(lambda tokens: _without_marks(parser, orderings.without(tokens), marks))
    statements = []
    for statement in program.statements:
        mark, pos = marks.pop(statement.pos, ("", statement.pos))
        statements.append(Typed(mark, statement, pos, statement.end))
    errors = report.errors
    unclosed = bool(errors) and errors[0].code == "DL002"  # a comment or a symbol
    more = parser.stopped_early or unclosed or (not errors and bool(marks))
    for typed in statements:
        if typed.mark != QUERY and typed.end in orderings.found:
            where = ast.Name("", orderings.found[typed.end][0], typed.end)
            report.error("DL010", "only a query has an order and a limit", where)
    return Reading(source, tuple(statements), report, more, unclosed, orderings.found)


def _without_marks(parser: Parser, tokens: Iterator[Any], marks: dict[int, tuple[str, int]]) -> Iterator[Any]:
    """The tokens without marks; the marks go to `marks`."""
    sign: tuple[str, int] | None = None
    for token in tokens:
        if sign is not None:
            marks[token.pos] = sign
            sign = None
        elif _is_sign(token) and _may_end(parser):
            sign = token.value, token.pos
            continue
        elif _is_question(token) and _may_end(parser):
            after = next(tokens)
            if isinstance(after, Token) and after.type == "MINUS" and after.pos == token.end:
                marks[token.pos] = QUERY, token.pos
                yield from _head_at(token.pos, after.end)
            else:
                yield from (token, after)
            continue
        yield token


def _may_end(parser: Parser) -> bool:
    return parser.machine.accepts(parser.states, "$END")


def _is_sign(token: Any) -> bool:
    return isinstance(token, Token) and token.value in ("+", "-")


def _is_question(token: Any) -> bool:
    return isinstance(token, ast.Name) and token.name == "?"


def _head_at(pos: int, end: int) -> Iterator[Any]:
    """`?- body.` is read as a rule `?() :- body.`"""
    yield ast.Name("?", pos, end)
    yield Token("LPAREN", "(", end, end)
    yield Token("RPAREN", ")", end, end)
    yield Token("IF", ":-", end, end)

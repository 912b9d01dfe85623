"""The text of a query, parsed once: what checks it, matches it or asks it shares one syntax tree.

A query is the body of a rule.  It may begin with `?-` and end with `.` or `?`.  The parser reads it
behind the head of a rule, so places in the tree are shifted; `at_home` shifts diagnostics back.
"""

from __future__ import annotations

import re

from attrs import evolve, frozen

from everlog.core.runtime.collector import collector_paused
from everlog.dsl import ast
from everlog.dsl.answer_order import NONE, Ordering, OrderingReader
from everlog.dsl.automaton import automaton
from everlog.dsl.diagnostics import Diagnostic, Label, Report, deep_nesting
from everlog.dsl.lexer import lex
from everlog.dsl.parser import Parser
from everlog.dsl.source import Source
from everlog.dsl.walk import everything_below

FILE = "<query>"
NOWHERE = -1
_BEGIN = "query() :-\n"  # before the query, on a line of its own
_MARKS = re.compile(r"\s*(\?-)?")
_PARTS = re.compile(r'(?P<aside>\s+|//[^\n]*|/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|.', re.DOTALL)


@frozen
class ParsedQuery:
    """A query with its syntax tree, or with its syntax errors.

    `syntax` is the report of the source that was parsed; `text` begins there at `start`.  Nothing
    changes the tree: one query may be checked several times, for rows and for variables.
    """

    text: str
    clause: ast.Clause | None
    syntax: Report
    start: int
    ordering: Ordering = NONE
    ends: int | None = None  # where the body ends, if an ordering follows

    @property
    def body(self) -> str:
        """The text without the marks of a query and its ordering."""
        start, end = _bounds(self.text)
        return self.text[start : end if self.ends is None else self.ends].strip()

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters; none if the syntax is wrong.

        >>> parse_query('p($user, x), x != "$none", q($user, $Branch(1))').parameters
        ['user']
        """
        nodes = [] if self.clause is None else everything_below(self.clause.body)
        return list(dict.fromkeys(node.name for node in nodes if isinstance(node, ast.Parameter)))

    @property
    def atom(self) -> ast.Atom | None:
        """The one atom that the query is, if it is one."""
        body = None if self.clause is None else self.clause.body
        return body if isinstance(body, ast.Atom) else None

    def new_report(self) -> Report:
        """A report of its own for each check, which begins with the syntax errors."""
        return Report(self.syntax.source, list(self.syntax.items))

    def at_home(self, report: Report) -> Report:
        """The errors of a report with places in the query's own text, and nowhere else."""
        out: list[Diagnostic] = []
        for found in report.errors:
            labels = tuple(
                Label(label.pos - self.start, label.end - self.start, label.text)
                for label in found.labels
                if label.pos != NOWHERE
            )
            message = found.message
            if found.code == "DL010" and found.end == len(report.source.text):  # at the full stop that was added
                message = message.replace("unexpected `.`", "unexpected end of the query")
            if message.startswith("head variable"):  # a query has no head
                message = message.removeprefix("head ").replace("by the body", "by every alternative of the query")
            if found.pos == NOWHERE:
                out.append(evolve(found, message=message, labels=labels))
            else:
                at = min(max(found.pos - self.start, 0), len(self.text))
                out.append(evolve(found, message=message, pos=at, end=found.end - self.start, labels=labels))
        placed = {found.code for found in out if found.pos != NOWHERE}
        kept = [found for found in out if found.pos != NOWHERE or found.code not in placed]
        return Report(Source(self.text, FILE), kept)

    def syntax_error(self) -> str:
        """The first thing that is wrong with the syntax, or "".

        >>> parse_query("p(x,").syntax_error()
        'unexpected end of the query; expected a term'
        """
        errors = self.at_home(self.syntax).errors
        return errors[0].message if errors else ""


def parse_query(text: str) -> ParsedQuery:
    """The query that a text is, right or wrong.

    >>> parse_query("?- edge(1, x), x > 3.").body, parse_query("edge(1, x)?").body
    ('edge(1, x), x > 3', 'edge(1, x)')
    """
    start, end = _bounds(text)
    source = Source(f"{_BEGIN}{' ' * start}{text[start:end]} .", FILE)
    report = Report(source)
    statements: list[ast.Statement] = []
    with deep_nesting(report):
        reader = OrderingReader(parser := Parser(automaton(), source, report), report)
        with collector_paused():
            statements = parser.run(reader.without).statements
    if not report.items and len(statements) > 1:
        report.error("DL010", "a query is one body of a rule, this is more", statements[1])
    ends, ordering = next(iter(reader.found.values()), (None, NONE))
    return parsed(text, statements, report, len(_BEGIN), ordering, ends)


def parsed(
    text: str,
    statements: list[ast.Statement],
    syntax: Report,
    start: int,
    ordering: Ordering = NONE,
    ends: int | None = None,
) -> ParsedQuery:
    """The query whose statement was parsed already, in a longer text, where its body `ends`."""
    if syntax.errors:
        return ParsedQuery(text, None, syntax, start)
    clause = statements[0]
    assert isinstance(clause, ast.Clause)
    return ParsedQuery(text, clause, syntax, start, ordering, None if ends is None else ends - start)


def parameters_of(text: str) -> list[str]:
    """The names of the parameters that stand in a text, right or wrong.

    >>> parameters_of('p($user, x), x != "$none", q($user, $Branch(1))')
    ['user']
    """
    words = lex(text, Report(Source(text, FILE)))
    return list(dict.fromkeys(word.name for word in words if isinstance(word, ast.Parameter)))


def _bounds(text: str) -> tuple[int, int]:
    """Where the body begins and ends; blanks replace the rest, so that places stay true."""
    end = max((part.end() for part in _PARTS.finditer(text) if not part["aside"]), default=0)
    begin = _MARKS.match(text)
    start = begin.end() if begin is not None else 0
    return start, end - 1 if text[start:end].endswith((".", "?")) else end

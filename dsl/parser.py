"""Tokens to syntax tree, with every syntax error of a file.

The automaton of `grammar.lark` reads token after token and builds nodes while it runs.  At an error
it reports what it expected and drops the current statement: it pops its stack back to a state where
a statement may begin, skips to where the next one seems to begin, and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Any, get_args

from lark import Tree

from everlog.core.runtime.collector import collector_paused
from everlog.dsl import ast
from everlog.dsl.automaton import Automaton, automaton
from everlog.dsl.diagnostics import Diagnostic, Label, Report
from everlog.dsl.keywords import DIRECTIVES
from everlog.dsl.lexer import Lexeme, Token, lex
from everlog.dsl.source import Source
from everlog.dsl.walk import MAX_DEPTH, too_deep

MAX_SYNTAX_ERRORS = 100

# Names of the grammar's terminals in messages.
TERMINALS: dict[str, str] = {
    "IDENT": "a name",
    "NUMBER": "a number",
    "UNSIGNED": "an unsigned number",
    "FLOAT": "a float",
    "STRING": "a symbol",
    "UNDERSCORE": "`_`",
    "DOT": "`.`",
    "COMMA": "`,`",
    "SEMICOLON": "`;`",
    "COLON": "`:`",
    "IF": "`:-`",
    "LPAREN": "`(`",
    "RPAREN": "`)`",
    "LBRACKET": "`[`",
    "RBRACKET": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "PIPE": "`|`",
    "DOLLAR": "`$`",
    "PARAMETER": "a parameter",
    "AT": "`@`",
    "NOT": "`!`",
    "SUBTYPE": "`<:`",
    "MAPSTO": "`->`",
    "LT": "`<`",
    "GT": "`>`",
    "LE": "`<=`",
    "EQ": "`=`",
    "RELOP": "a comparison",
    "MINUS": "`-`",
    "BINOP": "an operator",
    "UNOP": "`bnot` or `lnot`",
    "BUILTIN": "a functor",
    "AGGREGATE": "an aggregate",
    "QUALIFIER": "a qualifier",
    "STRINGTEST": "`match` or `contains`",
    "TRUTH": "`true` or `false`",
    "AUTOINC": "`autoinc`",
    "ITERATION": "`recursive_iteration_cnt`",
    "AS": "`as`",
    "NIL": "`nil`",
    "STATEFUL": "`stateful`",
    "DEBUG_DELTA": "`debug_delta`",
    "CHOICEDOMAIN": "`choice-domain`",
    "FACT": "a fact",
    "$END": "the end",
    "DIRECTIVE": "a directive",
    **{terminal: f"`{word}`" for word, terminal in DIRECTIVES.items() if terminal != "DIRECTIVE"},
}
_STATEMENTS = get_args(ast.Statement)
_STATEMENT_STARTS = set(DIRECTIVES.values()) - {"PLAN", "STRATEGY"}
_KEYWORDS = {"BUILTIN", "AGGREGATE", "QUALIFIER", "BINOP", "UNOP", "TRUTH", "AS"}
_DIRECTIVE = re.compile(r"\.[A-Za-z_]\w*")
_TERM_STARTS = {"IDENT", "NUMBER", "STRING", "UNDERSCORE", "FLOAT", "UNSIGNED", "LPAREN"}


def parse(source: Source, report: Report, tokens: list[Lexeme] | None = None) -> ast.Program:
    """The syntax tree of a source, as far as it can be read; errors go to `report`.

    The tokens that were read are added to `tokens`.

    >>> source = Source("p(x) :- q(x).")
    >>> parse(source, Report(source)).statements[0].heads
    [Atom(name='p', args=[Name(name='x')])]

    Cost: linear in the text.
    """
    with collector_paused():
        parser = Parser(automaton(), source, report)
        return parser.run() if tokens is None else parser.run(lambda read: _recorded(read, tokens))


def _recorded(tokens: Iterator[Any], into: list[Lexeme]) -> Iterator[Any]:
    for token in tokens:
        into.append(token)
        yield token


def parse_text(text: str, file: str = "<text>") -> tuple[ast.Program, Report]:
    source = Source(text, file)
    report = Report(source)
    return parse(source, report), report


class Parser:
    def __init__(self, machine: Automaton, source: Source, report: Report) -> None:
        self.machine, self.source, self.report = machine, source, report
        self.states: list[int] = [machine.start]
        self.values: list[Any] = []
        self.errors = 0
        self.lacked_dot = False  # whether the last error was a missing full stop
        self.stopped_early = False  # whether the text ended inside a statement without an error so far

    def run(self, marked: Callable[[Iterator[Any]], Iterator[Any]] = iter) -> ast.Program:
        """The tree; `marked` may remove tokens that are not of the language."""
        length = len(self.source.text.rstrip())
        end = Token("$END", "", length, length + 1)
        tokens = marked(chain(lex(self.source.text, self.report), [end]))
        resume: Any = None
        while True:
            stuck, last = self.feed(tokens if resume is None else chain([resume], tokens))
            if stuck is None:
                program = self.values[-1]
                assert isinstance(program, ast.Program)
                return self.shallow(program)
            self.stopped_early = self.stopped_early or (stuck is end and not self.errors)
            self.report_error(stuck, last)
            resume = None if stuck is end else self.resynchronize(stuck, tokens)
            if resume is None:
                return self.rest()

    def feed(self, tokens: Iterator[Any]) -> tuple[Any, Any]:
        """Shift and reduce up to the end (None) or to the first token in error.

        The second value is the token before.  This loop takes half of the time of parsing.
        """
        states, values, table, end = self.states, self.values, self.machine.table, self.machine.end
        state = states[-1]
        last: Any = None
        for token in tokens:
            type = token.type
            while True:
                action = table[state].get(type)
                if action.__class__ is int:
                    state = action
                    states.append(state)
                    values.append(token)
                    break
                if action is None:
                    return token, last
                size, goto, build = action
                if size == 1:
                    if build is not None:
                        values[-1] = build([values[-1]])
                    state = states[-1] = goto[states[-2]]
                else:
                    if size:
                        children = values[-size:]
                        del values[-size:], states[-size:]
                    else:
                        children = []
                    values.append(build(children))
                    state = goto[states[-1]]
                    states.append(state)
                if state == end and type == "$END":
                    return None, last
            last = token
        raise AssertionError("the end is a token")

    def rest(self) -> ast.Program:
        """The complete statements when the text ended in an error.

        A component that is still open ends with the text.
        """
        statements: list[Any] = []
        items, values = statements, self.values
        for at, value in enumerate(values):
            if isinstance(value, Tree):  # of statements, or of smaller parts
                items += [each for each in value.children if isinstance(each, _STATEMENTS)]
            elif value.__class__ is Token and value.type == "LBRACE" and at >= 3:
                opened, named, bases = values[at - 3 : at]
                if opened.__class__ is Token and opened.type == "COMPONENT":
                    inside: list[Any] = []
                    end = len(self.source.text)
                    items.append(ast.Component(named, bases, inside, pos=opened.pos, end=end))
                    items = inside
        return self.shallow(ast.Program(statements))

    def shallow(self, program: ast.Program) -> ast.Program:
        """The program without statements that are nested too deeply."""
        kept = []
        for statement in program.statements:
            # a short text cannot be deep
            deep = too_deep(statement) if statement.end - statement.pos > MAX_DEPTH else None
            if deep is None:
                kept.append(statement)
            else:
                self.report.error("DL016", f"more than {MAX_DEPTH} terms or formulas inside each other", deep)
        return ast.Program(kept)

    # ── errors ───────────────────────────────────────────────────────────────────────────────

    def report_error(self, token: Any, last: Any) -> None:
        """Report one error: what stands there, what was expected, and a hint if any."""
        self.errors += 1
        if self.errors == MAX_SYNTAX_ERRORS + 1:
            self.report.error("DL010", "too many syntax errors; those that follow are not shown", token)
        if self.errors > MAX_SYNTAX_ERRORS:
            return
        expected = self.machine.expected(self.states)
        special = self._missing_mark(token, last, expected) or self._unknown_directive(token, expected)
        if special is not None:
            self.report.items.append(special)
            return
        text = self.source.text[token.pos : token.end]
        found = "end of the text" if token.type == "$END" else f"`{text if len(text) <= 40 else text[:37] + '…'}`"
        names = _named(expected)
        message = f"unexpected {found}" + (f"; expected {names}" if names else "")
        hint = _hint(expected, token, last) or self._dot_hint(token, expected)
        self.report.items.append(Diagnostic("DL010", message, token.pos, token.end, hint=hint))

    def resynchronize(self, token: Any, tokens: Iterator[Lexeme]) -> Any:
        """Drop the broken statement; return the first token of the next, or None."""
        first: Any = None
        lacked_dot = self.lacked_dot
        while len(self.states) > 1 and not self.machine.accepts(self.states, "DECL"):
            self.states.pop()
            first = self.values.pop()
        declaration = isinstance(first, Token) and first.type in _STATEMENT_STARTS
        inside = self.machine.accepts(self.states, "RBRACE")
        depth = 0
        after_dot = False
        if lacked_dot:
            return token
        while True:
            if token.type in _STATEMENT_STARTS or token.type == "FACT":
                return token
            if token.type == "IDENT" and (after_dot or (declaration and self._begins_line(token))):
                return token
            if token.type == "LBRACE":
                depth += 1
            elif token.type == "RBRACE":
                if depth == 0 and inside:
                    return token
                depth = max(0, depth - 1)
            after_dot = token.type == "DOT" and self.source.text[token.end : token.end + 1].isspace()
            token = next(tokens, None)
            if token is None:
                return None

    def _missing_mark(self, token: Any, last: Any, expected: set[str]) -> Diagnostic | None:
        """The error for a `.` or `,` that is missing at the end of an earlier line."""
        self.lacked_dot = False
        if "DOT" not in expected or last is None:
            return None
        message, label = "missing `.` at the end of the statement", "another statement begins here"
        if token.type in _STATEMENT_STARTS or token.type == "$END":
            self.lacked_dot = True
        elif token.type == "IDENT" and (indent := self._indent(token)) is not None:
            self.lacked_dot = indent <= (self._indent(self._statement_start()) or 0)
            if not self.lacked_dot:
                message, label = "missing `,` or `.`", "before this"
        else:
            return None
        labels = () if token.type == "$END" else (Label(token.pos, token.end, label),)
        return Diagnostic("DL010", message, last.end, last.end + 1, labels)

    def _statement_start(self) -> Any:
        """The first token or node of the statement that is being read."""
        for place in reversed(range(len(self.values))):
            if self.machine.accepts(self.states[: place + 1], "DECL"):
                return self.values[place]
        return self.values[0]

    def _indent(self, token: Any) -> int | None:
        """The number of characters before a token on its line; None if another token is there."""
        while isinstance(token, list):
            token = token[0]
        before = self.source.text[: token.pos].rpartition("\n")[2]
        return None if before.strip() else len(before)

    def _unknown_directive(self, token: Any, expected: set[str]) -> Diagnostic | None:
        """The error for a word such as `.dcl` where a statement may begin."""
        found = _DIRECTIVE.match(self.source.text, token.pos) if token.type == "DOT" else None
        if found is None or not expected >= {"DECL", "IDENT"} or self._indent(token) is None:
            return None
        close = get_close_matches(found[0], DIRECTIVES, 1, 0.5)
        hint = f"did you mean `{close[0]}`?" if close else ""
        return Diagnostic("DL010", f"unknown directive `{found[0]}`", token.pos, found.end(), hint=hint)

    def _dot_hint(self, token: Any, expected: set[str]) -> str:
        before = self.source.text[: token.pos].rpartition("\n")[2].lstrip()
        if token.type == "DOT" and expected >= {"DECL", "IDENT"} and before.startswith("."):
            return "only facts and rules end with `.`; directives end without it"
        return ""

    def _begins_line(self, token: Any) -> bool:
        """Whether a token begins a line.

        After a broken declaration, which has no full stop, a clause at the margin is a new one.
        """
        return token.pos == 0 or self.source.text[token.pos - 1] == "\n"


# ── messages ─────────────────────────────────────────────────────────────────────────────────


def _named(expected: set[str]) -> str:
    """The expected terminals in words; long lists are shortened."""
    if expected >= {"DECL", "TYPE", "IDENT"}:
        return "a statement"
    if expected >= _TERM_STARTS:
        expected = expected - _TERM_STARTS - {"BUILTIN", "AGGREGATE", "DOLLAR", "AUTOINC", "AT", "AS", "NIL"}
        expected -= {"MINUS", "UNOP", "LBRACKET", "ITERATION", "PARAMETER"}
        rest = ["a term", *sorted(TERMINALS.get(t, t) for t in expected)]
    else:
        if expected >= {"BINOP", "MINUS"}:
            expected = expected - {"MINUS"}
        rest = sorted(TERMINALS.get(t, t) for t in expected)
    if len(rest) > 8:
        rest = [*rest[:7], "…"]
    return rest[0] if len(rest) == 1 else ", ".join(rest[:-1]) + f" or {rest[-1]}" if rest else ""


def _hint(expected: set[str], token: Any, last: Any) -> str:
    if isinstance(last, Token) and last.type in _KEYWORDS and last.value.isidentifier():
        return f"`{last.value}` is a word of the language and cannot be a name; write `{last.value}_`"
    if isinstance(token, Token) and token.value.isidentifier() and "IDENT" in expected:
        return f"`{token.value}` is a word of the language and cannot be a name; write `{token.value}_`"
    if token.type == "DOT" and "RPAREN" in expected:
        return "a parenthesis is still open"
    return ""

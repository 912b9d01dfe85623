"""Text to terms, definitions and systems, with every syntax error of the text.

Lark makes an LALR(1) automaton of `grammar.lark`, which reads token after token.  At an error in a
system file the parser reports what it expected and drops the current item: it pops its stack back
to a state where an item may begin, skips to where the next item begins, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from lark import Lark, Token, UnexpectedToken
from lark.lexer import Lexer

from everlog.dsl.diagnostics import Diagnostic, Report
from everlog.dsl.source import Source
from everlog.ies.nrc import terms as t
from everlog.ies.nrc.items import SystemBuilder, assembled
from everlog.ies.nrc.lexer import ITEMS, MARKS, RESERVED, SOFT, lex
from everlog.ies.system import System

# Names of the grammar's terminals in messages.
_TERMINALS = {"NAME": "a name", "INT": "a number", "STRING": "a text", "$END": "the end", "STEP": "an update"}
_TERMINALS |= {terminal: f"`{mark}`" for mark, terminal in MARKS.items()}
_TERM_STARTS = frozenset("NAME INT STRING LPAR LBRACE".split())
_OTHER_STARTS = frozenset("LET IF NOT DASH TRUE FALSE UNION SUM EXISTS ALL".split())
_OPERATORS = frozenset("OR AND NOT UNION MINUS INTERSECT PLUS DASH STAR SLASH DOT IN".split())
_COMPARISONS = frozenset("EQ NE LT LE GT GE SUBSET".split())
_MAX_ERRORS = 50


def parse_term(text: str, file: str = "<text>") -> t.Term:
    """The term of a text.  Raises DatalogError.

    >>> parse_term("{x | (x, y) in R, y = 1}").head
    Var(name='x')
    """
    report = Report(Source(text, file))
    term: t.Term | None = _parsed(text, report, "term")
    report.raise_errors()
    assert term is not None
    return term


def parse_definitions(text: str, file: str = "<text>") -> tuple[t.Definition, ...]:
    """The functions of a text that holds nothing else.

    >>> [d.name for d in parse_definitions("def one(X) = 1  def two(X, Y) = 2")]
    ['one', 'two']
    """
    report = Report(Source(text, file))
    found: list[t.Definition] = _parsed(text, report, "definitions") or []
    seen: dict[str, t.Definition] = {}
    for definition in found:
        if definition.name in seen:
            report.error("NRC012", f"function `{definition.name}` is defined twice", definition)
        seen[definition.name] = definition
    report.raise_errors()
    return tuple(found)


def parse_system(text: str, file: str = "<text>") -> System:
    """The system of a file.  Raises DatalogError with every syntax error."""
    report = Report(Source(text, file))
    items: list[Any] | None = _parsed(text, report, "system")
    report.raise_errors()
    assert items is not None
    system = assembled(items, report)
    report.raise_errors()
    assert system is not None
    return system


class _NoLexer(Lexer):
    """Lexes nothing: the parser feeds the automaton token by token."""

    def __init__(self, lexer_conf: Any) -> None: ...

    def lex(self, *_: Any) -> Iterator[Any]:
        return iter(())


@lru_cache(maxsize=1)
def _machine() -> tuple[Lark, SystemBuilder]:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    builder = SystemBuilder()
    starts = ["term", "definitions", "system"]
    options: dict[str, Any] = {"keep_all_tokens": True, "maybe_placeholders": False, "transformer": builder}
    return Lark(grammar, parser="lalr", lexer=_NoLexer, start=starts, **options), builder


_LOCK = Lock()  # the builder handles one text at a time


def _parsed(text: str, report: Report, start: str) -> Any:
    with _LOCK:
        lark, builder = _machine()
        builder.begin(report)
        try:
            return _Run(lark, report, start).run(list(lex(text, report)), len(text.rstrip()))
        finally:
            builder.finish()


class _Run:
    """One text on its way through the automaton."""

    def __init__(self, lark: Lark, report: Report, start: str) -> None:
        self.parser = lark.parse_interactive("", start=start)
        self.report, self.start = report, start
        state = self.parser.parser_state
        self.states, self.values = state.state_stack, state.value_stack
        self.table = state.parse_conf.states

    def run(self, tokens: list[Token], end: int) -> Any:
        tokens.append(Token("$END", "", start_pos=end, end_pos=end + 1))
        place = 0
        while True:
            token = self._kept(tokens, place)
            try:
                result = self.parser.feed_token(token)
            except UnexpectedToken:
                self._report(token, tokens[place - 1] if place else None)
                resumed = self._resumed(tokens, place)
                if resumed is None or len(self.report.items) >= _MAX_ERRORS:
                    return None
                place = resumed
                continue
            if token.type == "$END":
                return result
            place += 1

    def _kept(self, tokens: list[Token], place: int) -> Token:
        """The token, as a keyword of system files where the grammar allows one."""
        token = tokens[place]
        if token.type != "NAME" or self.start != "system" or token.value not in SOFT:
            return token
        keyword = token.value.upper()
        after = tokens[place + 1]
        if keyword not in self.table[self.states[-1]] or after.type in ("ASSIGN", "PLUSEQ", "MINUSEQ", "EQ"):
            return token
        if keyword in ("NEW", "PRESENT") and after.value in ("into", "from"):
            return token
        return Token(keyword, token.value, start_pos=token.start_pos, end_pos=token.end_pos)

    def _resumed(self, tokens: list[Token], place: int) -> int | None:
        """Where the next item begins after an error, with the stacks cut back; or None."""
        if self.start == "term":
            return None
        text = self.report.source.text
        for at in range(max(place, 1), len(tokens)):
            token = tokens[at]
            kind = token.value.upper() if token.type == "NAME" else token.type
            before = text[text.rfind("\n", 0, token.start_pos) + 1 : token.start_pos]
            if kind not in ITEMS or before.strip():
                continue
            for depth in range(len(self.states) - 1, -1, -1):
                if self._accepts(self.states[: depth + 1], kind):
                    del self.states[depth + 1 :], self.values[depth:]
                    return at
        return None

    def _accepts(self, stack: list[Any], terminal: str) -> bool:
        """Whether the automaton would shift a terminal after its reductions: a dry run."""
        trial = list(stack)
        while True:
            found = self.table[trial[-1]].get(terminal)
            if found is None:
                return False
            action, target = found
            if action.name == "Shift":
                return True
            size = len(target.expansion)
            if size:
                del trial[-size:]
            trial.append(self.table[trial[-1]][target.origin.name][1])
            if terminal == "$END" and trial[-1] == self.parser.parser_state.parse_conf.end_state:
                return True

    def _report(self, token: Token, before: Token | None) -> None:
        pos, end = token.start_pos or 0, token.end_pos or 0
        after = (before.end_pos or 0) if before is not None else 0
        if any(after <= d.pos <= pos and d.code in ("NRC001", "NRC002") for d in self.report.items):
            return  # a missing word, which was reported already
        expected = {
            symbol
            for symbol in self.table[self.states[-1]]
            if (symbol.isupper() or symbol == "$END") and self._accepts(self.states, symbol)
        }
        shown = "the end of the text" if token.type == "$END" else f"`{_short(token.value)}`"
        message = f"unexpected {shown}"
        if (wanted := _wanted(expected)) and len(wanted) < 200:
            message += f", expected {wanted}"
        self.report.items.append(Diagnostic("NRC010", message, pos, end, hint=_hint(token, before, expected)))


def _wanted(expected: set[str]) -> str:
    words: list[str] = []
    if expected >= _TERM_STARTS:
        words.append("a term")
        expected = expected - _TERM_STARTS - _OTHER_STARTS
    elif expected & {"PLUS", "AND"}:
        expected = expected - _OPERATORS - _COMPARISONS - {"LPAR"}
        words.append("an operator")
    if len(expected & ITEMS) > 4:
        expected -= ITEMS
        words.append("the next item")
    words += sorted(_TERMINALS.get(terminal, f"`{terminal.lower()}`") for terminal in expected)
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else "".join(words)


def _hint(token: Token, before: Token | None, expected: set[str]) -> str:
    if token.type in _COMPARISONS | {"IN"} and "AND" in expected:
        return "comparisons do not chain; put one of them in parentheses"
    if token.type in ("LET", "IF") and expected >= {"NAME", "LPAR"} and before is not None:
        return f"put this `{token.value}` in parentheses"
    if token.value in RESERVED and "NAME" in expected:
        return f"`{token.value}` is a word of the language and cannot be a name"
    if token.type == "INT" and before is not None and before.type == "DOT":
        return "parts of a tuple are counted from 1"
    return ""


def _short(value: str) -> str:
    first = value.split("\n")[0]
    return first if len(first) <= 40 and first == value else first[:40] + "…"

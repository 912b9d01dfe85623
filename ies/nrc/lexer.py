"""Characters to tokens of the calculus.

Words of terms are reserved (`let`, `union`, …).  Words of system files (`cost`, `new`, `end`, …)
are not: `ies.nrc.parser` reads such a word as a keyword only where the grammar allows one, so
relations and variables may have these names.  A line `+edge(1, 2).` of an example is one token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lark import Token

from everlog.dsl.diagnostics import Diagnostic, Report

RESERVED = frozenset(
    "let in if then else or and not union minus intersect subset true false def".split(),
)
BEFORE_BRACE = frozenset({"sum", "exists", "all"})  # reserved only before `{`
SOFT = frozenset(
    "system theorem about growth exponential cost instead query input answer aux initially on insert delete new "
    "present into from require example end sri shows".split(),
)
ITEMS = frozenset(
    "SYSTEM THEOREM ABOUT GROWTH COST INSTEAD QUERY INPUT ANSWER AUX DEF INITIALLY ON EXAMPLE SRI SHOWS".split()
)
MARKS = {
    "(": "LPAR",
    ")": "RPAR",
    "{": "LBRACE",
    "}": "RBRACE",
    "{|": "LBAG",
    "|}": "RBAG",
    ",": "COMMA",
    ".": "DOT",
    ":": "COLON",
    "|": "PIPE",
    "=>": "ARROW",
    ":=": "ASSIGN",
    "+=": "PLUSEQ",
    "-=": "MINUSEQ",
    "=": "EQ",
    "!=": "NE",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "+": "PLUS",
    "-": "DASH",
    "*": "STAR",
    "/": "SLASH",
}

_MASTER = re.compile(
    r"""(?P<blank>(?:\s+|--[^\n]*)+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*'*)
      | (?P<int>[0-9]+)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<modular>[-+*/]\[\s*[0-9]+\s*\])
      | (?P<mark>\{\||\|\}|=>|:=|\+=|-=|!=|<=|>=|[-(){},.:|=<>+*/])
    """,
    re.VERBOSE | re.DOTALL,
)
_STEP = re.compile(  # up to the end of its line
    r'[+-][ \t]*[A-Za-z_][A-Za-z0-9_]*\((?:"(?:\\.|[^"\\\n])*"|[^"\n])*\)[ \t]*\.'
    r"(?=[ \t\r]*(?:--[^\n]*)?(?:\n|\Z))"
)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def lex(text: str, report: Report) -> Iterator[Token]:
    """The tokens of a text.  Reports and skips characters that begin no token.

    >>> from everlog.dsl.source import Source
    >>> [token.type for token in lex("x in sum", Report(Source("x in sum")))]
    ['NAME', 'IN', 'NAME']

    Cost: linear in the text.
    """
    pos, length = 0, len(text)
    fresh = True  # whether only blanks stand before on this line
    while pos < length:
        if fresh and text[pos] in "+-":
            step = _STEP.match(text, pos)
            if step is not None:
                yield _token("STEP", step[0], pos)
                pos = step.end()
                continue
        found = _MASTER.match(text, pos)
        if found is None:
            pos = _stray(text, pos, report)
            continue
        start, pos = pos, found.end()
        word = found[0]
        match found.lastgroup:
            case "blank":
                fresh = fresh or "\n" in word
                continue
            case "name":
                yield _token(_kind(word, text, pos), word, start)
            case "int":
                yield _token("INT", word, start)
            case "string":
                yield _token("STRING", word, start)
            case "modular":
                yield _token(MARKS[word[0]], word, start)
            case _:
                yield _token(MARKS[word], word, start)
        fresh = False


def unquoted(token: Token, report: Report) -> str:
    """The text of a string literal."""
    if "\\" not in token.value:
        return str(token.value[1:-1])
    start = token.start_pos or 0

    def replaced(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            place = start + 1 + found.start()
            hint = 'known are \\" \\\\ \\n \\t'
            message = f"unknown escape sequence `\\{found[1]}`"
            report.items.append(Diagnostic("NRC002", message, place, place + 2, hint=hint))
        return _ESCAPES.get(found[1], found[1])

    return re.sub(r"\\(.)", replaced, token.value[1:-1], flags=re.DOTALL)


def _token(type_: str, word: str, start: int) -> Token:
    return Token(type_, word, start_pos=start, end_pos=start + len(word))


_BRACE = re.compile(r"(?:\s+|--[^\n]*)*\{")


def _kind(word: str, text: str, pos: int) -> str:
    if word in RESERVED or (word in BEFORE_BRACE and _BRACE.match(text, pos)):
        return word.upper()
    return "NAME"


def _stray(text: str, pos: int, report: Report) -> int:
    """Report a character that begins no token; return where to go on."""
    char = text[pos]
    if char == '"':
        stop = text.find("\n", pos)
        stop = len(text) if stop < 0 else stop
        message = "this text is never closed"
        report.items.append(Diagnostic("NRC002", message, pos, stop, hint='close it with `"`'))
        return len(text)
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    report.items.append(Diagnostic("NRC001", f"unexpected character `{shown}`", pos, pos + 1))
    return pos + 1

"""What is being written at the cursor: the unfinished statement, and the call that is open.

The text up to the cursor goes through the language's lexer; what follows it does not matter.
"""

from __future__ import annotations

import re

from attrs import frozen

from everlog.dsl import ast
from everlog.dsl.diagnostics import Report
from everlog.dsl.keywords import DIRECTIVES
from everlog.dsl.lexer import Lexeme, Token, lex
from everlog.dsl.source import Source

_WORD = re.compile(r"[?\w]*")
_OPENERS, _CLOSERS = {"LPAREN", "LBRACKET", "LBRACE"}, {"RPAREN", "RBRACKET", "RBRACE"}
_STARTS = set(DIRECTIVES.values())


@frozen
class OpenCall:
    """`name(a, b, …` with the argument that the cursor is in; `user` after `@`."""

    path: list[str]
    argument: int
    type: str
    user: bool = False


@frozen
class CursorContext:
    """The begun word, the tokens of the statement before it, and whether this is code at all."""

    word: str
    tokens: list[Lexeme]
    before: str  # the text of the line up to the cursor
    in_code: bool = True

    @property
    def first(self) -> str:
        """The terminal of the first token; empty at the beginning of a statement."""
        return self.tokens[0].type if self.tokens else ""

    @property
    def last(self) -> str:
        return self.tokens[-1].type if self.tokens else ""

    @property
    def path(self) -> list[str]:
        """`a.b` of `a.b.` right before the word."""
        parts: list[str] = []
        at = len(self.tokens) - 1
        while at >= 1 and self.tokens[at].type == "DOT" and isinstance(name := self.tokens[at - 1], ast.Name):
            if name.end != self.tokens[at].pos:
                break
            parts.insert(0, name.name)
            at -= 2
        return parts

    @property
    def variables(self) -> list[str]:
        """The names of the statement that are no relation, functor or column."""
        out: dict[str, None] = {}
        for token, after in zip(self.tokens, [*self.tokens[1:], None], strict=True):
            if isinstance(token, ast.Name) and (after is None or after.type not in ("LPAREN", "DOT")):
                out[token.name] = None
        return list(out)

    def call(self) -> OpenCall | None:
        """The innermost call whose parenthesis is open."""
        depth = commas = 0
        for at in range(len(self.tokens) - 1, -1, -1):
            type = self.tokens[at].type
            if type in _CLOSERS:
                depth += 1
            elif type in _OPENERS and depth:
                depth -= 1
            elif type in _OPENERS:
                return self._called(at - 1, commas) if type == "LPAREN" else None
            elif type == "COMMA" and not depth:
                commas += 1
        return None

    def _called(self, at: int, argument: int) -> OpenCall | None:
        if at < 0:
            return None
        token = self.tokens[at]
        if isinstance(token, Token):
            return OpenCall([token.value], argument, token.type) if token.value.isidentifier() else None
        if not isinstance(token, ast.Name):
            return None
        path = [token.name]
        while at >= 2 and self.tokens[at - 1].type == "DOT" and isinstance(name := self.tokens[at - 2], ast.Name):
            if self.tokens[at - 1].pos != name.end:
                break
            path.insert(0, name.name)
            at -= 2
        user = at >= 1 and self.tokens[at - 1].type == "AT"
        return OpenCall(path, argument, "IDENT", user)


def context_at(text: str) -> CursorContext:
    """The context at the end of a text.

    >>> found = context_at("p(1).\\nq(x) :- edge(x, y), path(y, z")
    >>> found.word, found.variables, found.call()
    ('z', ['x', 'y'], OpenCall(path=['path'], argument=1, type='IDENT', user=False))
    >>> context_at('p("a').in_code, context_at("// no").in_code
    (False, False)
    """
    line = text.rpartition("\n")[2]
    backwards = _WORD.match(line[::-1])  # a search for the end would try every start
    begun = backwards[0][::-1] if backwards else ""
    report = Report(Source(text))
    tokens = list(lex(text, report))
    rest = text[tokens[-1].end if tokens else 0 :]
    unclosed = any(item.code == "DL002" for item in report.items)
    comment = "//" in rest.rpartition("\n")[2]
    if begun and tokens and tokens[-1].end == len(text):
        tokens.pop()
    return CursorContext(begun, _statement(tokens, text), line, not unclosed and not comment)


def _statement(tokens: list[Lexeme], text: str) -> list[Lexeme]:
    """The tokens of the last, unfinished statement."""
    start = len(tokens)
    while start > 0:
        token = tokens[start - 1]
        if token.type == "FACT" or (token.type == "DOT" and text[token.end : token.end + 1].isspace()):
            break
        start -= 1
        if token.type in _STARTS:
            break
    found = tokens[start:]
    if found and found[0].type in _STARTS:  # a declaration has no full stop: a clause at the margin follows
        for at, token in enumerate(found):
            if at and token.type == "IDENT" and text[token.pos - 1] == "\n":
                return found[at:]
        if "\n" in text[found[-1].end :] and found[-1].type not in ("COMMA", "LPAREN", "COLON", "EQ", "PIPE"):
            return []
    return found

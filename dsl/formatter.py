"""Formats a program file in the house style; keeps comments, `#` and empty lines.

The formatter works on the file as written, before macros are expanded, and changes only blanks
between words: `(N) * 2` is not `N * 2` where `N` is a macro.  It blanks out everything that is not
code, keeping offsets.  The parser then finds where statements begin, and the words of each are laid
out again.  A statement that contains something other than code stays as it is.  The result is
checked: unless its words, comments and `#` lines equal those of the input, the input is returned.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from attrs import define, field

from everlog.dsl import ast
from everlog.dsl.diagnostics import Report
from everlog.dsl.keywords import DIRECTIVES
from everlog.dsl.lexer import Lexeme, lex
from everlog.dsl.parser import parse
from everlog.dsl.source import Source

WIDTH, INDENT = 100, "    "

Word: TypeAlias = tuple[str, str]  # its terminal in the grammar, its text


def format_text(text: str, file: str) -> tuple[str, Report]:
    """The formatted text, and its syntax errors; with errors the text is unchanged.

    >>> format_text("p(x):-q(x),x<3.  //why\\n\\n\\nq(1).q(2).", "x.dl")[0]
    'p(x) :- q(x), x < 3.  //why\\n\\nq(1). q(2).\\n'

    Cost: linear in the text.
    """
    collecting = gc.isenabled()
    gc.disable()  # many small objects, all of them kept: collections would free nothing
    try:
        return _formatted(text, file)
    finally:
        if collecting:
            gc.enable()


def _formatted(text: str, file: str) -> tuple[str, Report]:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    report = Report(Source(plain, file))
    flat, words, asides = _code_and_asides(plain)
    program = parse(Source(flat, file), report)
    if report.items:
        return text, report
    writer = _Writer(plain)
    for piece in _pieces(plain, words, asides, program):
        writer.write(piece)
    result = "".join(f"{line}\n" for line in writer.lines)
    if _said(result, *_code_and_asides(result)[1:]) != _said(plain, words, asides):
        return text, report
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark + (result.replace("\n", "\r\n") if "\r\n" in text else result), report


def _said(text: str, words: list[Lexeme], asides: list[_Piece]) -> list[str]:
    """The content of a text in order, without blanks."""
    return [text[p.pos : p.end] for p in sorted([*words, *asides], key=lambda p: p.pos)]


# ── a text taken apart ───────────────────────────────────────────────────────────────────────

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = r"//(?:[^\n\\]|\\.)*+\\?|/\*.*?\*/"
_SCAN = re.compile(
    rf"""(?P<blank>\s+)
      | (?P<comment>{_COMMENT})
      | (?P<hash>\#(?:[^\n"/\\]++|"(?:[^"\\\n]|\\.)*+"?|{_COMMENT}|\\.|[/\\])*+)
      | (?P<include>(?<![\w?])\.(?:include[ \t]*"(?:[^"\\\n]|\\.)*+"|once(?![\w?]))(?:[ \t]*//[^\n\\]*+(?!\\))?)
      | {_STRING} | [^\s"/\#.]++ | .
    """,
    re.VERBOSE | re.DOTALL,
)


@define
class _Piece:
    """A unit that is written as a whole."""

    kind: str  # comment, line (of the preprocessor), open or close (a component), fact or statement
    pos: int
    end: int
    text: str
    words: list[Word] = field(factory=list)  # none: the text stays as it is


def _code_and_asides(text: str) -> tuple[str, list[Lexeme], list[_Piece]]:
    """The code alone with every offset kept; its words; and the text between them.

    Blanks become form feeds: without newlines no fact is read as a `FactLine`, so the tree depends
    on the words alone, not on their lines.
    """
    out: list[str] = []
    asides: list[_Piece] = []
    fresh, lead = True, ""  # whether the line has no code yet; the blanks just before
    for found in _SCAN.finditer(text):
        kind, word = found.lastgroup, found[0]
        if kind == "blank":
            fresh, lead = fresh or "\n" in word, word.rpartition("\n")[2]
        elif kind == "comment":
            asides.append(_Piece("comment", found.start(), found.end(), word))
            fresh, lead = fresh and "\n" not in word, ""
        elif kind == "include" or (kind == "hash" and fresh):
            asides.append(_Piece("line", found.start(), found.end(), lead * fresh + word))
            fresh, lead = False, ""
        else:
            kind, fresh, lead = None, False, ""
        out.append("\f" * len(word) if kind else word)
    flat = "".join(out) + "\f"
    return flat, list(lex(flat, Report(Source(flat)))), asides


def _pieces(text: str, words: list[Lexeme], asides: list[_Piece], program: ast.Program) -> list[_Piece]:
    """Statements, comments and lines in order; a statement includes inner comments."""
    starts = [*_starts(program.statements), (len(text) + 1, "")]
    rest = iter([*words, ast.Underscore(len(text) + 1)])
    word = next(rest)
    pieces = list(asides)
    for (pos, kind), (stop, _) in pairwise(starts):
        end, inside = pos, []
        while word.pos < stop:
            inside.append((word.type, text[word.pos : word.end]))
            end = word.end
            word = next(rest)
        pieces.append(_Piece(kind, pos, end, text[pos:end], inside))
    out: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.pos):
        if out and piece.pos < out[-1].end:
            out[-1].words = []
        else:
            out.append(piece)
    return out


def _starts(statements: list[ast.Statement]) -> Iterator[tuple[int, str]]:
    for statement in statements:
        if isinstance(statement, ast.Component):
            yield statement.pos, "open"
            yield from _starts(statement.items)
            yield statement.end - 1, "close"
        else:
            fact = isinstance(statement, ast.Clause) and statement.body is None
            yield statement.pos, "fact" if fact else "statement"


# ── and put together ─────────────────────────────────────────────────────────────────────────


@define
class _Writer:
    """The lines of the result, piece by piece."""

    text: str
    lines: list[str] = field(factory=list)
    depth: int = 0
    last: _Piece | None = None
    began: int = -1  # offset in the text of the first piece of the last line
    leading: bool = False  # whether the last line holds only comments

    def write(self, piece: _Piece) -> None:
        newlines = self.text.count("\n", self.last.end if self.last else 0, piece.pos)
        self.depth -= piece.kind == "close"
        margin = "" if piece.kind == "line" else INDENT * self.depth
        shown = lay_out(piece.words, WIDTH - len(margin)) if piece.words else [piece.text]
        glue = self._glue(piece, newlines, shown)
        self.began = -1 if len(shown) > 1 else piece.pos if glue is None else self.began
        if glue is not None:
            self.lines[-1] += glue + shown.pop(0)
        elif newlines > 1 and self.last and self.last.kind != "open" and piece.kind != "close":
            self.lines.append("")
        self.lines += [margin + line for line in shown]
        self.leading = piece.kind == "comment" and (self.leading or glue is None)
        self.depth += piece.kind == "open"
        self.last = piece

    def _glue(self, piece: _Piece, newlines: int, shown: list[str]) -> str | None:
        """The text between the last line and a piece on it; None if it begins a line."""
        last = self.last
        if last and last.kind == "open" and piece.kind == "close":
            return ""
        if last is None or newlines or piece.kind == "close":
            return None
        used = len(self.lines[-1]) - self.lines[-1].rfind("\n") - 1
        if piece.kind == "comment":
            return " " if last.kind == "comment" else " " * max(2, self._column(piece) - used)
        if last.kind == "comment":
            return None if not self.leading else "" if piece.kind == "line" else " "
        facts = last.kind == piece.kind == "fact" and last.words and piece.words
        return " " if facts and used + 1 + len(shown[0]) <= WIDTH else None

    def _column(self, comment: _Piece) -> int:
        """The column of a comment: aligned comments stay aligned if their lines do."""
        start = self.text.rfind("\n", 0, comment.pos) + 1
        same = self.began >= start and not self.text[start : self.began].strip()
        return comment.pos - start if same and comment.pos - start < WIDTH else 0


# ── words on lines ───────────────────────────────────────────────────────────────────────────

_OPENERS, _CLOSERS = ("LPAREN", "LBRACKET", "LBRACE"), ("RPAREN", "RBRACKET", "RBRACE")
_NONE_AFTER = {"LPAREN", "LBRACKET", "AT", "NOT", "NEGATIVE"}
_NONE_BEFORE = {"RPAREN", "RBRACKET", "COMMA", "DOT"}
_NONE_BETWEEN = {("DOLLAR", "IDENT"), ("LBRACE", "RBRACE")}
_CALLED = {"IDENT", "BUILTIN", "AGGREGATE", "STRINGTEST", "AS", "AUTOINC", "ITERATION", "DEBUG_DELTA"}
_OPERANDS = {"IDENT", "NUMBER", "UNSIGNED", "FLOAT", "STRING", "UNDERSCORE", "NIL", "DOLLAR", "PARAMETER"}
_OPERANDS |= set(_CLOSERS)


def lay_out(words: Sequence[Word], width: int = WIDTH) -> list[str]:
    """The lines of one statement: one if it fits or is a fact, else one per literal."""
    types = [type for type, _ in words]
    for kind in ("STRATEGY", "PLAN"):  # each on a line of its own, in this order from the end
        if kind in types:
            at = types.index(kind)
            return [*lay_out(words[:at], width), INDENT + _Layout(kind, width).line(words[at:])]
    layout = _Layout(types[0] if types[0] in DIRECTIVES.values() else "CLAUSE", width)
    after = types.index("IF") if "IF" in types else types.index("EQ") if "PIPE" in types else None
    line = layout.line(words)
    if len(line) <= width or (after is None and layout.kind == "CLAUSE"):
        return [line]
    if after is None:
        return layout.fitted(words, "")
    return layout.fitted(words[: after + 1], "") + layout.listed(words[after + 1 :], INDENT)


@define
class _Layout:
    """Layout by kind of statement: `x:number` declares, `count : { … }` aggregates."""

    kind: str
    width: int

    def fitted(self, words: Sequence[Word], margin: str) -> list[str]:
        """Words on one line; if it is too long, the widest brackets get one item per line."""
        line = margin + self.line(words)
        first, last = _widest(words) if len(line) > self.width >= 2 * len(margin) else (0, 0)
        if first == last:
            return [line]
        inside = self.listed(words[first + 1 : last], margin + INDENT)
        return [margin + self.line(words[: first + 1]), *inside, margin + self.line(words[last:])]

    def listed(self, words: Sequence[Word], margin: str) -> list[str]:
        """Items between separators, each on a line: `a,` but `| a`, and `;` alone."""
        lines: list[str] = []
        start = depth = 0
        for at, (type, _) in enumerate(words):
            depth += (type in _OPENERS) - (type in _CLOSERS)
            if depth == 0 and type in ("COMMA", "SEMICOLON", "PIPE"):
                lines += self.fitted(words[start : at + (type == "COMMA")], margin)
                lines += [margin + ";"] if type == "SEMICOLON" else []
                start = at + (type != "PIPE")
        return lines + self.fitted(words[start:], margin)

    def line(self, words: Sequence[Word]) -> str:
        out: list[str] = []
        last = ""
        for type, text in words:
            if type == "MINUS" and last not in _OPERANDS:
                type = "NEGATIVE"
            out.append(text if not out or self._touch(last, type, text) else " " + text)
            last = type
        return "".join(out)

    def _touch(self, last: str, type: str, text: str) -> bool:
        """Whether two words stand side by side without a blank."""
        if last in _NONE_AFTER or type in _NONE_BEFORE or (last, type) in _NONE_BETWEEN:
            return True
        if last == "DOT":
            return "." + text not in DIRECTIVES  # `a. decl` is a name, not a directive
        if "COLON" in (last, type):
            return self.kind in {"DECL", "TYPE", "FUNCTOR", "PLAN", "STRATEGY"}
        if "EQ" in (last, type):
            return self.kind == "DIRECTIVE"
        if type in ("LT", "GT") or last == "LT":
            return self.kind != "CLAUSE"
        return type == "LPAREN" and last in _CALLED


def _widest(words: Sequence[Word]) -> tuple[int, int]:
    """The outermost brackets with the most text inside; (0, 0) if all are empty."""
    best, first, depth = (0, 0, 0), 0, 0
    for at, (type, _) in enumerate(words):
        if type in _OPENERS:
            first, depth = first if depth else at, depth + 1
        elif type in _CLOSERS:
            depth -= 1
            if depth == 0 and at > first + 1:
                best = max(best, (sum(len(text) for _, text in words[first + 1 : at]), first, at))
    return best[1:]

"""Semantic tokens: the colour of each name by what it means, which no pattern can tell."""

from __future__ import annotations

from bisect import bisect_right

from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.dsl.keywords import DIRECTIVES
from everlog.dsl.lexer import Lexeme, Token
from everlog.editor.occurrences import DECLARATION, DEFINITION
from everlog.editor.program_view import ProgramView
from everlog.editor.text_lines import units

TYPES = ["keyword", "number", "string", "operator", "function", "variable", "property", "struct"]
TYPES += ["type", "class", "namespace", "typeParameter"]
MODIFIERS = ["declaration", "definition"]
LEGEND = lsp.SemanticTokensLegend(TYPES, MODIFIERS)

_OF_SYMBOL = {"relation": "struct", "type": "type", "functor": "function", "component": "class"}
_OF_SYMBOL |= {"instance": "namespace", "column": "property", "parameter": "typeParameter", "variable": "variable"}
_OF_LITERAL = {"NUMBER": "number", "UNSIGNED": "number", "FLOAT": "number", "STRING": "string"}
_OF_LITERAL |= {"PARAMETER": "variable"}
_FUNCTIONS = {"BUILTIN", "AGGREGATE", "STRINGTEST", "AUTOINC", "ITERATION", "AS"}


def semantic_tokens(view: ProgramView, first: int = 0, last: int = 1 << 30) -> lsp.SemanticTokens:
    """The tokens of the document's lines from `first` to `last`.

    A line that a macro changed has none: its columns are not those of the file.
    """
    found: list[tuple[int, int, int, int, int]] = []
    rows = _rows(view, first, last)
    starts = view.analysis.row_starts
    for pos, end, type, modifier in _coloured(view):
        row = bisect_right(starts, pos) - 1
        line = rows.get(row)
        if line is not None and end <= starts[row] + len(view.document.lines[line]):
            text = view.document.lines[line]
            column = pos - starts[row]
            begin = units(text[:column], view.encoding)
            length = units(text[column : end - starts[row]], view.encoding)
            found.append((line, begin, length, TYPES.index(type), modifier))
    return lsp.SemanticTokens(_encoded(sorted(found)))


def _rows(view: ProgramView, first: int, last: int) -> dict[int, int]:
    """The rows of the source that are lines of this document, unchanged."""
    source, lines = view.analysis.source, view.document.lines
    shown = source.text.split("\n")
    out: dict[int, int] = {}
    seen: set[int] = set()
    for row, text in enumerate(shown):
        file, number = source.origins[row] if row < len(source.origins) else (source.file, row + 1)
        line = number - 1
        wanted = bool(text) and first <= line <= last and line < len(lines) and line not in seen
        if wanted and lines[line] == text and view.is_here(file):
            out[row] = line
            seen.add(line)
    return out


def _coloured(view: ProgramView) -> list[tuple[int, int, str, int]]:
    analysis = view.analysis
    names = {each.pos: each for each in analysis.names.found}
    out: list[tuple[int, int, str, int]] = []
    for token in analysis.tokens:
        name = names.get(token.pos)
        if name is not None:
            modifier = 1 if name.role == DECLARATION else 2 if name.role == DEFINITION else 0
            out.append((name.pos, name.end, _OF_SYMBOL[name.symbol.kind], modifier))
        elif (type := _of_token(token)) is not None:
            out.append((token.pos, token.end, type, 0))
    return out


def _of_token(token: Lexeme) -> str | None:
    if isinstance(token, Token):
        if token.value in DIRECTIVES:
            return "keyword"
        if not token.value.isidentifier():
            return None
        return "function" if token.type in _FUNCTIONS else "keyword"
    if isinstance(token, ast.Name) and token.name in ("number", "symbol", "float", "unsigned"):
        return "type"
    return _OF_LITERAL.get(token.type)


def _encoded(found: list[tuple[int, int, int, int, int]]) -> list[int]:
    """Each token relative to the one before, as the protocol wants it."""
    data: list[int] = []
    line = column = 0
    for at, start, length, type, modifier in found:
        column = column if at == line else 0
        data += [at - line, start - column, length, type, modifier]
        line, column = at, start
    return data

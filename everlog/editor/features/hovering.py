"""What is shown when the mouse rests on a word: types, class, cost and documentation."""

from __future__ import annotations

from bisect import bisect_left

from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.dsl.lexer import Token
from everlog.editor.analysis import Analysis
from everlog.editor.features.comments import documentation
from everlog.editor.features.cost_words import paragraph
from everlog.editor.features.word_help import CALLS, DIRECTIVE_HELP, WORDS
from everlog.editor.name_scopes import Symbol
from everlog.editor.occurrences import DECLARATION, DEFINITION, Occurrence
from everlog.editor.program_view import ProgramView

MOST_RULES = 8  # whose cost is shown with a relation


def hover(view: ProgramView, position: lsp.Position, more: str = "") -> lsp.Hover | None:
    """The hover of a position; `more` is what is known of a relation at run time."""
    offset = view.offset(position)
    if offset is None:
        return None
    found = view.analysis.names.at(offset)
    if found is not None:
        text, pos, end = _named(view.analysis, found), found.pos, found.end
    else:
        word = word_at(view.analysis, offset)
        if word is None:
            return None
        text, pos, end = word
    content = lsp.MarkupContent(lsp.MarkupKind.Markdown, text + more)
    return lsp.Hover(content, range=view.range_here(pos, end))


def word_at(analysis: Analysis, offset: int) -> tuple[str, int, int] | None:
    """The help of a word of the language."""
    at = bisect_left(analysis.tokens, offset, key=lambda token: token.end)
    token = analysis.tokens[at] if at < len(analysis.tokens) else None
    if token is None or token.pos > offset:
        return None
    word = token.value if isinstance(token, Token) else token.name if isinstance(token, ast.Name) else ""
    after = analysis.tokens[at + 1] if at + 1 < len(analysis.tokens) else None
    if word in CALLS and after is not None and after.type == "LPAREN":
        shown = f"```dl\n{CALLS[word].label}\n```\n{CALLS[word].help}"
    elif word in WORDS:
        shown = f"`{word}`: {WORDS[word]}"
    elif word in DIRECTIVE_HELP:
        shown = f"`{word}` {DIRECTIVE_HELP[word]}"
    else:
        return None
    return shown, token.pos, token.end


def _named(analysis: Analysis, found: Occurrence) -> str:
    symbol = found.symbol
    match symbol.kind:
        case "variable":
            return _code(f"{symbol.name}: {variable_type(analysis, symbol)}")
        case "column":
            assert isinstance(symbol.node, ast.Attribute)
            return _code(f"{symbol.name}: {symbol.node.type_name}") + f"\na column of `{symbol.inside}`"
        case "parameter":
            return f"`{symbol.name}`: a type parameter of component `{symbol.inside}`"
        case "relation":
            return _relation(analysis, found)
        case _:
            return _declared(analysis, symbol)


def _declared(analysis: Analysis, symbol: Symbol) -> str:
    """The declaration as it was written, and the comment at it."""
    node = symbol.node
    assert node is not None
    written = analysis.text_of(node)
    if isinstance(node, ast.Component):
        written = written.partition("{")[0].rstrip()
    place = analysis.place(node.pos)
    comment = documentation(analysis.lines_of(place.file), place.line)
    inside = f"\nin component `{symbol.inside}`" if symbol.inside else ""
    return _code(written) + inside + (f"\n\n{comment}" if comment else "")


def _relation(analysis: Analysis, found: Occurrence) -> str:
    parts = [_declared(analysis, found.symbol)]
    rules = clauses_of(analysis, found.symbol)
    if found.role == DEFINITION:
        here = [each for each in rules if each.pos <= found.pos <= each.end]
        rules = here or rules
    elif found.role == DECLARATION and not rules:
        parts.append("It has base facts only.")
    costs = [cost for clause in rules for cost in analysis.costs(clause)]
    parts += [paragraph(cost) for cost in costs[:MOST_RULES]]
    if len(costs) > MOST_RULES:
        parts.append(f"… and {len(costs) - MOST_RULES} more rules")
    return "\n\n".join(parts)


def clauses_of(analysis: Analysis, symbol: Symbol) -> list[ast.Clause | ast.Subsumption]:
    """The rules whose head is a relation."""
    heads = {each.pos for each in analysis.names.of(symbol) if each.role == DEFINITION}
    return [
        clause
        for clause in analysis.clauses()
        if not isinstance(clause, ast.Clause) or clause.body is not None
        if heads & {head.pos for head in _heads(clause)}
    ]


def _heads(clause: ast.Clause | ast.Subsumption) -> list[ast.Atom]:
    return [clause.dominated] if isinstance(clause, ast.Subsumption) else clause.heads


def variable_type(analysis: Analysis, symbol: Symbol) -> str:
    """The type of a variable, as far as the checker found one."""
    for flat in analysis.checked.clauses:
        if symbol.node is not None and flat.origin.pos == symbol.node.pos and flat.kinds is not None:
            types = flat.kinds.types.get(symbol.name)
            kind = flat.kinds.variables.get(symbol.name)
            if types:
                return " & ".join(sorted(types))
            if kind is not None:
                return str(kind)
    return "unknown"


def _code(text: str) -> str:
    return f"```dl\n{text}\n```"

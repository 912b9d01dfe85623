"""A document in an editor without a server, and everything that an editor may ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp

from everlog.dsl.formatter import format_text
from everlog.editor.analysis import Settings
from everlog.editor.facts_at import fact_at
from everlog.editor.features import navigation
from everlog.editor.features.call_help import signature_help
from everlog.editor.features.completing import completions
from everlog.editor.features.cost_hints import CostMemory, code_lenses, inlay_hints
from everlog.editor.features.hovering import hover
from everlog.editor.features.outline import document_symbols, folding_ranges
from everlog.editor.features.quick_fixes import code_actions
from everlog.editor.features.token_colours import semantic_tokens
from everlog.editor.features.told_diagnostics import diagnostics
from everlog.editor.open_documents import Documents
from everlog.editor.program_view import ProgramView

URI = "untitled:program"


def view_of(text: str, uri: str = URI, settings: Settings | None = None, **others: str) -> ProgramView:
    """A document and its program; `others` are open, too."""
    documents = Documents(settings or Settings())
    for name, content in others.items():
        documents.put(name, content)
    document = documents.put(uri, text)
    return ProgramView(documents, document, documents.analysis(uri))


def at(text: str, mark: str = "¦") -> tuple[str, lsp.Position]:
    """A text without its mark, and the position of the mark."""
    before, _, after = text.partition(mark)
    line = before.count("\n")
    return before + after, lsp.Position(line, len(before.rpartition("\n")[2].encode("utf-16-le")) // 2)


def everything(view: ProgramView, position: lsp.Position) -> dict[str, Any]:
    """The answer of every feature at a position."""
    memory, uri = CostMemory(), view.document.uri
    line = view.document.lines[position.line] if position.line < len(view.document.lines) else ""
    span = lsp.Range(position, position)
    answers: dict[str, Any] = {
        "diagnostics": diagnostics(view),
        "hover": hover(view, position),
        "completion": completions(view, position, snippets=True),
        "signature": signature_help(view, position),
        "definition": navigation.definition(view, position),
        "implementation": navigation.implementations(view, position),
        "references": navigation.references(view, position, True),
        "highlights": navigation.highlights(view, position),
        "prepare rename": navigation.rename_range(view, position),
        "symbols": document_symbols(view),
        "folding": folding_ranges(view),
        "tokens": semantic_tokens(view),
        "hints": inlay_hints(view, memory, position.line - 20, position.line + 20, lambda _: 3),
        "lenses": code_lenses(view),
        "actions": code_actions(view, span),
        "format": format_text(view.document.raw, uri)[0],
        "fact": fact_at(line, position.character),
    }
    try:
        answers["rename"] = navigation.renamed(view, position, "fresh_name")
    except navigation.CannotRename as refusal:
        answers["rename"] = str(refusal)
    return answers


def applied(view: ProgramView, edit: lsp.WorkspaceEdit) -> Mapping[str, str]:
    """The texts of all documents after an edit."""
    from everlog.editor.text_lines import replaced

    out: dict[str, str] = {}
    for uri, edits in (edit.changes or {}).items():
        document = view.documents.opened.get(uri)
        text = document.raw if document else Path(uri.removeprefix("file://")).read_text(encoding="utf-8")
        for each in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
            start, end = each.range.start, each.range.end
            places = (start.line, start.character), (end.line, end.character)
            text = replaced(text, *places, each.new_text, view.encoding)
        out[uri] = text
    return out

"""The diagnostics of `everlog check` as an editor shows them, file by file."""

from __future__ import annotations

from lsprotocol import types as lsp

from everlog.dsl.diagnostic_codes import RULES
from everlog.dsl.diagnostics import MAX_SHOWN, Diagnostic
from everlog.editor.program_view import ProgramView


def diagnostics(view: ProgramView) -> dict[str, list[lsp.Diagnostic]]:
    """All diagnostics of the program by URI; files without any have an empty list."""
    analysis = view.analysis
    found: dict[str, list[lsp.Diagnostic]] = {view.documents.uri_of(file): [] for file in analysis.files}
    items = analysis.report.sorted()
    if len(items) > MAX_SHOWN:
        items = ([item for item in items if not item.warning] or items)[:MAX_SHOWN]
    for item in items:
        location = view.location(max(item.pos, 0), max(item.end, item.pos, 0))
        found.setdefault(location.uri, []).append(_told(item, location.range, view))
    return found


def _told(item: Diagnostic, span: lsp.Range, view: ProgramView) -> lsp.Diagnostic:
    rule = f"\nrule: {RULES[item.code]}" if item.code in RULES else ""
    hint = f"\nhint: {item.hint}" if item.hint else ""
    if span.start == span.end:
        span = lsp.Range(span.start, lsp.Position(span.start.line, span.start.character + 1))
    return lsp.Diagnostic(
        span,
        f"{item.message}{rule}{hint}",
        severity=lsp.DiagnosticSeverity.Warning if item.warning else lsp.DiagnosticSeverity.Error,
        code=item.code,
        source="everlog",
        related_information=[
            lsp.DiagnosticRelatedInformation(view.location(label.pos, label.end), label.text)
            for label in item.labels
        ]
        or None,
        data={"hint": item.hint, "message": item.message},
    )

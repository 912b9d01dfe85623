"""The outline of a document, and the parts of it that can be folded."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.editor.program_view import ProgramView

_KINDS = lsp.SymbolKind


def document_symbols(view: ProgramView) -> list[lsp.DocumentSymbol]:
    """Declarations, components with their content, and the rules of each relation."""
    return _symbols(view, view.analysis.tree.statements)


def _symbols(view: ProgramView, items: list[ast.Statement]) -> list[lsp.DocumentSymbol]:
    out: list[lsp.DocumentSymbol] = []
    for item in items:
        span = view.range_here(item.pos, item.end)
        if span is None:
            continue
        match item:
            case ast.RelationDecl():
                for name in item.names:
                    columns = ", ".join(f"{each.name}: {each.type_name}" for each in item.attributes)
                    symbol = _symbol(view, name.name, f"({columns})", _KINDS.Struct, span, name)
                    symbol.children = [_column(view, each, span) for each in item.attributes]
                    out.append(symbol)
            case ast.TypeDecl():
                out.append(_symbol(view, item.name, "type", _KINDS.TypeParameter, span, item))
            case ast.FunctorDecl():
                out.append(_symbol(view, f"@{item.name}", "functor", _KINDS.Function, span, item))
            case ast.Init():
                out.append(_symbol(view, item.name, item.component.name, _KINDS.Object, span, item))
            case ast.Component():
                symbol = _symbol(view, item.type.name, "component", _KINDS.Class, span, item.type)
                symbol.children = _symbols(view, item.items)
                out.append(symbol)
            case ast.Clause(body=body, heads=heads) if body is not None:
                for head in heads:
                    out.append(_rule(view, item, head, span))
            case ast.Subsumption(dominated=head):
                out.append(_rule(view, item, head, span))
            case _:
                pass
    return out


def _symbol(
    view: ProgramView, name: str, detail: str, kind: lsp.SymbolKind, span: lsp.Range, at: ast.Node | ast.Name
) -> lsp.DocumentSymbol:
    inner = view.range_here(at.pos, at.end)
    return lsp.DocumentSymbol(name, kind, span, inner if inner and _within(inner, span) else span, detail=detail)


def _within(inner: lsp.Range, outer: lsp.Range) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _column(view: ProgramView, each: ast.Attribute, span: lsp.Range) -> lsp.DocumentSymbol:
    here = view.range_here(each.pos, each.end) or span
    here = here if _within(here, span) else span
    return lsp.DocumentSymbol(each.name or "…", _KINDS.Field, here, here, detail=each.type_name)


def _rule(
    view: ProgramView, item: ast.Clause | ast.Subsumption, head: ast.Atom, span: lsp.Range
) -> lsp.DocumentSymbol:
    body = " ".join(view.analysis.text_of(item).split())
    detail = body if len(body) <= 80 else body[:79] + "…"
    return _symbol(view, head.name, detail, _KINDS.Event, span, head)


# ── folding ──────────────────────────────────────────────────────────────────────────────────


def folding_ranges(view: ProgramView) -> list[lsp.FoldingRange]:
    """Statements of several lines, comments of several lines, and branches of `#if`."""
    out = list(_statements(view, view.analysis.tree.statements))
    out += _comments(view.document.lines)
    return out


def _statements(view: ProgramView, items: list[ast.Statement]) -> Iterator[lsp.FoldingRange]:
    for item in items:
        span = view.range_here(item.pos, item.end)
        if span is not None and span.end.line > span.start.line:
            yield lsp.FoldingRange(span.start.line, span.end.line)
        if isinstance(item, ast.Component):
            yield from _statements(view, item.items)


def _comments(lines: list[str]) -> Iterator[lsp.FoldingRange]:
    start: int | None = None
    open_ifs: list[int] = []
    for number, line in enumerate([*lines, ""]):
        plain = line.strip()
        if plain.startswith("//"):
            start = number if start is None else start
        else:
            if start is not None and number - start > 1:
                yield lsp.FoldingRange(start, number - 1, kind=lsp.FoldingRangeKind.Comment)
            start = None
        if plain.startswith("#if"):
            open_ifs.append(number)
        elif plain.startswith("#endif") and open_ifs:
            yield lsp.FoldingRange(open_ifs.pop(), number, kind=lsp.FoldingRangeKind.Region)

"""Definition, references, highlights and rename: all uses of one index of names."""

from __future__ import annotations

import re

from lsprotocol import types as lsp

from everlog.dsl.keywords import KEYWORDS
from everlog.editor.occurrences import DECLARATION, DEFINITION, Occurrence
from everlog.editor.program_view import ProgramView

_NAME = re.compile(r"[?A-Za-z_][?A-Za-z0-9_]*")


class CannotRename(ValueError):
    """A name that cannot be changed, or not to this one; the message says why."""


def definition(view: ProgramView, position: lsp.Position) -> list[lsp.Location]:
    """Where the name at a position is declared."""
    found = _at(view, position)
    if found is None or found.symbol.kind == "variable":
        return [] if found is None else [view.location(found.symbol.pos, found.symbol.end)]
    return [view.location(found.symbol.pos, found.symbol.end)]


def implementations(view: ProgramView, position: lsp.Position) -> list[lsp.Location]:
    """The heads of the rules of a relation."""
    return [view.location(each.pos, each.end) for each in _all(view, position) if each.role == DEFINITION]


def references(view: ProgramView, position: lsp.Position, declaration: bool) -> list[lsp.Location]:
    """Every place that names the same thing, in all files of the program."""
    found = _all(view, position)
    return [view.location(each.pos, each.end) for each in found if declaration or each.role != DECLARATION]


def highlights(view: ProgramView, position: lsp.Position) -> list[lsp.DocumentHighlight]:
    """The same, in this document."""
    kinds = lsp.DocumentHighlightKind
    out = []
    for each in _all(view, position):
        span = view.range_here(each.pos, each.end)
        if span is not None:
            out.append(lsp.DocumentHighlight(span, kinds.Write if each.role == DEFINITION else kinds.Read))
    return out


def rename_range(view: ProgramView, position: lsp.Position) -> lsp.Range | None:
    """The name that would change; None if there is none."""
    found = _at(view, position)
    return None if found is None else view.range_here(found.pos, found.end)


def renamed(view: ProgramView, position: lsp.Position, new: str) -> lsp.WorkspaceEdit:
    """The edits that rename; raises CannotRename."""
    found = _at(view, position)
    if found is None:
        raise CannotRename("there is no name here")
    if not _NAME.fullmatch(new) or new in KEYWORDS or new == "_":
        raise CannotRename(f"`{new}` is no name: letters, digits, `_` and `?`, and no word of the language")
    _refuse_clash(view, found, new)
    changes: dict[str, list[lsp.TextEdit]] = {}
    for each in view.analysis.names.of(found.symbol):
        location = view.location(each.pos, each.end)
        if _text_at(view, each) != found.symbol.name:
            raise CannotRename(f"`{found.symbol.name}` also comes from a macro, which a rename cannot follow")
        edits = changes.setdefault(location.uri, [])
        edit = lsp.TextEdit(location.range, new)
        if edit not in edits:  # a file may be included twice
            edits.append(edit)
    return lsp.WorkspaceEdit(changes=changes)


def _refuse_clash(view: ProgramView, found: Occurrence, new: str) -> None:
    names = view.analysis.names
    if found.symbol.kind in ("variable", "column"):
        node = found.symbol.node
        others = [
            each
            for each in names.found
            if each.symbol.kind == found.symbol.kind and each.symbol.name == new
            if each.symbol.inside == found.symbol.inside
            and (found.symbol.kind == "column" or each.symbol.node is node)
        ]
        clash = bool(others)
    else:
        scope = names.scope_at(found.symbol.pos)
        clash = any(scope.find(kind, [new]) for kind in ("relation", "type", "component", "instance", "functor"))
    if clash:
        raise CannotRename(f"`{new}` is the name of something else here")


def _text_at(view: ProgramView, each: Occurrence) -> str:
    """The text of the file, before macros, at an occurrence."""
    place = view.analysis.place(each.pos)
    lines = view.analysis.lines_of(place.file)
    line = lines[place.line] if place.line < len(lines) else ""
    return line[place.column : place.column + each.end - each.pos]


def _at(view: ProgramView, position: lsp.Position) -> Occurrence | None:
    offset = view.offset(position)
    return None if offset is None else view.analysis.names.at(offset)


def _all(view: ProgramView, position: lsp.Position) -> list[Occurrence]:
    found = _at(view, position)
    return [] if found is None else view.analysis.names.of(found.symbol)

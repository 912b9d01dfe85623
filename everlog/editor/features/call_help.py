"""Signature help: the columns of the atom, or the parameters of the functor, at the cursor."""

from __future__ import annotations

from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.editor.features.comments import documentation
from everlog.editor.features.cursor_context import OpenCall, context_at
from everlog.editor.features.word_help import CALLS
from everlog.editor.name_scopes import Symbol
from everlog.editor.program_view import ProgramView


def signature_help(view: ProgramView, position: lsp.Position) -> lsp.SignatureHelp | None:
    """The signature of the call around a position."""
    context = context_at(view.text_before(position))
    call = context.call() if context.in_code else None
    if call is None or context.first == "DECL":
        return None
    found = _signature(view, position, call)
    if found is None:
        return None
    label, params, what = found
    variadic = bool(params) and params[-1] == "…"
    active = min(call.argument, max(len(params) - 1, 0)) if variadic else call.argument
    parameters = [lsp.ParameterInformation(each) for each in params]
    signature = lsp.SignatureInformation(label, documentation=what or None, parameters=parameters)
    return lsp.SignatureHelp([signature], active_signature=0, active_parameter=active)


def _signature(view: ProgramView, position: lsp.Position, call: OpenCall) -> tuple[str, list[str], str] | None:
    name = call.path[-1]
    if call.type != "IDENT":
        known = CALLS.get(name)
        return None if known is None else (known.label, list(known.params), known.help)
    offset = view.offset(position)
    scope = view.analysis.names.scope_at(0 if offset is None else offset)
    symbol = scope.find("functor" if call.user else "relation", call.path)
    return None if symbol is None else _declared(view, symbol, ".".join(call.path))


def _declared(view: ProgramView, symbol: Symbol, shown: str) -> tuple[str, list[str], str]:
    node = symbol.node
    params, result = list[str](), ""
    if isinstance(node, ast.RelationDecl):
        params = [f"{each.name}: {each.type_name}" for each in node.attributes]
    elif isinstance(node, ast.FunctorDecl):
        params = [f"{each.name}: {each.type_name}" if each.name else each.type_name for each in node.params]
        shown, result = f"@{shown}", f": {node.result.type_name}"
    place = view.analysis.place(symbol.pos)
    what = documentation(view.analysis.lines_of(place.file), place.line)
    return f"{shown}({', '.join(params)}){result}", params, what

"""Completion: relations, columns, variables, functors, types, directives and snippets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from lsprotocol import types as lsp

from everlog.dsl import ast
from everlog.dsl.keywords import KEYWORDS, PREPROCESSOR
from everlog.editor.features.cursor_context import CursorContext, OpenCall, context_at
from everlog.editor.features.word_help import CALLS, DIRECTIVE_HELP, SNIPPETS, STRATEGIES, WORDS
from everlog.editor.name_scopes import NameScope, Symbol
from everlog.editor.program_view import ProgramView

_KINDS = lsp.CompletionItemKind
_PRIMITIVES = ("number", "symbol", "float", "unsigned")
_DIRECTIVE = re.compile(r"(?:^|\s)(\.\w*)$")
_HASH = re.compile(r"^\s*#\s*(\w*)$")
_INCLUDE = re.compile(r'[.#]include\s*"([^"]*)$')
_QUALIFIERS = [word for word, type in KEYWORDS.items() if type == "QUALIFIER"] + ["choice-domain"]
_PARAMETERS = ("IO", "filename", "name", "delimiter", "headers", "columns", "rfc4180", "null", "encoding")
_IN_TERMS = {"BUILTIN", "AGGREGATE", "AUTOINC", "AS"}
_IN_BODIES = _IN_TERMS | {"STRINGTEST", "TRUTH"}


def completions(view: ProgramView, position: lsp.Position, snippets: bool = False) -> list[lsp.CompletionItem]:
    """What may stand at a position."""
    context = context_at(view.text_before(position))
    found, begun = _items(view, context, position, snippets)
    place = view.place(position)
    span = view.range_of_text(place.line, max(0, place.column - len(begun)), place.column)
    for item in found:
        text = item.insert_text if snippets and item.insert_text else item.label
        item.text_edit = lsp.TextEdit(span, text)
        if item.insert_text and snippets:
            item.insert_text_format = lsp.InsertTextFormat.Snippet
        item.insert_text = None
    return found


def _items(
    view: ProgramView, context: CursorContext, position: lsp.Position, snippets: bool
) -> tuple[list[lsp.CompletionItem], str]:
    """The items, and the begun text that they replace."""
    line = context.before
    if found := _INCLUDE.search(line):
        return list(_files(view, found[1])), os.path.basename(found[1])
    if not context.in_code:
        return [], ""
    if found := _HASH.match(line):
        return list(_words(PREPROCESSOR, _KINDS.Keyword)), found[1]
    if (found := _DIRECTIVE.search(line)) and not context.path:
        return list(_directives()), found[1]
    scope = view.analysis.names.scope_at(view.offset(position) or 0)
    return list(_in_statement(scope, context, snippets)), context.word


def _in_statement(scope: NameScope, context: CursorContext, snippets: bool) -> Iterator[lsp.CompletionItem]:
    call = context.call()
    match context.first:
        case "":
            yield from _relations(scope.visible("relation"), snippets)
            yield from _directives(dotless=True)
        case "DECL":
            if context.last == "COLON":
                yield from _types(scope)
            elif call is None and any(token.type == "RPAREN" for token in context.tokens):
                yield from _words(_QUALIFIERS, _KINDS.Keyword)
        case "TYPE" | "FUNCTOR":
            if context.last in ("SUBTYPE", "EQ", "PIPE", "COLON"):
                yield from _types(scope)
        case "COMPONENT" | "INIT":
            if context.last == "LT":
                yield from _types(scope)
            elif context.last in ("COLON", "EQ", "COMMA"):
                yield from _symbols(scope.visible("component").values(), _KINDS.Class)
        case "DIRECTIVE" if call is not None:
            yield from _words(_PARAMETERS, _KINDS.Property)
        case "DIRECTIVE" | "OVERRIDE":
            yield from _symbols(_instance_or_all(scope, context).values(), _KINDS.Struct)
        case "STRATEGY":
            yield from (_item(name, _KINDS.EnumMember, what) for name, what in STRATEGIES.items())
        case "PRAGMA" | "PLAN" | "LATTICE" | "NUMBER_TYPE" | "SYMBOL_TYPE":
            pass
        case _:
            yield from _in_clause(scope, context, call, snippets)


def _in_clause(
    scope: NameScope, context: CursorContext, call: OpenCall | None, snippets: bool
) -> Iterator[lsp.CompletionItem]:
    if context.last == "AT":
        yield from _symbols(scope.visible("functor").values(), _KINDS.Function)
    elif context.path:
        yield from _relations(_instance_or_all(scope, context), snippets)
        yield from _symbols(_of_instance(scope, context.path, "instance").values(), _KINDS.Module)
    elif call is not None and call.type == "AS" and call.argument == 1:
        yield from _types(scope)
    elif call is not None:
        yield from _arguments(scope, context, call)
    else:
        yield from _relations(scope.visible("relation"), snippets)
        yield from _words(context.variables, _KINDS.Variable)
        yield from _symbols(scope.visible("instance").values(), _KINDS.Module)
        yield from _words((w for w, type in KEYWORDS.items() if type in _IN_BODIES), _KINDS.Function)


def _arguments(scope: NameScope, context: CursorContext, call: OpenCall) -> Iterator[lsp.CompletionItem]:
    """Inside an atom: the column first, then variables, then functors."""
    column = ""
    found = scope.find("relation", call.path)
    if found is not None and isinstance(found.node, ast.RelationDecl) and not call.user:
        attributes = found.node.attributes
        if call.argument < len(attributes):
            column = attributes[call.argument].name
            what = f"column {call.argument + 1} of {found.name}: {attributes[call.argument].type_name}"
            yield _item(column, _KINDS.Field, what, first=True)
    yield from _words((name for name in context.variables if name != column), _KINDS.Variable)
    yield from _words((w for w, type in KEYWORDS.items() if type in _IN_TERMS), _KINDS.Function)


def _instance_or_all(scope: NameScope, context: CursorContext) -> dict[str, Symbol]:
    if context.path:
        return _of_instance(scope, context.path, "relation")
    return scope.visible("relation")


def _of_instance(scope: NameScope, path: list[str], kind: str) -> dict[str, Symbol]:
    inner = scope.instance(path)
    if inner is None:
        return {}
    return {name: one for each in inner.lineage() for (k, name), one in each.names.items() if k == kind}


# ── items ────────────────────────────────────────────────────────────────────────────────────


def _item(label: str, kind: lsp.CompletionItemKind, what: str = "", first: bool = False) -> lsp.CompletionItem:
    return lsp.CompletionItem(label, kind=kind, detail=what or None, sort_text=f"{0 if first else 1}{label}")


def _words(words: Iterable[str], kind: lsp.CompletionItemKind) -> Iterator[lsp.CompletionItem]:
    for word in words:
        yield _item(word, kind, CALLS[word].label if word in CALLS else WORDS.get(word, ""))


def _types(scope: NameScope) -> Iterator[lsp.CompletionItem]:
    yield from _words(_PRIMITIVES, _KINDS.TypeParameter)
    yield from _symbols(scope.visible("type").values(), _KINDS.TypeParameter)


def _symbols(symbols: Iterable[Symbol], kind: lsp.CompletionItemKind) -> Iterator[lsp.CompletionItem]:
    for symbol in symbols:
        yield _item(symbol.name, kind, symbol.inside and f"in {symbol.inside}")


def _relations(symbols: dict[str, Symbol], snippets: bool) -> Iterator[lsp.CompletionItem]:
    for symbol in symbols.values():
        node = symbol.node
        columns = node.attributes if isinstance(node, ast.RelationDecl) else []
        shown = ", ".join(f"{each.name}: {each.type_name}" for each in columns)
        item = _item(symbol.name, _KINDS.Struct, f"{symbol.name}({shown})")
        places = ", ".join(f"${{{n}:{each.name}}}" for n, each in enumerate(columns, 1))
        item.insert_text = f"{symbol.name}({places})" if snippets else None
        yield item


def _directives(dotless: bool = False) -> Iterator[lsp.CompletionItem]:
    """Directives; `dotless` ones are found by their dot only if the editor looks at it."""
    for word, what in DIRECTIVE_HELP.items():
        item = _item(word, _KINDS.Keyword, what)
        item.insert_text = SNIPPETS.get(word, "").replace("\\$", "$") or None
        if dotless:
            item.filter_text = word[1:]
        yield item


def _files(view: ProgramView, begun: str) -> Iterator[lsp.CompletionItem]:
    """Programs and folders that an include may name."""
    folder = os.path.join(os.path.dirname(view.document.file), os.path.dirname(begun))
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir() and not entry.name.startswith("."):
            yield _item(f"{entry.name}/", _KINDS.Folder)
        elif entry.name.endswith(".dl") and entry.path != view.document.file:
            yield _item(entry.name, _KINDS.File)

"""The language server: requests of the protocol to the features, one function each.

Every function works on the analysis of the moment.  Diagnostics follow a change after a pause as
long as the last check took, so that a large program is not checked at every key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from attrs import define, field
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from everlog._version import __version__
from everlog.core.engine.explain import NotInProgram, explain_plan
from everlog.dsl.formatter import format_text
from everlog.editor.analysis import Settings
from everlog.editor.facts_at import fact_at
from everlog.editor.features import navigation
from everlog.editor.features.call_help import signature_help
from everlog.editor.features.completing import completions
from everlog.editor.features.cost_hints import EXPLAIN, RUN, WHY, CostMemory, code_lenses, inlay_hints
from everlog.editor.features.hovering import hover
from everlog.editor.features.outline import document_symbols, folding_ranges
from everlog.editor.features.quick_fixes import code_actions
from everlog.editor.features.token_colours import LEGEND, semantic_tokens
from everlog.editor.features.told_diagnostics import diagnostics
from everlog.editor.live_data import LiveData, NoData
from everlog.editor.open_documents import Documents
from everlog.editor.program_view import ProgramView
from everlog.editor.text_lines import replaced

LONGEST_PAUSE = 0.5  # seconds between a change and its diagnostics
RUN_SECONDS = 30.0  # that `run` and `why` may take


@define(eq=False)
class State:
    """What the server knows: open documents, what is published, and data."""

    server: LanguageServer
    documents: Documents
    live: LiveData
    memory: CostMemory = field(factory=CostMemory)
    waiting: dict[str, asyncio.TimerHandle] = field(factory=dict)
    published: dict[str, set[str]] = field(factory=dict)  # a document → URIs that got diagnostics

    @property
    def encoding(self) -> str:
        found = self.server.workspace.position_encoding
        return str(getattr(found, "value", found) or "utf-16")

    def view(self, uri: str, fresh: bool = True) -> ProgramView | None:
        """A document and its program; None if it is not open."""
        document = self.documents.opened.get(uri)
        if document is None:
            return None
        analysis = self.documents.analysis(uri) if fresh else self.documents.last_analysis(uri)
        return ProgramView(self.documents, document, analysis, self.encoding)

    def publish_soon(self, uri: str) -> None:
        """Publish diagnostics after a pause, counted from the last change."""
        if uri in self.waiting:
            self.waiting.pop(uri).cancel()
        if uri in self.documents.opened:
            pause = min(self.documents.last_analysis(uri).seconds, LONGEST_PAUSE)
            loop = asyncio.get_running_loop()
            self.waiting[uri] = loop.call_later(pause, self.publish, uri)

    def publish(self, uri: str) -> None:
        self.waiting.pop(uri, None)
        view = self.view(uri)
        if view is None:
            return
        found = diagnostics(view)
        gone = self.published.get(uri, set()) - found.keys()
        self.published[uri] = set(found)
        for each in gone:
            found[each] = []
        for each, items in found.items():
            document = self.documents.opened.get(each)
            version = None if document is None else document.version
            self.server.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(each, items, version=version)
            )

    def close(self, uri: str) -> None:
        if uri in self.waiting:
            self.waiting.pop(uri).cancel()
        self.documents.close(uri)
        others = {each for known in self.documents.opened for each in self.published.get(known, ())}
        for each in self.published.pop(uri, set()) - others:
            self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(each, []))


def make_server(settings: Settings | None = None, live: LiveData | None = None) -> LanguageServer:
    """A server with all features, ready to start."""
    server = LanguageServer("everlog", __version__)
    state = State(server, Documents(settings or Settings()), live or NoData())
    logging.getLogger("pygls").setLevel(logging.ERROR)
    _add_texts(state)
    _add_reading(state)
    _add_names(state)
    _add_showing(state)
    _add_commands(state)
    return server


def _add_texts(state: State) -> None:
    """Texts as they are opened, changed and closed."""
    server, documents = state.server, state.documents

    @server.feature(lsp.INITIALIZED)
    def initialized(params: lsp.InitializedParams) -> None:
        for folder in server.workspace.folders.values():
            path = to_fs_path(folder.uri)
            if path:
                documents.folders.append(Path(os.path.normpath(path)))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        documents.put(item.uri, item.text, item.version)
        state.publish(item.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        item = params.text_document
        known = documents.opened.get(item.uri)
        text = known.raw if known is not None else ""
        for change in params.content_changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                places = (start.line, start.character), (end.line, end.character)
                text = replaced(text, *places, change.text, state.encoding)
            else:
                text = change.text
        documents.put(item.uri, text, item.version)
        state.publish_soon(item.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        documents.forget_files()
        for uri in list(documents.opened):
            state.publish_soon(uri)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: lsp.DidChangeWatchedFilesParams) -> None:
        documents.forget_files()
        for uri in list(documents.opened):
            state.publish_soon(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        state.close(params.text_document.uri)


def _add_reading(state: State) -> None:
    """What is shown where one reads or writes: hover, completion, signatures."""
    server = state.server

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        view = state.view(params.text_document.uri)
        return None if view is None else hover(view, params.position, _live_count(state, view, params.position))

    triggers = lsp.CompletionOptions(trigger_characters=[".", "@", ":", "(", '"', "#"])

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList:
        view = state.view(params.text_document.uri, fresh=False)
        document = server.client_capabilities.text_document
        item = document.completion.completion_item if document and document.completion else None
        snippets = bool(item and item.snippet_support)
        return lsp.CompletionList(False, [] if view is None else completions(view, params.position, snippets))

    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ","]))
    def signature(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        view = state.view(params.text_document.uri, fresh=False)
        return None if view is None else signature_help(view, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        view = state.view(params.text_document.uri, fresh=False)
        if view is None:
            return []
        text, report = format_text(view.document.raw, view.document.file)
        return [] if report.items or text == view.document.raw else [lsp.TextEdit(view.whole(), text)]


def _live_count(state: State, view: ProgramView, position: lsp.Position) -> str:
    offset = view.offset(position)
    found = None if offset is None else view.analysis.names.at(offset)
    count = state.live.count(found.symbol.name) if found and found.symbol.kind == "relation" else None
    return "" if count is None else f"\n\n{count:,} fact{'' if count == 1 else 's'} in the database"


def _add_names(state: State) -> None:
    """Definition, references, rename, outline."""
    server = state.server

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        view = state.view(params.text_document.uri)
        return [] if view is None else navigation.definition(view, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_IMPLEMENTATION)
    def implementation(params: lsp.ImplementationParams) -> list[lsp.Location]:
        view = state.view(params.text_document.uri)
        return [] if view is None else navigation.implementations(view, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        view = state.view(params.text_document.uri)
        declared = params.context.include_declaration
        return [] if view is None else navigation.references(view, params.position, declared)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlights(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        view = state.view(params.text_document.uri)
        return [] if view is None else navigation.highlights(view, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def rename_range(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        view = state.view(params.text_document.uri)
        return None if view is None else navigation.rename_range(view, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        view = state.view(params.text_document.uri)
        try:
            return None if view is None else navigation.renamed(view, params.position, params.new_name)
        except navigation.CannotRename as problem:
            raise JsonRpcInvalidParams(str(problem)) from None

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        view = state.view(params.text_document.uri)
        return [] if view is None else document_symbols(view)


def _add_showing(state: State) -> None:
    """What is shown in the text: colours, folds, costs, fixes."""
    server = state.server

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folds(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        view = state.view(params.text_document.uri)
        return [] if view is None else folding_ranges(view)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def colours(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        view = state.view(params.text_document.uri)
        return lsp.SemanticTokens([]) if view is None else semantic_tokens(view)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        view = state.view(params.text_document.uri)
        first, last = params.range.start.line, params.range.end.line
        return [] if view is None else inlay_hints(view, state.memory, first, last, state.live.count)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        view = state.view(params.text_document.uri)
        return [] if view is None else code_lenses(view)

    kinds = lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        view = state.view(params.text_document.uri)
        if view is None:
            return []
        found = code_actions(view, params.range, list(params.context.diagnostics))
        place = view.place(params.range.start)
        fact = fact_at(view.document.lines[place.line], place.column)
        if fact is not None:
            command = lsp.Command(f"why {fact}", WHY, arguments=[view.document.uri, fact])
            found.append(lsp.CodeAction(f"Why {fact}?", lsp.CodeActionKind.Empty, command=command))
        return found


def _add_commands(state: State) -> None:
    """What a code lens or an action asks for; the answer is a text."""
    server = state.server

    @server.command(EXPLAIN)
    def explain(uri: str, *names: str) -> str:
        view = state.view(uri)
        if view is None or view.analysis.program is None:
            return "the program has errors"
        try:
            return "\n\n".join(explain_plan(view.analysis.program, only=name) for name in names)
        except NotInProgram as problem:
            return str(problem)

    @server.command(RUN)
    async def run(uri: str, relation: str) -> str:
        return await _asked(state, uri, {"relation": relation})

    @server.command(WHY)
    async def why(uri: str, fact: str) -> str:
        if not isinstance(state.live, NoData):
            return state.live.why(fact)
        return await _asked(state, uri, {"fact": fact})


async def _asked(state: State, uri: str, question: dict[str, Any]) -> str:
    """Run the program in a process of its own, with the texts as they are in the editor."""
    view = state.view(uri)
    if view is None:
        return "the document is not open"
    settings, root = state.documents.settings, view.analysis.file
    document = state.documents.of_file(root)
    text = document.text if document is not None else "\n".join(view.analysis.lines_of(root))
    question |= {"text": text, "file": root, "macros": dict(settings.macros)}
    question["include_dirs"] = [str(each) for each in settings.include_dirs]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "everlog.editor.ask_program"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        sent = json.dumps(question).encode()
        out, err = await asyncio.wait_for(process.communicate(sent), RUN_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"stopped after {RUN_SECONDS:.0f} seconds"
    return out.decode("utf-8", "replace").rstrip("\n") or err.decode("utf-8", "replace").rstrip("\n")

"""A real client for the language server: lsprotocol's messages over the pipes of a process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
SECONDS = 60.0  # for an answer; machines may be busy


class Editor:
    """An editor with the server as its child process."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.versions: dict[str, int] = {}
        self.diagnostics: dict[str, list[lsp.PublishDiagnosticsParams]] = {}
        self.messages: list[str] = []
        self.arrived = asyncio.Condition()

    def uri(self, path: Path | str) -> str:
        return Path(path).as_uri() if isinstance(path, Path) else path

    def open(self, path: Path | str, text: str | None = None) -> str:
        """Open a document; its text is that of the file unless another is given."""
        uri = self.uri(path)
        if text is None:
            text = Path(path).read_text(encoding="utf-8")
        self.versions[uri] = 1
        item = lsp.TextDocumentItem(uri, "everlog", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, text: str, span: lsp.Range | None = None) -> None:
        """Replace the whole text, or a range of it."""
        self.versions[uri] += 1
        change: Any = (
            lsp.TextDocumentContentChangeWholeDocument(text)
            if span is None
            else lsp.TextDocumentContentChangePartial(text=text, range=span)
        )
        item = lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(item, [change]))

    async def told(self, uri: str, version: int | None = None) -> list[lsp.Diagnostic]:
        """The diagnostics of the document as it is now."""
        wanted = self.versions.get(uri) if version is None else version

        def found() -> list[lsp.Diagnostic] | None:
            for each in reversed(self.diagnostics.get(uri, [])):
                if each.version == wanted:
                    return list(each.diagnostics)
            return None

        async with self.arrived:
            await asyncio.wait_for(self.arrived.wait_for(lambda: found() is not None), SECONDS)
        told = found()
        assert told is not None
        return told

    async def cleared(self, uri: str) -> None:
        """Wait until nothing is told of a document."""
        async with self.arrived:
            found = self.diagnostics[uri]
            await asyncio.wait_for(self.arrived.wait_for(lambda: not found[-1].diagnostics), SECONDS)

    async def call(self, method: str, params: Any) -> Any:
        """Any request, with a limit on its time."""
        return await asyncio.wait_for(self.client.protocol.send_request_async(method, params), SECONDS)

    def at(self, uri: str, line: int, column: int) -> dict[str, Any]:
        return {"text_document": lsp.TextDocumentIdentifier(uri), "position": lsp.Position(line, column)}


def with_editor(
    act: Callable[[Editor], Awaitable[T]], *arguments: str, folder: Path | None = None, snippets: bool = True
) -> T:
    """Start a server, do something in an editor, and stop the server in order."""

    async def session() -> T:
        client = LanguageClient("tests", "1")
        editor = Editor(client)

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def published(params: lsp.PublishDiagnosticsParams) -> None:
            async with editor.arrived:
                editor.diagnostics.setdefault(params.uri, []).append(params)
                editor.arrived.notify_all()

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def shown(params: lsp.ShowMessageParams) -> None:
            editor.messages.append(params.message)

        await client.start_io(sys.executable, "-P", "-m", "everlog", "lsp", *arguments)
        item = lsp.ClientCompletionItemOptions(snippet_support=snippets)
        document = lsp.TextDocumentClientCapabilities(
            completion=lsp.CompletionClientCapabilities(completion_item=item)
        )
        folders = [lsp.WorkspaceFolder(folder.as_uri(), folder.name)] if folder else None
        params = lsp.InitializeParams(lsp.ClientCapabilities(text_document=document), workspace_folders=folders)
        await asyncio.wait_for(client.initialize_async(params), SECONDS)
        client.initialized(lsp.InitializedParams())
        try:
            result = await act(editor)
        finally:
            await asyncio.wait_for(client.shutdown_async(None), SECONDS)
            client.exit(None)
            await client.stop()
        assert not editor.messages, editor.messages
        return result

    return asyncio.run(session())

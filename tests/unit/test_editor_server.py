"""The language server as an editor meets it: a process, and messages over its pipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsp_client import Editor, with_editor
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from serving import served

from everlog import Database

ROADS = """\
// A road, one way.
.decl road(from: number, to: number)
road(1, 2).
road(2, 3).
.decl path(x: number, y: number)
path(x, y) :- road(x, y).
path(x, z) :- path(x, y), road(y, z).
// path(1, 3)? path(3, 1)?
"""


def identifier(uri: str) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(uri)


def test_every_feature_answers_over_the_pipes() -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open("untitled:roads", ROADS)
        document = identifier(uri)
        assert await editor.told(uri) == []
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
        hover = await editor.call("textDocument/hover", lsp.HoverParams(**editor.at(uri, 5, 15)))
        assert "A road, one way." in hover.contents.value
        found = await editor.call("textDocument/definition", lsp.DefinitionParams(**editor.at(uri, 5, 15)))
        assert found[0].range.start == lsp.Position(1, 6)
        found = await editor.call("textDocument/implementation", lsp.ImplementationParams(**editor.at(uri, 4, 7)))
        assert len(found) == 2
        context = lsp.ReferenceContext(True)
        params: Any = lsp.ReferenceParams(context=context, **editor.at(uri, 5, 15))
        assert len(await editor.call("textDocument/references", params)) == 5
        params = lsp.DocumentHighlightParams(**editor.at(uri, 5, 15))
        assert len(await editor.call("textDocument/documentHighlight", params)) == 5
        params = lsp.CompletionParams(**editor.at(uri, 6, 14))
        assert "road" in [item.label for item in (await editor.call("textDocument/completion", params)).items]
        params = lsp.SignatureHelpParams(**editor.at(uri, 6, 22))
        assert (await editor.call("textDocument/signatureHelp", params)).active_parameter == 1
        assert await editor.call("textDocument/prepareRename", lsp.PrepareRenameParams(**editor.at(uri, 1, 7)))
        params = lsp.RenameParams(new_name="street", **editor.at(uri, 1, 7))
        assert len((await editor.call("textDocument/rename", params)).changes[uri]) == 5
        for method, asked in (
            ("textDocument/documentSymbol", lsp.DocumentSymbolParams(document)),
            ("textDocument/foldingRange", lsp.FoldingRangeParams(document)),
            ("textDocument/codeLens", lsp.CodeLensParams(document)),
            ("textDocument/inlayHint", lsp.InlayHintParams(document, whole)),
        ):
            found = await editor.call(method, asked)
            assert isinstance(found, list | tuple)
        tokens = await editor.call("textDocument/semanticTokens/full", lsp.SemanticTokensParams(document))
        assert len(tokens.data) % 5 == 0
        assert tokens.data
        options = lsp.FormattingOptions(4, True)
        params = lsp.DocumentFormattingParams(document, options)
        [edit] = await editor.call("textDocument/formatting", params)
        assert edit.new_text == ROADS.replace(": ", ":")
        editor.change(uri, edit.new_text)
        assert not await editor.call("textDocument/formatting", params)

    with_editor(act)


def test_diagnostics_follow_each_change_and_vanish_with_the_document() -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open("untitled:roads", ROADS)
        assert await editor.told(uri) == []
        end = lsp.Position(8, 0)
        editor.change(uri, "path(x, x) :- rod(x, x).\n", lsp.Range(end, end))
        assert [item.code for item in await editor.told(uri)] == ["DL050"]
        editor.change(uri, "a", lsp.Range(lsp.Position(8, 15), lsp.Position(8, 15)))
        editor.change(uri, "r", lsp.Range(lsp.Position(8, 14), lsp.Position(8, 15)))
        editor.change(uri, "o", lsp.Range(lsp.Position(8, 15), lsp.Position(8, 15)))
        assert [item.code for item in await editor.told(uri)] == ["DL050"]  # roaod
        editor.change(uri, "", lsp.Range(lsp.Position(8, 17), lsp.Position(8, 18)))
        assert [item.code for item in await editor.told(uri)] == []
        editor.change(uri, "p(", None)
        assert await editor.told(uri) != []
        editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(identifier(uri)))
        await editor.cleared(uri)

    with_editor(act)


def test_commands_run_explain_and_prove_with_the_text_of_the_editor(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open(tmp_path / "roads.dl", ROADS)  # which was never written

        async def asked(command: str, *arguments: str) -> str:
            params = lsp.ExecuteCommandParams(command, arguments=[uri, *arguments])
            return str(await editor.call("workspace/executeCommand", params))

        assert await asked("everlog.run", "path") == "path: 3 facts\n\npath(1, 2)\npath(1, 3)\npath(2, 3)"
        assert "recursive: `path` depends on itself" in await asked("everlog.explain", "path#2")
        assert (await asked("everlog.why", "path(1, 3)")).startswith("path(1, 3)   path#2 at ")
        assert "does not hold" in await asked("everlog.why", "path(3, 1)")
        assert (await asked("everlog.why", "path(a)")).startswith("error: ")
        editor.change(uri, ROADS + "path(")
        assert "DL010" in await asked("everlog.run", "path")
        span = lsp.Range(lsp.Position(7, 6), lsp.Position(7, 6))
        params = lsp.CodeActionParams(identifier(uri), span, lsp.CodeActionContext([]))
        actions = await editor.call("textDocument/codeAction", params)
        assert [each.title for each in actions] == ["Why path(1, 3)?"]

    with_editor(act)


def test_a_refused_rename_says_why() -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open("untitled:roads", ROADS)
        params = lsp.RenameParams(new_name="path", **editor.at(uri, 1, 7))
        with pytest.raises(JsonRpcException, match="something else"):
            await editor.call("textDocument/rename", params)

    with_editor(act)


def test_counts_come_from_a_database_in_a_file(tmp_path: Path) -> None:
    with Database.open(tmp_path / "roads.db", text=ROADS) as database:
        database.insert("road", (3, 4))

    async def act(editor: Editor) -> None:
        uri = editor.open("untitled:roads", ROADS)
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
        hints = await editor.call("textDocument/inlayHint", lsp.InlayHintParams(identifier(uri), whole))
        assert [each.label for each in hints if "fact" in each.label] == ["3 facts", "6 facts"]
        hover = await editor.call("textDocument/hover", lsp.HoverParams(**editor.at(uri, 5, 15)))
        assert "3 facts in the database" in hover.contents.value
        params = lsp.ExecuteCommandParams("everlog.why", arguments=[uri, "path(1, 4)"])
        assert "road(3, 4)   given" in await editor.call("workspace/executeCommand", params)

    with_editor(act, "--db", str(tmp_path / "roads.db"))


def test_counts_and_proofs_come_from_a_running_service(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open("untitled:roads", ROADS)
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
        hints = await editor.call("textDocument/inlayHint", lsp.InlayHintParams(identifier(uri), whole))
        assert [each.label for each in hints if "fact" in each.label] == ["3 facts", "6 facts"]
        for fact, shown in (
            ("path(1, 4)", "road(3, 4)   given"),
            ("path(4, 1)", "does not hold"),
            ("q(1)", "error"),
        ):
            params = lsp.ExecuteCommandParams("everlog.why", arguments=[uri, fact])
            assert shown in await editor.call("workspace/executeCommand", params)

    with served(tmp_path, program=ROADS + "road(3, 4).\n") as service:
        with_editor(act, "--service", service.url)


def test_a_service_that_is_not_there_leaves_the_editor_without_counts() -> None:
    async def act(editor: Editor) -> None:
        uri = editor.open("untitled:roads", ROADS)
        hover = await editor.call("textDocument/hover", lsp.HoverParams(**editor.at(uri, 5, 15)))
        assert "in the database" not in hover.contents.value

    with_editor(act, "--service", "http://127.0.0.1:9")


def test_the_server_ends_with_its_editor() -> None:
    """An editor that dies leaves a pipe that is closed."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "everlog", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.close()
    try:
        assert process.wait(60) == 0
    finally:
        process.kill()
        assert process.stdout is not None
        process.stdout.close()


def test_without_the_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from everlog.cli import main

    monkeypatch.setitem(sys.modules, "pygls", None)
    assert main(["lsp"]) == 1
    assert "pip install 'everlog[editor]'" in capsys.readouterr().err

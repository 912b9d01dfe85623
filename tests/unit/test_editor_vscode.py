"""The extension for VS Code: its grammar, and with npm its client against the real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from mutations import sources

from everlog.dsl import ast
from everlog.dsl.diagnostics import Report
from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.dsl.lexer import Lexeme, Token, lex
from everlog.dsl.source import Source

EXTENSION = Path(__file__).parent.parent.parent / "editors" / "vscode"
FUNCTIONS = {"BUILTIN", "AGGREGATE", "STRINGTEST", "AUTOINC", "ITERATION", "AS"}


def read(name: str) -> Any:
    return json.loads((EXTENSION / name).read_text(encoding="utf-8"))


# ── without npm ──────────────────────────────────────────────────────────────────────────────


def test_the_grammar_has_all_words_of_the_language() -> None:
    repository = read("syntaxes/everlog.tmLanguage.json")["repository"]
    words = set(re.findall(r"[\w-]+", " ".join(each["match"] for each in repository["words"]["patterns"])))
    assert set(KEYWORDS) - words == set()
    named = set(re.findall(r"\w+", repository["directives"]["patterns"][0]["match"]))
    assert {word.removeprefix(".") for word in DIRECTIVES} - named == set()


def test_what_the_manifest_names_is_there() -> None:
    contributes = read("package.json")["contributes"]
    assert contributes["languages"][0]["extensions"] == [".dl"]
    for named in (contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]):
        assert read(named)
    settings = contributes["configuration"]["properties"]
    source = (EXTENSION / "src" / "extension.js").read_text(encoding="utf-8")
    readme = (EXTENSION / "README.md").read_text(encoding="utf-8")
    for name in settings:
        assert f"'{name.removeprefix('everlog.')}'" in source, name
        assert f"`{name}`" in readme, name


def test_the_configuration_takes_words_as_the_lexer_does() -> None:
    word = re.compile(read("language-configuration.json")["wordPattern"])
    for text in ("?x", "path_2", "_", "a?b"):
        assert word.fullmatch(text)
        assert isinstance(next(lex(text, Report(Source(text)))), ast.Name | ast.Underscore)


# ── with npm ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the extension with its packages, built and packaged."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("extension") / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    present = EXTENSION / "node_modules"
    if present.is_dir():
        (folder / "node_modules").symlink_to(present)
    elif npm(folder, "ci", "--no-audit", "--no-fund").returncode:
        pytest.skip("npm cannot install packages here")
    done = npm(folder, "run", "package")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def npm(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npm", *arguments], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.deep
def test_the_package_has_what_vscode_needs_and_nothing_else(built: Path) -> None:
    names = set(zipfile.ZipFile(built / "everlog.vsix").namelist())
    inside = {name.removeprefix("extension/") for name in names if name.startswith("extension/")}
    wanted = {"package.json", "readme.md", "language-configuration.json"}
    assert inside == wanted | {"syntaxes/everlog.tmLanguage.json", "dist/extension.js"}


@pytest.mark.deep
def test_the_client_of_the_extension_against_the_server(built: Path) -> None:
    command = json.dumps([sys.executable, "-P", "-m", "everlog", "lsp"])
    done = subprocess.run(
        ["node", "--test", "test/extension.test.js"],
        cwd=built,
        env={**os.environ, "EVERLOG_LSP": command},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "# pass 7" in done.stdout


def wanted(token: Lexeme) -> tuple[str, ...]:
    """The scopes that a token may have."""
    if isinstance(token, Token):
        if token.value in DIRECTIVES:
            return ("keyword.other.directive",)
        if token.type in FUNCTIONS:
            return ("support.function",)
        if token.value.isidentifier():
            return ("keyword", "constant.language")
        if token.type == "CHOICEDOMAIN":
            return ("keyword.other.qualifier",)
        return ("keyword.operator", "punctuation")
    if isinstance(token, ast.Name):
        if token.name in ("number", "symbol", "float", "unsigned"):
            return ("support.type", "variable.other")
        return ("variable.other", "entity.name.function")
    if isinstance(token, ast.Underscore):
        return ("variable.language",)
    if isinstance(token, ast.String):
        return ("string.quoted.double",)
    if isinstance(token, ast.Parameter):
        return ("variable.parameter",)
    return ("constant.numeric",)


@pytest.mark.deep
def test_the_grammar_colours_tokens_as_the_lexer_reads_them(built: Path) -> None:
    """On every program of the repository that has no preprocessor lines and no errors."""
    texts = [text for text in sources() if text.isascii() and not re.search(r"#|[.]include|[.]once", text)]
    done = subprocess.run(
        ["node", "test/scopes.js"], cwd=built, input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    compared = 0
    for text, found in zip(texts, json.loads(done.stdout), strict=True):
        report = Report(Source(text))
        apart = text.replace("\n", " //\n")  # no line is a fact, so that each word is a token
        tokens = list(lex(apart, report))
        if report.items:
            continue
        scopes: dict[int, str] = {}
        for start, end, names in found:
            for at in range(start, end):
                scopes[at] = names[0] if names else ""
        shift = [0]
        for char in text:
            shift.append(shift[-1] + 3 * (char == "\n"))
        place = {at + shift[at]: at for at in range(len(text))}
        for token in tokens:
            at = place[token.pos]
            assert scopes[at].startswith(wanted(token)), (text[at : at + 30], scopes[at], token)
            compared += 1
    assert compared > 5_000

r"""Every example of the documentation runs, and prints what the page says.

A fenced block of `docs/*.md` or `README.md` is checked by its language:

    dl        is compiled.  Right before a `text` block that begins with `error[` or `warning[`, its
              report is that text; right before a `text` block of facts, it derives exactly those
              for the relations named there; otherwise it has no errors
    console   its `$ everlog …` lines are run, and print what follows them; `$ cat FILE`,
              `$ mkdir DIR` and `$ echo $?` are understood too.  A line with a pipe or a redirection
              goes to a shell, which finds an installed `everlog`.  A line that ends in `\`
              continues on the next one.  Tabs are shown as spaces
    python    a doctest if it has `>>>`, else run
    everlog-session   the text after `everlog> ` and `...> ` is typed at the prompt, in one session
              for the whole page, and prints what follows it

`<!-- file: NAME -->` above a block makes it a file for later blocks of the page.
`<!-- served: prog.dl FLAG … -->` above a console or Python block runs `everlog serve` during the
block, at `http://127.0.0.1:8765`; earlier consoles with this comment are run on it first.
`<!-- no-check -->` above a block marks a fragment.  A `...` in the output of a console omits the
rest.  `pytest --rewrite` regenerates reports, facts and output.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from attrs import frozen
from serving import Served, running

from everlog.cli import COMMANDS, main
from everlog.core.evaluate.seminaive import evaluate
from everlog.core.program import Program
from everlog.dsl.check import diagnose
from everlog.dsl.diagnostic_codes import CATALOGUE, ENTRIES, RULES
from everlog.dsl.diagnostics import Report
from everlog.dsl.fact_text import fact_text
from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.dsl.preprocess import preprocess_text
from everlog.repl.continuation import is_complete
from everlog.repl.session import Session

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(p for p in [ROOT / "README.md"] if p.exists())]

_FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->\s*\Z")
_FACT = re.compile(r'([?\w.]+)\((?:[^"]|"(?:\\.|[^"\\])*")*\)\.')
_REPORT = ("error[", "warning[")


@frozen
class Block:
    """A fenced block with the comments above it, and the `text` directly below.

    It is the n-th from the end of its page; `start` is where its own text begins.
    """

    page: Path
    number: int
    line: int
    start: int
    language: str
    text: str
    comments: tuple[str, ...]
    answer: Block | None

    @property
    def file(self) -> str:
        return next((c.removeprefix("file:").strip() for c in self.comments if c.startswith("file:")), "")

    @property
    def served(self) -> list[str]:
        """The arguments of `everlog serve`, if it runs meanwhile."""
        return next((c.split()[1:] for c in self.comments if c.startswith("served:")), [])

    @property
    def checked(self) -> bool:
        return "no-check" not in self.comments

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    out: list[Block] = []
    after = len(text)
    for number, found in enumerate(reversed(list(_FENCE.finditer(text)))):
        above, comments = text[: found.start()], []
        while comment := _COMMENT.search(above):
            comments.append(comment[1])
            above = above[: comment.start()]
        follows = out and not text[found.end() : after].strip() and not out[0].comments
        line = text.count("\n", 0, found.start()) + 1
        answer = out[0] if follows and out[0].language == "text" else None
        out.insert(0, Block(page, number, line, found.start(2), found[1], found[2], tuple(comments), answer))
        after = found.start()
    return out


BLOCKS = {page: blocks_of(page) for page in PAGES}


def blocks(language: str) -> list[Block]:
    return [b for page in PAGES for b in BLOCKS[page] if b.language == language and b.checked]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the files that the page has named so far."""
    block: Block = request.getfixturevalue("block")
    for earlier in BLOCKS[block.page]:
        if earlier.file and earlier.line <= block.line:
            path = tmp_path / earlier.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(earlier.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(block: Block, answer: Block, actual: str, request: pytest.FixtureRequest) -> None:
    """The answer is what the page says; with `--rewrite`, the page says the answer."""
    if request.config.getoption("--rewrite"):
        page = block.page.read_text(encoding="utf-8")
        now = next(b for b in blocks_of(block.page) if b.number == answer.number)
        page = page[: now.start] + actual + "\n" + page[now.start + len(now.text) :]
        block.page.write_text(page, encoding="utf-8")
    else:
        assert actual == answer.text.rstrip("\n"), f"{block} does not say so; pytest --rewrite writes it anew"


def plain(text: str) -> str:
    """As a terminal shows it: tabs as spaces, no blanks at the end of a line."""
    return "\n".join(line.rstrip() for line in text.expandtabs(8).rstrip("\n").split("\n"))


# ── programs ─────────────────────────────────────────────────────────────────────────────────


def diagnosed(block: Block) -> tuple[Program | None, Report]:
    source, problems = preprocess_text(block.text, block.file or "prog.dl")
    return diagnose(source, problems)


@pytest.mark.parametrize("block", blocks("dl"), ids=str)
def test_a_program_does_what_the_page_says(block: Block, folder: Path, request: pytest.FixtureRequest) -> None:
    program, report = diagnosed(block)
    if block.answer is not None and block.answer.text.startswith(_REPORT):
        same(block, block.answer, plain(report.text()), request)
        return
    assert program is not None, f"{block}\n{report.text()}"
    assert not report.errors
    if block.answer is not None:
        names = {found[1] for found in map(_FACT.fullmatch, block.answer.text.splitlines()) if found}
        assert names, f"{block.answer} is neither a report nor facts"
        result = evaluate(program)
        lines = [
            f"{fact_text(relation, row)}."
            for relation in program.relations.values()
            if relation.name in names
            for row in result.rows(relation.name)
        ]
        same(block, block.answer, "\n".join(lines), request)


# ── commands and Python ──────────────────────────────────────────────────────────────────────


_SHELL = re.compile(r"[|<>]|&&")


def command_output(line: str, last: int) -> tuple[str, int]:
    """What a line of a console prints, on either stream, and its exit status."""
    words = shlex.split(line)
    if words[0] == "curl":
        if shutil.which("curl") is None:
            pytest.skip("no curl on the PATH")
        return shell_output(line)
    if _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", line)):
        return shell_output(line)
    match words:
        case ["everlog", *arguments]:
            screen = io.StringIO()
            with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
                try:
                    status = main(arguments)
                except SystemExit as stop:
                    status = int(stop.code or 0)
            return screen.getvalue(), status
        case ["cat", *files]:
            return "".join(Path(file).read_text(encoding="utf-8") for file in files), 0
        case ["mkdir", *folders]:
            for name in folders:
                if name != "-p":
                    Path(name).mkdir(parents=True, exist_ok="-p" in folders)
            return "", 0
        case ["echo", "$?"]:
            return f"{last}\n", 0
        case _:
            raise AssertionError(f"a console of the documentation has no `{line}`")


def shell_output(line: str) -> tuple[str, int]:
    """What a shell prints; its `everlog` is the installed package, run by this Python."""
    tools = Path.cwd() / ".tools"
    tools.mkdir(exist_ok=True)
    (tools / "everlog").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m everlog "$@"\n')
    (tools / "everlog").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        timeout=60,
    )
    return done.stdout, done.returncode


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console, as they stand there, each with the lines under it."""
    out: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if out and out[-1][0].endswith("\\") and not out[-1][1]:
            out[-1] = (f"{out[-1][0]}\n{line}", [])
        elif line.startswith("$ "):
            out.append((line, []))
        elif out:
            out[-1][1].append(line)
    return out


def cut(output: str, under: list[str]) -> str:
    """The output, or as much of it as the page shows where that ends in `...`."""
    if under and under[-1] == "..." and len(output.split("\n")) >= len(under):
        return "\n".join([*output.split("\n")[: len(under) - 1], "..."])
    return output


ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture
def service(block: Block, folder: Path) -> Iterator[Served | None]:
    """The service that a block talks to, after what earlier ones have done."""
    if not block.served:
        yield None
        return
    with running(folder, *block.served) as one:
        for earlier in BLOCKS[block.page]:
            if earlier.language == "console" and earlier.served == block.served and earlier.line < block.line:
                for command, _ in commands_of(earlier.text):
                    command_output(one_line(command).replace(ADDRESS, one.url), 0)
        yield one


def one_line(command: str) -> str:
    return command[2:].replace("\\\n", " ")


@pytest.mark.parametrize("block", blocks("console"), ids=str)
def test_a_command_prints_what_the_page_says(
    block: Block, folder: Path, service: Served | None, request: pytest.FixtureRequest
) -> None:
    shown, status = [], 0
    for command, under in commands_of(block.text):
        line = one_line(command) if service is None else one_line(command).replace(ADDRESS, service.url)
        output, status = command_output(line, status)
        shown += [command] + ([cut(plain(output), under)] if output else [])
    same(block, block, "\n".join(shown), request)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_runs(block: Block, folder: Path, service: Served | None) -> None:
    names: dict[str, object] = {"__name__": "docs"}
    text = block.text if service is None else block.text.replace(ADDRESS, service.url)
    if ">>>" not in text:
        exec(compile(text, str(block), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(text, names, str(block), str(block.page), block.line)
    out = io.StringIO()
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=out.write)
    assert not out.getvalue(), out.getvalue()


# ── the prompt ───────────────────────────────────────────────────────────────────────────────

_PROMPTED = re.compile(r"(?:everlog(?: \[\d+ pending\])?|\s+\.\.\.)> ?(.*)")


def typed(block: Block) -> list[str]:
    """The texts of a conversation, those of several lines in one."""
    texts: list[str] = []
    for line in block.text.splitlines():
        found = _PROMPTED.fullmatch(line)
        if found is not None and line.startswith("everlog"):
            texts.append(found[1])
        elif found is not None:
            texts[-1] += "\n" + found[1]
    return texts


def conversation(session: Session, texts: list[str]) -> list[str]:
    shown = []
    for text in texts:
        assert is_complete(text, session.relations), text
        first, *more = text.split("\n")
        shown.append(f"everlog{session.waiting and ' '}{session.waiting}> {first}")
        shown += [f"    ...> {line}" for line in more]
        before = len(session.screen.out.getvalue())  # type: ignore[attr-defined]
        session.run(text)
        shown += plain(session.screen.out.getvalue()[before:]).split("\n")  # type: ignore[attr-defined]
    return [line for line in shown if line]


@pytest.mark.parametrize("block", blocks("everlog"), ids=str)
def test_the_prompt_answers_what_the_page_says(block: Block, folder: Path, request: pytest.FixtureRequest) -> None:
    session = Session(out=io.StringIO())
    for earlier in BLOCKS[block.page]:
        if earlier.language == "everlog" and earlier.line < block.line:
            conversation(session, typed(earlier))
    same(block, block, "\n".join(conversation(session, typed(block))), request)


# ── the language reference ───────────────────────────────────────────────────────────────────

_NOT_HERE = {"nil", "debug_delta", "recursive_iteration_cnt", ".lattice"}  # words of Soufflé that are refused
_PREPROCESSOR = "define undef if ifdef ifndef elif else endif include error pragma line".split()


def test_every_word_of_the_language_stands_in_an_example_of_its_reference() -> None:
    """Functors, aggregates, operators, qualifiers, directives, preprocessor."""
    text = "\n".join(b.text for b in BLOCKS[ROOT / "docs" / "language.md"] if b.language == "dl" and b.checked)
    code = re.sub(r"//[^\n]*", "", text)
    words = [rf"(?<![\w.]){re.escape(w)}(?!\w)" for w in sorted(KEYWORDS.keys() - _NOT_HERE)]
    words += [rf"{re.escape(w)}\s" for w in sorted(DIRECTIVES.keys() - _NOT_HERE)]
    words += [rf"^#{w}\b" for w in _PREPROCESSOR] + [r"^\.include\b", r"^\.once\b", r"choice-domain"]
    table = (ROOT / "docs" / "language.md").read_text(encoding="utf-8").split("| parameter | for | meaning |")[1]
    parameters = re.findall(r"^\| `(\w+)` \|", table.split("\n\n")[0], re.MULTILINE)
    words += [rf"[(,]\s*{name}=" for name in parameters]
    words += [rf"IO={value}\b" for value in ("stdin", "stdout", "json", "jsonfile", "sqlite", "file")]
    assert len(parameters) > 10
    assert not [word for word in words if not re.search(word, code, re.MULTILINE)]


# ── the catalogue of diagnostics ─────────────────────────────────────────────────────────────

_CODE = re.compile(r"\bDL[0-9]{3}\b")
_HEADING = re.compile(r"^## (DL[0-9]{3}) (.*)\n\n((?:.+\n)+)", re.MULTILINE)


def used_codes() -> set[str]:
    files = [f for f in (ROOT / "dsl").rglob("*.py") if f.name != "diagnostic_codes.py"]
    return {code for file in files for code in _CODE.findall(file.read_text(encoding="utf-8"))}


def test_every_code_in_use_is_in_the_catalogue_and_the_other_way_round() -> None:
    assert used_codes() == set(CATALOGUE) == set(RULES)
    assert [e.code for e in ENTRIES] == sorted(CATALOGUE), "each code once, in order"


def test_every_code_is_explained_on_its_page_in_the_words_of_the_catalogue() -> None:
    page = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    explained = [(code, title, " ".join(text.split())) for code, title, text in _HEADING.findall(page)]
    assert explained == [(e.code, e.title, e.explanation) for e in ENTRIES]


def test_the_example_of_a_code_gives_that_code() -> None:
    """Under each heading the first example reports the code, and another one is right."""
    page = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        code = section[:5]
        found = list(_FENCE.finditer(section))
        languages = [b[1] for b in found]
        assert languages[:2] == ["dl", "text"], code
        assert f"[{code}]" in found[1][2], code
        assert languages[-1] == "dl", code


# ── links ────────────────────────────────────────────────────────────────────────────────────

_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown viewers make them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_every_link_leads_to_a_file_and_a_heading_of_the_project(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.is_relative_to(ROOT.resolve()), target
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


# ── other systems ────────────────────────────────────────────────────────────────────────────


def test_readme_and_documentation_say_the_same_of_other_systems() -> None:
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/compare.md"))
    table = [line for line in readme.splitlines() if line.startswith("| ") and line.count("|") > 8]
    assert len(table) > 10
    assert [line.replace("docs/spark.md", "spark.md") for line in table] == [
        line for line in page.splitlines() if line.startswith("| ") and line.count("|") > 8
    ]
    for text in (readme, page):
        used, defined = (
            set(re.findall(r"\[\^([\w-]+)\](?!:)", text)),
            set(re.findall(r"^\[\^([\w-]+)\]:", text, re.M)),
        )
        assert used == defined


# ── the papers and the modules ───────────────────────────────────────────────────────────────

_PLACE = re.compile(r"`((?:core|ies|dsl|bench|everlog|tests)/[\w/]+\.(?:py|nrc))(?:::(\w+))?`")


def test_every_module_and_test_that_the_page_of_papers_names_is_there() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    places = _PLACE.findall(page)
    assert len(places) > 100
    for path, test in places:
        assert (ROOT / path).is_file(), path
        assert not test or f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"
    named = {path for path, _ in places}
    for package in ("core/dbsp", "tests/oracles", "core/classify"):
        for module in (ROOT / package).glob("[a-z]*.py"):
            assert f"{package}/{module.name}" in named, f"{package}/{module.name} is of which paper?"


# ── the command line ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [n for n in COMMANDS if find_spec(f"everlog.commands.{n}")])
def test_every_flag_is_in_the_manual(name: str) -> None:
    """On the page of the command line, or on the page of the command."""
    pages = [ROOT / "docs" / "cli.md", ROOT / "docs" / f"{name}.md"]
    page = "".join(path.read_text(encoding="utf-8") for path in pages if path.exists())
    parser = ArgumentParser(prog=name)
    import_module(f"everlog.commands.{name}").add_arguments(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert f"everlog {name}" in page
    assert not [flag for flag in sorted(flags) if f"`{flag}`" not in page and f"`{flag} " not in page]

"""Newcomers' first minutes, from an installed wheel in an environment that has nothing else.

Each begins with data of their own and README's commands, in a real terminal or a notebook, and gets
to a live recursive view with a proof.  No step may fail, and all of it takes less than 3 minutes.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packaged import ROOT, clean_environment, installed, run
from terminal import Terminal

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

pytestmark = pytest.mark.deep
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROMPT, SHELL, PYTHON = "everlog>", "$ ", ">>>"
MOST = 180.0  # seconds
WRONG = re.compile(r"error[:\[]|Traceback|not found|did you mean", re.IGNORECASE)


def readme(title: str, language: str) -> list[str]:
    """The blocks of a language in a section of README."""
    section = README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert section, title
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


class Newcomer:
    """Somebody at a terminal, who reads what it says."""

    def __init__(self, terminal: Terminal, prompt: str) -> None:
        self.terminal, self.prompt = terminal, prompt

    def say(self, text: str, *wanted: str) -> str:
        """Type a line; what is shown until the prompt is there again has what is wanted."""
        if self.prompt == PROMPT:
            self.terminal.ctrl("l")
            self.terminal.wait_for(lambda screen: screen == PROMPT)
        before = self._prompts(self.terminal.everything())
        self.terminal.enter(text)
        everything = self.terminal.wait_for(
            lambda screen: self._prompts(screen) > before and self.is_ready(screen), everything=True
        )
        shown = "\n".join(everything[everything.rindex(f"{self.prompt.strip()} {text[:30]}") :].split("\n")[:-1])
        for each in wanted:
            assert each in shown, f"{text} shows\n{shown}\nwithout {each}"
        assert not WRONG.search(shown), f"{text} shows\n{shown}"
        return shown

    def _prompts(self, screen: str) -> int:
        return sum(line.startswith(self.prompt.strip()) for line in screen.split("\n"))

    def is_ready(self, screen: str) -> bool:
        return screen.split("\n")[-1].strip() == self.prompt.strip()

    def leave(self) -> None:
        self.terminal.ctrl("d")
        assert self.terminal.exit_status() == 0, self.terminal.everything()


@contextmanager
def newcomer(folder: Path, prompt: str, *command: str) -> Iterator[Newcomer]:
    """A newcomer in a terminal, with the clock running."""
    bin_ = installed()
    environment = clean_environment() | {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PS1": SHELL,
        "PYTHON_BASIC_REPL": "1",
    }
    start = time.monotonic()
    with Terminal(
        [str(bin_ / command[0]) if "/" not in command[0] else command[0], *command[1:]], folder, environment, 60
    ) as screen:
        one = Newcomer(screen, prompt)
        screen.wait_for(one.is_ready)
        assert not WRONG.search(screen.everything()), screen.everything()
        yield one
    assert time.monotonic() - start < MOST


def test_readme_typed_at_the_prompt(tmp_path: Path) -> None:
    """The section on one's own data, as it stands there; the next day the file continues."""
    (tmp_path / "people.csv").write_text(readme("Your own data, in three minutes", "text")[0])
    (session,) = readme("Your own data, in three minutes", "everlog-session")
    steps = re.split(r"^everlog> ", session, flags=re.MULTILINE)[1:]
    assert steps.pop(0).startswith(".open people.csv\n")  # the command of the shell does that
    with newcomer(tmp_path, PROMPT, "everlog", "open", "people.csv") as one:
        for step in steps:
            typed, *answer = step.rstrip("\n").split("\n")
            plain = [line for line in answer if not set(line) <= set("- ─") and "  " not in line.strip()]
            one.say(typed, *plain)
        one.leave()
    with newcomer(tmp_path, PROMPT, "everlog", "repl", "--db", "people.db") as one:
        one.say("above(x, y)?", "bob", "eve")
        one.say('people("fay", "eve", "2026-12-01").', '+above("cy", "fay").')
        one.leave()


def test_a_file_of_a_spreadsheet_with_odd_names(tmp_path: Path) -> None:
    """Semicolons, a byte order mark, names with spaces, words of the language, empty cells."""
    (tmp_path / "Bill of materials 2026.csv").write_text(
        "\ufeffpart;contains;count;unit price\nbike;wheel;2;\nwheel;spoke;36;0,5\nwheel;rim;1;12.5\n",
        encoding="utf-8",
    )
    with newcomer(tmp_path, PROMPT, "everlog", "open", "Bill of materials 2026.csv") as one:
        shown = one.terminal.everything()
        name = re.search(
            r"^(\w+)\(part:symbol, contains_:symbol, count_:number, unit_price:symbol\): 3 facts", shown, re.M
        )
        assert name, shown
        bill = name[1]
        one.say(".decl needs(part:symbol, what:symbol)")
        one.say(f"needs(x, y) :- {bill}(x, y, _, _).", '+needs("wheel", "rim").')
        one.say(f"needs(x, z) :- needs(x, y), {bill}(y, z, _, _).", '+needs("bike", "spoke").')
        one.say(f'{bill}("spoke", "steel", 1, "").', '+needs("bike", "steel").')
        one.say('.why needs("bike", "steel")', f'{bill}("spoke", "steel", 1, "")   given')
        one.say(f'-{bill}(_, "spoke", _, _).', '-needs("bike", "steel").')
        one.say('needs("bike", what)?', "rim", "wheel")
        one.leave()


def test_a_table_of_sqlite_to_a_view_in_a_file(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE category (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT)")
        connection.executemany(
            "INSERT INTO category VALUES (?, ?, ?)",
            [(1, 0, "all"), (2, 1, "food"), (3, 2, "tea"), (4, 1, "tools")],
        )
    connection.close()
    with newcomer(tmp_path, PROMPT, "everlog", "open", "shop.sqlite") as one:
        one.say("category(id, parent, name)?", "tea", "(4 rows)")
        one.say(".decl within(x:symbol, y:symbol)")
        one.say("within(x, y) :- category(_, p, x), category(p, _, y).", '+within("tea", "food").')
        one.say("within(x, z) :- within(x, y), within(y, z).", '+within("tea", "all").')
        one.say('.why within("tea", "all")', "given")
        one.say('category(5, 3, "green tea").', '+within("green tea", "all").')
        one.say(".tables", "category", "within")
        one.leave()


def test_a_program_in_the_shell(tmp_path: Path) -> None:
    """README's program and updates, typed into files; then a proof."""
    (tmp_path / "people.csv").write_text("name,boss\nann,\nbob,ann\ncy,bob\n")
    (tmp_path / "above.dl").write_text(
        '.decl people(name:symbol, boss:symbol)\n.input people(filename="people.csv", headers=true, delimiter=",", null="")\n'
        ".decl above(x:symbol, y:symbol)\n.output above\n"
        'above(x, y) :- people(y, x), x != "".\nabove(x, z) :- above(x, y), people(z, y).\n'
    )
    with newcomer(tmp_path, SHELL, "/bin/bash", "--norc", "--noprofile") as one:
        one.say("everlog --version", "everlog 0.")
        one.say("everlog doctor", "compiled machine")
        one.say("everlog check above.dl")
        one.say("everlog run above.dl -D-", "│ ann │ cy")
        one.say('everlog why above.dl \'above("ann", "cy")\'', "given")
        one.say('printf \'+people("di", "cy").\\n\\n-people("cy", "bob").\\n\' > news.txt')
        one.say("everlog run above.dl -D. --updates news.txt", '+above("ann", "di").', '-above("bob", "di").')
        one.say("everlog run above.dl -D. -p profile.html && ls", "profile.html", "above.csv")
        one.say("everlog explain above.dl", "above#2")
        one.leave()


def test_python_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,boss\nann,\nbob,ann\ncy,bob\n")
    with newcomer(tmp_path, PYTHON, "python", "-q") as one:
        one.say("import csv, everlog")
        one.say("people = list(csv.DictReader(open('people.csv')))")
        one.say("db = everlog.over(people=people)")
        one.say("_ = db.add_rule('.decl above(x:symbol, y:symbol)')")
        one.say("print(db.add_rule('above(x, y) :- people(y, x), x != \"\".'))", '+above("ann", "bob").')
        one.say("print(db.add_rule('above(x, z) :- above(x, y), people(z, y).'))", '+above("ann", "cy").')
        one.say("print(db.insert('people', {'name': 'di', 'boss': 'cy'}))", '+above("ann", "di").')
        one.say("print(db.why('above', ('ann', 'di')))", "given")
        one.say("print(db.delete('people', name='cy'))", '-above("ann", "di").')
        one.say("db.query('above(x, y)').to_dicts()", "'x': 'ann'")
        one.leave()


def test_a_notebook_of_ones_own(tmp_path: Path) -> None:
    """The kernel is installed into an environment of its own, as `everlog[jupyter]` is."""
    bin_ = installed("[jupyter]")
    run(bin_ / "python", "-m", "pip", "install", "--quiet", "ipykernel", "nbclient", "nbformat", folder=tmp_path)
    (tmp_path / "people.csv").write_text("name,boss\nann,\nbob,ann\ncy,bob\n")
    cells = [
        "%load_ext everlog",
        "import csv, everlog\ndb = everlog.over(people=list(csv.DictReader(open('people.csv'))))\ndb",
        "%%datalog\n.decl above(x:symbol, y:symbol)\nabove(x, y) :- people(y, x), x != \"\".\n"
        "above(x, z) :- above(x, y), people(z, y).",
        "%datalog .live above",
        '%%datalog\n+people("di", "cy").',
        '%datalog .why above("ann", "di")',
        "%datalog .graph",
    ]  # fmt: skip
    script = """
import json, sys, time, nbformat, nbclient
cells = [nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
start = time.monotonic()
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps([time.monotonic() - start, [cell.outputs for cell in notebook.cells]]))
"""
    done = subprocess.run(
        [bin_ / "python", "-c", script],
        input=json.dumps(cells),
        cwd=tmp_path,
        env=clean_environment() | {"HOME": str(tmp_path), "PATH": f"{bin_}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    seconds, outputs = json.loads(done.stdout.splitlines()[-1])
    assert seconds < MOST
    shown = [" ".join("".join(o.get("data", {}).get("text/html", "")) for o in cell) for cell in outputs]
    assert "3 rules" not in shown[1]
    assert "cy" in shown[2]
    assert "3 facts" not in shown[3]  # it followed: 3 more came
    assert "6 facts" in shown[3]
    assert "<svg" in shown[5]
    assert "people(&quot;di&quot;, &quot;cy&quot;)" in shown[5]
    assert "<svg" in shown[6]

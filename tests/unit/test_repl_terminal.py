"""The prompt in a pseudo-terminal: the real program, keys in, the screen out."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

from everlog.repl.pager import QUESTION
from everlog.repl.table import commands

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

PROGRAM = """.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2). edge(2, 3).
"""
PROMPT = "everlog>"


def started(folder: Path, *arguments: str, lines: int = 40, **environment: str) -> Terminal:
    """The prompt in a terminal, ready."""
    settings = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), **environment}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    terminal = Terminal(
        [sys.executable, "-P", "-m", "everlog", *arguments], folder, {"LANG": "C.UTF-8", **kept, **settings}, lines
    )
    terminal.wait_for(PROMPT)
    return terminal


def is_ready(screen: str) -> bool:
    return screen.endswith(PROMPT)


def said(terminal: Terminal, text: str) -> str:
    """Type a text and Enter; what is on the screen when the prompt is there again."""
    terminal.ctrl("l")
    terminal.wait_for(lambda screen: screen == PROMPT)
    terminal.enter(text)
    return terminal.wait_for(lambda screen: screen != PROMPT and is_ready(screen))


def framed(screen: str) -> list[list[str]]:
    """The cells of the tables on a screen."""
    return [
        [cell.strip() for cell in line.strip("│").split("│")] for line in screen.split("\n") if line[:1] == "│"
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompt")
    (path / "paths.dl").write_text(PROGRAM)
    (path / "edge.csv").write_text("x,y\n2,3\n3,4\n")
    (path / "script.txt").write_text("edge(2, 3).\n.count edge\n")
    return path


@pytest.fixture(scope="module")
def open_terminal(folder: Path) -> Iterator[Terminal]:
    with started(folder, "repl", "paths.dl") as terminal:
        yield terminal


@pytest.fixture
def terminal(open_terminal: Terminal) -> Terminal:
    """A prompt at which the program was just loaded."""
    said(open_terminal, ".open")
    assert "2 relations, 2 rules, 5 facts" in said(open_terminal, ".load paths.dl")
    return open_terminal


# ── every command ────────────────────────────────────────────────────────────────────────────

# command → lines to type, and what the screen shows after the last one
EXAMPLES: dict[str, tuple[list[str], str]] = {
    ".help": ([".help class"], r"\.class \[NAME\]\nthe class of each rule"),
    ".load": ([".load paths.dl"], r"paths\.dl: 2 relations, 2 rules, 5 facts"),
    ".reload": (["-path#2.", ".reload"], r"\+path\(1, 3\)\."),
    ".read": ([".read script.txt"], r"0 changed\nedge: 2"),
    ".import": ([".import edge.csv edge"], r"edge: 2 facts read, 1 new\n3 changed in other relations"),
    ".export": ([".export path path.json"], r"path\.json: 3 facts"),
    ".open": ([".open new.db paths.dl"], r"new\.db: 2 relations, 2 rules, 5 facts, step 0"),
    ".save": ([".save saved.db"], r"saved\.db: 2 relations, 2 rules, 5 facts"),
    ".checkpoint": ([".open one.db paths.dl", ".checkpoint"], r"step 0; history goes back to step 0"),
    ".as-of": ([".open two.db paths.dl", "edge(3, 4).", ".as-of 0 .count edge"], r"\nedge: 2\n"),
    ".diff": ([".open three.db paths.dl", "edge(3, 4).", ".diff 0 1 edge"], r"\n\+edge\(3, 4\)\.\neverlog"),
    ".history": (
        [".open four.db paths.dl", "edge(3, 4).", ".history edge"],
        r"\nstep 1, 2[-0-9]+ [0-9:]+\n\+edge",
    ),
    ".tables": ([".tables"], r"│ path +│ x:number, y:number │ +3 │ flow +│"),
    ".schema": ([".schema path"], r"\n\.decl path\(x:number, y:number\)\n"),
    ".rules": ([".rules path"], r"path#2  path\(x, z\) :- path\(x, y\), edge\(y, z\)\."),
    ".count": ([".count path"], r"\npath: 3\n"),
    ".dump": ([".dump edge"], r"│ 1 │ 2 │\n│ 2 │ 3 │\n╰───┴───╯\n\(2 rows\)"),
    ".class": ([".class"], r"path#2: recursive; one update follows"),
    ".plan": ([".plan path"], r"kept by flow: sets that flow along steps"),
    ".code": ([".code path#2"], r"def rule\(_delta, _new\):"),
    ".why": ([".why path(1, 3)"], r"├── path\(1, 2\)   path#1 at paths\.dl:3"),
    ".why-not": ([".why-not path(3, 1)"], r"✗ no fact edge\(3, 1\)"),
    ".advise": ([".advise"], r" facts in .*\npath: drop, nobody has read it"),
    ".what-if": ([".what-if -edge(2, 3)."], r"\n-edge\(2, 3\)\.\n-path\(1, 3\)\.\n-path\(2, 3\)\.\n"),
    ".how": ([".how -path(1, 3)"], r"\n1  -edge\(1, 2\)\.\n +also -path\(1, 2\)\.\n"),
    ".apply": ([".how -path(1, 3)", ".apply 1"], r"\n-edge\(1, 2\)\.\n-path\(1, 2\)\.\n-path\(1, 3\)\.\n"),
    ".param": ([".param from 1", "path($from, x), x > 2?"], r"│ x │\n├───┤\n│ 3 │"),
    ".watch": ([".watch path(1, x)", "edge(3, 4)."], r"\n\+path\(1, 4\)\.\n\(3 changes not watched\)"),
    ".unwatch": ([".watch path", ".unwatch path", ".watch"], r"nothing is watched"),
    ".changes": (["edge(3, 4).", ".changes edge"], r"\n\+edge\(3, 4\)\.\neverlog"),
    ".prof": ([".prof"], r"│ path#2 +│ flow +│ +[0-9]+ │"),
    ".timer": ([".timer on", ".count edge", ".timer off"], r"everlog"),
    ".mem": ([".mem"], r"process: [0-9.]+ MB"),
    ".progress": ([".progress"], r"\non\n"),
    ".mode": ([".mode json", "edge(1, x)?"], r'\n\[\{"x": 2\}\]\n'),
    ".maxrows": ([".maxrows"], r"\n1000\n"),
    ".output": ([".output out.txt", ".count edge", ".output", ".show timer"], r"\noff\n"),
    ".once": ([".once once.txt", ".count edge", ".count path"], r"\npath: 3\n"),
    ".check": ([".check"], r"2 relations, all as computed from scratch"),
    ".limit": ([".limit seconds 9", ".limit seconds"], r"seconds: 9\.0"),
    ".set": ([".set headers off", "path(1, x)?"], r"╭───╮\n│ 2 │\n│ 3 │\n╰───╯"),
    ".show": ([".show"], r"│ pager +│ on +│"),
    ".drop": ([".drop path", ".count"], r"\nedge: 2\neverlog"),
    ".quit": ([], ""),  # see below
}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name][0]])
def test_every_command_on_a_terminal(name: str, terminal: Terminal) -> None:
    lines, expected = EXAMPLES[name]
    for line in lines:
        screen = said(terminal, line)
        assert "error:" not in screen
        assert "error[" not in screen
    assert re.search(expected, screen), screen
    for line in (".mode table", ".set headers on", ".unwatch"):
        said(terminal, line)


def test_no_command_is_untried_on_a_terminal() -> None:
    assert set(EXAMPLES) == set(commands())


def test_files_have_what_was_sent_to_them(terminal: Terminal, folder: Path) -> None:
    for line in (".output out.txt", ".count edge", ".output", ".once once.txt", "path(1, x)?"):
        said(terminal, line)
    assert (folder / "out.txt").read_text() == "edge: 2\n"
    assert (folder / "once.txt").read_text() == "x\n-\n2\n3\n(2 rows)\n"


def test_the_timer_reports_how_long_a_line_took(terminal: Terminal) -> None:
    said(terminal, ".timer on")
    assert re.search(r"edge: 2\n[0-9]+\.[0-9]{3} s\n", said(terminal, ".count edge"))
    said(terminal, ".timer off")


# ── the three kinds of line ──────────────────────────────────────────────────────────────────


def test_rules_facts_and_queries(terminal: Terminal) -> None:
    assert "0 changed" in said(terminal, "edge(1, 2).")
    assert "+edge(3, 4).\n+path(1, 4).\n+path(2, 4).\n+path(3, 4).\n" in said(terminal, "+edge(3, 4).")
    assert framed(said(terminal, "?- path(1, x), x > 2.")) == [["x"], ["3"], ["4"]]
    assert framed(said(terminal, "path(3, x)?")) == [["x"], ["4"]]
    assert "\nyes\n" in said(terminal, "path(1, 4)?")
    assert "-edge(3, 4).\n-path(1, 4)." in said(terminal, "-edge(3, 4).")
    assert "-path(1, 3)." in said(terminal, "-path#2.")
    assert "+path(1, 3)." in said(terminal, "path(x, z) :- path(x, y), edge(y, z).")


def test_several_lines_make_one_statement(terminal: Terminal) -> None:
    said(terminal, ".decl near(x:number, y:number)")
    terminal.enter("near(x, y) :-")
    terminal.wait_for("...>")
    terminal.enter("edge(x, y),")
    terminal.wait_for(lambda screen: screen.count("...>") == 2)
    terminal.enter("x < 2.")
    screen = terminal.wait_for("near#1: no join; one update takes constant time, O(1)")
    assert "everlog> near(x, y) :-\n    ...> edge(x, y),\n    ...> x < 2.\n" in screen


def test_pasted_lines_are_run_as_if_they_were_typed(terminal: Terminal) -> None:
    pasted = ".decl q(x:number)\nq(x) :-\n  edge(x, _).\nq(x)?\n.count q"
    terminal.ctrl("l")
    terminal.type(f"\x1b[200~{pasted}\x1b[201~\r")
    screen = terminal.wait_for("q: 2")
    assert framed(screen) == [["x"], ["1"], ["2"]]
    terminal.wait_for(is_ready)


def test_an_empty_line_ends_what_is_not_complete(terminal: Terminal) -> None:
    terminal.enter("edge(1, 2")
    terminal.wait_for("...>")
    terminal.enter("")
    terminal.wait_for("unexpected end of the text")
    assert "edge: 2" in said(terminal, ".count edge")


def test_a_mistake_is_shown_and_the_prompt_goes_on(terminal: Terminal) -> None:
    assert "error: undefined relation `egde`; did you mean `edge`?" in said(terminal, "egde(1, 2).")
    assert "error[DL040]: head variable `z` is not bound by the body" in said(
        terminal, "path(x, z) :- edge(x, y)."
    )
    assert "edge: 2\npath: 3" in said(terminal, ".count")


def test_the_prompt_shows_the_open_transaction(terminal: Terminal) -> None:
    terminal.enter("begin")
    terminal.wait_for("everlog [0 pending]>")
    terminal.enter("edge(3, 4). -edge(1, 2).")
    terminal.wait_for("everlog [2 pending]>")
    terminal.enter("rollback")
    terminal.wait_for("2 updates dropped")
    terminal.enter("begin")
    terminal.enter("edge(3, 4).")
    terminal.wait_for("everlog [1 pending]>")
    terminal.enter("commit")
    terminal.wait_for("+path(3, 4).")
    terminal.wait_for(is_ready)


def test_the_prompt_shows_that_it_looks_at_the_past(terminal: Terminal) -> None:
    said(terminal, ".open past.db paths.dl")
    said(terminal, "edge(3, 4).")
    terminal.enter(".as-of 0")
    terminal.wait_for("everlog [past]>")
    terminal.enter("edge(4, 5).")
    terminal.wait_for("error: this is the past state after step 0: it cannot be changed")
    terminal.enter(".as-of now")
    terminal.wait_for(is_ready)
    assert "\nedge: 3\n" in said(terminal, ".count edge")


def test_ddlogs_words(terminal: Terminal) -> None:
    terminal.enter("start;")
    terminal.wait_for("[0 pending]>")
    terminal.enter("insert edge(3, 4),")
    terminal.wait_for("...>")
    terminal.enter("delete edge(1, 2);")
    terminal.wait_for("[2 pending]>")
    terminal.enter("commit dump_changes;")
    terminal.wait_for("+path(3, 4).")
    terminal.wait_for(is_ready)
    assert "edge(2, 3).\nedge(3, 4).\n" in said(terminal, "dump edge;")


# ── keys ─────────────────────────────────────────────────────────────────────────────────────


def test_tab_completes_commands_relations_columns_and_files(terminal: Terminal) -> None:
    terminal.type(".cou\t")
    terminal.wait_for(lambda screen: screen.endswith("everlog> .count"))
    terminal.type(" ed\t")
    terminal.wait_for(lambda screen: screen.endswith("everlog> .count edge"))
    terminal.enter("")
    terminal.wait_for("edge: 2")
    terminal.type("pat\t")
    terminal.wait_for(lambda screen: screen.endswith("everlog> path("))
    terminal.type("1, \t")
    terminal.wait_for(lambda screen: screen.endswith("everlog> path(1, y"))
    terminal.enter(")?")
    terminal.wait_for("(2 rows)")
    terminal.type(".load pat\t")
    terminal.wait_for(lambda screen: "everlog> .load path" in screen and "paths.dl" in screen.split("\n")[-1])
    terminal.ctrl("c")
    terminal.wait_for(is_ready)


def test_several_candidates_are_offered_with_what_they_are(terminal: Terminal) -> None:
    terminal.type(".wh\t")
    screen = terminal.wait_for("what each rule lacks to derive a fact")
    assert "a proof of a fact, down to base facts" in screen
    terminal.ctrl("c")
    terminal.wait_for(is_ready)


def test_ctrl_c_drops_what_is_being_typed(terminal: Terminal) -> None:
    terminal.type("edge(8, 9).")
    terminal.wait_for("edge(8, 9).")
    terminal.ctrl("c")
    terminal.wait_for(is_ready)
    assert "edge: 2" in said(terminal, ".count edge")


def test_ctrl_c_cancels_a_long_step_and_nothing_else(folder: Path) -> None:
    with started(folder, "repl", "paths.dl") as terminal:
        said(terminal, ".decl n(x:number)")
        said(terminal, "n(x + 1) :- n(x).")
        for _ in range(2):
            terminal.enter("n(0).")
            terminal.wait_for(re.compile(r"deriving n: round [0-9]+, [0-9,]+ facts").search)  # type: ignore[arg-type]
            terminal.ctrl("c")
            terminal.wait_for("cancelled")
            assert "n: 0" in said(terminal, ".count n")
        assert "edge: 2\npath: 3" in said(terminal, ".count edge path")
        assert "all as computed from scratch" in said(terminal, ".check")
        long_query = "?- path(x, _), a = range(0, 1000000), b = range(0, 1000000), a + b < 0."
        terminal.enter(long_query)
        pressed = False
        for _ in range(60):
            terminal.read(0.5)
            if "cancelled" in terminal.screen():
                break
            if not is_ready(terminal.screen()):
                terminal.ctrl("c")
                pressed = True
            elif pressed:  # it came while the query was still being typed: that drops the line
                terminal.enter(long_query)
                pressed = False
        terminal.wait_for("cancelled")
        terminal.wait_for(is_ready)
        terminal.ctrl("d")
        assert terminal.exit_status() == 0


def test_ctrl_d_leaves_and_quit_leaves_with_a_status(folder: Path) -> None:
    with started(folder) as terminal:
        terminal.ctrl("d")
        assert terminal.exit_status() == 0
    with started(folder) as terminal:
        terminal.enter(".quit 7")
        assert terminal.exit_status() == 7


def test_a_program_with_mistakes_leaves_the_prompt(folder: Path) -> None:
    (folder / "wrong.dl").write_text(".decl p(x:number)\np(x) :- q(x).\n")
    with started(folder, "repl", "wrong.dl") as terminal:
        terminal.wait_for("undefined relation `q`")
        (folder / "wrong.dl").write_text(".decl p(x:number)\np(1).\n")
        assert "1 relation, 0 rules, 1 fact" in said(terminal, ".load wrong.dl")


def test_what_was_typed_is_there_the_next_time(folder: Path) -> None:
    with started(folder) as terminal:
        said(terminal, ".decl remembered(x:number)")
        terminal.ctrl("d")
        terminal.exit_status()
    assert ".decl remembered" in (folder / "state" / "everlog" / "history").read_text()
    with started(folder) as terminal:
        terminal.type("\x1b[A")
        terminal.wait_for("everlog> .decl remembered(x:number)")


# ── pages and colours ────────────────────────────────────────────────────────────────────────


def test_a_long_answer_comes_page_by_page(folder: Path) -> None:
    with started(folder, lines=12) as terminal:
        said(terminal, ".decl n(x:number)")
        said(terminal, ".set changes off")
        said(terminal, "n(x) :- x = range(0, 300000).")
        terminal.enter("?- n(x), n(y), x != y.")  # 90 thousand million rows
        screen = terminal.wait_for(QUESTION)
        assert len([row for row in framed(screen) if row[0].isdigit()]) == 8
        terminal.type(" ")
        terminal.wait_for(lambda screen: screen.endswith(QUESTION) and len(framed(screen)) == 11)
        before = framed(terminal.screen())
        terminal.type("\r")
        terminal.wait_for(lambda screen: screen.endswith(QUESTION) and framed(screen)[:-1] == before[1:])
        terminal.type("q")
        terminal.wait_for(is_ready)
        terminal.enter("n(x)?")
        terminal.wait_for(QUESTION)
        terminal.ctrl("c")
        terminal.wait_for("cancelled")
        terminal.enter("n(x)?")
        terminal.wait_for(QUESTION)
        terminal.type("a")
        terminal.wait_for("(1000 rows shown, there are more: see .maxrows)")
        terminal.wait_for(is_ready)


def test_a_program_may_be_the_pager(folder: Path) -> None:
    with started(folder, lines=12) as terminal:
        said(terminal, ".decl n(x:number)")
        said(terminal, ".set changes off")
        said(terminal, "n(x) :- x = range(0, 300000).")
        said(terminal, ".set pager cat -n")
        terminal.enter(".dump n")
        terminal.wait_for("1005\t(1000 rows shown".replace("\t", "  "))
        terminal.wait_for(is_ready)
        said(terminal, ".set pager no-such-program")
        assert "cannot start the pager `no-such-program`" in said(terminal, ".dump n")


def test_colours_are_for_terminals_that_want_them(folder: Path) -> None:
    with started(folder, "repl", "paths.dl") as terminal:
        said(terminal, "edge(8, 9).")
        assert b"\x1b[32m+edge(8, 9)." in terminal.raw
        said(terminal, ".set colour off")
        said(terminal, "-edge(8, 9).")
        assert b"m-edge(8, 9)." not in terminal.raw
    with started(folder, "repl", "paths.dl", NO_COLOR="1") as terminal:
        said(terminal, "edge(8, 9).")
        assert b"m+edge(8, 9)." not in terminal.raw


def test_a_symbol_cannot_move_the_cursor(terminal: Terminal, folder: Path) -> None:
    (folder / "s.facts").write_text("a\x07b\x1b[2Jc\n")
    said(terminal, ".decl s(x:symbol)")
    said(terminal, ".input s")
    assert r"│ a\x07b\x1b[2Jc │" in said(terminal, "s(x)?")
    assert r"+s(" in said(terminal, ".changes")
    assert b"\x1b[2Jc" not in terminal.raw


# ── habits of the first hour ─────────────────────────────────────────────────────────────────


def test_a_command_is_not_swallowed_by_a_statement_that_lacks_its_dot(terminal: Terminal) -> None:
    terminal.ctrl("l")
    terminal.wait_for(lambda screen: screen == PROMPT)
    terminal.enter("edge(5, 6)")
    terminal.wait_for("...>")
    terminal.enter(".count edge")
    shown = terminal.wait_for(lambda screen: "edge: 2" in screen and is_ready(screen))
    assert "error[DL010]: missing `.` at the end of the statement" in shown


def test_ctrl_d_asks_while_updates_are_pending(folder: Path) -> None:
    with started(folder, "repl", "paths.dl") as terminal:
        terminal.enter("begin")
        terminal.enter("edge(3, 4).")
        terminal.wait_for("[1 pending]>")
        terminal.ctrl("d")
        terminal.wait_for("1 update pending: `commit` applies them, `rollback` drops them")
        terminal.wait_for(lambda screen: screen.endswith("[1 pending]>"))
        terminal.enter(".why path(1, 3)")
        terminal.wait_for(lambda screen: "(as before the open" in screen and screen.endswith("[1 pending]>"))
        terminal.ctrl("d")
        terminal.wait_for(lambda screen: screen.count("1 update pending") == 2 and screen.endswith("pending]>"))
        terminal.ctrl("d")
        terminal.wait_for("1 update dropped", everything=True)
        assert terminal.exit_status() == 0


def test_the_line_of_progress_is_gone_before_an_error(folder: Path) -> None:
    with started(folder, "repl", "paths.dl") as terminal:
        said(terminal, ".decl n(x:number)")
        said(terminal, "n(x + 1) :- n(x).")
        said(terminal, ".limit seconds 1.5")
        terminal.enter("n(0).")
        terminal.wait_for("deriving n: round")
        shown = terminal.wait_for(lambda screen: "error: " in screen and is_ready(screen))
        assert "deriving" not in shown
        assert "\nerror: " in shown


def test_the_timer_does_not_count_the_time_before_a_page(folder: Path) -> None:
    with started(folder, "repl", "paths.dl", lines=12) as terminal:
        terminal.enter(".decl n(x:number)")
        terminal.enter(" ".join(f"n({number})." for number in range(30)))
        terminal.wait_for(QUESTION)
        terminal.type("a")
        terminal.wait_for(is_ready)
        terminal.enter(".timer on")
        terminal.wait_for(is_ready)
        terminal.enter("n(x)?")
        terminal.wait_for(QUESTION)
        time.sleep(3)
        terminal.type("a")
        terminal.wait_for(lambda screen: is_ready(screen) and screen.count(" s\n") == 1)
        seconds = re.findall(r"^([0-9.]+) s$", terminal.screen(), re.MULTILINE)
        assert float(seconds[-1]) < 3


def test_run_prints_tables_on_a_terminal(folder: Path) -> None:
    (folder / "out.dl").write_text(PROGRAM + ".output path\n")
    command = [sys.executable, "-P", "-m", "everlog", "run", "out.dl", "-D-"]
    kept = {name: os.environ[name] for name in ("PATH", "LC_ALL") if name in os.environ}
    with Terminal(command, folder, {"LANG": "C.UTF-8", **kept}) as terminal:
        assert terminal.exit_status() == 0
        assert framed(terminal.screen()) == [["x", "y"], ["1", "2"], ["1", "3"], ["2", "3"]]
        assert terminal.screen().startswith("path\n╭")
        assert terminal.screen().endswith("(3 rows)")


def test_a_newcomer_gets_from_a_csv_to_a_live_recursive_view_with_a_proof(tmp_path: Path) -> None:
    """The commands of docs/own-data.md, typed; none of them fails."""
    (tmp_path / "people.csv").write_text(
        "name,boss,since\nann,,1998-04-01\nbob,ann,2011-10-15\ncy,bob,2020-02-01\n"
    )
    with started(tmp_path, "open", "people.csv") as terminal:
        terminal.wait_for("people(name:symbol, boss:symbol, since:symbol): 3 facts")
        assert "cy" in said(terminal, 'people(who, _, since), since > "2012"?')
        said(terminal, ".decl above(x:symbol, y:symbol)")
        said(terminal, 'above(x, y) :- people(y, x, _), x != "".')
        assert '+above("ann", "cy").' in said(terminal, "above(x, z) :- above(x, y), people(z, y, _).")
        assert '+above("ann", "di").' in said(terminal, 'people("di", "cy", "2026-11-01").')
        assert "given" in said(terminal, '.why above("ann", "di")')
        assert '-above("ann", "di").' in said(terminal, '-people("cy", _, _).')
        assert "error" not in terminal.everything()

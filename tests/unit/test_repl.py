"""The prompt, line by line: in process, and as a script that is piped in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from everlog.core.engine import watch
from everlog.repl import table
from everlog.repl.loop import run_script
from everlog.repl.session import Places, Session
from everlog.repl.tab_completion import candidates
from everlog.repl.table import ALIASES, COMMANDS, commands

ROOT = Path(__file__).parents[2]
PATHS = [
    ".decl edge(x:number, y:number)",
    ".decl path(x:number, y:number)",
    "path(x, y) :- edge(x, y).",
    "path(x, z) :- path(x, y), edge(y, z).",
]
EDGES = [*PATHS, "edge(1, 2). edge(2, 3)."]


class Talk:
    """A conversation: `say` gives back what a line is answered with."""

    def __init__(self, *lines: str, places: Places | None = None) -> None:
        self.out = StringIO()
        self.session = Session(places, out=self.out)
        for line in lines:
            self.say(line)

    def say(self, *lines: str) -> str:
        before = len(self.out.getvalue())
        run_script(self.session, lines, "script")
        return self.out.getvalue()[before:].rstrip("\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ── the three kinds of line ──────────────────────────────────────────────────────────────────


def test_a_declaration_and_a_rule_are_answered_with_what_they_are_and_cost() -> None:
    talk = Talk()
    assert talk.say(PATHS[0]) == "edge(x:number, y:number)"
    talk.say(PATHS[1])
    assert talk.say(PATHS[2]) == "path#1: no join; one update takes constant time, O(1)"
    assert talk.say(PATHS[3]) == (
        "path#2: recursive; one update follows the facts that change, and the cycles that a step opens or closes (flow)"
    )
    talk.say(".decl ring(x:number)")
    assert talk.say("ring(x) :- edge(x, y), edge(y, z), edge(z, x).") == (
        "ring#1: cyclic, w = 3/2, ŵ = 3/2; one update takes time proportional to the data, O(D) amortized (auto)"
    )


def test_a_rule_that_is_added_reports_the_facts_that_it_derives() -> None:
    talk = Talk(*PATHS[:3], "edge(1, 2). edge(2, 3).")
    assert talk.say(PATHS[3]).split("\n")[1:] == ["+path(1, 3)."]


def test_a_rule_is_dropped_by_its_name_and_by_its_text() -> None:
    talk = Talk(*EDGES)
    assert talk.say("-path#2.") == "dropped path#2: path(x, z) :- path(x, y), edge(y, z).\n-path(1, 3)."
    assert talk.say("-path(x,y):-edge(x,y).") == "dropped path(x,y):-edge(x,y).\n-path(1, 2).\n-path(2, 3)."
    assert talk.say(".rules") == ""
    assert "no rule is named `path#2`" in talk.say("-path#2.")


def test_facts_come_and_go_and_report_what_they_caused() -> None:
    talk = Talk(*PATHS)
    assert talk.say("edge(1, 2).") == "+edge(1, 2).\n+path(1, 2)."
    assert talk.say("+edge(2, 3).") == "+edge(2, 3).\n+path(1, 3).\n+path(2, 3)."
    assert talk.say("edge(1, 2).") == "0 changed"
    assert talk.say("-edge(1, 2).") == "-edge(1, 2).\n-path(1, 2).\n-path(1, 3)."
    assert talk.say("-edge(1, 2).") == "0 changed"


def test_facts_on_one_line_are_one_step() -> None:
    talk = Talk(*PATHS)
    assert talk.say("edge(1, 2). -edge(1, 2).") == "0 changed"
    assert "takes a number" in talk.say('+edge(1, 2). +edge("a", 2).')
    assert talk.say(".count edge") == "edge: 0"


def test_a_query_gives_the_values_of_its_variables() -> None:
    talk = Talk(*EDGES, "edge(3, 4).")
    assert talk.say("?- path(1, x), x > 3.") == "x\n-\n4\n(1 row)"
    assert talk.say("path(1, x)?") == "x\n-\n2\n3\n4\n(3 rows)"
    assert talk.say("path(_, x)?") == "x\n-\n2\n3\n4\n(3 rows)"
    assert talk.say("?- edge(a, b), edge(b, c), !edge(a, c).") == "a  b  c\n-  -  -\n1  2  3\n2  3  4\n(2 rows)"
    assert talk.say("?- n = count : { path(_, _) }.") == "n\n-\n6\n(1 row)"
    assert talk.say("path(x, 1)?") == "x\n-\n(0 rows)"


def test_a_query_without_variables_is_answered_yes_or_no() -> None:
    talk = Talk(*EDGES)
    assert [talk.say("path(1, 3)?"), talk.say("?- path(3, 1).")] == ["yes", "no"]
    talk.say(".mode json")
    assert [talk.say("path(1, 3)?"), talk.say("?- path(3, 1).")] == ["true", "false"]


def test_lines_go_on_until_they_are_complete() -> None:
    talk = Talk(*PATHS[:2])
    assert talk.say("path(x, y) :-", "  edge(x, y),", "", "  x < 10.").startswith("path#1: ")
    assert talk.say("edge(", "1,", "2).") == "+edge(1, 2).\n+path(1, 2)."
    assert talk.say("?- path(1, x),", "x > 1.").endswith("(1 row)")
    assert (
        talk.say(".comp C {", ".decl r(x:number)", "r(1).", "}", ".init c = C") == "added\nc.r(x:number)\n+c.r(1)."
    )


def test_a_command_ends_a_statement_that_lacks_its_full_stop() -> None:
    said = Talk(".decl p(x:number)").say("p(5)", ".tables")
    assert "script:1: error[DL010]: missing `.` at the end of the statement" in said
    assert re.search(r"^p +x:number +0 +given$", said, re.M), "the command has run"


def test_a_proof_inside_a_transaction_says_of_which_state_it_is() -> None:
    talk = Talk(*PATHS, "edge(1, 2).", "begin", "edge(2, 3).")
    assert talk.say(".why path(1, 2)").startswith("(as before the open transaction)\npath(1, 2) ")
    assert "path(1, 3) is not there" in talk.say(".why path(1, 3)")


def test_a_relation_in_use_is_not_dropped() -> None:
    talk = Talk(*PATHS)
    assert talk.say(".drop edge").endswith("is used by path#1, path#2: drop what uses it first")


def test_words_of_transactions_have_no_dot() -> None:
    talk = Talk()
    assert talk.say(".begin") == "script:1: error: no command `.begin`; write `begin` without the dot"


def test_costs_are_said_in_words_before_the_formula() -> None:
    talk = Talk(".decl e(x:number, y:number)", ".decl t(x:number, y:number, z:number)")
    said = talk.say("t(x, y, z) :- e(x, y), e(y, z), e(z, x).")
    assert "about the square root of the data, O(D^1/2)" in said
    said = talk.say("t(x, x, y) :- e(x, y).")
    assert "constant time, O(1)" in said


def test_several_kinds_may_share_a_text() -> None:
    talk = Talk()
    assert talk.say("m(x + 1) :- n(x). .decl n(x:number) .decl m(x:number) n(1). ?- m(x).").split("\n") == [
        "n(x:number)",
        "m(x:number)",
        "m#1: no join; one update takes constant time, O(1)",
        "+n(1).",
        "+m(2).",
        "x",
        "-",
        "2",
        "(1 row)",
    ]


def test_comments_and_blank_lines_are_passed_over() -> None:
    assert Talk().say("", "// nothing", "# nothing", "/* several", "lines */", "  ") == ""


def test_comments_may_stand_behind_and_inside() -> None:
    talk = Talk(*EDGES)
    assert talk.say("edge(1, 9)?  // is it there?") == "no"
    assert talk.say("?- edge(x, /* any */ 2).  // who?").endswith("(1 row)")
    assert talk.say("edge(4, // from", "5).") == "+edge(4, 5).\n+path(4, 5)."
    talk.say(".decl s(x:symbol)")
    assert talk.say('s("a // b").') == '+s("a // b").'
    assert talk.say('s("a // b")?') == "yes"


def test_a_symbol_may_have_any_character(folder: Path) -> None:
    talk = Talk(".decl s(x:symbol)")
    assert talk.say('s("two', 'lines").') == '+s("two\\nlines").'
    (folder / "s.txt").write_text('s("a\u2028b\x0bc").\n')
    assert talk.say(".read s.txt") == '+s("a\u2028b\\vc").'


def test_signs_before_rules_and_declarations() -> None:
    talk = Talk(*PATHS[:2])
    assert talk.say("+path(x, y) :- edge(x, y).") == "path#1: no join; one update takes constant time, O(1)"
    assert talk.say("-.decl path(x:number, y:number)").startswith("script:1: error[DL050]")
    assert talk.say("-path(x, y) :- edge(x, y).", "-.decl path(x:number, y:number)", ".count") == (
        "dropped path(x, y) :- edge(x, y).\ndropped .decl path(x:number, y:number)\nedge: 0"
    )
    assert "`_` for any value" in talk.say("-edge(x, y).")


def test_macros_and_directives_are_of_the_language() -> None:
    talk = Talk(".decl size(n:number)")
    assert talk.say("#define N 3\nsize(N).") == "+size(3)."
    assert talk.say("#ifdef __SOUFFLE__", "size(4).", "#else", "size(5).", "#endif") == "+size(4)."
    assert "without `#if`" in talk.say("#endif")
    assert talk.say(".output size") == "added"
    assert talk.say('.pragma "legacy"') == "added"
    assert talk.say(".schema size") == ".decl size(n:number)\n.output size"


def test_an_input_directive_reads_its_file_at_once(folder: Path) -> None:
    (folder / "edge.facts").write_text("1\t2\n2\t3\n")
    talk = Talk(*PATHS)
    assert talk.say(".input edge") == "added\nedge: 2 facts read, 2 new\n3 changed in other relations"
    assert "`path` is empty: cannot open fact file path.facts" in talk.say(".input path")


def test_a_remark_of_the_checker_is_reported_with_the_rule() -> None:
    talk = Talk(*EDGES, ".decl q(x:number)")
    assert "variable `y` occurs only once" in talk.say("q(x) :- edge(x, y).")
    assert "only once" not in talk.say("q(x) :- edge(_, x).")


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("node(1).", "undefined relation `node`; declare it first: .decl node(a:number)"),
        ('likes("a", 1.5).', "declare it first: .decl likes(a:symbol, b:float)"),
        ("egde(1, 2).", "undefined relation `egde`; did you mean `edge`?"),
        ("edge(1).", "`edge(x:number, y:number)` has 2 column(s), 1 given"),
        ('edge("a", 2).', "column `x` of `edge` takes a number"),
        ("edge(1, 2", "unexpected end of the text"),
        ("path(x) :- edge(x, y).", "error[DL0"),
        ("path(x, z) :- edge(x, y).", "head variable `z` is not bound"),
        ("?- path(1, x), x > .", "unexpected end of the query"),
        ("?- pth(1, x), true.", "did you mean `path`?"),
        ("nowhere(x)?", "undefined relation `nowhere`"),
        ("commit", "no transaction is open"),
        ("insert edge(1, 2;", "still open"),
        (".plan 0:(2,1)", "belongs on the line of its rule"),
        (".strategy delta", "belongs on the line of its rule"),
        (".foo", "no command `.foo`"),
        (".tabels", "did you mean `.tables`?"),
        (".m", "`.m` is ambiguous: `.mode`, `.maxrows` or `.mem`"),
        (".count nowhere", "undefined relation `nowhere`"),
        (".import", "usage: .import FILE REL [KEY=VALUE …]"),
        ('.load "a', "no closing quotation"),
        (".load none.dl", "cannot read none.dl: No such file"),
        (".reload", "no program is loaded"),
        (".read none.txt", "cannot read none.txt"),
        (".why path(9, 9)", "path(9, 9)"),
        (".why", "usage: .why FACT"),
        (".plan nothing", "no relation or rule `nothing`"),
        (".code edge", "`edge` has no rules"),
        (".class path#9", "no rule is named `path#9`"),
        (".mode xml", "invalid value `xml` for `mode`; use table|csv|json|dl"),
        (".maxrows 0", "invalid value `0` for `maxrows`; use N|all"),
        (".set speed high", "no setting `speed`"),
        (".limit speed 3", "no limit `speed`"),
        (".limit seconds fast", "invalid limit for seconds: `fast`; use `off` to remove it"),
        (".unwatch path", "`path` is not watched"),
        (".output nowhere", "undefined relation `nowhere`; write `./nowhere` for a file of this name"),
        (".output no/such/folder.txt", "cannot write to no/such/folder.txt"),
        (".export path x.parquet1", "does not determine a format"),
        (".import x.csv edge speed=1", "unknown parameter `speed=1`"),
        (".quit now", "use a number up to 255"),
        (".prof 0", "`0` is not a number of rules"),
        (".prof many", "undefined relation `many`"),
        (".drop edge", "edge"),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_lost(line: str, told: str) -> None:
    talk = Talk(*EDGES)
    before = talk.say(".dump")
    answer = talk.say(line)
    assert "error" in answer
    assert told in answer
    assert "should not have happened" not in answer
    assert talk.say(".dump") == before
    assert talk.session.status is None


def test_prof_says_when_a_rule_moved_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LEAST", 0)
    monkeypatch.setattr(watch, "PRICE", 0)
    pair = "(x:number, y:number)"
    talk = Talk(*(f".decl {name}{pair}" for name in "rst"), ".decl q(x:number, y:number, z:number)")
    talk.say("q(x, y, z) :- r(x, y), s(y, z), t(x, z).")
    talk.session.db.insert("s", [(0, 2 * n) for n in range(3000)])
    talk.session.db.insert("t", [(0, 2 * n + 1) for n in range(3000)])
    assert "moved" not in talk.say("r(0, 0).", ".prof")
    answer = talk.say(*["-r(0, 0).", "r(0, 0)."] * 3, ".prof")
    assert re.search(r"q#1 moved to \w+ after step \d+: delta did \d+ units of work for a row", answer)


def test_what_fails_inside_a_step_changes_nothing() -> None:
    talk = Talk(".decl n(x:number)", ".decl inverse(x:number)", "inverse(10 / x) :- n(x).", "n(5).")
    assert "division by zero" in talk.say("n(0).")
    assert talk.say(".dump n") == "x\n-\n5\n(1 row)"


def test_an_unexpected_error_is_reported_with_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(*EDGES)
    monkeypatch.setattr(type(talk.session.db), "stats", lambda self: 1 // 0)
    answer = talk.say(".prof")
    assert "this is a bug in everlog" in answer
    assert "ZeroDivisionError" in answer
    assert talk.say(".count edge") == "edge: 2"


def test_ctrl_c_takes_the_step_back_and_leaves_the_session(folder: Path) -> None:
    (folder / "functors.py").write_text("def stop(x):\n    raise KeyboardInterrupt\n")
    talk = Talk(*EDGES, ".functor stop(number):number", ".decl s(x:number)")
    with pytest.raises(KeyboardInterrupt):
        talk.say("s(@stop(x)) :- edge(x, _).")
    assert talk.say(".count") == "edge: 2\npath: 3\ns: 0"
    talk.say("s(@stop(x)) :- edge(x, 9).")
    with pytest.raises(KeyboardInterrupt):
        talk.say("edge(8, 9).")
    assert talk.say(".count edge") == "edge: 2"
    assert talk.say("edge(8, 7).") == "+edge(8, 7).\n+path(8, 7)."
    talk.say("-s#1.")
    assert talk.say(".check") == "3 relations, all as computed from scratch"


def test_functors_come_from_files(folder: Path) -> None:
    (folder / "mine.py").write_text("def twice(x):\n    return 2 * x\n")
    talk = Talk(places=Places(libraries=["mine"]))
    talk.say(".functor twice(number):number", ".decl n(x:number)")
    assert talk.say("n(@twice(21)).").endswith("+n(42).")
    assert "no Python function" in Talk(".functor thrice(number):number", ".decl n(x:number)").say(
        "n(@thrice(1))."
    )


# ── transactions ─────────────────────────────────────────────────────────────────────────────


def test_a_transaction_is_one_step_at_commit() -> None:
    talk = Talk(*PATHS)
    assert talk.say("begin", "edge(1, 2).", "+edge(2, 3). -edge(1, 2).") == ""
    assert talk.session.waiting == "[3 pending]"
    assert talk.say("edge(1, 2)?") == "(as before the open transaction)\nno"
    assert talk.say("commit") == "+edge(2, 3).\n+path(2, 3)."
    assert talk.session.waiting == ""


def test_rollback_drops_the_updates() -> None:
    talk = Talk(*EDGES, "begin", "-edge(1, 2).")
    assert talk.say("rollback") == "1 update dropped"
    assert talk.say(".count edge") == "edge: 2"
    assert talk.say("begin", "commit") == "0 changed"


def test_a_transaction_that_cannot_be_applied_stays_open_to_be_mended() -> None:
    talk = Talk(".decl n(x:number)", ".decl inverse(x:number)", "inverse(10 / x) :- n(x).")
    talk.say("begin", "n(5).", "n(0).")
    assert "division by zero" in talk.say("commit")
    assert talk.session.waiting == "[2 pending]"
    assert talk.say("-n(0).", "commit") == "+n(5).\n+inverse(2)."


def test_in_a_transaction_mistakes_are_reported_at_once_and_rules_wait() -> None:
    talk = Talk(*EDGES, ".decl log(x:number)", ".insert_only log", "log(1).", "begin")
    assert "column `x` of `edge` takes a number" in talk.say('edge("a", 1).')
    assert "`log` is `.insert_only`" in talk.say("-log(1).")
    assert "a transaction is already open" in talk.say("begin")
    for line in (".decl q(x:number)", "-path#2.", ".drop path", ".load x.dl", ".reload"):
        assert "a transaction is open: " in talk.say(line)
    assert talk.session.waiting == "[0 pending]"


# ── DDlog's words ────────────────────────────────────────────────────────────────────────────


def test_a_script_of_ddlog_runs() -> None:
    talk = Talk(".decl Edge(from:number, to:number)", ".decl Path(from:number, to:number)")
    talk.say("Path(x, y) :- Edge(x, y).", "Path(x, z) :- Path(x, y), Edge(y, z).")
    script = """
        # what DDlog's command line reads
        start;
        insert Edge(1, 2),
        insert Edge{2, 3},
        insert Edge{.to = 4, .from = 3};
        commit dump_changes;
        echo now;
        start; delete Edge(2, 3); commit;
        dump Path;
        start;
        clear Edge;
        insert Edge(7, 8);
        commit dump_changes;
        start; delete Edge(7, 8); rollback;
        dump;
    """
    assert talk.say(*script.split("\n")).split("\n") == [
        *("+Edge(1, 2).", "+Edge(2, 3).", "+Edge(3, 4)."),
        *("+Path(1, 2).", "+Path(1, 3).", "+Path(1, 4).", "+Path(2, 3).", "+Path(2, 4).", "+Path(3, 4)."),
        "now",
        "5 changed",
        *("Path(1, 2).", "Path(3, 4)."),
        *("-Edge(1, 2).", "-Edge(3, 4).", "-Path(1, 2).", "-Path(3, 4)."),
        *("+Edge(7, 8).", "+Path(7, 8)."),
        "1 update dropped",
        *("Edge(7, 8).", "Path(7, 8)."),
    ]


def test_ddlogs_words_outside_a_transaction_are_a_step() -> None:
    talk = Talk(*PATHS)
    assert talk.say("insert edge(1, 2), delete edge(3, 4), insert edge(5, 6);").split("\n")[0] == "+edge(1, 2)."
    assert talk.say("clear edge;").split("\n")[0] == "-edge(1, 2)."
    assert talk.say("timestamp;").startswith("Timestamp: ")
    assert talk.say("profile;").startswith("rule")
    assert talk.say("sleep 1; log_level 3; echo a; echo b;") == "a\nb"
    assert "has the fields .x, .y" in talk.say("insert edge{.x = 1, .z = 2};")
    assert "expected insert or delete" in talk.say("insert edge(1, 2), upsert edge(3, 4);")
    assert "`.help ddlog`" in talk.say("commit quickly;")
    talk.say("exit;")
    assert talk.session.status == 0


def test_words_of_ddlog_may_be_relations() -> None:
    talk = Talk(".decl delete(x:number)", ".decl start()")
    assert talk.say("delete(1).") == "+delete(1)."
    assert talk.say("start() :- delete(1).").endswith("+start().")
    assert talk.say("start()?") == "yes"
    assert talk.say(".dump start") == "()\n(1 row)"


# ── every command ────────────────────────────────────────────────────────────────────────────


def _files(folder: Path) -> None:
    (folder / "paths.dl").write_text("\n".join([*PATHS, "edge(1, 2).", ""]))
    (folder / "edge.csv").write_text("x,y\n2,3\n3,4\n")
    (folder / "script.txt").write_text("edge(2, 3).\nedge(1, x)?\n")


KEPT = [".save kept.db", ".open kept.db", "edge(3, 4)."]

# command → lines after the edges 1 – 2 – 3 are there, and what the last one says
EXAMPLES: dict[str, tuple[list[str], str]] = {
    ".help": ([".help why-not"], r"\.why-not FACT\nwhat each rule lacks .*\n(.*\n)*also: \.why_not, \.whynot"),
    ".load": ([".load paths.dl"], r"paths\.dl: 2 relations, 2 rules, 2 facts"),
    ".reload": ([".load paths.dl", "edge(8, 9).", "-path#2.", ".reload", ".count"], r"edge: 2\npath: 2"),
    ".read": ([".read script.txt"], r"0 changed\nx\n-\n2\n\(1 row\)"),
    ".import": ([".import edge.csv edge"], r"edge: 2 facts read, 1 new\n3 changed in other relations"),
    ".export": ([".export path path.csv"], r"path\.csv: 3 facts"),
    ".open": ([".open new.db paths.dl"], r"new\.db: 2 relations, 2 rules, 2 facts, step 0"),
    ".save": ([".save saved.db"], r"saved\.db: 2 relations, 2 rules, 5 facts"),
    ".checkpoint": ([*KEPT, ".checkpoint 0"], r"step 1; history goes back to step 1"),
    ".as-of": ([*KEPT, ".as-of 0 .count"], r"edge: 2\npath: 3"),
    ".diff": ([*KEPT, ".diff 0 1 edge"], r"\+edge\(3, 4\)\."),
    ".history": ([*KEPT, ".history edge"], r"step 1, 2[-0-9]+ [0-9:]+\n\+edge\(3, 4\)\."),
    ".tables": ([".tables"], r"relation +columns +facts +kept by\n(.*\n)+path +x:number, y:number +3 +flow"),
    ".schema": ([".schema edge"], r"\.decl edge\(x:number, y:number\)"),
    ".rules": ([".rules"], r"path#1  path\(x, y\) :- edge\(x, y\)\.\npath#2  path\(x, z\) :- .*"),
    ".count": ([".count"], r"edge: 2\npath: 3"),
    ".dump": ([".dump edge"], r"x  y\n-  -\n1  2\n2  3\n\(2 rows\)"),
    ".class": ([".class path#2"], r"path#2: recursive; .*"),
    ".advise": ([".advise"], r"\d+ facts in .*\npath: drop, nobody has read it[^\n]*\n(?s:.*)"),
    ".plan": (
        [".plan path#2"],
        r"path#2  path.*\n  class +recursive: .*\n  one update +no promise: follows .*\n"
        r"joins, with the facts that are there:\n.*\n +no order of joins: sets flow .*",
    ),
    ".code": ([".code path#1"], r"# path.*\ndef make(.*\n)+.*return rule"),
    ".why": ([".why path(1, 3)"], r"path\(1, 3\)   path#2 .*\n(.*\n)+.*edge\(2, 3\)   given"),
    ".why-not": ([".why-not path(3, 1)"], r"path\(3, 1\) is not there\n(.*\n)+.*no fact path\(3, _\)"),
    ".what-if": ([".what-if -edge(2, 3)."], r"-edge\(2, 3\)\.\n-path\(1, 3\)\.\n-path\(2, 3\)\."),
    ".how": ([".how -path(1, 3) keep path(2, x)"], r"1  -edge\(1, 2\)\.\n +also -path\(1, 2\)\.\n\(1 answer.*"),
    ".apply": ([".how -path(1, 3)", ".apply 2"], r"-edge\(2, 3\)\.\n-path\(1, 3\)\.\n-path\(2, 3\)\."),
    ".param": ([".param from 1", "path($from, x), x > 2?"], r"x\n-\n3\n\(1 row\)"),
    ".watch": ([".watch path(1, x)", "edge(3, 4)."], r"\+path\(1, 4\)\.\n\(3 changes not watched\)"),
    ".unwatch": (
        [".watch edge", ".unwatch", "-edge(2, 3)."],
        r"-edge\(2, 3\)\.\n-path\(1, 3\)\.\n-path\(2, 3\)\.",
    ),
    ".changes": ([".changes path"], r"\+path\(1, 2\)\.\n\+path\(1, 3\)\.\n\+path\(2, 3\)\."),
    ".prof": ([".prof 1"], r"rule +kept by +runs +seconds +compiling\n[ -]+\npath#[12] .*"),
    ".timer": ([".timer on", ".count edge"], r"edge: 2\n[0-9]+\.[0-9]{3} s"),
    ".mem": ([".mem"], r"relation +facts +bytes\n(.*\n)+process: [0-9]+\.[0-9] MB"),
    ".progress": ([".progress on", ".progress"], r"on"),
    ".mode": ([".mode csv", "edge(1, x)?"], r"x\n2"),
    ".maxrows": (
        [".maxrows 1", ".dump edge"],
        r"x  y\n-  -\n1  2\n\(1 row shown, there are more: see \.maxrows\)",
    ),
    ".output": ([".output out.txt", ".count edge", ".output", ".read out.txt"], r".*out\.txt:1: error(.*\n?)*"),
    ".once": ([".once once.csv", ".count edge", ".count edge"], r"edge: 2"),
    ".check": ([".check"], r"2 relations, all as computed from scratch"),
    ".limit": ([".limit facts 5", ".limit facts"], r"facts: 5"),
    ".set": ([".set headers off", "edge(1, x)?"], r"2\n\(1 row\)"),
    ".show": ([".show"], r"setting +value +meaning\n(.*\n)+mode +table +(.*\n)+watched: everything"),
    ".drop": ([".drop path", ".tables path"], r"relation +columns.*\n[ -]+"),
    ".quit": ([".quit 3"], r""),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_answers(name: str, folder: Path) -> None:
    _files(folder)
    talk = Talk(*EDGES)
    lines, expected = EXAMPLES[name]
    for line in lines[:-1]:
        assert "error" not in talk.say(line)
    assert re.fullmatch(expected, talk.say(lines[-1])), talk.out.getvalue()


def test_no_command_is_without_its_example() -> None:
    assert set(EXAMPLES) == set(commands())


def test_every_command_and_setting_is_in_the_manual() -> None:
    from everlog.repl.settings import SETTINGS

    page = (ROOT / "docs" / "repl.md").read_text(encoding="utf-8")
    missing = [
        each.call for each in commands().values() if f"| `{each.call.replace('|', chr(92) + '|')}` |" not in page
    ]
    assert not missing, "each command has its line in a table of docs/repl.md, as `.help` writes it"
    assert not [name for name in ALIASES if f"`{name}`" not in page]
    assert not [name for name in SETTINGS if f"| `{name}` |" not in page]


def test_help_lists_every_command() -> None:
    text = Talk().say(".help")
    assert not [each.call for each in commands().values() if f"  {each.call} " not in text]
    for each in commands().values():
        assert Talk().say(f".help {each.name}").startswith(f"{each.call}\n{each.summary}\n{each.details}")
    assert "dump_changes" in Talk().say(".help ddlog")


def test_commands_may_be_added_by_another_module() -> None:
    @table.command(".greet", "NAME", "say hello", "Tests", words=(1, 1))
    def greet(session: Session, words: list[str]) -> None:
        session.screen.line(f"hello {words[0]}")

    try:
        assert Talk().say(".greet you") == "hello you"
        assert ".greet NAME" in Talk().say(".help")
        assert [c.text for c in candidates(Session(), ".gre")] == [".greet"]
    finally:
        del COMMANDS[".greet"]


# ── commands more closely ────────────────────────────────────────────────────────────────────


def test_reload_keeps_what_was_inserted_and_prints_what_was_typed(folder: Path) -> None:
    program = folder / "paths.dl"
    program.write_text("\n".join([*PATHS[:3], "edge(1, 2)."]))
    talk = Talk(".load paths.dl", "edge(2, 3).", "path(y, x) :- edge(x, y).")
    program.write_text("\n".join([*PATHS, "edge(5, 6)."]))
    assert talk.say(".reload").split("\n") == [
        "dropped, since it is not in the file:",
        "path(y, x) :- edge(x, y).",
        *("-edge(1, 2).", "-path(1, 2).", "-path(2, 1).", "-path(3, 2)."),
        *("+edge(5, 6).", "+path(5, 6)."),
    ]
    program.write_text("nonsense")
    before = talk.say(".dump")
    assert "error[DL010]" in talk.say(".reload")
    assert talk.say(".dump") == before
    program.unlink()
    assert "cannot read paths.dl" in talk.say(".reload")


def test_a_program_is_loaded_with_its_facts_or_told_which_are_not_there(folder: Path) -> None:
    (folder / "paths.dl").write_text("\n".join([*PATHS, ".input edge"]))
    talk = Talk(".decl old(x:number)", "old(1).")
    answer = talk.say(".load paths.dl")
    assert answer.startswith("note: `edge` is empty: cannot open fact file edge.facts of relation edge")
    assert answer.endswith("paths.dl: 2 relations, 2 rules, 0 facts")
    (folder / "facts").mkdir()
    (folder / "facts" / "edge.facts").write_text("1\t2\n")
    assert talk.say(".load paths.dl facts") == "paths.dl: 2 relations, 2 rules, 2 facts"
    (folder / "facts" / "edge.facts").write_text("1\tx\n")
    assert "edge.facts:1: column 2" in talk.say(".load paths.dl facts")
    assert talk.say(".count") == "edge: 1\npath: 1"


def test_read_takes_a_program_as_one_and_a_script_line_by_line(folder: Path) -> None:
    (folder / "more.dl").write_text("q(x) :- r(x).\n.decl q(x:number)\n.decl r(x:number)\nr(1).\n")
    talk = Talk(*EDGES)
    assert talk.say(".read more.dl").split("\n")[-2:] == ["+q(1).", "+r(1)."]
    (folder / "s.txt").write_text("edge(8,\n9).\nwrong(1).\n.count edge\n")
    answer = talk.say(".read s.txt")
    assert answer.startswith("+edge(8, 9).")
    assert "s.txt:3: error: undefined relation `wrong`" in answer
    assert "edge: 3" in answer
    assert "s.txt has lines with errors" in answer
    (folder / "loop.txt").write_text(".read loop.txt\n")
    assert "cannot read itself" in talk.say(".read loop.txt")
    talk.say(".set bail on")
    assert "edge: 3" not in talk.say(".read s.txt")


@pytest.mark.parametrize(
    "name",
    [
        *("f.csv", "f.tsv", "f.facts", "f.txt", "f.tab", "f.json", "f.jsonl", "f.sqlite", "f.db", "f.csv.gz"),
        *("f.facts.gz", "f.csv.zst", "f.jsonl.zst", "f.parquet", "f.arrow", "f.duckdb"),
    ],
)
def test_facts_that_go_out_come_in_again(name: str) -> None:
    talk = Talk(
        ".decl item(id:number, name:symbol, price:float)", ".decl copy(id:number, name:symbol, price:float)"
    )
    talk.say('item(1, "a, \\"b\\"", 1.5). item(-2, "Zürich", 0.25).')
    assert talk.say(f".export item {name}") == f"{name}: 2 facts"
    more = " name=item" if name.endswith(("sqlite", "db", "duckdb")) else ""
    assert talk.say(f".import {name} copy{more}") == "copy: 2 facts read, 2 new"
    assert talk.say("?- copy(i, n, p), !item(i, n, p).").endswith("(0 rows)")


def test_a_csv_is_looked_at(folder: Path) -> None:
    (folder / "tabs.csv").write_text("1\t2\n")
    (folder / "commas.csv").write_text("3,4\n")
    (folder / "names.csv").write_text('"x","y"\n5,6\n')
    (folder / "other.csv").write_text("7;8\n")
    talk = Talk(*PATHS)
    for name in ("tabs", "commas", "names"):
        assert talk.say(f".import {name}.csv edge").startswith("edge: 1 fact read, 1 new")
    talk.say(".import other.csv edge delimiter=; rfc4180=false")
    assert talk.say(".mode dl", ".dump edge") == "edge(1, 2).\nedge(3, 4).\nedge(5, 6).\nedge(7, 8)."
    assert "column 1 (`x`:number): 'a' is not a number" in _with_file(talk, folder, "wrong.csv", "1,2\na,3\n")
    assert talk.say(".count edge") == "edge: 4"
    assert "there is no such file" in talk.say(".import none.csv edge")


def test_file_and_relation_may_stand_in_either_order(folder: Path) -> None:
    talk = Talk(*PATHS, "edge(1, 2).")
    assert talk.say(".export a.csv edge", ".export edge b.csv") == "a.csv: 1 fact\nb.csv: 1 fact"
    assert (
        talk.say(".import edge a.csv", ".import b.csv edge")
        == "edge: 1 fact read, 0 new\nedge: 1 fact read, 0 new"
    )
    assert "undefined relation `edg`" in talk.say(".import a.csv edg")


def test_rows_that_do_not_fit_may_go_to_a_file(folder: Path) -> None:
    (folder / "some.csv").write_text("1,2\na,3\n")
    talk = Talk(*PATHS)
    answer = talk.say(".import some.csv edge rejects=bad.jsonl")
    assert answer.startswith("1 row(s) of some.csv do not fit edge: see bad.jsonl\nedge: 1 fact read, 1 new")
    assert json.loads((folder / "bad.jsonl").read_text())["values"] == ["a", "3"]


def _with_file(talk: Talk, folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return talk.say(f".import {name} edge")


def test_an_import_in_a_transaction_waits_for_its_commit(folder: Path) -> None:
    _files(folder)
    talk = Talk(*PATHS, "begin", ".import edge.csv edge")
    assert talk.session.waiting == "[2 pending]"
    assert talk.say("commit").startswith("+edge(2, 3).\n+edge(3, 4).")


def test_modes_write_what_programs_read() -> None:
    talk = Talk(".decl p(n:number, s:symbol, f:float, u:unsigned)", 'p(1, "a\\"b", 0.5, 7). p(-1, "", inf, 0).')
    talk.say(".mode csv")
    assert talk.say(".dump p") == 'n,s,f,u\n-1,"",inf,0\n1,"a""b",0.5,7'
    talk.say(".mode json")
    assert json.loads(talk.say("p(n, s, f, _), f < 1?")) == [{"n": 1, "s": 'a"b', "f": 0.5}]
    assert json.loads(talk.say("p(n, _, _, 9)?")) == []
    assert json.loads(talk.say('.why p(1, "a\\"b", 0.5, 7)'))["root"] == 0
    talk.say(".mode dl")
    assert talk.say(".dump p") == 'p(-1, "", inf, 0u).\np(1, "a\\"b", 0.5, 7u).'
    assert talk.say("p(n, s, _, _)?") == 'answer(-1, "").\nanswer(1, "a\\"b").'
    talk.say(".mode table", ".set headers off")
    assert talk.say("p(n, _, _, _)?") == "-1\n 1\n(2 rows)"


def test_a_dump_is_a_program_that_is_the_same_database(folder: Path) -> None:
    talk = Talk(
        *EDGES,
        ".type place <: symbol",
        ".decl at(p:place)",
        'at("here").',
        "-edge(1, 2).",
        "path(9, x) :- edge(x, _).",
    )
    text = talk.say(".dump")
    (folder / "copy.dl").write_text(text)
    assert Talk(".load copy.dl").say(".dump") == text
    assert 'at("here").' in text
    assert "edge(1, 2)." not in text


def test_answers_go_to_a_file_and_errors_to_the_screen(folder: Path) -> None:
    talk = Talk(*EDGES)
    assert talk.say(".output answers.txt", "edge(1, x)?", "edge(7, 8).", "wrong(1).").startswith("script:4: error")
    talk.say(".output")
    assert (folder / "answers.txt").read_text() == "x\n-\n2\n(1 row)\n+edge(7, 8).\n+path(7, 8).\n"
    talk.say(".mode csv", ".once once.csv", "path(1, x)?")
    assert (folder / "once.csv").read_text() == "x\n2\n3\n"
    assert talk.say("path(1, x)?") == "x\n2\n3"
    assert talk.say(".output ./path", ".count edge", ".output") == ""
    assert (folder / "path").read_text() == "edge: 3\n"


def test_maxrows_holds_for_changes_too() -> None:
    talk = Talk(*PATHS, ".maxrows 2")
    assert (
        talk.say("edge(1, 2). edge(2, 3).") == "+edge(1, 2).\n+edge(2, 3).\n… and 3 more: .changes prints them all"
    )
    assert talk.say(".changes").count("\n") == 4
    talk.say(".set changes off")
    assert talk.say("edge(3, 4).") == ""


def test_watched_changes_are_printed_and_the_rest_counted() -> None:
    talk = Talk(*PATHS, ".watch path(1, x)", ".watch edge")
    assert talk.say(".watch") == "path(1, x)\nedge"
    assert talk.say("edge(1, 2). edge(2, 3).") == (
        "+edge(1, 2).\n+edge(2, 3).\n+path(1, 2).\n+path(1, 3).\n(1 change not watched)"
    )
    assert talk.say(".unwatch edge", "-edge(2, 3).") == "-path(1, 3).\n(2 changes not watched)"
    assert talk.say(".unwatch", ".watch") == "nothing is watched: all changes are printed"


def test_a_limit_gives_a_step_up() -> None:
    talk = Talk(".decl n(x:number)", "n(x + 1) :- n(x).", ".limit facts 100")
    assert "more than 100 facts derived" in talk.say("n(0).")
    assert talk.say(".count n") == "n: 0"
    talk.say(".limit facts off", ".limit iterations 50")
    assert "more than 50 iterations" in talk.say("n(0).")
    assert talk.say(".limit memory 8G", ".limit") == "seconds: off\nmemory: 8192M\nfacts: off\niterations: 50"


def test_check_looks_at_a_program_without_loading_it(folder: Path) -> None:
    (folder / "wrong.dl").write_text(".decl p(x:number)\np(x) :- q(x).\n")
    _files(folder)
    talk = Talk()
    assert "undefined relation `q`" in talk.say(".check wrong.dl")
    assert talk.say(".check paths.dl") == "paths.dl: 2 relations, 2 rules, no errors"
    assert talk.say(".tables").count("\n") == 1


def test_check_finds_a_relation_that_has_gone_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    from everlog.core.engine import Engine

    talk = Talk(*EDGES)
    monkeypatch.setattr(Engine, "check", lambda self: None)  # which would find it first
    monkeypatch.setattr(Engine, "view", lambda self, name: frozenset({(1, 2), (2, 3)}))
    assert "different from an evaluation from scratch: path; please report it" in talk.say(".check")


@pytest.mark.parametrize(
    "program",
    [
        ".decl e(x:number, y:number) eqrel\ne(1, 2). e(2, 3).",
        ".decl c(x:number, y:number) choice-domain x\nc(1, 2). c(1, 3).",
        ".decl n(x:number)\n.decl i(x:number, c:number)\nn(1). n(2).\ni(x, autoinc()) :- n(x).",
        ".decl p(x:number, c:number)\np(1, 5). p(1, 3).\np(x, c) <= p(x, d) :- d <= c.",
        ".decl e(x:number, y:number)\n.decl p(x:number, y:number)\ne(1, 2).\np(x, y) :- e(x, y).\n"
        "p(x, z) :- p(x, y), e(y, z). .strategy tc_witness",
    ],
)
def test_check_finds_nothing_to_say_of_any_construct(program: str, folder: Path) -> None:
    (folder / "p.dl").write_text(program)
    assert Talk(".load p.dl").say(".check").endswith("all as computed from scratch")


# ── scripts ──────────────────────────────────────────────────────────────────────────────────


def piped(script: str | bytes, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "everlog", *arguments],
        input=script if isinstance(script, bytes) else script.encode(),
        capture_output=True,
        check=False,
        cwd=folder,
    )


def test_a_script_is_answered_in_plain_text_and_its_errors_have_their_lines() -> None:
    done = piped("\n".join([*EDGES, "path(1, x)?", "wrong(1).", ".count edge"]))
    assert done.returncode == 1
    assert done.stdout.decode().endswith("x\n-\n2\n3\n(2 rows)\nedge: 2\n")
    assert b"\x1b" not in done.stdout + done.stderr
    assert done.stderr.decode() == (
        "<stdin>:7: error: undefined relation `wrong`; declare it first: .decl wrong(a:number)\n"
    )


def test_the_status_of_a_script(folder: Path) -> None:
    assert piped(".tables").returncode == 0
    assert piped(".quit 7\n.bogus").returncode == 7
    assert piped(".bogus\n.quit").returncode == 1
    unfinished = piped(".decl n(x:number)\nbegin\nn(1).")
    assert unfinished.returncode == 1
    assert b"ends inside a transaction: 1 update dropped" in unfinished.stderr
    bail = piped(".bogus\n.show mode", "repl", "--bail")
    assert (bail.returncode, bail.stdout) == (1, b"")
    assert piped("", "repl", "none.dl", folder=folder).returncode == 1
    assert piped("", "repl", "--mode", "xml").returncode == 2
    assert piped(".decl n(x:number) n(1)\n.show mode").returncode == 1


def test_a_program_and_texts_on_the_command_line(folder: Path) -> None:
    _files(folder)
    done = piped("", "repl", "paths.dl", "--mode", "csv", "-c", "edge(5, 6).", "-c", "path(x, _)?", folder=folder)
    assert done.stdout.decode() == "paths.dl: 2 relations, 2 rules, 2 facts\n+edge(5, 6).\n+path(5, 6).\nx\n1\n5\n"
    assert done.returncode == 0
    limited = piped("", "repl", "--max-facts", "1", "-M", "A=1 B=2", "-c", ".limit facts", folder=folder)
    assert limited.stdout == b"facts: 1\n"


def test_bytes_that_are_no_text_pass_through() -> None:
    script = b'.decl s(x:symbol)\ns("\xff\xfe").\n.mode csv\n.dump s\n'
    done = piped(script)
    assert done.stdout.endswith(b'x\n"\xff\xfe"\n'), done.stdout
    assert done.returncode == 0


def test_a_reader_that_goes_away_ends_the_script() -> None:
    script = ".decl n(x:number)\nn(x) :- x = range(0, 200000).\n.dump n\n"
    done = subprocess.run(
        f"{sys.executable} -P -m everlog | head -1",
        shell=True,
        input=script.encode(),
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"n(x:number)\n"
    assert done.stderr == b""


def test_a_database_in_a_file_is_opened_with_what_it_needs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new file gets the program, or an empty one; a file that is there has its own."""
    from everlog.cli import main

    _files(folder)
    assert main(["repl", "--db", "a.db", "-c", ".decl n(x:number)", "-c", "n(1)."]) == 0
    assert main(["repl", "--db", "a.db", "-c", ".load paths.dl"]) == 1
    assert main(["repl", "--db", "a.db", "-c", ".count"]) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith("a.db: 1 relation, 0 rules, 1 fact, step 2\nn: 1\n")
    assert "in a file: `.open FILE PROGRAM` replaces its program" in shown.err
    assert main(["repl", "paths.dl", "--db", "b.db", "-c", ".count edge", "-c", ".reload"]) == 0
    assert capsys.readouterr().out == "b.db: 2 relations, 2 rules, 2 facts, step 0\nedge: 1\n0 changed\n"


# ── completion ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def offered(folder: Path) -> Callable[[str], list[str]]:
    _files(folder)
    talk = Talk(*EDGES)
    return lambda text: [text[: len(text) - c.length] + c.text for c in candidates(talk.session, text)]


def test_tab_offers_commands_and_directives(offered: Callable[[str], list[str]]) -> None:
    assert offered(".de") == [".decl"]
    assert offered(".wh") == [".why", ".why-not", ".what-if"]
    assert set(offered(".")) >= {*commands(), ".decl", ".input", ".type"}


def test_tab_offers_relations_columns_and_rules(offered: Callable[[str], list[str]]) -> None:
    assert offered("pa") == ["path("]
    assert offered("path(") == ["path(x"]
    assert offered("path(1, ") == ["path(1, y"]
    assert offered("path(a, b), edge(b, ") == [
        "path(a, b), edge(b, y",
        "path(a, b), edge(b, a",
        "path(a, b), edge(b, b",
    ]
    assert offered("path(x, y) :- ed") == ["path(x, y) :- edge("]
    assert offered("?- pa") == ["?- path("]
    assert offered("-path#") == ["-path#1.", "-path#2."]
    assert offered('edge("a, ') == []
    assert offered("cou") == ["count"]
    assert offered("beg") == ["begin"]


def test_tab_offers_arguments(offered: Callable[[str], list[str]]) -> None:
    assert offered(".count e") == [".count edge"]
    assert offered(".plan path") == [".plan path", ".plan path#1", ".plan path#2"]
    assert offered(".load pa") == [".load paths.dl"]
    assert offered(".import edge.csv p") == [".import edge.csv path"]
    assert offered(".mode ") == [".mode table", ".mode csv", ".mode json", ".mode dl"]
    assert offered(".set ti") == [".set timer"]
    assert offered(".set timer o") == [".set timer on", ".set timer off"]
    assert offered(".help .unw") == [".help .unwatch"]
    assert offered(".why path(1, ") == [".why path(1, y"]
    assert offered(".bogus x") == []
    assert offered(".output pa") == [".output path", ".output paths.dl"]


def test_history_is_kept_where_programs_keep_their_state(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from everlog.repl.prompt import history, history_path

    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    assert isinstance(history(), FileHistory)
    assert history_path() == folder / "state" / "everlog" / "history"
    (folder / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    assert isinstance(history(), InMemoryHistory)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(folder))
    assert history_path() == folder / ".local" / "state" / "everlog" / "history"


# ── what the door loads ──────────────────────────────────────────────────────────────────────


def test_the_prompt_does_not_wait_for_the_engine() -> None:
    code = (
        "import sys, everlog.repl.prompt, everlog.commands.repl;"
        "from everlog.repl.session import Session; Session();"
        "print(sorted({'lark', 'everlog.core', 'everlog.api.database', 'rich', 'pandas'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == "[]\n"


def test_hundreds_of_changes_begin_with_a_summary() -> None:
    talk = Talk(*PATHS[:3])
    told = talk.say(" ".join(f"edge({number}, 0)." for number in range(200))).split("\n")
    assert told[:3] == ["edge: 200 came", "path: 200 came", "+edge(0, 0)."]
    assert len(told) == 402
    told = talk.say(" ".join(f"-edge({number}, 0)." for number in range(60)) + " edge(1, 1).").split("\n")
    assert told[:2] == ["edge: 1 came, 60 went", "path: 1 came, 60 went"]

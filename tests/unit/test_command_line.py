"""The command line: help, exit status, why, why-not, completion, progress."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from everlog import Database
from everlog.cli import COMMANDS, main
from everlog.progress import Meter, Silence, bar, meter_for
from everlog.shell_completion import described

PATHS = """.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
PATIENCE = 60.0  # seconds that something may take to appear: nothing is asserted about time


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "paths.dl").write_text(PATHS)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ── help ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert COMMANDS[name].lower() in " ".join(text.lower().split())
    examples = text.partition("examples:\n")[2].splitlines()
    assert f"everlog {name}" in examples[0]
    assert all(len(line) <= 110 for line in examples)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_all_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"^  {name} +\S", text, re.MULTILINE) for name in COMMANDS)


def test_examples_of_help_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """Every example that is one plain command is a command line that its parser takes."""
    import shlex

    from everlog.cli import command_of, parser_of

    tried = 0
    for name in COMMANDS:
        for line in command_of(name).EXAMPLES.strip().splitlines():
            command = re.split(r"\s{2,}", line.strip())[0]
            if "|" in command or "$(" in command or ">" in command:
                continue
            words = shlex.split(command)
            assert words[:2] == ["everlog", name] or words[1] in COMMANDS, line
            parser_of(words[1]).parse_args(words[2:])
            tried += 1
    assert tried > 20


# ── exit status ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--version"], 0, "everlog "),
        (["-V"], 0, "everlog "),
        (["run", "paths.dl", "-F", "facts", "-D-"], 0, "1\t3"),
        (["check", "paths.dl"], 0, "no errors"),
        (["nothing"], 2, "no command `nothing`"),
        (["chekc", "paths.dl"], 2, "did you mean `check`?"),
        (["run"], 2, "required: FILE"),
        (["run", "paths.dl", "--no-such-flag"], 2, "unrecognized arguments"),
        (["run", "paths.dl", "--watch", "--updates", "-"], 2, "cannot be combined"),
        (["run", "paths.dl", "--poll", "0"], 2, "invalid seconds value"),
        (["completion", "tcsh"], 2, "invalid choice"),
        (["run", "missing.dl"], 1, "cannot read `missing.dl`"),
        (["run", "wrong.dl"], 1, "DL050"),
        (["check", "wrong.dl"], 1, "DL050"),
        (["run", "paths.dl", "-F", "nowhere"], 1, "fact directory"),
        (["run", "paths.dl", "-F", "facts", "-D", "nowhere"], 1, "output directory"),
        (["run", "endless.dl", "--max-facts", "100", "-D-"], 1, "more than 100 facts"),
        (["why", "paths.dl", "-F", "facts", "path(1, 3)"], 0, "edge(1, 2)   given"),
        (["why", "paths.dl", "-F", "facts", "path(3, 1)"], 1, "path(3, 1)"),
        (["why", "paths.dl", "-F", "facts", "path(1)"], 1, "2 column"),
        (["why", "paths.dl", "-F", "facts"], 2, "required: FACT"),
        (["why", "paths.dl", "--json", "--dot", "path(1, 3)"], 2, "not allowed with"),
        (["query", "paths.dl", "-F", "facts", "path(1, x)"], 0, "2\n3"),
        (["query", "paths.dl", "-F", "facts", "path(3, 1)"], 0, "no"),
        (["query", "paths.dl", "-F", "facts", "path(1, x)", "--json"], 0, '[{"x": 2}, {"x": 3}]'),
        (["query", "paths.dl", "path(1, x)", "--explain"], 0, "path[1, _]^f"),
        (["query", "paths.dl", "-F", "facts", "pth(1, x)"], 1, "DL050"),
        (["query", "paths.dl", "-F", "nowhere", "path(1, x)"], 1, "nowhere"),
        (["what-if", "paths.dl", "-F", "facts", "-edge(2,3)"], 0, "-path(1, 3)."),
        (["what-if", "paths.dl", "-F", "facts", "+edge(3, 1)", "--json"], 0, '"inserted"'),
        (["what-if", "paths.dl", "-F", "facts", "-edgy(2,3)"], 1, "undefined relation `edgy`"),
        (["what-if", "paths.dl", "-F", "facts"], 2, "required: ±FACT"),
        (["how", "paths.dl", "-F", "facts", "-path(1, 3)"], 0, "1  -edge(1, 2)."),
        (["how", "paths.dl", "-F", "facts", "-path(1,3)", "--step", "2"], 0, "-edge(2, 3)."),
        (["how", "paths.dl", "-F", "facts", "-path(1,3)", "--step", "3"], 1, "no answer 3"),
        (["how", "paths.dl", "-F", "facts", "-path(1,3)", "--change", "path"], 1, "no answer"),
        (["how", "paths.dl", "-F", "facts", "+path(3, 1)", "--most", "1", "--json"], 0, '"complete": true'),
        (["how", "paths.dl", "-F", "facts", "-path(1,3)", "--keep", "nope(x)"], 1, "nope"),
        (["fmt", "--check", "untidy.dl"], 1, "untidy.dl"),
    ],
)
def test_exit_status(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    (folder / "wrong.dl").write_text("p(1).\n")
    (folder / "untidy.dl").write_text(".decl p(x:number) p(1).\n")
    (folder / "endless.dl").write_text(".decl n(x:number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n")
    try:
        left: object = main(words)
    except SystemExit as end:  # from argparse
        left = end.code
    captured = capsys.readouterr()
    assert (left, said in captured.out + captured.err) == (status, True), captured
    if status == 2:
        assert captured.out == ""


UNNEEDED = """.decl e(x:number, y:number)  .input e
.decl unread(x:number)  .input unread
.decl fails(x:number)  .decl grows(x:number)  .decl q(x:number, y:number)
fails(1 / x) :- unread(_), x = 0.
grows(0).  grows(x + 1) :- grows(x).
q(x, y) :- e(x, y), e(y, x), x < y.
"""


def test_a_run_does_only_what_an_output_needs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not the unread file, the rule that fails, or the recursion without end."""
    (folder / "needed.dl").write_text(UNNEEDED + ".output q\n")
    (folder / "sized.dl").write_text(UNNEEDED + ".printsize q\n")
    (folder / "nothing.dl").write_text(UNNEEDED)
    (folder / "facts" / "e.facts").write_text("1\t2\n2\t1\n")
    (folder / "facts" / "unread.facts").write_text("not a number\n")
    for name, shown in (("needed.dl", "1\t2"), ("sized.dl", "q\t1")):
        assert main(["run", name, "-F", "facts", "-D-"]) == 0
        assert shown in capsys.readouterr().out
    assert main(["run", "nothing.dl", "-F", "nowhere"]) == 0
    assert capsys.readouterr().err == "note: nothing to run: the program has no .output and no .printsize\n"
    assert main(["check", "needed.dl", "-F", "facts"]) == 1
    assert "unread.facts:1: column 1" in capsys.readouterr().out


def test_rules_that_draw_numbers_draw_the_same_beside_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`a` comes first, although nothing needs it, and `b` continues from its numbers."""
    text = ".decl a(x:number)  .decl b(x:number)  .output b\na(autoinc()) :- 1 = 1.  b(autoinc()) :- 1 = 1.\n"
    (folder / "numbers.dl").write_text(text)
    assert main(["run", "numbers.dl", "-D-"]) == 0
    found = capsys.readouterr().out
    (folder / "numbers.dl").write_text(text + ".output a\n")
    assert main(["run", "numbers.dl", "-D-"]) == 0
    assert found in capsys.readouterr().out


def test_the_status_is_that_of_the_process(folder: Path) -> None:
    assert [everlog(words).returncode for words in (["-V"], ["check", "no.dl"], ["nothing"])] == [0, 1, 2]


def everlog(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "everlog", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)  # type: ignore[call-overload, no-any-return]


def test_ctrl_c_is_130_and_nothing_is_half_written(folder: Path) -> None:
    (folder / "out" / "path.csv").write_text("yesterday\n")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "everlog", "run", "paths.dl", "-F", "facts", "-D", "out", "--updates", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("+edge(3, 4).\n\n")
    process.stdin.flush()
    assert process.stdout.readline() == "+path(1, 4).\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors == "interrupted\n"
    assert "1\t4\n" in (folder / "out" / "path.csv").read_text()


# ── why ──────────────────────────────────────────────────────────────────────────────────────


def test_why_and_why_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "paths.dl", "-F", "facts", "path(1, 3)", "path(2, 3)"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("path(1, 3)   path#2 at paths.dl:6:")
    assert "\npath(2, 3)   path#1" in first
    assert main(["why", "paths.dl", "-F", "facts", "--not", "path(3, 1)"]) == 0
    one = capsys.readouterr().out
    assert "✗ no fact edge(3, 1)" in one
    assert main(["why-not", "paths.dl", "-F", "facts", "path(3, 1)"]) == 0
    assert capsys.readouterr().out == one
    assert main(["why", "paths.dl", "-F", "facts", "path(1, 3)", "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)
        == Database.from_file("paths.dl", facts="facts").why("path(1, 3)").to_json()
    )
    assert main(["why", "paths.dl", "-F", "facts", "path(1, 3)", "path(1, 2)", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main(["why", "paths.dl", "-F", "facts", "path(1, 3)", "--dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph")
    assert main(["why", "paths.dl", "-F", "facts", "path(9, 9)", "path(1, 3)"]) == 1  # one of two
    captured = capsys.readouterr()
    assert "path(9, 9)" in captured.err
    assert "path(1, 3)   path#2" in captured.out


# ── completion ───────────────────────────────────────────────────────────────────────────────


def completed(script: str, line: str, folder: Path) -> list[str]:
    """What bash offers for a line, by its own completion function."""
    words = line.split(" ")
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    ask = f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _everlog\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=folder, check=True, timeout=60)
    return sorted(set(done.stdout.split("\n")) - {""})


@pytest.fixture(scope="module")
def script() -> str:
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    return everlog(["completion", "bash"]).stdout


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("everlog ru", ["run"]),
        ("everlog w", ["what-if", "why", "why-not"]),
        ("everlog --v", ["--version"]),
        ("everlog run --up", ["--updates"]),
        ("everlog run --wa", ["--warn", "--watch"]),
        ("everlog run p", ["paths.dl"]),
        ("everlog run paths.dl -F f", ["facts", "folder with blanks"]),
        ("everlog run paths.dl --updates o", ["other.txt", "out"]),
        ("everlog run paths.dl --engine s", ["spark"]),
        ("everlog run paths.dl --master x", []),
        ("everlog ies s", ["show", "sql"]),
        ("everlog ies sql --d", ["--dialect"]),
        ("everlog ies run --updates o", ["other.txt", "out"]),
        ("everlog completion ", ["--help", "-h", "bash", "fish", "zsh"]),
        ("everlog fmt --in", ["--in-place"]),
        ("everlog nothing x", []),
    ],
)
def test_bash_completes(script: str, folder: Path, line: str, offered: list[str]) -> None:
    (folder / "other.txt").touch()
    (folder / "folder with blanks").mkdir()
    assert completed(script, line, folder) == offered


def test_every_flag_is_completed(script: str, folder: Path) -> None:
    for name, words in described().items():
        flags = {spelling for flag in words.flags for spelling in flag.spellings}
        assert flags <= set(completed(script, f"everlog {name} -", folder)), name


class Screen:
    """A process on a terminal of its own."""

    def __init__(self, command: list[str], folder: Path, **environment: str) -> None:
        self.text = ""
        self.process, self._end = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execve(command[0], command, {"PATH": os.environ["PATH"], "TERM": "xterm", **environment})

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def wait_for(self, wanted: str) -> str:
        """The output, once it has this text, or at the end of the process or the timeout."""
        until = time.monotonic() + PATIENCE
        while wanted not in self.text and time.monotonic() < until:
            if select.select([self._end], [], [], 0.1)[0]:
                try:
                    data = os.read(self._end, 65536)
                except OSError:  # Linux: the other end is closed
                    break
                if not data:
                    break
                self.text += data.decode(errors="replace")
        return self.text

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._end)


@pytest.fixture
def screens() -> Iterator[list[Screen]]:
    found: list[Screen] = []
    yield found
    for screen in found:
        screen.close()


def test_tab_in_a_real_bash(script: str, folder: Path, screens: list[Screen]) -> None:
    (folder / "completion.sh").write_text(script)
    bash = Screen([shutil.which("bash") or "bash", "--norc", "--noprofile", "-i"], folder)
    screens.append(bash)
    bash.type("source completion.sh && echo loa''ded\r")
    assert "loaded\r" in bash.wait_for("loaded\r")
    bash.type("everlog ru\tpat\t-F fac\t --wat\t")
    assert "everlog run paths.dl -F facts/ --watch" in bash.wait_for("--watch")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_scripts(shell: str, folder: Path) -> None:
    text = everlog(["completion", shell]).stdout
    assert text.count("watch") >= 1
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    (folder / "script").write_text(text)
    subprocess.run([shell, "-n", "script"], check=True, cwd=folder, timeout=60)
    if shell == "fish":
        ask = "source script; complete -C 'everlog run --wat'"
        done = subprocess.run(["fish", "-N", "-c", ask], capture_output=True, text=True, cwd=folder, timeout=60)
        assert done.stdout.startswith("--watch")


# ── progress ─────────────────────────────────────────────────────────────────────────────────


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_meter_writes_over_its_line_and_leaves_it_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("everlog.progress.monotonic", lambda: clock[0])
    stream = Terminal()
    with meter_for(stream) as meter:
        meter.deriving("path", 1, 10)
        assert stream.getvalue() == "", "not in the first moment"
        clock[0] = 3.0
        meter.deriving("path", 12, 1234567)
        assert stream.getvalue() == "\rderiving path: round 12, 1,234,567 facts, 3 s"
        meter.deriving("path", 13, 1234568)
        assert "13" not in stream.getvalue(), "not again at once"
        clock[0] = 3.5
        meter.finding("q", 1, 5)
        clock[0] = 3.8
        meter.finding("q", 2, 5)
        assert re.search(r"q: round 2, 10 facts, 4 s *$", stream.getvalue())
        clock[0] = 4.0
        meter.reading("edge", 1, 4)
        assert stream.getvalue().endswith("reading edge [██████                  ]  25 %".ljust(45))
        beside = meter.beside(stream)
        print("error: something", file=beside)
        assert re.search(r"\r +\rerror: something\n$", stream.getvalue())
        clock[0] = 5.0
        assert list(meter.lines(["a\n", "é\n"], 5)) == ["a\n", "é\n"]
        assert "updates [" in stream.getvalue()
    assert stream.getvalue().endswith(" \r")
    assert bar(5, 4).endswith("100 %")


def test_no_terminal_no_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlog.progress.PATIENCE", -1.0)
    for stream, wanted in ((StringIO(), True), (Terminal(), False)):
        with meter_for(stream, wanted) as meter:
            assert isinstance(meter, Silence)
            meter.deriving("path", 1, 10)
            meter.writing("path", 1, 10)
            list(meter.lines(["a"], 1))
        assert stream.getvalue() == ""
    monkeypatch.setenv("TERM", "dumb")
    with meter_for(Terminal()) as meter:
        assert type(meter) is not Meter


def test_a_long_run_shows_its_progress_on_a_terminal(folder: Path, screens: list[Screen]) -> None:
    (folder / "long.dl").write_text(
        ".decl n(x:number)\n.decl m(x:number)\n.output m\nn(0).\nn(x + 1) :- n(x), x < 3000000.\nm(x) :- n(x), x < 1.\n"
    )
    run = Screen([sys.executable, "-P", "-m", "everlog", "run", "long.dl", "-D-"], folder)
    screens.append(run)
    assert re.search(r"\rderiving n: round \d+, [\d,]+ facts, \d+ s", run.wait_for(" s"))
    run.type("\x03")
    text = run.wait_for("interrupted")
    assert re.search(r"\r +\r.*interrupted", text, re.DOTALL), "the line is gone before anything else is said"


def test_flags_of_souffle_take_one_line_of_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = capsys.readouterr().out
    assert "flags of Soufflé that are accepted and ignored:\n  --legacy -m " in told
    assert "-j X" not in told


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_of_a_pipe_gets_every_line(tmp_path: Path, unbuffered: str) -> None:
    """The timer of the limits ticks while the pipe is full: no write counts as a whole one."""
    (tmp_path / "p.dl").write_text(
        ".decl a(x:number) .input a .decl b(x:number, y:number) b(x, y) :- a(x), y = range(0, 400). .output b"
    )
    (tmp_path / "a.facts").write_text("")
    steps = (f"{sign}a({number}).\n\n" for number in range(30) for sign in "+-")
    (tmp_path / "steps.txt").write_text("".join(steps))
    words = [sys.executable, "-P", "-m", "everlog", "run", "p.dl", "--updates", "steps.txt"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        seen = []
        while part := os.read(running.stdout.fileno(), 4096):
            seen.append(part)
            time.sleep(0.003)
    lines = b"".join(seen).decode().splitlines()
    assert lines == [f"{sign}b({n}, {y})." for n in range(30) for sign in "+-" for y in range(400)]

"""Specifications as text: files `*.dlt`, with each answer below its question.

A file is a list of blocks separated by blank lines.  A block is a command line, input lines, a
line `----`, and the expected answer up to the next blank line.  An answer that has blank lines
itself is between `----` `----` pairs.  `pytest --rewrite` regenerates the answers.

    program [FILE]      the program: the lines that follow, or a file of the repository
    check               a program that is only checked; the answer is the report, or `ok`
    error CODE          the same, and the report must have an error with this code
    rules               the program's rules as the engine sees them
    print               the program as the printer writes it
    classify [NAME]     the output of `everlog explain` for the program, or one relation or rule
    step TITLE          updates `+fact.` / `-fact.`; the answer is what changed in the relations
                        that are `.output` (or else: that have rules)
    query ATOM          the facts that match
    view RELATION       all facts of a relation
    file NAME           a file that `run` finds; \\t is a tab
    run ARGUMENTS       `everlog run prog.dl ARGUMENTS` with that program and those files
    skip EXECUTOR: WHY  this executor cannot run the program above; fails when it can

Steps, queries and views run on every executor, are compared with the reference evaluator after
each step, and all steps of a file are replayed as one.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

from attrs import define, field
from engines import Incremental
from recomputing import Recomputing

from everlog.cli import main
from everlog.core.engine.planning.plan import make_plan
from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Program
from everlog.core.program.executor import Changes, Executor, InsertOnly, Run, Update
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import diagnose
from everlog.dsl.diagnostics import DatalogError, Report
from everlog.dsl.fact_text import FactTextError, fact_text, pattern_text, read_update
from everlog.dsl.preprocess import load, preprocess_text
from everlog.dsl.query_text import parse_query
from everlog.files.text_values import sorted_rows
from everlog.functors import bind, functors_beside

ROOT = Path(__file__).parent.parent


def _in_python(program: Program, inputs: object) -> dict[str, frozenset[tuple[object, ...]]]:
    with patch.dict(os.environ, EVERLOG_PURE="1"):
        return _seminaive(program, inputs)


def _seminaive(program: Program, inputs: object) -> dict[str, frozenset[tuple[object, ...]]]:
    result = seminaive.evaluate(program, inputs)  # type: ignore[arg-type]
    for table in result.tables.values():
        table.check()
    return {name: result.relation(name) for name in program.relations}


EXECUTORS: dict[str, Executor] = {
    "reference": Recomputing(reference.evaluate),
    "seminaive": Recomputing(_seminaive),  # type: ignore[arg-type]
    "seminaive, in Python": Recomputing(_in_python),  # type: ignore[arg-type]
    "engine": Incremental(large=10**9),  # every step follows the change
    "engine, anew": Incremental(large=0),  # every step computes what it reaches
    "view trees": Incremental({"*": "view_tree"}, large=10**9),
    "calibrated": Incremental({"*": "calibrated"}, large=10**9),
    "generations": Incremental({"*": "generations"}, large=10**9),
    "heavy and light": Incremental({"*": "heavy_light"}, large=10**9),
    "factorized": Incremental({"*": "factorized"}, large=10**9),
}


def differing(program: Program, executors: Mapping[str, Executor]) -> dict[str, Executor]:
    """The executors, without those that would keep each unit and each join as an earlier one does.

    Most programs have no join that `view_tree` or `generations` serves: to ask for one then gives
    the engine of another name once more.
    """
    seen, kept = set(), {}
    for name, executor in executors.items():
        if isinstance(executor, Incremental):
            plan = make_plan(program, executor.strategies)
            ways = [
                (unit.name, unit.strategy, *(join.strategy for join in unit.joins.values())) for unit in plan.units
            ]
            key = (executor.large, *ways)
            if key in seen:
                continue
            seen.add(key)
        kept[name] = executor
    return kept


@define
class Block:
    line: int
    command: str
    argument: str
    input: list[str]
    expected: list[str]
    actual: list[str] = field(factory=list)


def read_blocks(text: str) -> tuple[list[str], list[Block]]:
    """The comment lines on top of a file, and its blocks."""
    lines = text.splitlines()
    header: list[str] = []
    blocks: list[Block] = []
    at = 0
    while at < len(lines) and (lines[at].startswith("#") or not lines[at].strip()):
        if lines[at].strip():
            header.append(lines[at])
        at += 1
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        command, _, argument = lines[at].partition(" ")
        block = Block(at + 1, command, argument.strip(), [], [])
        at += 1
        while at < len(lines) and lines[at] != "----" and (_takes_input(block) or lines[at].strip()):
            block.input.append(lines[at])
            at += 1
        if at < len(lines) and lines[at] == "----":
            at += 1
            if at < len(lines) and lines[at] == "----":
                at += 1
                while lines[at : at + 2] != ["----", "----"]:
                    block.expected.append(lines[at])
                    at += 1
                at += 2
            else:
                while at < len(lines) and lines[at].strip():
                    block.expected.append(lines[at])
                    at += 1
        blocks.append(block)
    return header, blocks


def _takes_input(block: Block) -> bool:
    return block.command in ("check", "error", "file") or (block.command == "program" and not block.argument)


def write_blocks(header: list[str], blocks: list[Block]) -> str:
    """The text of a file with its actual answers."""
    out = [*header, ""] if header else []
    for block in blocks:
        out.append(f"{block.command} {block.argument}".rstrip())
        out += block.input
        if block.command not in ("skip",):
            out.append("----")
            if any(not line.strip() for line in block.actual):
                out += ["----", *block.actual, "----", "----"]
            else:
                out += block.actual
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def _shown(content: bytes) -> list[str]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return ["(binary)"]
    return ["(binary)"] if "\0" in text else text.replace("\t", "\\t").splitlines()


class Mismatch(AssertionError):
    pass


def run_file(path: Path, rewrite: bool = False, session: type[Session] | None = None) -> None:
    """Run a specification; Mismatch where an answer is not the expected one."""
    header, blocks = read_blocks(path.read_text(encoding="utf-8"))
    if not any(line.startswith("# title:") for line in header):
        raise Mismatch(f"{path}: a specification begins with `# title: …`")
    if not blocks:
        raise Mismatch(f"{path}: no blocks")
    with tempfile.TemporaryDirectory() as folder:
        running = (session or Session)(Path(folder))
        for block in blocks:
            block.actual = running.answer(block)
        running.replay_as_one()
    if rewrite:
        path.write_text(write_blocks(header, blocks), encoding="utf-8")
        return
    for block in blocks:
        if block.actual != block.expected:
            expected, actual = "\n".join(block.expected), "\n".join(block.actual)
            raise Mismatch(
                f"{path}:{block.line}: {block.command} {block.argument}\nexpected:\n{expected}\nactual:\n{actual}"
            )


class Session:
    """The state of one file: its program, the runs of every executor, files for `run`."""

    executors: Mapping[str, Executor] = EXECUTORS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text: str | None = None
        self.program: Program | None = None
        self.tree_text = ""
        self.runs: dict[str, Run] = {}
        self.skipped: dict[str, str] = {}
        self.updates: list[Update] = []

    def answer(self, block: Block) -> list[str]:
        method = getattr(self, f"do_{block.command}", None)
        if method is None:
            raise Mismatch(f"line {block.line}: unknown command `{block.command}`")
        result: list[str] = method(block)
        return result

    # ── programs ─────────────────────────────────────────────────────────────────────────────

    def _diagnosed(self, text: str) -> tuple[Program | None, Report]:
        source, problems = preprocess_text(text, "prog.dl", [self.folder])
        return diagnose(source, problems)

    def do_program(self, block: Block) -> list[str]:
        if block.argument:
            self.text = (ROOT / block.argument).read_text(encoding="utf-8")
            source, problems = load(ROOT / block.argument)
            self.program, report = diagnose(source, problems)
            if self.program is not None and (ROOT / block.argument).with_name("functors.py").exists():
                self.program = bind(self.program, functors_beside(self.program, ROOT / block.argument))
        else:
            self.text = "\n".join(block.input) + "\n"
            self.program, report = self._diagnosed(self.text)
        (self.folder / "prog.dl").write_text(self.text, encoding="utf-8", errors="surrogateescape")
        if self.program is None:
            return report.text(warnings=False).splitlines()
        self.runs, self.skipped = {}, {}
        self.updates = []
        return ["ok"]

    def do_check(self, block: Block) -> list[str]:
        program, report = self._diagnosed("\n".join(block.input) + "\n")
        text = report.text().splitlines()
        return text or (["ok"] if program is not None else ["no program, and no reason given"])

    def do_error(self, block: Block) -> list[str]:
        _, report = self._diagnosed("\n".join(block.input) + "\n")
        if not any(d.code == block.argument for d in report.errors):
            raise Mismatch(f"line {block.line}: no error {block.argument}:\n{report.text()}")
        return report.text().splitlines()

    def do_rules(self, block: Block) -> list[str]:
        return [str(rule) for rule in self._program().rules] or ["(none)"]

    def do_classify(self, block: Block) -> list[str]:
        from everlog.core.engine.explain import explain_plan

        return explain_plan(self._program(), only=block.argument or None).splitlines()

    def do_print(self, block: Block) -> list[str]:
        from everlog.dsl.parser import parse_text
        from everlog.dsl.printer import print_program

        assert self.text is not None
        tree, report = parse_text(self.text)
        assert not report.errors, report.text()
        printed = print_program(tree)
        again, _ = parse_text(printed)
        assert again == tree, f"the printed program reads back differently:\n{printed}"
        return printed.rstrip("\n").splitlines()

    def _program(self) -> Program:
        if self.program is None:
            raise Mismatch("no program yet")
        return self.program

    # ── steps and questions ──────────────────────────────────────────────────────────────────

    def do_skip(self, block: Block) -> list[str]:
        name, _, why = block.argument.partition(":")
        if name not in (*EXECUTORS, "spark") or not why.strip():
            raise Mismatch(f"line {block.line}: `skip EXECUTOR: reason`")
        self.skipped[name] = why.strip()
        return []

    def _runs(self) -> dict[str, Run]:
        if not self.runs:
            program = self._program()
            executors = differing(program, self.executors)
            self.runs = {name: executor.start(program) for name, executor in executors.items()}
        return self.runs

    def do_step(self, block: Block) -> list[str]:
        program = self._program()
        try:
            step = [read_update(line, program.relations) for line in block.input if line.strip()]
        except FactTextError as error:
            return [f"error: {error}"]
        answers = {}
        for name, run in self._attempt():
            before = {r: run.view(r) for r in program.relations}
            try:
                answers[name] = self._told(run.apply(step))
                run.check()
            except (EvaluationError, InsertOnly) as error:
                answers[name] = [f"error: {error.message if isinstance(error, EvaluationError) else error}"]
                assert all(run.view(r) == before[r] for r in program.relations), (
                    f"{name}: a failed step left a trace"
                )
        self._same(answers, block)
        if not answers["reference"][0].startswith("error"):
            self.updates += step
        return answers["reference"]

    def _attempt(self) -> Iterator[tuple[str, Run]]:
        try:
            yield from self._runs().items()
        except EvaluationError as error:
            raise Mismatch(f"the program alone fails: {error}") from error

    def _told(self, changes: Changes) -> list[str]:
        program = self._program()
        shown = {d.relation for d in program.outputs} or {r.head.relation for r in program.rules}
        lines = {-1: [], 1: []}  # type: dict[int, list[str]]
        for name in program.relations:
            if name in shown:
                change = changes.get(name, {})
                for row in sorted_rows(program.relations[name], change):
                    sign = change[row]
                    lines[sign].append(f"{'+' if sign > 0 else '-'}{fact_text(program.relations[name], row)}.")
        return lines[-1] + lines[1] or ["(no change)"]

    def do_query(self, block: Block) -> list[str]:
        program = self._program()
        pattern = pattern_text(parse_query(block.argument), program.relations)
        name, constants, same = pattern.relation, pattern.constants, pattern.same
        answers = {}
        for executor, run in self._attempt():
            rows = [
                row
                for row in sorted_rows(program.relations[name], run.view(name))
                if all(c is None or c == v for c, v in zip(constants, row, strict=True))
                and all(i == j or row[i] == row[j] for i, j in enumerate(same))
            ]
            answers[executor] = [f"{fact_text(program.relations[name], row)}." for row in rows] or ["(none)"]
        self._same(answers, block)
        return answers["reference"]

    def do_view(self, block: Block) -> list[str]:
        arity = self._program().relations[block.argument].arity
        return self.do_query(Block(block.line, "query", f"{block.argument}({', '.join('_' * arity)})", [], []))

    def _same(self, answers: dict[str, list[str]], block: Block) -> None:
        for name, answer in answers.items():
            if name in self.skipped:
                if answer == answers["reference"]:
                    raise Mismatch(f"line {block.line}: `{name}` is skipped but can do it now")
            elif answer != answers["reference"]:
                raise Mismatch(f"line {block.line}: {name} says {answer}, reference says {answers['reference']}")

    def replay_as_one(self) -> None:
        """All updates in one step give the same relations as one step after another."""
        if not self.updates:
            return
        program = self._program()
        for name in self.runs:
            run = self.executors[name].start(program)
            run.apply(self.updates)
            for relation, declared in program.relations.items():
                if not declared.choices:
                    assert run.view(relation) == self.runs[name].view(relation), f"{name}: {relation} as one batch"

    # ── the command line ─────────────────────────────────────────────────────────────────────

    def do_file(self, block: Block) -> list[str]:
        path = self.folder / block.argument
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in block.input).replace("\\t", "\t").replace("\\r", "\r")
        path.write_text(text, encoding="utf-8", newline="")
        return []

    def do_run(self, block: Block) -> list[str]:
        before = self._files()
        out, err = io.StringIO(), io.StringIO()
        folder = os.getcwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main(["run", "prog.dl", *shlex.split(block.argument)])
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            os.chdir(folder)
        lines = out.getvalue().splitlines() + err.getvalue().splitlines()
        lines += [f"status {status}"] if status else []
        for name, content in self._files().items():
            if before.get(name) != content:
                lines += [f"== {name}", *_shown(content)]
        return lines or ["(nothing)"]

    def _files(self) -> dict[str, bytes]:
        files = sorted(p for p in self.folder.rglob("*") if p.is_file())
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in files}


__all__ = ["EXECUTORS", "DatalogError", "Mismatch", "run_file"]

if __name__ == "__main__":  # python tests/dlt.py [--rewrite] FILE…
    for argument in sys.argv[1:]:
        if argument != "--rewrite":
            run_file(Path(argument), "--rewrite" in sys.argv)
            print(f"{argument}: ok")

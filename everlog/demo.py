"""A first look: `python -m everlog.demo`.

Asks who may read the payroll, takes facts away, shows what changes, makes mistakes, and ends with
commands to try.  It uses only what users have: `compile_file`, `evaluate`, `read_facts`.

Reads: the public functions of everlog, the programs that ship with it.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import everlog
from everlog.core.program import Program, Row
from everlog.core.seminaive import Evaluation
from everlog.dsl.facts import fact_text, read_pattern, read_update
from everlog.files import FactsError, read_facts

WIDTH = 79
MISTAKE = """
.decl boss(name:Person)
boss(g) :- member(p, g), has_role(p, "cfo").
boss(p) :- has_rule(p, "ceo").
"""

Facts: TypeAlias = Mapping[str, frozenset[Row]]


def main() -> int:
    """Show what there is to see; the exit status."""
    print(f"everlog {everlog.__version__}: facts, and rules that say what follows from them.")
    try:
        _access_control()
        _debian_packages()
    except (OSError, FactsError, everlog.DatalogError) as error:
        print(f"error: the programs that ship with everlog cannot be run:\n{error}", file=sys.stderr)
        return 1
    _what_next()
    return 0


# ── the story ────────────────────────────────────────────────────────────────────────────────


def _access_control() -> None:
    path = _program_path("access_control")
    _title("The rules of a company: who may do what")
    for line in _rules_of(path):
        print(f"  {line}")

    program, facts = _load(path)
    started = time.perf_counter()
    now = everlog.evaluate(program, facts)
    took = (time.perf_counter() - started) * 1000
    count = sum(map(len, facts.values()))
    _title(f"The answers, from {count} facts in files, in {took:.0f} ms")
    _ask(now, "Who may read the payroll?", 'may(who, "read", "payroll")')
    _ask(now, "And who may write it?", 'may(who, "write", "payroll")')
    _ask(now, "Who would, but for a denial?", 'blocked(who, "read", "payroll")')
    _ask(now, "Who has two roles that nobody should combine?", "conflict(who, a, b)")

    _title("One fact goes; evaluated again, this is exactly what changed")
    steps = [
        ('-has_role("alan", "payroll-clerk")', "// He still reads it, as an auditor."),
        ('-member("margaret", "payroll-office")', "// Who can write it now?"),
    ]
    for update, remark in steps:
        facts = _updated(program, facts, update)
        after = everlog.evaluate(program, facts)
        print(f"  {update}.   {remark}")
        for line in _changes(now, after):
            print(f"      {line}")
        now = after

    _title("Two rules with mistakes: all are told, before anything runs")
    try:
        everlog.compile_text(path.read_text(encoding="utf-8") + MISTAKE, path.name)
    except everlog.DatalogError as error:
        for line in str(error).splitlines():
            print(textwrap.fill(f"  {line}", WIDTH, subsequent_indent=" " * 13).rstrip())


def _debian_packages() -> None:
    program, facts = _load(_program_path("debian_packages"))
    questions = {"remove": frozenset({("libssl3",)}), "install": frozenset({("postfix",)})}
    result = everlog.evaluate(program, {**facts, **questions})
    wanted = {name for (name,) in facts["wanted"]}
    broken = [str(name) for _, name in result.rows("breaks")]

    _title(f"Real data: {len(facts['package'])} packages of Debian")
    print(f"  What breaks if I remove libssl3?  {len(broken)} packages; those that someone asked for:")
    _list(name for name in broken if name in wanted)
    for _, packages, kilobytes in result.rows("takes"):
        print(f"  What if I install postfix?  {packages} packages, {kilobytes} kB, but it does not get on with:")
        _list(str(other) for _, _, other in result.rows("clash"))


def _what_next() -> None:
    _title("Now you")
    command = "everlog" if shutil.which("everlog") else _from_here(Path(sys.executable).parent / "everlog")
    programs = Path("programs")
    if not (programs / "access_control").is_dir():
        programs = _program_path("access_control").parents[1]
        print(f"  cd {programs}")
        programs = Path()
    for name in ("access_control", "debian_packages"):
        folder = programs / name
        print(f"  {command} run {folder / name}.dl \\\n      -F {folder / 'facts'} -D-")
    print(f"  {command} explain {programs / 'points_to' / 'points_to'}.dl")
    print("\nThen copy a program's folder, change a line of its facts, and run it again.")


def _from_here(path: Path) -> str:
    """A path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _program_path(name: str) -> Path:
    """The file of a program that ships with everlog, in the repository or installed."""
    return Path(str(files("everlog.programs"))) / name / f"{name}.dl"


def _load(path: Path) -> tuple[Program, Facts]:
    program, _ = everlog.compile_file(path)
    folder = path.parent / "facts"
    read = {d.relation: read_facts(program.relations[d.relation], d.params, folder) for d in program.inputs}
    return program, {name: frozenset(rows) for name, rows in read.items()}


def _updated(program: Program, facts: Facts, text: str) -> Facts:
    """The facts after an update such as `-edge(1, 2)`."""
    update = read_update(text, program.relations)
    rows, row = facts[update.relation], frozenset({update.row})
    return {**facts, update.relation: rows | row if update.insert else rows - row}


def _changes(before: Evaluation, after: Evaluation) -> Iterator[str]:
    """What changed in the relations that are `.output`: what went, then what came."""
    program = after.program
    outputs = [program.relations[directive.relation] for directive in program.outputs]
    for sign, old, new in (("-", after, before), ("+", before, after)):
        for relation in outputs:
            for row in sorted(new.relation(relation.name) - old.relation(relation.name)):
                yield f"{sign}{fact_text(relation, row)}."


def _ask(result: Evaluation, question: str, pattern: str) -> None:
    """Print who answers a question: the first column of the facts that match a pattern."""
    name, constants, _ = read_pattern(pattern, result.program.relations)
    print(f"  {question}  {pattern}")
    matching = (
        row for row in result.rows(name) if all(c in (None, v) for c, v in zip(constants, row, strict=True))
    )
    _list(str(row[0]) for row in matching)


def _rules_of(path: Path) -> Iterator[str]:
    """The rules as the file has them, without comments and declarations."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("//", ".")):
            yield line


def _title(text: str) -> None:
    print(f"\n--- {text} ".ljust(WIDTH + 1, "-") + "\n")


def _list(names: Iterator[str]) -> None:
    """Names side by side, as many to a line as fit."""
    line = "     "
    for name in names:
        if len(line) + len(name) + 1 > WIDTH:
            print(line)
            line = "     "
        line += f" {name}"
    print(line)


if __name__ == "__main__":
    sys.exit(main())

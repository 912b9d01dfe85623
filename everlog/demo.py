"""A guided demonstration: `python -m everlog.demo`.

It asks who may read the payroll, deletes facts, shows what changes and why, makes mistakes, and
ends with commands to try.  It uses only the public API: `Database` and `compile_text`.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import everlog
from everlog import Database, FactsError
from everlog.shipped import shipped

WIDTH = 79
_ASCII = str.maketrans("├└│─✗", "|||-x")  # for any terminal
MISTAKE = """
.decl boss(name:Person)
boss(g) :- member(p, g), has_role(p, "cfo").
boss(p) :- has_rule(p, "ceo").
"""


def main() -> int:
    """Run the demonstration and return the exit status."""
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
    path = shipped("access_control").program
    _title("The rules of a company: who may do what")
    for line in _rules_of(path):
        print(f"  {line}")

    started = time.perf_counter()
    db = Database.from_file(path, facts=path.parent / "facts")
    took = (time.perf_counter() - started) * 1000
    count = sum(len(db.given(name)) for name in db.relations)
    _title(f"The answers, from {count} facts in files, in {took:.0f} ms")
    _ask(db, "Who may read the payroll?", 'may(who, "read", "payroll")')
    _ask(db, "And who may write it?", 'may(who, "write", "payroll")')
    _ask(db, "Who would, but for a denial?", 'blocked(who, "read", "payroll")')
    _ask(db, "Who has two roles that nobody should combine?", "conflict(who, a, b)")

    _title("Why may alan write the payroll?")
    _show(db.why('may("alan", "write", "payroll")').text())

    _title("Facts are deleted; every relation follows, and reports what changed")
    steps = [
        ('-has_role("alan", "payroll-clerk")', "// He still reads it, as an auditor."),
        ('-member("margaret", "payroll-office")', "// Who can write it now?"),
    ]
    for update, remark in steps:
        changes = db.apply([update])
        print(f"  {update}.   {remark}")
        for line in changes.text([d.relation for d in db.program.outputs]).splitlines():
            print(f"      {line}")

    _title("And why may he not write it any more?")
    _show(db.why_not('may("alan", "write", "payroll")').text())

    _title("Two rules with mistakes: all are reported, before anything runs")
    try:
        everlog.compile_text(path.read_text(encoding="utf-8") + MISTAKE, path.name)
    except everlog.DatalogError as error:
        for line in str(error).splitlines():
            print(textwrap.fill(f"  {line}", WIDTH, subsequent_indent=" " * 13).rstrip())


def _debian_packages() -> None:
    path = shipped("debian_packages").program
    db = Database.from_file(path, facts=path.parent / "facts")
    with db.transaction() as question:
        for relation, name in (("remove", "libssl3"), ("install", "postfix")):
            question.delete(relation, db.given(relation))
            question.insert(relation, (name,))
    wanted = {name for (name,) in db.rows("wanted")}
    broken = [str(name) for _, name in db.rows("breaks")]

    _title(f"Real data: {db.size('package')} packages of Debian")
    print(f"  What breaks if I remove libssl3?  {len(broken)} packages; those that someone asked for:")
    _list(name for name in broken if name in wanted)
    for _, packages, kilobytes in db.rows("takes"):
        print(f"  What if I install postfix?  {packages} packages, {kilobytes} kB, but it conflicts with:")
        _list(str(other) for _, _, other in db.rows("clash"))


def _what_next() -> None:
    _title("Now you")
    command = "everlog" if shutil.which("everlog") else _from_here(Path(sys.executable).parent / "everlog")
    for words, what in (
        (" programs", "list the other programs"),
        (" programs run access_control --updates", "replay a story of updates"),
        (" programs show points_to", "what it does, and its cost"),
        ("", "the prompt"),
    ):
        print(f"  {command}{words:<40}   {what}")
    print("\nOr send updates to a running program; an empty line ends a step:")
    print(f"  {command} programs run access_control --updates -")
    print('  -member("grace", "on-call").')


def _from_here(path: Path) -> str:
    """A path relative to the current directory, if that is shorter to type."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _ask(db: Database, question: str, pattern: str) -> None:
    """Print a question and the first column of the facts that match a pattern."""
    print(f"  {question}  {pattern}")
    _list(str(row[0]) for row in db.facts(pattern).rows())


def _show(text: str) -> None:
    """Print a proof, with each rule shortened to its name."""
    for line in text.splitlines():
        print("  " + re.sub(r"(#\d+) at .*", r"\1", line).translate(_ASCII))


def _rules_of(path: Path) -> Iterator[str]:
    """The rules of a file, without comments and declarations."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("//", ".")):
            yield line


def _title(text: str) -> None:
    print(f"\n--- {text} ".ljust(WIDTH + 1, "-") + "\n")


def _list(names: Iterable[str]) -> None:
    """Print names side by side, as many to a line as fit."""
    line = "     "
    for name in names:
        if len(line) + len(name) + 1 > WIDTH:
            print(line)
            line = "     "
        line += f" {name}"
    print(line)


if __name__ == "__main__":
    sys.exit(main())

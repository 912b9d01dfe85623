"""One program as an editor sees it: its files, tree, names, diagnostics and costs.

An analysis is made from the texts of one moment and never changes.  What few requests need (names,
costs) is computed when it is first asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import define, field, frozen

from everlog.core.engine.planning.costs import Costs, RuleCost
from everlog.core.engine.planning.plan import Plan, make_plan
from everlog.core.program import Origin, Program
from everlog.core.runtime.collector import collector_paused
from everlog.dsl import ast
from everlog.dsl.check import Checked, examine, report_of
from everlog.dsl.diagnostics import Report
from everlog.dsl.lexer import Lexeme
from everlog.dsl.parser import parse
from everlog.dsl.preprocess import preprocess_text
from everlog.dsl.source import Source
from everlog.editor.occurrences import Names, names_of
from everlog.editor.text_lines import aligned


@frozen
class Settings:
    """How programs are read: those of the command line."""

    include_dirs: tuple[Path, ...] = ()
    macros: Mapping[str, str] = field(factory=dict)


@frozen
class Place:
    """A column of a line of a file, both counted from 0."""

    file: str
    line: int
    column: int


@define(eq=False, slots=False)
class Analysis:
    """What is known of a program.  `lines_of` has the lines of a file as an editor shows them."""

    file: str
    source: Source
    report: Report
    tokens: list[Lexeme]
    tree: ast.Program
    checked: Checked
    lines_of: Callable[[str], list[str]]
    seconds: float = 0.0

    @property
    def program(self) -> Program | None:
        return self.checked.program

    @cached_property
    def names(self) -> Names:
        with collector_paused():
            return names_of(self.tree, self.tokens)

    # ── places ───────────────────────────────────────────────────────────────────────────────

    def place(self, offset: int) -> Place:
        """Where an offset of the source stands in a file."""
        found = self.source.locate(offset)
        lines = self.lines_of(found.file)
        line = lines[found.line - 1] if 0 < found.line <= len(lines) else found.text
        return Place(found.file, found.line - 1, aligned(found.column - 1, found.text, line))

    def offset(self, place: Place) -> int | None:
        """The offset of a place of a file; None if the line is no part of the source."""
        if self.source.origins:
            row = self._rows.get((os.path.normpath(place.file), place.line + 1))
        else:
            row = place.line if os.path.normpath(place.file) == os.path.normpath(self.source.file) else None
        if row is None or row >= len(self.row_starts):
            return None
        start = self.row_starts[row]
        stop = self.row_starts[row + 1] - 1 if row + 1 < len(self.row_starts) else len(self.source.text)
        lines = self.lines_of(place.file)
        shown = self.source.text[start:stop]
        line = lines[place.line] if place.line < len(lines) else shown
        return start + aligned(place.column, line, shown)

    @cached_property
    def _rows(self) -> dict[tuple[str, int], int]:
        """The first row of each line of each file; a file may be included twice."""
        rows: dict[tuple[str, int], int] = {}
        normal: dict[str, str] = {}
        for row, (file, line) in enumerate(self.source.origins):
            rows.setdefault((normal.setdefault(file, os.path.normpath(file)), line), row)
        return rows

    @cached_property
    def row_starts(self) -> list[int]:
        """The offset of each line of the source."""
        starts = [0]
        starts += [at + 1 for at, char in enumerate(self.source.text) if char == "\n"]
        return starts

    @cached_property
    def files(self) -> list[str]:
        """The files of the program, its own first."""
        return list(dict.fromkeys([self.file, *(file for file, _ in self.source.origins)]))

    # ── clauses ──────────────────────────────────────────────────────────────────────────────

    def clauses(self) -> Iterator[ast.Clause | ast.Subsumption]:
        """All rules and facts with a place of their own, those of components among them."""
        todo: list[ast.Statement] = list(reversed(self.tree.statements))
        while todo:
            item = todo.pop()
            if isinstance(item, ast.Component):
                todo += reversed(item.items)
            elif isinstance(item, ast.Clause | ast.Subsumption):
                yield item

    def clause_at(self, offset: int) -> ast.Clause | ast.Subsumption | None:
        return next((each for each in self.clauses() if each.pos <= offset <= each.end), None)

    def text_of(self, node: ast.Node) -> str:
        return self.source.text[node.pos : node.end]

    # ── costs ────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def plan(self) -> Plan | None:
        return None if self.program is None else make_plan(self.program)

    @cached_property
    def _costs(self) -> Costs | None:
        return None if self.plan is None else Costs(self.plan, {})

    @cached_property
    def _rules(self) -> dict[Origin, list[str]]:
        """The rules of each clause: several where it has `;`, or stands in a component."""
        found: dict[Origin, list[str]] = {}
        if self.plan is not None:
            for name, rule in self.plan.written.items():
                found.setdefault(rule.origin, []).append(name)
        return found

    @cached_property
    def _known(self) -> dict[str, RuleCost]:
        return {}

    def rule_names(self, clause: ast.Clause | ast.Subsumption) -> list[str]:
        where = self.source.locate(clause.pos)
        return self._rules.get(Origin(self.text_of(clause), where.file, where.line), [])

    def costs(self, clause: ast.Clause | ast.Subsumption) -> list[RuleCost]:
        """What an update of each rule of a clause costs; nothing while the program has errors."""
        if self.plan is None or self._costs is None:
            return []
        for name in (names := self.rule_names(clause)):
            if name not in self._known:
                self._known[name] = self._costs.of(name, self.plan.written[name])
        return [self._known[name] for name in names]


def analyse(
    text: str,
    file: str,
    lines_of: Callable[[str], list[str]],
    settings: Settings,
    texts: Mapping[Path, str] | None = None,
) -> Analysis:
    """The analysis of a text; `texts` are those of open files that it may include.

    Cost: linear in the text and its includes.
    """
    start = time.perf_counter()
    source, problems = preprocess_text(text, file, settings.include_dirs, settings.macros, texts=texts)
    report = report_of(source, problems)
    tokens: list[Lexeme] = []
    with collector_paused():
        tree = parse(source, report, tokens)
        checked = examine(tree, report, lazy=True)
    return Analysis(file, source, report, tokens, tree, checked, lines_of, time.perf_counter() - start)


def lines_from_disk(file: str) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return Path(file).read_bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    except OSError:
        return []


__all__: Sequence[str] = ["Analysis", "Place", "Settings", "analyse", "lines_from_disk"]

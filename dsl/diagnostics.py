"""Diagnostics: a stable code, what is wrong, where, why, and a remedy.

A stage that finds an error adds a `Diagnostic` to the `Report` and goes on, so that one run reports
all errors, in the order of the text.  `docs/diagnostics.md` is the catalogue with an example of
each code; a test runs every example.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import define, field, frozen

from everlog.dsl.diagnostic_codes import RULES
from everlog.dsl.source import Location, Source

MAX_SHOWN = 1_000  # diagnostics of one text, as data
_MOST_PRINTED, _MOST_OF_LINE = 100, 5  # diagnostics in a printed report, and of one line of the text
_WIDE = 160  # characters of a line that are shown


@frozen
class Label:
    """A second place that matters, and why."""

    pos: int
    end: int
    text: str


@frozen
class Diagnostic:
    """One error or warning.

    `pos` and `end` are offsets in the source; -1 means the program as a whole.
    """

    code: str
    message: str
    pos: int = -1
    end: int = -1
    labels: tuple[Label, ...] = ()
    hint: str = ""
    warning: bool = False

    @property
    def severity(self) -> str:
        return "warning" if self.warning else "error"


class DatalogError(Exception):
    """A program that cannot run, with all its errors."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.text())


@define
class Report:
    """The diagnostics of one program, in the order of its text."""

    source: Source
    items: list[Diagnostic] = field(factory=list)

    def error(self, code: str, message: str, node: Any = None, *labels: Label, hint: str = "") -> None:
        pos, end = (node.pos, node.end) if node is not None else (-1, -1)
        self.items.append(Diagnostic(code, message, pos, end, labels, hint))

    def warn(self, code: str, message: str, node: Any = None, *labels: Label, hint: str = "") -> None:
        pos, end = (node.pos, node.end) if node is not None else (-1, -1)
        self.items.append(Diagnostic(code, message, pos, end, labels, hint, warning=True))

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.sorted() if not d.warning]

    def sorted(self) -> list[Diagnostic]:
        """The diagnostics in the order of the text, without duplicates."""
        return sorted(dict.fromkeys(self.items), key=lambda d: (d.pos, d.code, d.message))

    def raise_errors(self) -> None:
        if any(not d.warning for d in self.items):
            raise DatalogError(self)

    # ── as text ──────────────────────────────────────────────────────────────────────────────

    def text(self, warnings: bool = True) -> str:
        found = [d for d in self.sorted() if warnings or not d.warning]
        parts = self.printed(found)
        errors = sum(not d.warning for d in found)
        if errors:
            parts.append(f"{errors} error{'s' if errors > 1 else ''} generated, evaluation aborted")
        return "\n\n".join(parts)

    def printed(self, found: list[Diagnostic]) -> list[str]:
        """Diagnostics as text: the first ones, and few of each line; then how many are left out."""
        parts: list[str] = []
        of_line: dict[tuple[str, int], int] = {}
        for d in _first(found):
            if len(parts) == _MOST_PRINTED:
                break
            where = self.source.locate(d.pos) if d.pos >= 0 else None
            line = (where.file, where.line) if where is not None else ("", 0)
            of_line[line] = of_line.get(line, 0) + 1
            if where is None or of_line[line] <= _MOST_OF_LINE:
                parts.append(self.render(d))
        if len(parts) < len(found):
            parts.append(f"{len(found) - len(parts)} more are not shown")
        return parts

    def render(self, d: Diagnostic) -> str:
        lines = [f"{d.severity}[{d.code}]: {d.message}"]
        width = 1
        if d.pos >= 0:
            where = self.source.locate(d.pos)
            width = max(len(str(self.source.locate(pos).line)) for pos in (d.pos, *(x.pos for x in d.labels)))
            lines.append(f" {'':>{width}}--> {where.file}:{where.line}:{where.column}")
            lines += self._excerpt(d, where, width)
        if d.code in RULES:
            lines.append(f" {'':>{width}} = rule: {RULES[d.code]}")
        if d.hint:
            lines.append(f" {'':>{width}} = hint: {d.hint}")
        return "\n".join(lines)

    def _excerpt(self, d: Diagnostic, where: Location, width: int) -> list[str]:
        """The source lines concerned, each with its marks below it."""
        marks = [(where, max(1, d.end - d.pos), "^", "")]
        marks += [(self.source.locate(x.pos), max(1, x.end - x.pos), "-", x.text) for x in d.labels]
        marks.sort(key=lambda m: (m[0].file != where.file, m[0].file, m[0].line, m[0].column))
        out: list[str] = []
        shown: set[tuple[str, int, str]] = set()
        previous = ("", 0, "", "")  # of the previous mark: file, line, shown text, marked text
        for place, length, mark, text in marks:
            line, column = window(place.text, place.column)
            if (place.file, place.line, line) not in shown:
                shown.add((place.file, place.line, line))
                if place.file != where.file:
                    out.append(f"  ::: {place.file}:{place.line}")
                out.append(f" {place.line:>{width}} | {line}")
            room = max(1, len(line) - column + 1)
            marked = mark * min(length, room) + (f" {text}" if text else "")
            start = width + 3 + column
            if len(out[-1]) < start and previous == (place.file, place.line, line, ""):
                out[-1] = f"{out[-1]:<{start}}{marked}"  # on the line of the previous mark
            else:
                out.append(f" {'':>{width}} | {'':>{column - 1}}{marked}")
            previous = (place.file, place.line, line, text)
        return out

    # ── as data ──────────────────────────────────────────────────────────────────────────────

    def as_json(self, most: int = MAX_SHOWN) -> list[dict[str, Any]]:
        """The diagnostics as data; if there are more than `most`, the first errors."""
        return [self._json(d) for d in _first(self.sorted(), most)]

    def _json(self, d: Diagnostic) -> dict[str, Any]:
        out: dict[str, Any] = {"code": d.code, "severity": d.severity, "message": d.message}
        if d.pos >= 0:
            start, stop = self.source.locate(d.pos), self.source.locate(max(d.pos, d.end))
            out |= {"file": start.file, "line": start.line, "column": start.column}
            out |= {"end_line": stop.line, "end_column": stop.column}
        labels = [(self.source.locate(x.pos), x.text) for x in d.labels]
        out["labels"] = [{"file": p.file, "line": p.line, "column": p.column, "text": t} for p, t in labels]
        out["rule"] = RULES.get(d.code, "")
        out["hint"] = d.hint
        return out


def _first(found: list[Diagnostic], most: int = MAX_SHOWN) -> list[Diagnostic]:
    """The diagnostics to show; if there are too many, the first errors."""
    if len(found) <= most:
        return found
    return ([d for d in found if not d.warning] or found)[:most]


def window(line: str, column: int) -> tuple[str, int]:
    """The shown part of a line, and the place of a column in it.

    Of a long line, the part around the column is shown.  Characters that cannot be printed become
    blanks, so that no text sends control sequences to a terminal.

    >>> window("p(x) :- q(x).", 9)
    ('p(x) :- q(x).', 9)
    >>> text, column = window("x" * 500 + "!" + "y" * 500, 501)
    >>> len(text), text[column - 1]
    (162, '!')
    """
    start = max(0, column - 1 - _WIDE // 2) if len(line) > _WIDE else 0
    part = "".join(c if c.isprintable() else " " for c in line[start : start + _WIDE])
    before, after = "…" * (start > 0), "…" * (start + _WIDE < len(line))
    return f"{before}{part}{after}", column - start + len(before)


@contextmanager
def deep_nesting(report: Report) -> Iterator[None]:
    """Report a diagnostic, not a traceback, when Python's stack overflows."""
    try:
        yield
    except RecursionError:
        report.error("DL016", "the program is nested too deeply to be checked from here")

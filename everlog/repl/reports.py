"""The changes of a step as `-fact.` and `+fact.` lines, and the cost of new rules.

A step may change millions of facts: at most `.maxrows` of them are sorted and written.  While
relations are watched, only their changes are printed, and the others are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, TypeAlias

from everlog.repl.modes import number_of
from everlog.repl.screen import Screen

if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.api.database import Database
    from everlog.api.facts.rows import Pattern
    from everlog.core.program import Relation, Row
    from everlog.repl.session import Session

Watched: TypeAlias = "Mapping[str, Pattern]"  # text of a pattern → the pattern
NONE = "0 changed"
MANY = 100  # changes that begin with a summary


def advice_lines(database: Database, measure: str) -> Iterator[str]:
    """What was measured, and advice for each relation; `measure` is a command that measures it."""
    costs = database.stats().relations
    facts, size = sum(each.facts for each in costs), sum(each.bytes for each in costs)
    yield f"{facts} facts in {size / 1e6:.1f} MB, {sum(each.seconds for each in costs):.3f} s of work in rules"
    for each in database.advise():
        yield from each.lines(measure)


def size_of(changes: Changes) -> int:
    """The number of changed facts."""
    return sum(len(changes[name]) for name in changes)


def print_changes(screen: Screen, changes: Changes, watched: Watched | None = None, whole: bool = False) -> None:
    """Print the changes of a step: at most `.maxrows` of them, unless `whole` is set."""
    if not changes:
        screen.line(NONE)
        return
    most = None if whole else screen.settings.maxrows
    parts = _parts(changes, watched)
    total = sum(len(rows) for _, rows, _ in parts)
    if total >= MANY:
        for line in summary(parts):
            screen.note(line)
    screen.lines(_lines(screen, parts, most), paged=True, ready=screen.seen)
    if most is not None and total > most:
        screen.note(f"… and {total - most} more: .changes prints them all")
    others = size_of(changes) - total
    if others:
        screen.note(f"({number_of(others, 'change')} not watched)")


def summary(parts: Iterable[tuple[Relation, list[Row], str]]) -> Iterator[str]:
    """How many facts each relation lost and gained, one line per relation.

    >>> from everlog.core.program import Relation
    >>> p, q = Relation("p", ()), Relation("q", ())
    >>> list(summary([(p, [()] * 3, "-"), (q, [()], "+"), (p, [()] * 1200, "+")]))
    ['p: 1,200 came, 3 went', 'q: 1 came']
    """
    numbers: dict[str, dict[str, int]] = {}
    for relation, rows, mark in parts:
        numbers.setdefault(relation.name, {})[mark] = len(rows)
    for name, counted in numbers.items():
        came, went = counted.get("+"), counted.get("-")
        said = [f"{came:,} came" if came else "", f"{went:,} went" if went else ""]
        yield f"{name}: {', '.join(part for part in said if part)}"


def lines_of(screen: Screen, changes: Changes) -> Iterator[str]:
    """All changes of a step as lines, coloured on a terminal."""
    return _lines(screen, _parts(changes, None), None)


def _parts(changes: Changes, watched: Watched | None) -> list[tuple[Relation, list[Row], str]]:
    """Rows by relation and sign: deletions first, relations as declared."""
    parts = []
    for sign, mark in ((-1, "-"), (+1, "+")):
        for name in changes:
            relation = changes.relation(name)
            rows = [row for row, weight in changes[name].items() if weight == sign]
            if watched:
                patterns = [pattern for pattern in watched.values() if pattern.relation.name == name]
                rows = [row for row in rows if any(pattern.matches(row) for pattern in patterns)]
            if rows:
                parts.append((relation, rows, mark))
    return parts


def _lines(screen: Screen, parts: Iterable[tuple[Relation, list[Row], str]], most: int | None) -> Iterator[str]:
    from everlog.dsl.fact_text import fact_text
    from everlog.files.text_values import sorted_rows
    from everlog.repl.screen import visible

    left = most
    for relation, rows, mark in parts:
        if left is not None and len(rows) > left:
            shown = nsmallest(left, rows)
        else:
            shown = sorted_rows(relation, rows)
        style = "insert" if mark == "+" else "delete"
        for row in shown:
            text = f"{mark}{fact_text(relation, row)}."
            yield screen.styled(visible(text), style) if screen.seen else text
        if left is not None:
            left -= len(shown)
            if left <= 0:
                return


def note_state(session: Session) -> None:
    """While updates are pending, say that answers are about the state before them."""
    if session.pending:
        session.screen.note("(as before the open transaction)")


def shown_rule(name: str, text: str) -> str:
    """A rule with its name, in one line.

    >>> shown_rule("path#1", "path(x, y) :-\\n  edge(x, y).")
    'path#1: path(x, y) :- edge(x, y).'
    """
    return f"{name.strip()}: {' '.join(text.split())}"


def cost_lines(database: Database, names: Iterable[str]) -> Iterator[str]:
    """The class and the cost of each rule, one line per rule; words before the formula."""
    for name in names:
        yield f"{name}: {with_words(database.cost(name))}"


_FORMULA = re.compile(r"costs ([OÕ]\(([^()]*)\))")
_WORDS = {
    "1": "constant time",
    "D^1/2": "about the square root of the data",
    "N^1/2": "about the square root of the data",
    "D": "time proportional to the data",
    "N": "time proportional to the data",
}


def with_words(cost: str) -> str:
    """A cost with its formula in words.

    >>> with_words("no join; one update costs O(1)")
    'no join; one update takes constant time, O(1)'
    >>> with_words("cyclic; one update costs O(D^3/2) amortized (auto)")
    'cyclic; one update takes the data to the power 3/2, O(D^3/2) amortized (auto)'
    """

    def said(found: re.Match[str]) -> str:
        words = _WORDS.get(found[2]) or f"the data to the power {found[2].partition('^')[2] or found[2]}"
        return f"takes {words}, {found[1]}"

    return _FORMULA.sub(said, cost)

"""HTML for notebooks: results, relations, changes and databases as small tables.

All text is escaped.  A table shows at most `ROWS` rows and computes no more, so a result of
millions of rows is displayed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from everlog.core.program import Column, Constant, Kind, Row
from everlog.explain.markup import Html, element, together

if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.api.database import Database
    from everlog.api.relation_view import RelationView
    from everlog.api.results import Result

ROWS = 50  # shown per table
_LONG = 200  # characters shown per value
_RIGHT, _NOTE = "text-align:right", "opacity:.7;font-size:85%"
_GONE, _NEW = "color:#c0392b", "color:#1e8449"


def result_html(result: Result) -> str:
    found = list(islice(result, ROWS + 1))
    if len(found) <= ROWS:
        found = result.rows()
        note = _count(len(found), "row")
    else:
        note = f"the first {ROWS} rows found; more follow"
    return together([_table(result._columns(), found[:ROWS]), _note(note)])


def relation_html(view: RelationView) -> str:
    size = len(view)
    facts = view.facts()
    rows = facts.rows() if size <= ROWS else list(islice(facts, ROWS))
    note = _count(size, "fact") + (f", {ROWS} of them shown" if size > ROWS else "")
    title = element("div", element("code", str(view.relation)))
    return together([title, _table(view._columns(), rows), _note(note)])


def changes_html(changes: Changes) -> str:
    if not changes:
        return _note("no change")
    parts = []
    for name in changes:
        gone, new = changes.deleted(name), changes.inserted(name)
        lines = [("−", _GONE, row) for row in gone[:ROWS]]
        lines += [("+", _NEW, row) for row in new[: ROWS - len(lines)]]
        columns = changes.relations[name].columns
        body = [
            element("tr", element("td", sign, style=style), *_cells(columns, row, style))
            for sign, style, row in lines
        ]
        head = element("tr", element("th"), *(element("th", column.name) for column in columns))
        left = len(gone) + len(new) - len(lines)
        note = f"{len(gone)} gone, {len(new)} new" + (f"; {left} not shown" if left else "")
        parts += [element("div", element("b", name)), element("table", head, *body), _note(note)]
    return together(parts)


def database_html(database: Database) -> str:
    rules: dict[str, int] = {}
    for rule in database.program.rules:
        rules[rule.head.relation] = rules.get(rule.head.relation, 0) + 1
    head = element("tr", *(element("th", text) for text in ("relation", "facts", "rules")))
    body = [
        element(
            "tr",
            element("td", element("code", str(relation)), style="text-align:left"),
            element("td", str(database.kept(name)), style=_RIGHT),
            element("td", str(rules.get(name, 0)), style=_RIGHT),
        )
        for name, relation in database.relations.items()
    ]
    return together([element("table", head, *body), _note(_count(len(database.program.rules), "rule"))])


def _table(columns: Sequence[Column], rows: Iterable[Row]) -> Html:
    head = element("tr", *(element("th", column.name) for column in columns))
    return element("table", head, *(element("tr", *_cells(columns, row)) for row in rows))


def _cells(columns: Sequence[Column], row: Row, style: str = "") -> list[Html]:
    cells = []
    for column, value in zip(columns, row, strict=True):
        symbol = column.kind is Kind.SYMBOL
        text = str(value) if symbol else str(Constant(value, column.kind)).removesuffix("u")
        if len(text) > _LONG:
            text = text[: _LONG - 1] + "…"
        aligned = "text-align:left;white-space:pre-wrap" if symbol else _RIGHT
        cells.append(element("td", text, style=f"{style};{aligned}".lstrip(";")))
    return cells


def _note(text: str) -> Html:
    return element("div", text, style=_NOTE)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""Base facts by pattern: for deletes and updates of all facts that match.

A pattern is an atom with `_` for any value, such as `emp(_, "bob")`, or columns by name, such as
`name="bob"`.  Only base facts are deleted or updated: a fact that rules derive follows the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from everlog.api.facts.named_rows import column_number
from everlog.api.facts.rows import Pattern, Relations, checked_rows, pattern_of, updates
from everlog.core.program import Relation, Row
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import FactError, checked_value, declared
from everlog.dsl import ast
from everlog.dsl.fact_text import cut, fact_text
from everlog.dsl.query_text import parse_query

if TYPE_CHECKING:
    from everlog.api.transactions import Writer
    from everlog.core.engine import Engine


_OPEN = re.compile(r"[(,]\s*[?A-Za-z_]")  # an argument that begins as a name does


def pattern_by_columns(relation: Relation, columns: Mapping[str, object]) -> Pattern:
    """The pattern of the facts that have these values in these columns."""
    places = {column_number(relation, name): value for name, value in columns.items()}
    return Pattern(relation, {place: checked_value(relation, place, value) for place, value in places.items()})


def pattern_in_text(relations: Relations, text: str) -> Pattern | None:
    """The pattern in a text; None for a fact, or for anything but one atom.

    A variable may stand in a pattern only twice or more, to say that columns are equal: `_` is any
    value, so that no misspelt symbol deletes everything.
    """
    if not _OPEN.search(text):
        return None
    query = parse_query(text)
    if query.atom is None or not is_pattern(query.atom):
        return None
    names = [arg.name for arg in query.atom.args if isinstance(arg, ast.Name) and arg.name not in ("inf", "nan")]
    for name in names:
        if names.count(name) == 1:
            raise FactError(f'`{cut(text)}`: write "{name}" if it is a symbol, `_` for any value')
    return pattern_of(relations, query)


def is_pattern(atom: ast.Atom) -> bool:
    """Whether an atom leaves columns open, by `_` or by a variable."""
    return any(
        isinstance(arg, ast.Underscore) or (isinstance(arg, ast.Name) and arg.name not in ("inf", "nan"))
        for arg in atom.args
    )


def matching(writer: Writer, pattern: Pattern, before: Iterable[Update] = ()) -> list[Row]:
    """The base facts that match, after these updates of an open step.

    Cost: that of the facts found, once there is an index; that of all base facts inside a
    transaction, and where some base facts do not count (`choice-domain`, subsumption).
    """
    relation, engine = pattern.relation, writer.engine
    given = writer.given(relation.name)
    dominated = any(each.dominated.relation == relation.name for each in engine.program.subsumptions)
    if pattern.bound and not writer.joins() and not relation.choices and not dominated:
        found = [row for row in engine.lookup(relation.name, pattern.bound) if row in given]
    else:
        found = list(given)
    rows = dict.fromkeys(row for row in found if pattern.matches(row))
    for update in before:
        if update.relation == relation.name and pattern.matches(update.row):
            if update.insert:
                rows[update.row] = None
            else:
                rows.pop(update.row, None)
    return list(rows)


def changed(relation: Relation, rows: Iterable[Row], values: Mapping[str, object]) -> list[Update]:
    """The updates that set columns of rows: all deletes, then all inserts."""
    places = {column_number(relation, name): value for name, value in values.items()}
    checked = {place: checked_value(relation, place, value) for place, value in places.items()}
    before = list(rows)
    after = [tuple(checked.get(place, value) for place, value in enumerate(row)) for row in before]
    name = relation.name
    return [*(Update(name, row, insert=False) for row in before), *(Update(name, row) for row in after)]


def key_of(relation: Relation, key: str | Iterable[str] | None) -> tuple[int, ...]:
    """The columns of a key: the given ones, or those of the only `choice-domain`."""
    if key is not None:
        names = [key] if isinstance(key, str) else list(key)
        return tuple(column_number(relation, name) for name in names)
    if len(relation.choices) != 1:
        example = relation.columns[0].name if relation.columns else "column"
        raise FactError(
            f"{relation.name} has no key: pass key=…, or declare one: .decl {relation} choice-domain {example}"
        )
    return relation.choices[0]


def upserts(writer: Writer, name: str, rows: object, key: str | Iterable[str] | None) -> list[Update]:
    """The updates that replace base facts with the same key by these rows."""
    relation = declared(writer.relations, name)
    columns = key_of(relation, key)
    step: list[Update] = []
    latest = {tuple(row[place] for place in columns): row for row in checked_rows(relation, rows)}
    for found, row in latest.items():
        old = matching(writer, Pattern(relation, dict(zip(columns, found, strict=True))))
        step += [Update(relation.name, each, insert=False) for each in old if each != row]
        step.append(Update(relation.name, row))
    return step


def deletes(writer: Writer, name: str, rows: object, columns: Mapping[str, object]) -> tuple[list[Update], str]:
    """The updates of one `delete`, and the note if its pattern matches no base fact."""
    if columns and rows is not None:
        raise FactError("pass rows, or values of columns, not both")
    pattern = pattern_by_columns(declared(writer.relations, name), columns) if columns else None
    if pattern is None and rows is None:
        pattern = pattern_in_text(writer.relations, name)
    if pattern is None:
        return updates(writer.relations, name, rows, False), ""
    found = [Update(pattern.relation.name, row, insert=False) for row in matching(writer, pattern)]
    return found, "" if found else nothing_matches(writer.engine, pattern)


def sets(
    writer: Writer, name: str, values: Mapping[str, object], columns: Mapping[str, object]
) -> tuple[list[Update], str]:
    """The updates of one `update`, and the note if no base fact matches."""
    pattern = pattern_by_columns(declared(writer.relations, name), columns)
    found = changed(pattern.relation, matching(writer, pattern), values)
    return found, "" if found else nothing_matches(writer.engine, pattern)


# ── what did not change, and why ─────────────────────────────────────────────────────────────


def nothing_matches(engine: Engine, pattern: Pattern) -> str:
    """The note of a pattern without a base fact."""
    name, bound = pattern.relation.name, pattern.bound
    rows = engine.lookup(name, bound) if bound else engine.stream(name)
    derived = next((row for row in rows if pattern.matches(row)), None)
    note = f"; {stays(engine, pattern.relation, [derived])}" if derived is not None else ""
    return f"no base fact of `{name}` matches{note}"


def stays(engine: Engine, relation: Relation, rows: Iterable[Row]) -> str:
    """The note about deleted facts that are still there: they are derived, and by which rules.

    Empty if all of them are gone, or never were there.
    """
    from everlog.core.proofs.missing import rules_that_hold

    held = (
        row for row in rows if next(iter(engine.lookup(relation.name, dict(enumerate(row)))), None) is not None
    )
    row = next(held, None)
    if row is None:
        return ""
    engine.read_all()
    rules = ", ".join(rule.name for rule in rules_that_hold(engine, relation.name, row))
    others = sum(1 for _ in held)
    more = f", as are {others} more" if others else ""
    return f"{cut(fact_text(relation, row), 200)} is derived{f', by {rules}' if rules else ''}{more}"

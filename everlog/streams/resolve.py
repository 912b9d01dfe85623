"""Changes of rows to updates of facts.

A row is the fact of those columns that the relation has; others are ignored.  The change says what
was there before.  If it has only some columns, or none (PostgreSQL sends only the key, unless the
table has REPLICA IDENTITY FULL), the fact is looked up in the database and in the same step.  With
a key, a new row replaces any row with its key: repeated changes have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from everlog.api.database import Database
from everlog.core.program import Relation, Row, Value
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import column_label, shown
from everlog.files.rejects import BadRow, Refuse
from everlog.files.typed.typed_values import Convert
from everlog.streams.model import UNCHANGED, RowChange, Transaction
from everlog.streams.naming import Naming, what_of_nulls

_MISSING: Final = object()


class _Bad(Exception):
    """The reason why a change is not a change of facts."""


class _Step:
    """The changes of one relation in a step so far, on top of a database."""

    def __init__(self, database: Database, relation: Relation) -> None:
        self._database, self._relation = database, relation
        self.there: dict[Row, bool] = {}
        self._indexes: dict[tuple[int, ...], dict[Row, dict[Row, None]]] = {}  # columns → values → new rows

    def set(self, row: Row, there: bool) -> None:
        self.there[row] = there
        for columns, index in self._indexes.items():
            of_values = index.setdefault(tuple(row[c] for c in columns), {})
            if there:
                of_values[row] = None
            else:
                of_values.pop(row, None)

    def replace(self, rows: Iterable[Row]) -> None:
        """Replace all rows by these."""
        self.there.update(dict.fromkeys(self._database.given(self._relation.name), False))
        self.there.update(dict.fromkeys(self.there, False))
        self.there.update(dict.fromkeys(rows, True))
        self._indexes.clear()

    def matching(self, known: Mapping[int, Value]) -> list[Row]:
        """The current facts with these values in these columns."""
        columns = tuple(sorted(known))
        if columns not in self._indexes:
            self._indexes[columns] = {}
            for row, there in self.there.items():
                if there:
                    self._indexes[columns].setdefault(tuple(row[c] for c in columns), {})[row] = None
        coming = self._indexes[columns].get(tuple(known[c] for c in columns), {})
        before = self._database.lookup(self._relation.name, known)
        return [*(row for row in before if row not in self.there), *coming]


class Resolver:
    """Translates transactions to updates; `refuse` gets rows that do not fit."""

    def __init__(self, database: Database, naming: Naming, convert: Convert, refuse: Refuse) -> None:
        self._database, self._naming = database, naming
        self._convert, self._refuse = convert, refuse

    def updates(self, transaction: Transaction) -> list[Update]:
        """The net updates of a transaction, each fact at most once."""
        steps: dict[str, _Step] = {}

        def step_of(relation: Relation) -> _Step:
            return steps.setdefault(relation.name, _Step(self._database, relation))

        for name, rows in transaction.whole.items():
            step_of(self._naming.relations[name]).replace(rows)
        for change in transaction.changes:
            relation = self._naming.relation_of(change.table)
            if relation is not None:
                try:
                    self._resolve(relation, change, step_of(relation))
                except _Bad as problem:
                    values = change.after if change.after is not None else change.before
                    bad = BadRow(transaction.place, change.number, str(problem), values, transaction.counted)
                    self._refuse(bad)
        return [Update(name, row, there) for name, step in steps.items() for row, there in step.there.items()]

    def _resolve(self, relation: Relation, change: RowChange, step: _Step) -> None:
        if change.op == "t":
            step.replace(())
            return
        key = self._naming.keys.get(relation.name)
        gone = self._gone(relation, change, key, step)
        after = None if change.after is None else _filled(relation, change, gone)
        for row in gone:  # even if the new row is refused
            step.set(row, False)
        if after is not None:
            row = self._row(relation, after)
            if key is not None:
                for other in step.matching({c: row[c] for c in key}):
                    step.set(other, False)
            step.set(row, True)

    def _gone(self, relation: Relation, change: RowChange, key: tuple[int, ...] | None, step: _Step) -> list[Row]:
        """The facts that the change removes or replaces."""
        if change.op not in "ud":
            return []
        if key is not None:
            for values in (change.before, change.after):  # an unchanged key may be only in the new row
                known = self._known(relation, values or {}, key)
                if known is None:
                    return []
                if len(known) == len(key):
                    return step.matching(known)
            raise _Bad(f"the key of {relation.name} is missing")
        known = self._known(relation, change.before or {}, range(relation.arity))
        if known is None:
            return []
        nulls = [column for column in relation.columns if _value(change.before or {}, column.name) is None]
        if nulls and len(known) == relation.arity and step.matching(known):
            nulls = []  # nulls have a value, and such a fact exists
        if (not known and relation.columns) or nulls:  # a null may be a value that was not sent
            raise _Bad(
                f"the change does not say what was there before; name the key of {relation.name}, or let the table"
                " send all columns (REPLICA IDENTITY FULL)"
            )
        if len(known) == relation.arity:
            return [tuple(known[c] for c in range(relation.arity))]
        rows = step.matching(known)
        if len(rows) > 1:
            raise _Bad(f"one row is meant, but {len(rows)} facts of {relation.name} fit; name its key")
        return rows

    def _known(
        self, relation: Relation, values: Mapping[str, object], columns: Iterable[int]
    ) -> dict[int, Value] | None:
        """The values of those columns that the change has; None if it was never a fact.

        A null counts if there is a value for it.
        """
        known: dict[int, Value] = {}
        becomes = self._naming.nulls_of(relation)
        for number in columns:
            column = relation.columns[number]
            found = _value(values, column.name)
            null = becomes[number]
            if found is None and null is not None:
                known[number] = null
            elif found is not _MISSING and found is not None and found is not UNCHANGED:
                try:
                    known[number] = self._convert(column.kind, found)
                except ValueError:
                    return None
        return known

    def _row(self, relation: Relation, values: Mapping[str, object]) -> Row:
        row: list[Value] = []
        nulls = self._naming.nulls_of(relation)
        for number, (column, null) in enumerate(zip(relation.columns, nulls, strict=True), start=1):
            found = _value(values, column.name)
            if found is None and null is not None:
                row.append(null)
                continue
            if found is None:
                raise _Bad(f"{column_label(column, number)} is null; {what_of_nulls(relation, column)}")
            if found is _MISSING:
                raise _Bad(f"{column_label(column, number)} is missing from {shown(dict(values))}")
            try:
                row.append(self._convert(column.kind, found))
            except ValueError as problem:
                raise _Bad(f"{column_label(column, number)}: {problem}") from None
        return tuple(row)


def _value(values: Mapping[str, object], name: str) -> object:
    """The value of a column, ignoring the case of its name."""
    if name in values:
        return values[name]
    return next((value for other, value in values.items() if other.lower() == name.lower()), _MISSING)


def _filled(relation: Relation, change: RowChange, gone: list[Row]) -> Mapping[str, object]:
    """The new row; omitted unchanged columns have their old values."""
    after = change.after or {}
    left_out = [column.name for column in relation.columns if _value(after, column.name) is UNCHANGED]
    if not left_out:
        return after
    old = dict(change.before or {})
    if any(_value(old, name) in (_MISSING, UNCHANGED) for name in left_out):
        if len(gone) != 1:
            raise _Bad(f"the unchanged value of `{left_out[0]}` is not known")
        old = {column.name: value for column, value in zip(relation.columns, gone[0], strict=True)}
    return {**after, **{name: _value(old, name) for name in left_out}}

"""The relation that a table feeds, and the key of its rows.

A table has the name of its relation, unless `tables` names another; its schema matters only if it
is named there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from everlog.core.program import Column, Relation, Value
from everlog.core.program.fact_rows import declared, shown
from everlog.files.location import null_values
from everlog.files.text_values import PARSERS, FactsError


class Naming:
    """The tables and keys of the relations of a program.

    `tables` maps relations to tables with other names; `keys` maps relations to their key columns;
    `nulls` maps relations, or columns as `relation.column`, to the value for null, as in a fact
    file.  Raises FactError or FactsError if they do not fit the program.
    """

    def __init__(
        self,
        relations: Mapping[str, Relation],
        tables: Mapping[str, str] | None = None,
        keys: Mapping[str, Sequence[str]] | None = None,
        tell: Callable[[str], object] | None = None,
        nulls: Mapping[str, str] | None = None,
    ) -> None:
        self.relations = relations
        self.tables = dict(tables or {})
        self.keys = {name: self._columns(name, columns) for name, columns in (keys or {}).items()}
        self._nulls: dict[str, list[Value | None]] = {}
        given = dict(nulls or {})
        for name in sorted(given, key=lambda name: name not in relations):  # columns override relations
            self._set_null(name, given[name])
        self._tell = tell
        self._known: dict[str, Relation | None] = {}
        for name in self.tables:
            declared(relations, name)
        self._by_table = {table: name for name, table in self.tables.items()}

    def _columns(self, name: str, columns: Sequence[str]) -> tuple[int, ...]:
        relation = declared(self.relations, name)
        names = [column.name for column in relation.columns]
        for column in columns:
            if column not in names:
                raise FactsError(f"the key of {relation} has no column `{column}`")
        return tuple(names.index(column) for column in columns)

    def _set_null(self, name: str, text: str) -> None:
        if name in self.relations:
            self._nulls[name] = list(null_values(self.relations[name], text))
            return
        relation_name, _, column_name = name.rpartition(".")
        relation = declared(self.relations, relation_name or name)
        numbers = [n for n, column in enumerate(relation.columns) if column.name == column_name]
        if not numbers:
            raise FactsError(f"{relation} has no column `{column_name}`, so its nulls cannot become {shown(text)}")
        try:
            value = PARSERS[relation.columns[numbers[0]].kind](text)
        except ValueError as problem:
            raise FactsError(f"a null of `{name}` cannot become {shown(text)}: {problem}") from None
        self._nulls.setdefault(relation.name, [None] * relation.arity)[numbers[0]] = value

    def nulls_of(self, relation: Relation) -> Sequence[Value | None]:
        """The value for null in each column; None if there is none."""
        return self._nulls.get(relation.name) or (None,) * relation.arity

    def table_of(self, relation: str) -> str:
        return self.tables.get(relation, relation)

    def relation_of(self, table: str) -> Relation | None:
        """The relation of a table, or None; `tell` gets one note per unknown table."""
        if table not in self._known:
            self._known[table] = found = self._looked_up(table)
            if found is None and self._tell is not None:
                self._tell(f"changes of the table `{table}` are skipped: no relation has this name")
        return self._known[table]

    def _looked_up(self, table: str) -> Relation | None:
        for name in (table, table.rpartition(".")[2]):
            relation = self._by_table.get(name, name)
            if relation in self.relations and (name in self._by_table or relation not in self.tables):
                return self.relations[relation]
        return None


def what_of_nulls(relation: Relation, column: Column) -> str:
    """A hint how to handle nulls, for messages."""
    return (
        "a fact has a value in every column, so set one for null with"
        f" --null {relation.name}.{column.name}=VALUE, or write such rows to a file with --rejects FILE"
    )

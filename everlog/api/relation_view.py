"""A view of one relation, to be read and written like a set of rows.

    edge = db["edge"]
    edge += [(1, 2), (2, 3)]
    (1, 2) in edge, len(edge), list(edge), edge.to_pandas()

It holds no facts: each call asks the database, so the view is always current.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from everlog.api.changes import Changes
from everlog.api.facts.dataframes import Tabular
from everlog.core.native.words import SortedWords
from everlog.core.program import Column, Relation, Row
from everlog.core.program.fact_rows import declared

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.api.results import Result
    from everlog.api.subscriptions import Callback, Subscription
    from everlog.api.watching import Watch
    from everlog.notebook.live_table import LiveTable


class RelationView(Tabular):
    """The type of `db["edge"]`.

    >>> from everlog import Database
    >>> db = Database.from_text(".decl edge(x:number, y:number)")
    >>> db["edge"] += [(1, 2), (2, 3)]
    >>> db["edge"] -= (1, 2)
    >>> edge = db["edge"]
    >>> edge, len(edge), (2, 3) in edge, list(edge)
    (<edge(x:number, y:number): 1 fact>, 1, True, [(2, 3)])
    >>> print(edge.insert((3, 4)))
    +edge(3, 4).
    >>> db["edge"] = [(7, 8)]       # replaces all base facts
    >>> edge.rows()
    [(7, 8)]
    """

    __slots__ = ("_database", "name")

    def __init__(self, database: Database, name: str) -> None:
        self._database, self.name = database, declared(database.relations, name).name

    @property
    def relation(self) -> Relation:
        """The declaration, with the columns and their kinds."""
        return declared(self._database.relations, self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._columns())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each column: `number`, `unsigned`, `float` or `symbol`."""
        return tuple(column.kind.value for column in self._columns())

    def _columns(self) -> Sequence[Column]:
        return self.relation.columns

    def _words(self) -> SortedWords | None:
        return self.facts()._words()

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def rows(self) -> list[Row]:
        """All facts, as a sorted copy."""
        return self._database.view(self.name)

    def given(self) -> list[Row]:
        """The base facts, sorted."""
        return self._database.given(self.name)

    def facts(self) -> Result:
        """All facts of the current state, as a lazy result."""
        return self._database.facts(f"{self.name}({', '.join('_' for _ in self._columns())})")

    def __iter__(self) -> Iterator[Row]:
        """Iterate lazily, in no particular order; see `Result` for steps in between."""
        return iter(self.facts())

    def __len__(self) -> int:
        return self._database.size(self.name)

    def __contains__(self, row: object) -> bool:
        return self._database.holds(self.name, row)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def insert(self, rows: object) -> Changes:
        """Insert a row, rows or a table: see `Database.insert`."""
        return self._database.insert(self.name, rows)

    def delete(self, rows: object = None, /, **columns: object) -> Changes:
        """Delete a row, rows or a table, or all facts with these columns: see `Database.delete`."""
        if rows is None and not columns:
            raise TypeError("delete what? pass rows, or values of columns")
        return self._database.delete(self.name, rows, **columns)

    def update(self, values: Mapping[str, object], /, **columns: object) -> Changes:
        """Set columns of all facts with these values in others: see `Database.update`."""
        return self._database.update(self.name, values, **columns)

    def upsert(self, rows: object, *, key: str | Iterable[str] | None = None) -> Changes:
        """Insert rows in place of those with the same key: see `Database.upsert`."""
        return self._database.upsert(self.name, rows, key=key)

    def __iadd__(self, rows: object) -> RelationView:
        self.insert(rows)
        return self

    def __isub__(self, rows: object) -> RelationView:
        self.delete(rows)
        return self

    def subscribe(self, callback: Callback) -> Subscription:
        """Call `callback(changes)` after each step that changes this relation."""
        return self._database.subscribe(self.name, callback)

    def watch(self, *, limit: int = 1000) -> Watch:
        """The changes of this relation as an asynchronous iterator."""
        return self._database.watch(self.name, limit=limit)

    def live(self) -> LiveTable:
        """A table for a notebook that follows the relation, where it was shown."""
        from everlog.notebook.live_table import LiveTable

        return LiveTable(self)

    # ── as text ──────────────────────────────────────────────────────────────────────────────

    def __repr__(self) -> str:
        size = len(self)
        return f"<{self.relation}: {size} fact{'' if size == 1 else 's'}>"

    def _repr_html_(self) -> str:
        from everlog.html import relation_html

        return relation_html(self)

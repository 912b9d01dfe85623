"""The changes of a step: a mapping relation → fact → +1 or -1, with a text form.

It wraps the engine's lazy changes: nothing is sorted or copied before it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from everlog.core.program import Relation, Row, executor
from everlog.dsl.fact_text import fact_text
from everlog.files.text_values import sorted_rows

Signed: TypeAlias = Mapping[Row, int]

NO_CHANGE = "(no change)"


class Changes(Mapping[str, Signed]):
    """The net change of every relation that changed in one step.

    >>> from everlog import Database
    >>> db = Database.from_text('''
    ...   .decl edge(x:number, y:number)
    ...   .decl path(x:number, y:number)
    ...   path(x, y) :- edge(x, y).
    ...   path(x, z) :- path(x, y), edge(y, z).''')
    >>> changes = db.insert("edge", [(1, 2), (2, 3)])
    >>> list(changes), changes["path"] == {(1, 2): 1, (1, 3): 1, (2, 3): 1}
    (['edge', 'path'], True)
    >>> print(db.delete("edge", (2, 3)))
    -edge(2, 3).
    -path(1, 3).
    -path(2, 3).
    >>> print(db.delete("edge", (2, 3)))
    (no change)

    `changes[relation]` is empty for a relation that did not change, and a KeyError for one that is
    not declared.  Changes are equal to any mapping with the same content.
    """

    __slots__ = ("_changes", "_relations", "note")

    def __init__(self, changes: executor.Changes, relations: Mapping[str, Relation], note: str = "") -> None:
        """`note` says why a delete changed nothing: see `Database.delete`."""
        self._changes, self._relations, self.note = changes, relations, note

    # ── as a mapping ─────────────────────────────────────────────────────────────────────────

    def __getitem__(self, relation: str) -> Signed:
        found = self._changes.get(relation)
        if found is not None:
            return found
        if relation in self._relations:
            return {}
        raise KeyError(relation)

    def __contains__(self, relation: object) -> bool:
        return relation in self._changes

    def __iter__(self) -> Iterator[str]:
        """The relations that changed, in the order of their declaration."""
        return (name for name in self._relations if name in self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __repr__(self) -> str:
        shown = {name: {row: self[name][row] for row in self._sorted(name, self[name])} for name in self}
        return f"Changes({shown})"

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations that may have changed."""
        return self._relations

    # ── as facts ─────────────────────────────────────────────────────────────────────────────

    def inserted(self, relation: str) -> list[Row]:
        """The facts that this relation gained, sorted."""
        return self._sorted(relation, (row for row, sign in self[relation].items() if sign > 0))

    def deleted(self, relation: str) -> list[Row]:
        """The facts that this relation lost, sorted."""
        return self._sorted(relation, (row for row, sign in self[relation].items() if sign < 0))

    def relation(self, name: str) -> Relation:
        """The declaration of a relation in this step, even if it was dropped later."""
        return self._relations[name]

    def only(self, relations: Collection[str]) -> Changes:
        """The changes of these relations only."""
        return Changes({name: self._changes[name] for name in self if name in relations}, self._relations)

    def text(self, relations: Collection[str] | None = None) -> str:
        """Lines `-fact.` and then `+fact.`, or `(no change)`.

        The relations come in the order of declaration, the facts of each sorted.  With `relations`,
        only these are printed.
        """
        shown = [name for name in self if relations is None or name in relations]
        lines = [f"-{fact_text(self._relations[name], row)}." for name in shown for row in self.deleted(name)]
        lines += [f"+{fact_text(self._relations[name], row)}." for name in shown for row in self.inserted(name)]
        return "\n".join(lines) or (f"(no change: {self.note})" if self.note else NO_CHANGE)

    __str__ = text

    def _sorted(self, relation: str, rows: Iterable[Row]) -> list[Row]:
        return sorted_rows(self._relations[relation], rows)

    def _repr_html_(self) -> str:
        from everlog.html import changes_html

        return changes_html(self)

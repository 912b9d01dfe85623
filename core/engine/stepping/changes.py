"""The changes that a step reports: facts per relation, made into rows on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from everlog.core.engine.stepping.found_changes import FoundChange, FoundFacts
from everlog.core.native.words import are_words
from everlog.core.program import Row
from everlog.core.runtime.collector import without_collections
from everlog.core.storage.shape import Facts, Shape
from everlog.core.storage.shared_values import SharedDelta
from everlog.core.storage.table_shapes import PairShape


class ToldChanges(Mapping[str, Mapping[Row, int]]):
    """relation → fact → +1 or -1; a relation without change is absent.

    A bulk load may change millions of facts that no caller reads, so rows are made on demand.
    Those of a view are found each time that they are read, until the next step.
    """

    __slots__ = ("_facts", "_rows", "_shapes")

    def __init__(self, shapes: Mapping[str, Shape], facts: Mapping[str, tuple[Facts, Facts]]) -> None:
        self._shapes, self._facts = shapes, facts
        self._rows: dict[str, dict[Row, int]] = {}

    def with_rows(self, rows: Mapping[str, dict[Row, int]]) -> ToldChanges:
        """These changes, and those of other relations, which are rows already."""
        told = ToldChanges(self._shapes, {**self._facts, **rows})  # type: ignore[dict-item]
        told._rows = {**self._rows, **rows}
        return told

    def __getitem__(self, relation: str) -> Mapping[Row, int]:
        rows = self._rows.get(relation)
        if rows is None:
            gone, new = self._facts[relation]
            if isinstance(gone, FoundFacts) and isinstance(new, FoundFacts):
                return FoundChange(gone, new)
            shape = self._shapes[relation]
            signed = _signed_rows if len(gone) + len(new) <= FEW else _many_signed_rows
            rows = self._rows[relation] = signed(shape, gone, new)
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __contains__(self, relation: object) -> bool:
        return relation in self._facts

    def __repr__(self) -> str:
        return repr(dict(self))


class BaseRows(list[Row]):
    """Base facts as rows, reported as such."""


def _signed_rows(shape: Shape, gone: Facts, new: Facts) -> dict[Row, int]:
    rows = dict.fromkeys(rows_of_change(shape, gone), -1) if gone else {}
    if new:
        rows.update(dict.fromkeys(rows_of_change(shape, new), 1))
    return rows


_many_signed_rows = without_collections(_signed_rows)
FEW = 16  # rows or sets: too few to trigger the garbage collector


def rows_of_change(shape: Shape, facts: Facts) -> Iterable[Row]:
    """The facts of a change as rows, in whatever form they are told."""
    if isinstance(facts, BaseRows | FoundFacts) or are_words(facts):
        return facts
    if isinstance(facts, SharedDelta) and isinstance(shape, PairShape):
        return facts.rows(shape)
    return shape.rows_of(facts)


def size_of_change(shape: Shape, facts: Facts) -> int:
    """The number of facts of a change."""
    if isinstance(facts, BaseRows | FoundFacts) or are_words(facts):
        return len(facts)
    if isinstance(facts, SharedDelta):
        return sum(1 for _ in rows_of_change(shape, facts))
    return shape.size_of(facts)


NOTHING = ToldChanges({}, {})

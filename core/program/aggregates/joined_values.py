"""Relations whose facts of one key are joined into one.

A relation with lattice columns has one fact for each value of its other columns, the *key*.  What
is derived for a key is joined by the functor `Lub` of each lattice; a fact with the value `Bottom`
is not there.  A map to a least or greatest value (`best_values`) is of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import frozen

from everlog.core.program.aggregates.best_values import BestMap, check_ordered
from everlog.core.program.functors import call_functor
from everlog.core.program.order import ordered
from everlog.core.program.program import Functor, Relation, Row, Value

Join = Callable[[Any, Any], Value]


@frozen
class Joined:
    """How facts of one key become one."""

    relation: str
    key: tuple[int, ...]
    joins: tuple[tuple[int, Join], ...]
    bottoms: tuple[tuple[int, Value], ...] = ()

    def key_of(self, row: Row) -> Row:
        return tuple([row[column] for column in self.key])

    def together(self, one: Row, other: Row) -> Row:
        """Join two facts of one key."""
        out = list(one)
        for column, join in self.joins:
            if other[column] != one[column]:
                out[column] = join(one[column], other[column])
        return tuple(out)

    def is_there(self, row: Row) -> bool:
        return all(row[column] != bottom for column, bottom in self.bottoms)

    def facts(self, rows: Iterable[Row]) -> dict[Row, Row]:
        """One fact for each key, joined in sorted order."""
        found: dict[Row, Row] = {}
        for row in ordered(rows):
            key = self.key_of(row)
            found[key] = self.together(found[key], row) if key in found else row
        return {key: row for key, row in found.items() if self.is_there(row)}


def joined_by_lattices(relation: Relation, functors: Mapping[str, Functor]) -> Joined | None:
    """How the facts of a relation with lattice columns are joined; None if it has none."""
    if not relation.lattices:
        return None
    columns = {column for column, _ in relation.lattices}
    key = tuple(n for n in range(relation.arity) if n not in columns)
    joins = tuple((column, _lub(functors[lattice.lub])) for column, lattice in relation.lattices)
    bottoms = tuple((c, each.bottom) for c, each in relation.lattices if each.bottom is not None)
    return Joined(relation.name, key, joins, bottoms)


def joined_by_order(relation: Relation, known: BestMap) -> Joined:
    """How the facts of a map to a least or greatest value are joined."""
    better = min if known.op == "min" else max

    def best(one: Any, other: Any) -> Value:
        check_ordered(one, relation.name)
        check_ordered(other, relation.name)
        return better(one, other)  # type: ignore[no-any-return]

    key = tuple(n for n in range(relation.arity) if n != known.column)
    return Joined(relation.name, key, ((known.column, best),))


def _lub(functor: Functor) -> Join:
    return lambda one, other: call_functor(functor, (one, other))

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
from everlog.core.program.program import Functor, Kind, Relation, Row, Value, quoted
from everlog.core.program.values import EvaluationError

Join = Callable[[Any, Any], Value]
_FAR = 2**62  # two values up to here can be added


@frozen
class Joined:
    """How facts of one key become one."""

    relation: str
    key: tuple[int, ...]
    joins: tuple[tuple[int, Join], ...]
    bottoms: tuple[tuple[int, Value], ...] = ()
    checked: Callable[[Row], None] | None = None

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

    def check(self, rows: Iterable[Row]) -> None:
        """Raise an error for a fact that cannot be."""
        if self.checked is not None:
            for row in rows:
                self.checked(row)

    def facts(self, rows: Iterable[Row]) -> dict[Row, Row]:
        """One fact for each key, joined in sorted order, of those that are there."""
        found: dict[Row, Row] = {}
        listed = ordered(rows)
        self.check(listed)
        for row in listed:
            if self.is_there(row):
                key = self.key_of(row)
                found[key] = self.together(found[key], row) if key in found else row
        return found


def joined_by_lattices(relation: Relation, functors: Mapping[str, Functor]) -> Joined | None:
    """How the facts of a relation with lattice columns are joined; None if it has none."""
    if not relation.lattices:
        return None
    columns = {column for column, _ in relation.lattices}
    key = tuple(n for n in range(relation.arity) if n not in columns)
    joins = tuple((column, _lub(functors[lattice.lub])) for column, lattice in relation.lattices)
    bottoms = tuple((c, each.bottom) for c, each in relation.lattices if each.bottom is not None)
    return Joined(relation.name, key, joins, bottoms)


def joined_by_order(relation: Relation, known: BestMap, adds: bool) -> Joined:
    """How the facts of a map to a least or greatest value are joined.

    `adds`: some rule adds its values to each other.  Then a cycle that improves on itself doubles
    the value in each round, and would soon pass the last number.
    """
    least = known.op == "min"
    better: Join = min if least else max
    kind = relation.columns[known.column].kind
    bounded = adds and kind in (Kind.NUMBER, Kind.UNSIGNED)

    def checked(row: Row) -> None:
        value: Any = row[known.column]
        check_ordered(value, relation.name)
        if bounded and (value < -_FAR if least else value > _FAR):
            values = [quoted(v) if isinstance(v, str) else str(v) for v in row]
            values[known.column] = "_"
            shown, word = ", ".join(values), "smaller" if least else "larger"
            raise EvaluationError(
                f"`{relation.name}` has no best value: {relation.name}({shown}) becomes {word} for ever"
            )

    key = tuple(n for n in range(relation.arity) if n != known.column)
    needed = bounded or kind is Kind.FLOAT
    return Joined(relation.name, key, ((known.column, better),), checked=checked if needed else None)


def _lub(functor: Functor) -> Join:
    return lambda one, other: call_functor(functor, (one, other))

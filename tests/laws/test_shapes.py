"""The three shapes of facts mean the same: each of their operations is one on sets of rows."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.core.program import Row
from everlog.core.storage.shape import Shape
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.table_shapes import PairShape, RowShape, ValueShape, shape_of
from everlog.core.storage.tables import Table, TableOf

SHAPES: list[Shape] = [RowShape(0), ValueShape(), PairShape(), PairShape(value=0), RowShape(3)]
NAMES = ["no column", "values", "pairs", "pairs, turned", "rows"]
SIDES = st.integers(min_value=0, max_value=3)


def row_sets(shape: Shape) -> st.SearchStrategy[set[Row]]:
    return st.sets(st.tuples(*[SIDES] * shape.arity), max_size=12)


def every_index(shape: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each way to make some columns the key of an index and some its rest."""
    found = []
    for roles in product("key rest -".split(), repeat=shape.arity):
        key = tuple(column for column, role in enumerate(roles) if role == "key")
        rest = tuple(column for column, role in enumerate(roles) if role == "rest")
        if key or rest:
            found.append((key, rest))
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
@given(data=st.data())
def test_facts_are_sets_of_rows(shape: Shape, data: Any) -> None:
    one, other = data.draw(row_sets(shape)), data.draw(row_sets(shape))
    facts, more = shape.facts_of(one), shape.facts_of(other)
    assert set(shape.rows_of(facts)) == one
    assert list(shape.sorted_rows(facts)) == sorted(one)
    assert shape.size_of(facts) == shape.rough_size(facts) == len(one)
    assert all(shape.has_row(facts, row) is (row in one) for row in one | other)
    assert shape.minus(facts, more) == shape.facts_of(one - other)
    assert shape.only_new(shape.copied(facts), more) == shape.facts_of(one - other)
    both = shape.copied(facts)
    shape.add_facts(both, more)
    for row in other:
        shape.add_row(both, row)
    assert both == shape.facts_of(one | other)
    shape.take_facts(both, more)
    assert both == shape.facts_of(one - other)
    assert (facts, more) == (shape.facts_of(one), shape.facts_of(other)), "arguments stay as they are"
    assert shape.from_columns(iter(shape.columns_of(facts))) == facts


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
@given(data=st.data())
def test_indexes_follow_their_table(shape: Shape, data: Any) -> None:
    first, gone, new = (data.draw(row_sets(shape)) for _ in range(3))
    tables: list[Table] = [TableOf(shape, shape.facts_of(first))]
    if isinstance(shape, PairShape):
        tables.append(SharedTable(shape, shape.facts_of(first)))
    for table in tables:
        for key, rest in every_index(shape):
            table.index(key, rest)
        table.remove(shape.facts_of(gone))
        table.check()
        table.merge(shape.facts_of(new - (first - gone)))
        table.check()
        now = (first - gone) | new
        assert set(table) == set(table.rows()) == now
        assert len(table) == len(now)
        lost, gained = table.difference(shape.facts_of(first))
        assert (set(shape.rows_of(lost)), set(shape.rows_of(gained))) == (first - now, now - first)
        table.restore(iter(table.columns()))
        table.check()
        assert set(table) == now


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
@given(data=st.data())
def test_counted_facts_are_numbers_of_rows(shape: Shape, data: Any) -> None:
    some = st.lists(st.tuples(*[SIDES] * shape.arity), max_size=20)
    came, went = Counter(data.draw(some)), Counter(data.draw(some))
    plus: dict[Any, Any] = {}
    minus: dict[Any, Any] = {}
    for counted, rows in ((plus, came), (minus, went)):
        for row, number in rows.items():
            shape.count_one(counted, row, number)
        assert dict(shape.counted_rows(counted)) == rows
        assert all((shape.get_counted(counted, row) or 0) == rows[row] for row in came | went)
        assert shape.support(counted) == shape.facts_of(rows)
        assert len(shape.repeated(counted)) == sum(number > 1 for number in rows.values())
    taken = shape.take_counted(plus, shape.facts_of(went))
    assert dict(shape.counted_rows(taken)) == {row: number for row, number in came.items() if row in went}
    shape.merge_counted(plus, taken)
    shape.cancel(plus, minus)
    assert dict(shape.counted_rows(plus)) == +(came - went)
    assert dict(shape.counted_rows(minus)) == +(went - came)


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
@given(data=st.data())
def test_the_graph_of_a_function_has_its_arguments(arity: int, data: Any) -> None:
    shape = shape_of(arity)
    whole = data.draw(st.dictionaries(st.tuples(*[SIDES] * (arity - 1)), SIDES, max_size=8))
    function = {argument[0] if arity == 2 else argument: value for argument, value in whole.items()}
    graph = shape.graph_of(function)
    assert set(shape.rows_of(graph)) == {(*argument, value) for argument, value in whole.items()}
    counted: dict[Any, Any] = {}
    for row in shape.rows_of(graph):
        shape.count_one(counted, row, 2)
    assert shape.by_argument(counted) == {argument: {value: 2} for argument, value in function.items()}


def test_shapes_are_equal_by_their_columns() -> None:
    assert shape_of(2, value=0) == PairShape(value=0) != PairShape()
    assert len({shape_of(1), ValueShape(), shape_of(3), RowShape(3), shape_of(2), PairShape()}) == 3

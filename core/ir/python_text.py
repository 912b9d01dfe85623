"""Small pieces of Python text: keys, facts and rows of several expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everlog.core.storage.shape import Columns


def same(one: str, other: str) -> str:
    """The test that two expressions are one value: NaN is, and equals nothing."""
    return f"{one} is {other} or {one} == {other}"


def tuple_text(parts: Iterable[str]) -> str:
    """Several expressions as a tuple.

    >>> tuple_text("ab"), tuple_text("a"), tuple_text("")
    ('(a, b)', '(a,)', '()')
    """
    listed = list(parts)
    return f"({', '.join(listed)}{',' if len(listed) == 1 else ''})"


def key_text(parts: Iterable[str]) -> str:
    """Several expressions as one key: one is bare.

    >>> key_text("ab"), key_text("a"), key_text("")
    ('(a, b)', 'a', '()')
    """
    listed = list(parts)
    return listed[0] if len(listed) == 1 else tuple_text(listed)


def packed(values: Sequence[str], columns: Columns) -> str:
    """The values of some columns, as keys and facts have them: one is bare."""
    return key_text([values[column] for column in columns])

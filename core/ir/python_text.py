"""Small pieces of Python text: keys, facts and rows of several expressions."""

from __future__ import annotations

from collections.abc import Sequence

from everlog.core.storage.shape import Columns


def same(one: str, other: str) -> str:
    """The test that two expressions are one value: NaN is, and equals nothing."""
    return f"{one} is {other} or {one} == {other}"


def tuple_text(parts: Sequence[str]) -> str:
    """
    >>> tuple_text("ab"), tuple_text("a"), tuple_text("")
    ('(a, b)', '(a,)', '()')
    """
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def key_text(parts: Sequence[str]) -> str:
    """Several expressions as one key: one is bare.

    >>> key_text("ab"), key_text("a")
    ('(a, b)', 'a')
    """
    return parts[0] if len(parts) == 1 else tuple_text(parts)


def packed(values: Sequence[str], columns: Columns) -> str:
    """The values of some columns, as keys and facts have them: one is bare."""
    return key_text([values[column] for column in columns])

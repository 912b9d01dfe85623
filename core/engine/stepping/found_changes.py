"""Changes of views: found when somebody reads them, and counted without that where it is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping

from everlog.core.program import Row


class StepIsOver(RuntimeError):
    """A change of a view was read after a later step, or after its trial was over."""

    def __init__(self, relation: str) -> None:
        super().__init__(
            f"the facts of `{relation}` are not stored, so what changed in it can be read until the next step: "
            "copy it before, with `dict(changes[...])`"
        )


class FoundFacts(Collection[Row]):
    """The facts that went, or those that came: each once, in no order.

    `find` begins to find them, `has` tells whether a row is one; both raise `StepIsOver` when it is
    too late.  `number` is how many there are, where that is known.
    """

    def __init__(
        self, find: Callable[[], Iterator[Row]], has: Callable[[Row], bool], number: int | None = None
    ) -> None:
        self._find, self._has, self._number = find, has, number

    def __iter__(self) -> Iterator[Row]:
        return self._find()

    def __len__(self) -> int:
        if self._number is None:
            self._number = sum(1 for _ in self._find())
        return self._number

    def __bool__(self) -> bool:
        return bool(self._number) if self._number is not None else next(self._find(), None) is not None

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self._has(row)


NO_FACTS = FoundFacts(lambda: iter(()), lambda row: False, 0)


class FoundChange(Mapping[Row, int]):
    """fact → +1 or -1, found as it is read.

    >>> rows = {(1,), (2,)}
    >>> change = FoundChange(NO_FACTS, FoundFacts(lambda: iter(rows), rows.__contains__, 2))
    >>> len(change), change[1,], (3,) in change, dict(change)
    (2, 1, False, {(1,): 1, (2,): 1})
    """

    def __init__(self, gone: FoundFacts, new: FoundFacts) -> None:
        self._gone, self._new = gone, new

    def __getitem__(self, row: Row) -> int:
        if row in self._new:
            return 1
        if row in self._gone:
            return -1
        raise KeyError(row)

    def __iter__(self) -> Iterator[Row]:
        yield from self._gone
        yield from self._new

    def __len__(self) -> int:
        return len(self._gone) + len(self._new)

    def items(self) -> ItemsView[Row, int]:
        return _Items(self)

    def signed(self) -> Iterator[tuple[Row, int]]:
        """Each fact with its sign."""
        yield from ((row, -1) for row in self._gone)
        yield from ((row, 1) for row in self._new)

    def __repr__(self) -> str:
        return f"<{len(self)} changes, found as they are read>"


class _Items(ItemsView[Row, int]):
    """The items, without looking each fact up."""

    _mapping: FoundChange

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return self._mapping.signed()

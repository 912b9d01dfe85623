"""The protocol of practical systems: description, updates, atomic rejection.

`ies.running` evaluates the terms of a system of the calculus.  The systems here do the same in
Python, each with the algorithm that its auxiliary relations serve.  Both have one interface:
`insert` and `delete` of one tuple return the changes, `view` and `sizes` show the relations,
`check` asserts the invariants.

A system starts by `load`, with all rows at once.  It reports changes of auxiliary relations only if
the caller asked for them at the start; otherwise it does not record them.

Source: Libkin and Wong, Section 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar, TypeAlias

from attrs import frozen

from everlog.ies.nrc.types import Base, Product, SetOf, columns, inhabits
from everlog.ies.nrc.value_text import fact_text, is_itself, value_text

Row: TypeAlias = tuple[Any, ...]
Changes: TypeAlias = dict[str, tuple[Collection[Row], Collection[Row]]]  # relation → (gone, new), never both empty
Sets: TypeAlias = dict[Any, set[Any]]  # pairs by one of their columns


# ── refusals ─────────────────────────────────────────────────────────────────────────────────


class BadTuple(ValueError):
    """A relation that the system does not have, or a row that does not fit it."""


class NotPermissible(ValueError):
    """An update that the system does not support, such as an edge that closes a cycle."""


def cycle_refused(relation: str, row: Row, route: Iterable[Any]) -> NotPermissible:
    """The error for an edge that would close a cycle.

    `route` leads from the edge's end back to its start.

    >>> print(cycle_refused("edge", (3, 1), [1, 2, 3]))
    edge(3, 1) closes a cycle: 1 → 2 → 3 is there already, and this system is for acyclic graphs
    """
    nodes = " → ".join(map(value_text, route))
    head = fact_text(relation, row)
    if row[0] == row[1]:
        return NotPermissible(f"{head} is a cycle of one edge, and this system is for acyclic graphs")
    return NotPermissible(
        f"{head} closes a cycle: {nodes} is there already, and this system is for acyclic graphs"
    )


# ── descriptions ─────────────────────────────────────────────────────────────────────────────


@frozen
class Kept:
    """A relation of a system: its columns with their types, and its meaning.

    The name of an auxiliary is a suffix: beside an answer `path`, the engine shows `tree` as
    `path.tree`.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[Base, ...]
    meaning: str = ""

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def type(self) -> SetOf:
        return SetOf(self.types[0] if len(self.types) == 1 else Product(self.types))


def kept(name: str, heading: str, meaning: str = "") -> Kept:
    """A relation with its columns as words; columns hold nodes unless marked `:num`.

    >>> relation = kept("number", "x y count:num", "how many paths lead from x to y")
    >>> relation.columns, str(relation.type)
    (('x', 'y', 'count'), '{node * node * num}')
    """
    words = [word.partition(":") for word in heading.split()]
    return Kept(name, tuple(w[0] for w in words), tuple(Base(w[2] or "node") for w in words), meaning)


@frozen(kw_only=True)
class Described:
    """The description of a system, for `ies show` and the planner.

    The attributes have the names of those of a `System`.
    """

    name: str
    title: str
    theorem: str  # or another source
    about: str
    inputs: tuple[Kept, ...]
    answer: Kept
    auxiliaries: tuple[Kept, ...]
    growth: str
    cost: str
    query: str  # Datalog that defines the answer; see `ies.files.datalog`
    acyclic: bool = False  # whether edges that close a cycle are rejected
    exact: bool = True  # whether the answer is certainly right
    exponential: bool = False
    instead: str = ""


# ── collections of rows that nobody may look at ──────────────────────────────────────────────


class Rows(Collection[Row]):
    """Rows that are made lazily; their number is known at once.

    >>> rows = Rows(2, lambda: [(1, 2), (1, 3)])
    >>> len(rows), (1, 3) in rows, sorted(rows)
    (2, True, [(1, 2), (1, 3)])

    Pairs are also available as sets, which cost much less than a tuple each.

    >>> rows.by_key(0), rows.by_key(1)
    ({1: {2, 3}}, {2: {1}, 3: {1}})
    """

    __slots__ = ("_by_key", "_make", "_rows", "_size")

    def __init__(
        self, size: int, make: Callable[[], Iterable[Row]], by_key: Mapping[int, Callable[[], Sets]] | None = None
    ) -> None:
        """`by_key` has, by the column of the key, quicker ways to make sets, for those that there
        are.
        """
        self._size, self._make, self._by_key = size, make, by_key or {}
        self._rows: frozenset[Row] | None = None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Row]:
        return iter(self._make() if self._rows is None else self._rows)

    def __contains__(self, row: object) -> bool:
        if self._rows is None:
            self._rows = frozenset(self._make())
        return row in self._rows

    def by_key(self, key: int) -> Sets:
        """Pairs as {key: values}, keyed by one column; the caller may keep the sets."""
        make = self._by_key.get(key)
        if make is not None:
            return make()
        out: Sets = {}
        for row in self:
            out.setdefault(row[key], set()).add(row[1 - key])
        return out

    def __repr__(self) -> str:
        return f"<{self._size} rows>"


# ── the protocol ─────────────────────────────────────────────────────────────────────────────


class Practical(ABC):
    """A system with its state, which starts empty.

    Each update is rejected before anything changes, or done as a whole.  An insert of a present
    tuple and a delete of an absent one change nothing.
    """

    described: ClassVar[Described]

    def __init__(self, *, track_auxiliaries: bool = False) -> None:
        self.track_auxiliaries = track_auxiliaries
        self.base: dict[str, set[Row]] = {relation.name: set() for relation in self.described.inputs}
        self._types = {relation.name: relation.type.element for relation in self.described.inputs}
        self._load()

    @property
    def system(self) -> Described:
        return self.described

    def load(self, rows: Mapping[str, Iterable[Row]]) -> None:
        """Start over with these rows, all at once; if rejected, the state stays as it was."""
        for name in rows:
            self._known(name)
        base = {name: self._checked_all(name, rows.get(name, ())) for name in self.base}
        self._permit_all(base)
        self.base = base
        self._load()

    def insert(self, relation: str, row: Row) -> Changes:
        """Insert a row; return the lost and new rows of each changed relation."""
        row = self._checked(relation, row)
        rows = self.base[relation]
        if row in rows:
            return {}
        self._permit(relation, row)
        rows.add(row)
        return _net({relation: ((), (row,)), **self._insert(relation, row)})

    def delete(self, relation: str, row: Row) -> Changes:
        """Delete a row; return the lost and new rows of each changed relation."""
        row = self._checked(relation, row)
        rows = self.base[relation]
        if row not in rows:
            return {}
        rows.remove(row)
        return _net({relation: ((row,), ()), **self._delete(relation, row)})

    def track(self) -> None:
        """Report the changes of auxiliary relations from now on, too."""
        self.track_auxiliaries = True

    def anew(self) -> Practical:
        """The same system in its initial state."""
        return type(self)()

    # ── what is to be said of it ─────────────────────────────────────────────────────────────

    @classmethod
    def prospects(cls) -> list[str]:
        """Statements beyond the description, such as the error bound of an answer."""
        return []

    def remarks(self) -> list[str]:
        """The same statements for the current answer."""
        return []

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def view(self, name: str) -> Collection[Row]:
        """The current rows of a relation, in no order.  Lazy: reading them costs."""
        if name in self.base:
            rows = self.base[name]
            return Rows(len(rows), frozenset(rows).__iter__)
        if name == self.described.answer.name or name in {kept.name for kept in self.described.auxiliaries}:
            return self._view(name)
        raise self._unknown(name)

    def sizes(self) -> dict[str, int]:
        """The number of rows of each relation."""
        names = (*self.base, self.described.answer.name, *(a.name for a in self.described.auxiliaries))
        return {name: len(self.view(name)) for name in names}

    @abstractmethod
    def check(self) -> None:
        """Assert the invariants.  Cost: about that of computing the answer from scratch."""

    # ── for each system to say ───────────────────────────────────────────────────────────────

    @abstractmethod
    def _load(self) -> None:
        """Compute the state of the loaded rows."""

    @abstractmethod
    def _insert(self, relation: str, row: Row) -> Changes: ...

    @abstractmethod
    def _delete(self, relation: str, row: Row) -> Changes: ...

    @abstractmethod
    def _view(self, name: str) -> Collection[Row]:
        """The answer or an auxiliary relation."""

    def _permit(self, relation: str, row: Row) -> None:
        """Raise if a new row may not be inserted; by default all may."""
        return

    def _permit_all(self, rows: Mapping[str, Collection[Row]]) -> None:
        """Raise if these rows may not be loaded together; by default all may."""
        return

    # ── rows ─────────────────────────────────────────────────────────────────────────────────

    def _known(self, relation: str) -> None:
        if relation not in self.base:
            raise self._unknown(relation, inputs=True)

    def _unknown(self, name: str, inputs: bool = False) -> BadTuple:
        there = list(self.base)
        if not inputs:
            there += [self.described.answer.name, *(a.name for a in self.described.auxiliaries)]
        what = "an input" if inputs else "a relation"
        return BadTuple(f"{name} is not {what} of {self.described.name}; there is {', '.join(there)}")

    def _checked_all(self, relation: str, rows: Iterable[Row]) -> set[Row]:
        """Like `_checked`, for all rows at once where their types are plain."""
        listed = list(rows)
        arity = len(columns(self._types[relation]))
        plain = set(map(type, listed)) <= {tuple} and set(map(len, listed)) <= {arity}
        if plain and set(map(type, chain.from_iterable(listed))) <= {int, str}:
            return set(listed)
        return {self._checked(relation, row) for row in listed}

    def _checked(self, relation: str, row: Row) -> Row:
        self._known(relation)
        types = columns(self._types[relation])
        fits = isinstance(row, (tuple, list)) and len(row) == len(types) and all(map(inhabits, row, types))
        if not fits:
            raise BadTuple(f"{value_text(row)} is not a row of {relation} : {SetOf(self._types[relation])}")
        if not is_itself(row):
            raise BadTuple(f"{value_text(row)} is not a row of {relation}: systems do not take NaN")
        return tuple(row)


def _net(changes: Changes) -> Changes:
    return {name: change for name, change in changes.items() if change[0] or change[1]}

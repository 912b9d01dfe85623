"""The cells of a hypercube: which rows go to which cells, and their roles there.

Each variable of a join is an axis, hashed into a few shares.  A row of an atom goes to every cell
that agrees with its values.  Atoms of one relation with the same tests share a source, and a row of
it goes to a cell once, with a bit mask of its roles there; atoms with the same rows in every cell
share a role, so that they are one relation for the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from everlog.core.program import Variable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Split: TypeAlias = Mapping[Variable, int]  # axis → number of shares
CELL, MARK = "cell", "mark"


@frozen
class Reading:
    """The source of an atom by number, and a variable for each of its columns."""

    source: int
    variables: tuple[Variable, ...]


@frozen
class Role:
    """Rows of a source in a cell; for each column the axis that must match, or None."""

    source: int
    axes: tuple[Variable | None, ...]

    def share(self, split: Split) -> int:
        """A cell gets one of this many rows of the source."""
        return prod(split[axis] for axis in self.axes if axis is not None)

    def covers(self, other: Role) -> bool:
        """Whether all rows of the other role have this one too."""
        if self.source != other.source:
            return False
        return all(mine in (None, theirs) for mine, theirs in zip(self.axes, other.axes, strict=True))


def role_of(reading: Reading, split: Split) -> Role:
    return Role(reading.source, tuple(v if split.get(v, 1) > 1 else None for v in reading.variables))


def widest(roles: Sequence[Role]) -> list[Role]:
    """The roles without those that another one covers.

    >>> x, y = Variable("x"), Variable("y")
    >>> [role.axes for role in widest([Role(0, (x, y)), Role(0, (None, y)), Role(0, (x, None))])]
    [(None, Variable(name='y')), (Variable(name='x'), None)]
    """
    return [one for one in roles if not any(other.covers(one) for other in roles if other != one)]


# ── shares of each axis ──────────────────────────────────────────────────────────────────────


@frozen
class Load:
    """Rows of a cell: those that are sent to it, and those of all its relations."""

    sent: float
    held: float


def load_of(readings: Sequence[Reading], sizes: Sequence[int], split: Split) -> Load:
    roles = list(dict.fromkeys(role_of(reading, split) for reading in readings))
    sent = 0.0
    for source, size in enumerate(sizes):
        missed = prod(1 - 1 / role.share(split) for role in widest([r for r in roles if r.source == source]))
        sent += size * (1 - missed)
    return Load(sent, sum(sizes[role.source] / role.share(split) for role in roles))


def best_split(readings: Sequence[Reading], sizes: Sequence[int], cells: int, load: int) -> dict[Variable, int]:
    """The shares of each join variable, for `cells` cells or more within the load.

    >>> x, y, z = map(Variable, "xyz")
    >>> triangle = [Reading(0, (x, y)), Reading(1, (y, z)), Reading(2, (x, z))]
    >>> sorted(best_split(triangle, [1000, 1000, 1000], 8, 10_000).values())
    [2, 2, 2]
    >>> best_split(triangle, [10, 1000, 1000], 4, 10_000)[z]
    4
    """
    common = list(dict.fromkeys(v for reading in readings for v in reading.variables))
    common = [v for v in common if sum(v in reading.variables for reading in readings) > 1]
    while True:
        loads = []
        for shares in _factors(cells, len(common)):
            split = dict(zip(common, shares, strict=True))
            loads.append((load_of(readings, sizes, split), split))
        least, best = min(loads, key=lambda one: one[0].sent + one[0].held)
        if least.held <= load or cells >= 4096:
            return best
        cells *= 2


def _factors(number: int, places: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a product of some factors.

    >>> list(_factors(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if places == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for others in _factors(number // first, places - 1):
                yield first, *others


# ── rows to cells ────────────────────────────────────────────────────────────────────────────


def in_cells(frame: DataFrame, roles: Sequence[Role], bits: Mapping[Role, int], split: Split) -> DataFrame:
    """The rows of a source with their cells, and their marks there."""
    from pyspark.sql import functions as F

    names = frame.columns
    axes = [axis for axis, share in split.items() if share > 1]
    strides = {axis: prod(split[other] for other in axes[:n]) for n, axis in enumerate(axes)}
    places: dict[tuple[int, Variable], str] = {}
    for role in roles:
        for position, axis in enumerate(role.axes):
            if axis is not None:
                places[position, axis] = f"place{position}_{strides[axis]}"
    hashed = []
    for (position, axis), name in places.items():
        value = F.xxhash64(F.lit(axes.index(axis)), F.col(names[position]))
        hashed.append(F.pmod(value, F.lit(split[axis])).cast("int").alias(name))

    def cells(role: Role) -> Column:
        """The cells of a role: one along each of its axes, all along the others."""
        fixed, own = F.lit(0), set(role.axes)
        for position, axis in enumerate(role.axes):
            if axis is not None:
                fixed = fixed + F.col(places[position, axis]) * F.lit(strides[axis])
        free = [0]
        for axis in axes:
            if axis not in own:
                free = [cell + strides[axis] * step for step in range(split[axis]) for cell in free]
        if own == {None}:
            return F.array(*map(F.lit, free))
        return F.transform(F.array(*map(F.lit, free)), lambda one: one + fixed)

    def holds(role: Role) -> Column:
        agree = F.lit(True)
        for position, axis in enumerate(role.axes):
            if axis is not None:
                along = F.floor(F.col(CELL) / F.lit(strides[axis])) % F.lit(split[axis])
                agree = agree & (along == F.col(places[position, axis]))
        return agree

    wide = widest(roles)
    every = cells(wide[0]) if len(wide) == 1 else F.array_distinct(F.concat(*map(cells, wide)))
    placed = frame.select("*", *hashed).select("*", F.explode(every).alias(CELL))
    mark = F.lit(0)
    for role in roles:
        bit = F.lit(1 << bits[role])
        mark = mark + (bit if wide == [role] else F.when(holds(role), bit).otherwise(F.lit(0)))
    codes = F.array(*map(F.lit, even_codes(prod(split.values()))))
    return placed.select(*names, F.get(codes, F.col(CELL)).alias(CELL), mark.alias(MARK))


# ── one cell per partition ───────────────────────────────────────────────────────────────────


def even_codes(cells: int) -> list[int]:
    """A number for each cell, such that Spark's hash puts each into its own partition.

    >>> sorted(murmur3(code) % 5 for code in even_codes(5))
    [0, 1, 2, 3, 4]
    """
    codes: dict[int, int] = {}
    code = 0
    while len(codes) < cells:
        codes.setdefault(murmur3(code) % cells, code)
        code += 1
    return [codes[cell] for cell in range(cells)]


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int column, which determines its partition.

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """

    def turned(number: int, by: int) -> int:
        number &= 0xFFFFFFFF
        return (number << by | number >> 32 - by) & 0xFFFFFFFF

    mixed = turned(value * 0xCC9E2D51, 15) * 0x1B873593 & 0xFFFFFFFF
    hashed = (turned(seed ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    hashed ^= hashed >> 16
    return hashed - (hashed >> 31 << 32)

"""Matrices over Z_p, p = 2³¹ − 1, under rank-one changes; sparse or dense.

Sparse matrices are dictionaries, dense ones numpy arrays.  The matrix is M = (I − A)⁻¹ − I, the sum
of all Aᵏ with k ≥ 1, for two weightings of one graph: each entry is two numbers modulo p.  A pair
is *present* if one of its numbers is not zero.  An edge u → v of weight w changes both M and (I −
A)⁻¹ = M + I by

    w·(M + I)[x, u]·(M + I)[v, y] / (1 − w·(M + I)[v, u])    (Sherman-Morrison; a delete has −w)

so a change touches only rows of nodes that reach u, and columns of nodes that v reaches; pairs that
appear or disappear are there.

With a Mersenne prime a product of two numbers fits 64 bits, and x mod p is (x & p) + (x >> 31),
twice: numpy does that without a division.  Blocks of rows fit the processor's cache.

Source: Sankowski, FOCS 2004.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

P = 2**31 - 1
FIELDS = 2
BLOCK = 1 << 15  # entries per block
PANEL = 128  # columns eliminated at a time

Scales: TypeAlias = Sequence[int]  # one number per weighting
Entry: TypeAlias = tuple[int, ...]
Flips: TypeAlias = "Found"


class Found:
    """Pairs of numbers, as blocks.

    A block has rows, columns, and a mask of places (None: rows and columns are paired).
    """

    __slots__ = ("blocks", "size")

    def __init__(self) -> None:
        self.blocks: list[tuple[Any, Any, Any]] = []
        self.size = 0

    def add(self, xs: Any, ys: Any, mask: Any, size: int) -> None:
        if size:
            self.blocks.append((xs, ys, mask))
            self.size += size

    def by_key(self, key: int, names: Sequence[Any]) -> dict[Any, set[Any]]:
        """By row (0) or by column (1), the names of what it is paired with."""
        out: dict[Any, set[Any]] = {}
        for xs, ys, mask in self._strips():
            if mask is None:
                for pair in zip(xs, ys, strict=True):
                    out.setdefault(names[pair[key]], set()).add(names[pair[1 - key]])
                continue
            keys, others, places = (xs, ys, mask) if key == 0 else (ys, xs, mask.T)
            named = numpy_or_none().empty(max(len(names), int(others.max()) + 1), object)  # arrays have spare room
            named[: len(names)] = names
            named = named[others]
            for number, row in zip(keys.tolist(), places, strict=True):
                found = named[row]
                if len(found):
                    out.setdefault(names[number], set()).update(found.tolist())
        return out

    def _strips(self) -> list[tuple[Any, Any, Any]]:
        """The blocks, with those of one change (the same columns) merged."""
        blocks = self.blocks
        if len(blocks) < 2 or any(ys is not blocks[0][1] or mask is None for _, ys, mask in blocks):
            return blocks
        joined = numpy_or_none().concatenate
        return [(joined([xs for xs, _, _ in blocks]), blocks[0][1], joined([mask for _, _, mask in blocks]))]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for xs, ys, mask in self.blocks:
            if mask is None:
                yield from zip(xs, ys, strict=True)
            else:
                x, y = mask.nonzero()
                yield from zip(xs[x].tolist(), ys[y].tolist(), strict=True)


def numpy_or_none() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


class Matrix(Protocol):
    """The interface of both forms; `size` is the number of present pairs."""

    size: int

    def entry(self, x: int, y: int) -> Entry: ...

    def change(self, u: int, v: int, scales: Scales) -> tuple[Flips, Flips]:
        """Add scale·(M + I)[x, u]·(M + I)[v, y] to all entries; return lost and new pairs."""
        ...

    def entries(self) -> Iterator[tuple[int, int, Entry]]:
        """The present entries."""
        ...

    def pairs(self) -> Flips:
        """The present pairs, without values."""
        ...

    def touched(self, u: int, v: int) -> int:
        """The number of entries that a change at u, v touches; 0 if it does not matter."""
        ...

    def changes_in(self, u: int, v: int) -> tuple[set[int], set[int]]:
        """The rows and columns that a change at u, v touches."""
        ...


class SparseMatrix:
    """Rows as dictionaries, with the set of rows of each column.

    Cost of a change: rows times columns that it touches.
    """

    def __init__(self) -> None:
        self.rows: dict[int, dict[int, Entry]] = {}
        self.columns: dict[int, set[int]] = {}
        self.size = 0

    def entry(self, x: int, y: int) -> Entry:
        return self.rows.get(x, {}).get(y, (0, 0))

    def change(self, u: int, v: int, scales: Scales) -> tuple[Flips, Flips]:
        gone: tuple[list[int], list[int]] = ([], [])
        new: tuple[list[int], list[int]] = ([], [])
        changed = Found(), Found()
        first, second = scales
        row = dict(self.rows.get(v, {}))
        a, b = row.get(v, (0, 0))
        row[v] = (a + 1) % P, (b + 1) % P
        column = {x: self.rows[x][u] for x in self.columns.get(u, ())}
        a, b = column.get(u, (0, 0))
        column[u] = (a + 1) % P, (b + 1) % P
        for x, (c, d) in column.items():
            c, d = c * first % P, d * second % P
            held = self.rows.setdefault(x, {})
            get = held.get
            for y, (a, b) in row.items():
                old = get(y)
                if old is None:
                    now = c * a % P, d * b % P
                else:
                    now = (old[0] + c * a) % P, (old[1] + d * b) % P
                if now != (0, 0):
                    held[y] = now
                    if old is None:
                        self.columns.setdefault(y, set()).add(x)
                        new[0].append(x)
                        new[1].append(y)
                elif old is not None:
                    del held[y]
                    self.columns[y].remove(x)
                    gone[0].append(x)
                    gone[1].append(y)
        for found, lists in zip(changed, (gone, new), strict=True):
            found.add(*lists, None, len(lists[0]))
        self.size += changed[1].size - changed[0].size
        return changed

    def touched(self, u: int, v: int) -> int:
        return (1 + len(self.columns.get(u, ()))) * (1 + len(self.rows.get(v, ())))

    def changes_in(self, u: int, v: int) -> tuple[set[int], set[int]]:
        return {u, *self.columns.get(u, ())}, {v, *self.rows.get(v, ())}

    def entries(self) -> Iterator[tuple[int, int, Entry]]:
        for x, row in self.rows.items():
            for y, entry in row.items():
                yield x, y, entry

    def pairs(self) -> Flips:
        pairs = [(x, y) for x, row in self.rows.items() for y in row]
        out = Found()
        out.add([x for x, _ in pairs], [y for _, y in pairs], None, len(pairs))
        return out


class DenseMatrix:
    """Two square arrays of 32-bit numbers.

    Cost of a change: rows times columns that it touches, some 10 nanoseconds for each.
    """

    def __init__(self, np: Any, capacity: int) -> None:
        self.np = np
        self.data = np.zeros((FIELDS, capacity, capacity), np.uint32)
        self.size = 0

    @property
    def capacity(self) -> int:
        return int(self.data.shape[1])

    def entry(self, x: int, y: int) -> Entry:
        return tuple(map(int, self.data[:, x, y]))

    def change(self, u: int, v: int, scales: Scales) -> tuple[Flips, Flips]:
        np, data = self.np, self.data
        columns = data[:, :, u].astype(np.uint64)
        columns[:, u] += np.uint64(1)
        rows = data[:, v, :].astype(np.uint64)
        rows[:, v] += np.uint64(1)
        columns %= np.uint64(P)
        rows %= np.uint64(P)
        columns = columns * np.array(scales, np.uint64)[:, None] % np.uint64(P)
        xs = np.flatnonzero(columns.any(axis=0))
        ys = np.flatnonzero(rows.any(axis=0))
        if 4 * len(ys) > 3 * self.capacity:
            ys = np.arange(self.capacity)  # copying whole rows is faster then
        changed = Found(), Found()
        step = max(1, BLOCK // max(1, len(ys)))
        for start in range(0, len(xs), step):
            self._change_block(xs[start : start + step], ys, columns, rows, changed)
        self.size += changed[1].size - changed[0].size
        return changed

    def _change_block(self, xs: Any, ys: Any, columns: Any, rows: Any, changed: tuple[Found, Found]) -> None:
        np, whole = self.np, len(ys) == self.capacity
        there: list[Any] = [None, None]  # presence before and after
        for data, column, row in zip(self.data, columns, rows, strict=True):
            place: Any = xs if whole else np.ix_(xs, ys)
            old = data[place]
            now = column[xs, None] * (row if whole else row[ys])
            now += old
            now = _reduced(now).astype(np.uint32)
            data[place] = now
            there = [now_ if was is None else was | now_ for was, now_ in zip(there, (old, now), strict=True)]
        was, is_ = there[0] != 0, there[1] != 0
        flips = was ^ is_
        if flips.any():
            for found, side in zip(changed, (was, is_), strict=True):
                side &= flips
                found.add(xs, ys, side, int(np.count_nonzero(side)))

    def touched(self, u: int, v: int) -> int:
        return 0

    def changes_in(self, u: int, v: int) -> tuple[set[int], set[int]]:
        np = self.np
        xs, ys = np.flatnonzero(self.data[:, :, u].any(axis=0)), np.flatnonzero(self.data[:, v, :].any(axis=0))
        return {u, *xs.tolist()}, {v, *ys.tolist()}

    def entries(self) -> Iterator[tuple[int, int, Entry]]:
        xs, ys = self.np.nonzero(self.data[0] | self.data[1])
        first, second = self.data[0, xs, ys], self.data[1, xs, ys]
        for x, y, a, b in zip(xs.tolist(), ys.tolist(), first.tolist(), second.tolist(), strict=True):
            yield x, y, (a, b)

    def pairs(self) -> Flips:
        numbers, mask = self.np.arange(self.capacity), (self.data[0] | self.data[1]) != 0
        out = Found()
        out.add(numbers, numbers, mask, self.size)
        return out

    def grown(self, capacity: int) -> DenseMatrix:
        """The same in larger arrays."""
        out = DenseMatrix(self.np, capacity)
        out.data[:, : self.capacity, : self.capacity] = self.data
        out.size = self.size
        return out


def dense_of(np: Any, matrix: Matrix, capacity: int) -> DenseMatrix:
    out = DenseMatrix(np, capacity)
    found = np.array([(x, y, *entry) for x, y, entry in matrix.entries()], np.int64).reshape(-1, 2 + FIELDS)
    out.data[:, found[:, 0], found[:, 1]] = found[:, 2:].T
    out.size = matrix.size
    return out


def sparse_of(matrix: Matrix) -> SparseMatrix:
    out = SparseMatrix()
    for x, y, entry in matrix.entries():
        out.rows.setdefault(x, {})[y] = entry
        out.columns.setdefault(y, set()).add(x)
    out.size = matrix.size
    return out


def _reduced(values: Any) -> Any:
    """Reduce numbers of up to 62 bits, signed or not, modulo p, in place.

    2³¹ is 1, so upper bits are added.
    """
    p, shift = values.dtype.type(P), values.dtype.type(31)
    for _ in range(2):
        high = values >> shift
        values &= p
        values += high
    values[values == p] = 0
    return values


def inverse(
    np: Any, capacity: int, edges: Sequence[tuple[int, int]], weights: Sequence[Scales]
) -> DenseMatrix | None:
    """M of a graph, by elimination in panels of columns; None if a pivot is zero.

    The caller then draws other weights.  Rows are not exchanged: with random weights, a pivot is
    zero with probability about 1/p.
    """
    out = DenseMatrix(np, capacity)
    xs = np.array([x for x, _ in edges], np.int64)
    ys = np.array([y for _, y in edges], np.int64)
    for k in range(FIELDS):
        values = np.zeros((capacity, capacity), np.int64)
        values[np.arange(capacity), np.arange(capacity)] = 1
        values[xs, ys] -= np.array([w[k] for w in weights], np.int64)
        values %= P
        if not _invert(np, values):
            return None
        values[np.arange(capacity), np.arange(capacity)] -= 1
        out.data[k] = values % P
    out.size = int(np.count_nonzero(out.data[0] | out.data[1]))
    return out


def _invert(np: Any, matrix: Any) -> bool:
    """Invert in place, one panel of columns after the other (Gauss-Jordan)."""
    n = len(matrix)
    for start in range(0, n, PANEL):
        panel = slice(start, min(n, start + PANEL))
        pivot = matrix[panel, panel].copy()
        if not _invert_small(np, pivot):
            return False
        left = matrix[:, panel].copy()
        left[panel] = 0
        here = _reduced(_product(np, pivot, matrix[panel]))
        here[:, panel] = pivot
        matrix[:, panel] = 0
        rows = np.flatnonzero(left.any(axis=1))
        columns = np.flatnonzero(here.any(axis=0))
        if len(rows):
            place = np.ix_(rows, columns)
            matrix[place] = _reduced(matrix[place] - _product(np, left[rows], here[:, columns]))
        matrix[panel] = here
    return True


def _invert_small(np: Any, matrix: Any) -> bool:
    for i in range(len(matrix)):
        value = int(matrix[i, i])
        if not value:
            return False
        back = pow(value, -1, P)
        row = matrix[i] * back % P
        row[i] = back
        column = matrix[:, i].copy()
        column[i] = 0
        matrix[:, i] = 0
        matrix -= column[:, None] * row
        _reduced(matrix)
        matrix[i] = row
    return True


def _product(np: Any, left: Any, right: Any) -> Any:
    """A product modulo p, not yet reduced: numbers of up to 57 bits.

    By halves of 16 bits in floating point, where sums of PANEL products are exact; three products
    instead of four.
    """
    mask = (1 << 16) - 1
    a1, a0 = (left >> 16).astype(np.float64), (left & mask).astype(np.float64)
    b1, b0 = (right >> 16).astype(np.float64), (right & mask).astype(np.float64)
    high, low = a1 @ b1, a0 @ b0
    a1 += a0
    b1 += b0
    cross = a1 @ b1
    cross -= high
    cross -= low
    out = cross.astype(np.int64)
    out <<= 16
    high *= 2  # 2³² is 2
    high += low
    out += high.astype(np.int64)
    return out

"""A system inside the engine, under the names of the program.

`ies.rule_shapes` finds the mapping of names and columns.  Two shapes need more.  A program may
define same generation without nodes that have no parent, or without pairs (x, x): then such pairs
of the system's answer are passed on only while an edge leads to x, or not at all.  Alternating
paths are written with a second relation, which goes through the successors of a universal node one
by one; the adapter computes it from the answer.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, TypeAlias

from everlog.core.engine.planning.systems import Maintained, Refused, RowChanges
from everlog.core.program import Row, quoted
from everlog.core.program.values import SIGNED_MAX
from everlog.ies import registry
from everlog.ies.known_shapes import ALL, ALTERNATING, BELOW, CLOSURE, SAME_GENERATION, diagonal
from everlog.ies.nrc.types import NUM
from everlog.ies.practical.protocol import Rows
from everlog.ies.rule_shapes import Columns, Relations

Adapter: TypeAlias = Callable[[str, int, Relations, int], Maintained]


class Adapted:
    """A system under the names of a program.

    `parts` maps the shape's relations to the program's.
    """

    answer = ""

    def __init__(self, system: str, variant: int, parts: Relations, limit: int) -> None:
        self._system, self._tracked = registry.running(system, limit), False
        self._name, self.variant = system, variant
        self._parts = {relation: (name, columns) for name, (relation, columns) in parts.items()}
        self._back = {name: (relation, _inverse(columns)) for name, (relation, columns) in parts.items()}
        flat = [kept for kept in registry.entry(system).kept if kept.flat]
        self._auxiliaries = {f"{parts[self.answer][0]}.{kept.name}": kept.name for kept in flat}
        self._bounds = {kept.name: _bounds(kept) for kept in flat}

    # ── the protocol of core.engine.planning.systems
    # ──────────────────────────────────────────────────

    def load(self, rows: Mapping[str, Iterable[Row]]) -> None:
        base = {
            name: _moved(columns, rows[relation])
            for relation, (name, columns) in self._parts.items()
            if relation in rows
        }
        try:
            self._system.load(base)
        except ValueError as error:
            raise Refused(f"{self._name} cannot keep these facts: {error}") from error
        self._loaded(base)

    def change(self, relation: str, row: Row, insert: bool) -> RowChanges:
        name, columns = self._parts[relation]
        moved = tuple(row[c] for c in columns)
        try:
            found = (self._system.insert if insert else self._system.delete)(name, moved)
        except ValueError as error:
            raise Refused(f"{_shown(relation, row)} is refused by {self._name}: {error}") from error
        out: dict[str, tuple[Collection[Row], Collection[Row]]] = {}
        for part, (gone, new) in self._seen(name, moved, insert, found).items():
            there, back = self._back[part]
            out[there] = _moved(back, gone), _moved(back, new)
        if self._tracked:
            for there, own in self._auxiliaries.items():
                if own in found:
                    gone, new = found[own]
                    out[there] = list(map(self._bounds[own], gone)), list(map(self._bounds[own], new))
        return out

    def rows(self, relation: str) -> Iterable[Row]:
        if relation in self._auxiliaries:
            if not self._tracked:
                self._tracked = True
                self._system.track()
            own = self._auxiliaries[relation]
            return map(self._bounds[own], self._system.view(own))
        if relation not in self._parts:
            return ()  # a relation of another system: the program names it, but a setting overrules that
        name, columns = self._parts[relation]
        return _moved(_inverse(columns), self._view(name))

    def check(self) -> None:
        self._system.check()

    # ── for shapes that ask for more ─────────────────────────────────────────────────────────

    def _loaded(self, base: Mapping[str, Collection[Row]]) -> None: ...

    def _seen(self, relation: str, row: Row, insert: bool, found: RowChanges) -> RowChanges:
        """The changes of the shape's derived relations."""
        return {self.answer: found[self.answer]} if self.answer in found else {}

    def _view(self, name: str) -> Iterable[Row]:
        found: Iterable[Row] = self._system.view(name)
        return found


class Closure(Adapted):
    answer = "path"


class SameGeneration(Adapted):
    """Same generation.

    Invariant: `_below` has the number of edges to each node.
    """

    answer = "sg"

    def _loaded(self, base: Mapping[str, Collection[Row]]) -> None:
        self._below = Counter(y for _, y in base["edge"])

    def _seen(self, relation: str, row: Row, insert: bool, found: RowChanges) -> RowChanges:
        if diagonal(self.variant) == ALL or relation not in found:
            return super()._seen(relation, row, insert, found)
        gone, new = (set(rows) for rows in found.get("sg", ((), ())))
        gone, new = {r for r in gone if r[0] != r[1]}, {r for r in new if r[0] != r[1]}
        node = row[1]
        self._below[node] += 1 if insert else -1
        if self._below[node] == (1 if insert else 0) and diagonal(self.variant) == BELOW:
            (new if insert else gone).add((node, node))
        return {"sg": (gone, new)}

    def _view(self, name: str) -> Iterable[Row]:
        rows = super()._view(name)
        if diagonal(self.variant) == ALL:
            return rows
        below = self._below if diagonal(self.variant) == BELOW else {}
        return (row for row in rows if row[0] != row[1] or below.get(row[0]))


class AlternatingPaths(Adapted):
    """Alternating paths.

    Invariant: `_chains[x, y]` are the first successors of a universal x, in order, up to the first
    without an alternating path to y; empty chains are left out.
    """

    answer = "apath"

    def _loaded(self, base: Mapping[str, Collection[Row]]) -> None:
        self._after: dict[Any, list[Any]] = {}
        self._before: dict[Any, set[Any]] = {}
        self._reached: dict[Any, set[Any]] = {}
        self._chains: dict[Row, tuple[Any, ...]] = {}
        self._universal = {x for (x,) in base["universal"]}
        for x, z in base["edge"]:
            self._connect(x, z)
        for x, y in self._system.view("apath"):
            self._reached.setdefault(x, set()).add(y)
        self._follow({pair for x in self._universal for pair in self._pairs(x)})

    def _connect(self, x: Any, z: Any) -> None:
        insort(self._after.setdefault(x, []), z)
        self._before.setdefault(z, set()).add(x)

    def _pairs(self, x: Any) -> set[Row]:
        """The targets to which a chain of x may lead: those of its first successor."""
        first = self._after.get(x, ())[:1]
        return {(x, y) for z in first for y in self._reached.get(z, ())}

    def _seen(self, relation: str, row: Row, insert: bool, found: RowChanges) -> RowChanges:
        out = super()._seen(relation, row, insert, found)
        gone, new = found.get("apath", ((), ()))
        x = row[0]
        touched: set[Row] = {pair for pair in self._chains if pair[0] == x} if relation in found else set()
        if relation not in found:
            pass
        elif relation == "universal":
            (self._universal.add if insert else self._universal.discard)(x)
        elif insert:
            self._connect(x, row[1])
        else:
            self._after[x].remove(row[1])
            self._before[row[1]].discard(x)
        for a, y in gone:
            self._reached[a].discard(y)
        for a, y in new:
            self._reached.setdefault(a, set()).add(y)
        touched |= {(w, y) for a, y in (*gone, *new) for w in self._before.get(a, ())} | self._pairs(x)
        upto = self._follow(touched)
        return {**out, "upto": upto} if any(upto) else out

    def _follow(self, pairs: Collection[Row]) -> tuple[set[Row], set[Row]]:
        """Go through the successors again; return the lost and the new facts."""
        gone: set[Row] = set()
        new: set[Row] = set()
        for x, y in pairs:
            before = self._chains.pop((x, y), ())
            after = self._after.get(x, ()) if x in self._universal else ()
            now = tuple(takewhile(lambda z, y=y: y in self._reached.get(z, ()), after))  # type: ignore[misc]
            if now:
                self._chains[x, y] = now
            gone.update((x, z, y) for z in before if z not in now)
            new.update((x, z, y) for z in now if z not in before)
        return gone, new

    def _view(self, name: str) -> Iterable[Row]:
        if name == "upto":
            return [(x, z, y) for (x, y), chain in self._chains.items() for z in chain]
        return super()._view(name)


class Turned(Collection[Row]):
    """Pairs with their columns exchanged.

    >>> list(Turned(Rows(1, lambda: [(1, 2)]))), Turned(Rows(1, lambda: [(1, 2)])).by_key(0)
    ([(2, 1)], {2: {1}})
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return ((y, x) for x, y in self._rows)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and row[::-1] in self._rows

    def by_key(self, key: int) -> dict[Any, set[Any]]:
        return self._rows.by_key(1 - key)


def _moved(columns: Columns, rows: Iterable[Row]) -> Collection[Row]:
    """Rows with their columns in another order."""
    if columns == tuple(range(len(columns))):
        return rows if isinstance(rows, Collection) else list(rows)
    if isinstance(rows, Rows):
        return Turned(rows)
    return [tuple(row[c] for c in columns) for row in rows]


def _bounds(kept: registry.Auxiliary) -> Callable[[Row], Row]:
    """Cap the counts of a relation at the largest number that it can store.

    Counts are exact inside a system.
    """
    counts = [type_ == NUM for type_ in kept.types]
    if not any(counts):
        return lambda row: row
    return lambda row: tuple(min(v, SIGNED_MAX) if count else v for v, count in zip(row, counts, strict=True))


def _shown(relation: str, row: Row) -> str:
    return f"{relation}({', '.join(quoted(v) if isinstance(v, str) else str(v) for v in row)})"


def _inverse(columns: Columns) -> Columns:
    """The inverse of a permutation of columns.

    >>> _inverse((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(columns.index(c) for c in range(len(columns)))


ADAPTERS: Mapping[str, Adapter] = {
    CLOSURE: Closure,
    SAME_GENERATION: SameGeneration,
    ALTERNATING: AlternatingPaths,
}

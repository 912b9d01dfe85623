"""Heavy and light values (IVM^ε): a view tree for each class of values by their degree.

A value is *heavy* when it has many rows in some atom: there are few such values.  A light value has
few rows.  Each variable that is split has bands of degrees, an answer belongs to one class of
bands, and each class has a variable order that is quick for it (`splits` finds both).  A row is in
the trees of all classes that its own values allow.

Thresholds are powers of D, the size of the database.  They have slack: a value rises at 3/2 of a
threshold and falls at 1/2 of it, so the updates between pay for moving its rows.  D is taken anew
when the size has doubled or halved.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang, "Maintaining triangle queries under updates", TODS
45(3), 2020.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby
from operator import itemgetter

from attrs import define, field, frozen

from everlog.core.joins.order_costs import UNIT, WHOLE, canonical
from everlog.core.joins.splits import classes_of, splits_of
from everlog.core.joins.view import Asked, CannotServe, CountedView, Weighted
from everlog.core.joins.view_tree import ViewTree
from everlog.core.program import Row, Value

NO_SPLITS = "no splits by heavy and light values are found for its join"
SMALLEST = 16  # the least D


@define(eq=False)
class Side:
    """The rows of one atom by the values of a variable that is split."""

    atom: int
    column: int
    rows: dict[Value, set[Row]] = field(factory=dict)

    def extend(self, rows: Iterable[Row]) -> None:
        known = self.rows
        for value, new in groupby(rows, itemgetter(self.column)):
            together = known.get(value)
            if together is None:
                known[value] = set(new)
            else:
                together.update(new)

    def add(self, row: Row) -> int:
        """Add a row; returns how many its value has now."""
        value = row[self.column]
        rows = self.rows.get(value)
        if rows is None:
            rows = self.rows[value] = set()
        rows.add(row)
        return len(rows)

    def remove(self, row: Row) -> int:
        """Remove a row; returns how many its value has left."""
        value = row[self.column]
        rows = self.rows[value]
        rows.remove(row)
        if not rows:
            del self.rows[value]
        return len(rows)


@define(eq=False)
class SplitVariable:
    """A variable whose values have levels: how many thresholds their degree has passed.

    Invariant: a value of level ℓ has at least half the ℓ-th threshold of rows in some atom, and
    less than 3/2 of the next one in every atom.
    """

    sides: list[Side]
    levels: dict[Value, int] = field(factory=dict)  # without those of level 0
    rises: list[float] = field(factory=list)  # by level: from how many rows on a value rises
    falls: list[float] = field(factory=list)  # and below how many it falls

    def due(self, value: Value) -> int:
        """The level that a value should have: the present one, or one next to it."""
        level = self.levels.get(value, 0)
        degree = max(len(side.rows.get(value, ())) for side in self.sides)
        return level + 1 if degree >= self.rises[level] else level - 1 if degree < self.falls[level] else level

    def put(self, value: Value, level: int) -> None:
        if level:
            self.levels[value] = level
        else:
            self.levels.pop(value, None)

    def choose(self, thresholds: list[int]) -> None:
        """Choose all levels again, for these thresholds."""
        self.rises = [*(3 * threshold / 2 for threshold in thresholds), float("inf")]
        self.falls = [0.0, *(threshold / 2 for threshold in thresholds)]
        self.levels = {}
        for side in self.sides:
            for value, rows in side.rows.items():
                level = sum(len(rows) >= threshold for threshold in thresholds)
                if level > self.levels.get(value, 0):
                    self.levels[value] = level


@frozen(eq=False)
class ClassTree:
    """The view tree of one class, and the levels that it allows for each variable that is split."""

    allowed: Mapping[str, range]
    tree: ViewTree


class HeavyLight(CountedView):
    """Invariants:
    I1  levels are as `SplitVariable` says;
    I2  a row is in the tree of a class exactly if the levels of its values are allowed there.
    """

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        query = canonical(asked.query)
        splits = splits_of(query)
        if splits is None:
            raise CannotServe(NO_SPLITS)
        classes = classes_of(query)
        names = dict(zip(asked.query.variables, query.variables, strict=True))
        kept, summed = (tuple(names[v] for v in variables) for variables in (asked.kept, asked.summed))
        inner = Asked(query, kept, (), asked.counting, summed=summed, number=asked.number)
        edges = (0, *splits.cuts, UNIT)
        self.cuts = splits.cuts
        self.classes = [
            ClassTree(
                {v: range(edges.index(low), edges.index(high)) for v, (low, high) in one.bands.items()},
                ViewTree(inner, one.order),
            )
            for one in classes
        ]
        self.held: list[set[Row]] = [set() for _ in query.atoms]
        split = [v for v in splits.variables if any(one.bands[v] != WHOLE for one in classes)]
        self.split = {
            v: SplitVariable(
                [Side(n, atom.variables.index(v)) for n, atom in enumerate(query.atoms) if v in atom.variables]
            )
            for v in split
        }
        self._names = [[v for v in split if v in atom.variables] for atom in query.atoms]
        self._split_of = [
            [(self.split[v], side) for v in names for side in self.split[v].sides if side.atom == n]
            for n, names in enumerate(self._names)
        ]
        self._trees_of: list[dict[tuple[int, ...], list[ViewTree]]] = [{} for _ in query.atoms]
        self._last: Row | None = None  # the last row that was looked up, of which atom, and its trees
        self._last_atom, self._last_trees = 0, list[ViewTree]()
        self.load({})

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        """Load many rows at once: levels are chosen by the final sizes."""
        for atom, given in rows.items():
            new = list(dict.fromkeys(given))
            if self.held[atom]:
                new = [row for row in new if row not in self.held[atom]]
            self.held[atom].update(new)
            for _, side in self._split_of[atom]:
                side.extend(new)
        self.size = sum(map(len, self.held))
        self.base = max(SMALLEST, self.size)
        self.thresholds = [max(2, round(self.base ** (cut / UNIT))) for cut in self.cuts]
        for variable in self.split.values():
            variable.choose(self.thresholds)
        self._last = None
        parts: dict[ViewTree, dict[int, list[Row]]] = {one.tree: {} for one in self.classes}
        for atom in range(len(self.held)):
            for levels, together in self._by_levels(atom).items():
                for tree in self._trees_at(atom, levels):
                    parts[tree].setdefault(atom, []).extend(together)
        for tree, loaded in parts.items():
            tree.load(loaded)

    def _by_levels(self, atom: int) -> dict[tuple[int, ...], list[Row]]:
        """The rows of an atom by the levels of their values.

        Cost: of an atom with one variable that is split, no Python code runs per row.
        """
        found: dict[tuple[int, ...], list[Row]] = {}
        if len(self._split_of[atom]) == 1:
            ((variable, side),) = self._split_of[atom]
            for value, rows in side.rows.items():
                found.setdefault((variable.levels.get(value, 0),), []).extend(rows)
        else:
            for row in self.held[atom]:
                found.setdefault(self._levels(atom, row), []).append(row)
        return found

    def _levels(self, atom: int, row: Row) -> tuple[int, ...]:
        return tuple([variable.levels.get(row[side.column], 0) for variable, side in self._split_of[atom]])

    def _trees(self, atom: int, row: Row) -> list[ViewTree]:
        """The trees that a row belongs in."""
        if self._last is row and self._last_atom == atom:  # it is looked up and changed, one after the other
            return self._last_trees
        levels = self._levels(atom, row)
        self._last, self._last_atom = row, atom
        self._last_trees = self._trees_of[atom].get(levels) or self._trees_at(atom, levels)
        return self._last_trees

    def _trees_at(self, atom: int, levels: tuple[int, ...]) -> list[ViewTree]:
        """The trees of the rows of an atom whose values have these levels."""
        trees = self._trees_of[atom].get(levels)
        if trees is None:
            trees = self._trees_of[atom][levels] = [
                one.tree
                for one in self.classes
                if all(level in one.allowed[v] for v, level in zip(self._names[atom], levels, strict=True))
            ]
        return trees

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        held = self.held[atom]
        if row in held:
            return False
        held.add(row)
        self._count[0] += 1
        for tree in self._trees(atom, row):
            tree.insert(atom, row)
        self.size += 1
        for variable, side in self._split_of[atom]:
            value = row[side.column]
            if side.add(row) >= variable.rises[variable.levels.get(value, 0)]:
                self._turn(variable, value)
        if self.size > 2 * self.base:
            self.load({})
        return True

    def delete(self, atom: int, row: Row) -> bool:
        held = self.held[atom]
        if row not in held:
            return False
        held.remove(row)
        self._count[0] += 1
        for tree in self._trees(atom, row):
            tree.delete(atom, row)
        self.size -= 1
        for variable, side in self._split_of[atom]:
            left = side.remove(row)
            if left < variable.falls[variable.levels.get(row[side.column], 0)] <= left + 1:  # else not by this row
                self._turn(variable, row[side.column])
        if self.base > 2 * self.size + 2 * SMALLEST:
            self.load({})
        return True

    def _turn(self, variable: SplitVariable, value: Value) -> None:
        """Move a value with all its rows to another level, if that is due."""
        level = variable.due(value)
        if level == variable.levels.get(value, 0):
            return
        moved = [(side.atom, row) for side in variable.sides for row in side.rows.get(value, ())]
        self._count[0] += len(moved)
        before = [self._trees(atom, row) for atom, row in moved]
        variable.put(value, level)
        self._last = None
        after = [self._trees(atom, row) for atom, row in moved]
        for (atom, row), old, new in zip(moved, before, after, strict=True):
            for tree in old:
                if tree not in new:
                    tree.delete(atom, row)
        for (atom, row), old, new in zip(moved, before, after, strict=True):
            for tree in new:
                if tree not in old:
                    tree.insert(atom, row)

    # ── as a view ────────────────────────────────────────────────────────────────────────────

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        trees = self._trees(atom, row)
        if len(trees) == 1:
            return trees[0].delta(atom, row)
        return chain.from_iterable([tree.delta(atom, row) for tree in trees])

    def answers(self) -> Iterator[Weighted]:
        return chain.from_iterable(one.tree.answers() for one in self.classes)

    def rows(self, atom: int) -> Collection[Row]:
        return self.held[atom]

    @property
    def steps(self) -> int:
        return self._count[0] + sum(one.tree.steps for one in self.classes)

    def check(self) -> None:
        for variable in self.split.values():
            for value in {value for side in variable.sides for value in side.rows} | variable.levels.keys():
                assert variable.due(value) == variable.levels.get(value, 0), f"I1: {value}"
            for side in variable.sides:
                assert {row for rows in side.rows.values() for row in rows} == self.held[side.atom], "I2"
        for one in self.classes:
            one.tree.check()
            for atom, held in enumerate(self.held):
                expected = {row for row in held if one.tree in self._trees(atom, row)}
                assert set(one.tree.rows(atom)) == expected, "I2"

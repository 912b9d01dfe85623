"""Generations of rows by age: MVIVM without bit strings.

On the path from the root of the paper's segment tree to *now*, the node of level ℓ holds the live
rows that were inserted during its earlier siblings.  So the levels partition the live rows by age.
Generation 0 has those of the last few updates; every Bˡ updates the generations below ℓ are merged
into generation ℓ.  Between two such ticks generation ℓ only loses rows: that time is its *phase*.

An update of one atom asks for the rest of the query with its row given.  Each other atom is split
by generation: for each combination, ordered from old to young, the residual tree
(core.joins.residuals) says what to search.  What a bag finds for given values is cached for the
phase of the youngest generation that it read.  A row that is deleted and inserted again finds the
cache as it was; only what came since is searched anew.

Deletes only shrink the cache: a cached row is dropped when one of its rows is deleted, or when one
of its children has nothing left.  The search that found it has paid for that.  Within a phase it
cannot hold again, for a row that comes back is young.  So every cached row leads to answers, and
these are enumerated with constant delay.

Ties: two atoms of one generation are ordered by their number, so each answer belongs to one order.

Resets: after half as many updates as there are rows, all rows move into the oldest generation and
the clock starts again.  A loaded database begins there.

Source: Theorem 4.4 and Appendix C of Abo Khamis et al. 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

from attrs import define, field

from everlog.core.joins.code import MOST_LOOPS
from everlog.core.joins.residuals import Residual, ResidualBag, residual
from everlog.core.joins.tries import Input, Key, row_picker
from everlog.core.joins.view import Asked, CannotServe, CountedView, Weighted
from everlog.core.program import Row

FAN_OUT = 16  # B: how many updates, or ticks of the level below, make a tick
SHORTEST = 64  # updates between two resets, at the least


Plan: TypeAlias = tuple[Residual, tuple[int, ...], Any, int, Any]


@define(eq=False)
class Found:
    """What a bag finds in one combination of generations: rows for each of the given values.

    Invariant: the cached rows are exactly those that hold now and can be completed below.

    When a row of an atom is deleted, `uses` has the cached rows that contain it; `parents` has, for
    values with nothing left, the rows above that need them.  Each cached row is dropped once: the
    search that found it has paid for that.
    """

    bag: ResidualBag
    indexes: list[Any]
    homes: list[tuple[int, int]]  # the atoms that must hold, each with its level
    holds: list[tuple[Any, dict[Row, int]]]  # how to pick the row of such an atom, and the rows of its generation
    children: list[tuple[Any, Found]]
    memory: dict[Row, dict[Row, None]] = field(factory=dict)
    uses: list[dict[Row, list[tuple[Row, Row]]]] = field(init=False)
    rooted: dict[Key, Rooted] = field(factory=dict)  # as the root of combinations: the rows with answers
    parents: dict[Found, dict[Row, list[tuple[Row, Row]]]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.uses = [{} for _ in self.holds]

    def rows(self, given: Row) -> dict[Row, None]:
        known = self.memory.get(given)
        if known is None:
            known = self.memory[given] = self._searched(given)
        return known

    def _searched(self, given: Row) -> dict[Row, None]:
        out: dict[Row, None] = {}
        for row in self.bag.search(*given, *self.indexes):
            self.bag.steps[0] += 1
            whole = given + row
            picked = [pick(whole) for pick, _ in self.holds]
            if not all(own in there for own, (_, there) in zip(picked, self.holds, strict=True)):
                continue
            below = [(child, pick(whole)) for pick, child in self.children]
            if not all(child.rows(values) for child, values in below):
                continue
            out[row] = None
            for uses, own in zip(self.uses, picked, strict=True):
                uses.setdefault(own, []).append((given, row))
            for child, values in below:
                child.parents.setdefault(self, {}).setdefault(values, []).append((given, row))
        return out

    def lose(self, home: int, own: Row) -> None:
        """Drop the cached rows that contain a deleted row of an atom at home here."""
        for given, row in self.uses[home].pop(own, ()):
            self._drop(given, row)

    def _drop(self, given: Row, row: Row) -> None:
        rows = self.memory.get(given)
        if rows is None or row not in rows:  # dropped before, or found by a search that was interrupted
            return
        self.bag.steps[0] += 1
        del rows[row]
        if not rows:
            for rooted in self.rooted.values():
                rooted.rows.pop(given, None)
            for parent, waiting in self.parents.items():
                for above, counted in waiting.pop(given, ()):
                    parent._drop(above, counted)


@define(eq=False)
class Rooted:
    """Rows of the youngest atom that have answers, by the values at the root."""

    tree: Residual
    root: Found
    given_of: Callable[[Row], Row]
    rows: dict[Row, dict[Row, None]] = field(factory=dict)

    def lose(self, row: Row) -> None:
        given = self.given_of(row)
        rows = self.rows.get(given)
        if rows is not None:
            rows.pop(row, None)
            if not rows:
                del self.rows[given]


def levels_of(tuples: int, changed: int, fan_out: int = FAN_OUT) -> int:
    """About how many generations an atom with some recent changes has rows in.

    >>> levels_of(1_000_000, 0), levels_of(1_000_000, 1000), levels_of(100, 100_000)
    (1, 5, 4)
    """
    levels, most = 2 if changed else 1, min(changed, tuples // 2)
    while most:
        levels += 1
        most //= fan_out
    return levels


class Generations(CountedView):
    """Invariants:  I1  the generations of an atom are disjoint, and together are its live rows;
    I2  generation ℓ holds nothing older than the tick before the last one of level ℓ + 1, but for
    the oldest one; I3  what is remembered are the rows that hold now in their generations and can
    be completed.
    """

    def __init__(self, asked: Asked, fan_out: int = FAN_OUT, shortest: int = SHORTEST) -> None:
        super().__init__()
        if len(asked.query.variables) >= MOST_LOOPS:
            raise CannotServe(f"it has {MOST_LOOPS} variables or more, and each would be a nested loop")
        self.asked, self.fan_out, self.shortest = asked, fan_out, shortest
        self._residuals: dict[tuple[int, ...], Residual] = {}
        self._plans: list[dict[tuple[int, ...], Plan]] = [{} for _ in asked.query.atoms]
        self._begin([[] for _ in asked.query.atoms])

    def _begin(self, alive: list[Iterable[Row]]) -> None:
        """Set the clock to zero, with these rows in the oldest generation."""
        schemas = [atom.variables for atom in self.asked.query.atoms]
        oldest = [Input(schema) for schema in schemas]
        for source, rows in zip(oldest, alive, strict=True):
            for row in rows:
                source.add(row, 1)
        size = sum(len(source.rows) for source in oldest)
        self.left = max(self.shortest, size // 2)  # updates until the next reset
        self.now = 0
        levels = 1
        while self.fan_out**levels < self.left:
            levels += 1
        self.oldest = levels + 1
        self.generations = [
            [*(Input(schema) for _ in range(levels + 1)), source]
            for schema, source in zip(schemas, oldest, strict=True)
        ]
        self._remembered: list[dict[Key, Found]] = [{} for _ in range(levels + 2)]
        self._rooted: list[dict[Key, Rooted]] = [{} for _ in range(levels + 2)]  # see `_settle`
        self._at_home: dict[tuple[int, int], dict[tuple[Found, int], None]] = {}
        if self.asked.enumerated:
            self._settle(self.oldest)

    # ── the clock ────────────────────────────────────────────────────────────────────────────

    def _tick(self) -> int:
        """Count an update; returns the oldest generation whose phase it ends."""
        self.now += 1
        self.left -= 1
        if self.left < 0:
            self._count[0] += sum(len(source.rows) for atom in self.generations for source in atom)
            self._begin([list(self.rows(atom)) for atom in range(len(self.generations))])
            return self.oldest
        level, rest = 0, self.now
        while rest % self.fan_out == 0:
            rest //= self.fan_out
            level += 1
        level = min(level, self.oldest - 1)
        for ended in range(level + 1):
            for found in self._remembered[ended].values():
                self._forget(found)
            self._remembered[ended].clear()
            for key, rooted in self._rooted[ended].items():
                rooted.root.rooted.pop(key, None)
            self._rooted[ended].clear()
        if level:
            for sources in self.generations:
                self._fold(sources, level)
        return level

    def _forget(self, found: Found) -> None:
        for number, home in enumerate(found.homes):
            del self._at_home[home][found, number]
        for _, child in found.children:
            child.parents.pop(found, None)

    def _fold(self, sources: list[Input], level: int) -> None:
        """Merge all younger generations into this one, and forget what was cached for them."""
        younger = [row for source in sources[:level] for row in source.rows]
        if younger:
            self._count[0] += len(younger)
            for row in younger:
                sources[level].add(row, 1)
            for number in range(level):
                if sources[number].rows:
                    sources[number] = Input(sources[number].schema)

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        if any(row in source.rows for source in self.generations[atom]):
            return False
        ended = self._tick()
        self._count[0] += 1
        self.generations[atom][0].add(row, 1)
        if self.asked.enumerated:
            self._settle(ended)
        return True

    def delete(self, atom: int, row: Row) -> bool:
        for level, source in enumerate(self.generations[atom]):
            if row in source.rows:
                source.add(row, -1)
                self._count[0] += 1
                for found, home in self._at_home.get((atom, level), ()):
                    found.lose(home, row)
                for (youngest, _), rooted in self._rooted[level].items():
                    if youngest == atom:
                        rooted.lose(row)
                ended = self._tick()
                if self.asked.enumerated:
                    self._settle(ended)
                return True
        return False

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        """Load rows into the oldest generation.  Cost: that of the indexes that updates ask for."""
        self._begin([{*self.rows(atom), *rows.get(atom, ())} for atom in range(len(self.generations))])

    def rows(self, atom: int) -> Collection[Row]:
        return {row for source in self.generations[atom] for row in source.rows}

    # ── answers ──────────────────────────────────────────────────────────────────────────────

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        filled = [
            [level for level, source in enumerate(sources) if source.rows]
            for number, sources in enumerate(self.generations)
            if number != atom
        ]
        plans, remembered = self._plans[atom], self._remembered
        useful: list[tuple[Residual, Found, Row]] = []
        for levels in product(*filled):
            self._count[0] += 1
            plan = plans.get(levels)
            if plan is None:
                plan = plans[levels] = self._planned(atom, levels)
            tree, aged, key, youngest, given_of = plan
            root = remembered[youngest].get(key) or self._found(tree, tree.root, aged)
            given = given_of(row)
            if root.rows(given):
                useful.append((tree, root, given))
        return ((answer, 1) for tree, root, given in useful for answer in self._walk(tree, root, row, given))

    def _planned(self, atom: int, levels: tuple[int, ...]) -> Plan:
        """The search of an update for one combination of generations of the other atoms."""
        others = [n for n in range(len(self.generations)) if n != atom]
        aged = sorted(zip(levels, others, strict=True), key=lambda pair: (-pair[0], pair[1]))
        order = (*(n for _, n in aged), atom)
        tree = self._residuals.get(order)
        if tree is None:
            tree = self._residuals[order] = residual(self.asked.query, order, self.asked.kept, self._count)
        mine = tuple(level for level, _ in aged)[: tree.root.depth]
        schema = self.asked.query.atoms[atom].variables
        youngest = mine[-1] if mine else -1
        given_of = row_picker(schema, tree.root.given)
        return tree, tuple(level for level, _ in aged), (id(tree.root), mine), youngest, given_of

    def _found(self, tree: Residual, bag: ResidualBag, levels: tuple[int, ...]) -> Found:
        """The cache of a bag for the generations of the atoms that it depends on."""
        mine = levels[: bag.depth]
        youngest = mine[-1] if mine else -1  # -1 is the oldest: it depends on nothing
        key = (id(bag), mine)
        known = self._remembered[youngest].get(key)
        if known is None:
            sources = [self.generations[atom][level] for atom, level in zip(tree.order, mine, strict=False)]
            known = Found(
                bag,
                [sources[position].index(key, value) for position, key, value in bag.accesses],
                [(tree.order[position], mine[position]) for position, _ in bag.homes],
                [(pick, sources[position].rows) for position, pick in bag.homes],
                [(pick, self._found(tree, child, levels)) for pick, child in bag.children],
            )
            self._remembered[youngest][key] = known
            for number, home in enumerate(known.homes):
                self._at_home.setdefault(home, {})[known, number] = None
        return known

    def _walk(self, tree: Residual, root: Found, row: Row, given: Row) -> Iterator[Row]:
        """Every way to choose a row of each bag, parents first."""
        rows: list[Row] = []

        def below(waiting: list[tuple[Found, Row]]) -> Iterator[Row]:
            if not waiting:
                yield tree.answer(row, rows)
                return
            (found, values), later = waiting[0], waiting[1:]
            for own in found.rows(values):
                self._count[0] += 1
                whole = values + own
                rows.append(own)
                yield from below([*((child, pick(whole)) for pick, child in found.children), *later])
                rows.pop()

        return below([(root, given)])

    def _settle(self, ended: int) -> None:
        """Find the rows that have answers, for new combinations of generations.

        Each row of the youngest atom of a combination is looked at once in the phase of its
        generation, which updates have paid for.  So the first answer comes at once.
        """
        filled = [[level for level, source in enumerate(sources) if source.rows] for sources in self.generations]
        for levels in product(*filled):
            youngest = min(levels)
            if youngest <= ended:
                atom = max(n for n, level in enumerate(levels) if level == youngest)
                if (atom, levels) not in self._rooted[youngest]:
                    self._rooted[youngest][atom, levels] = self._having_answers(atom, levels)

    def _having_answers(self, atom: int, levels: tuple[int, ...]) -> Rooted:
        others = (*levels[:atom], *levels[atom + 1 :])
        plan = self._plans[atom].get(others)
        if plan is None:
            plan = self._plans[atom][others] = self._planned(atom, others)
        tree, aged, _, _, given_of = plan
        root = self._found(tree, tree.root, aged)
        made = root.rooted[atom, levels] = Rooted(tree, root, given_of)
        for row in self.generations[atom][levels[atom]].rows:
            self._count[0] += 1
            given = given_of(row)
            if root.rows(given):
                made.rows.setdefault(given, {})[row] = None
        return made

    def answers(self) -> Iterator[Weighted]:
        """All answers, with constant delay if the view is to be enumerated."""
        if not self.asked.enumerated:
            self._settle(self.oldest)
        for rooted in (one for ended in self._rooted for one in ended.values()):
            for given, rows in rooted.rows.items():
                for row in rows:
                    for answer in self._walk(rooted.tree, rooted.root, row, given):
                        yield answer, 1

    def check(self) -> None:
        for sources in self.generations:
            assert len(sources) == self.oldest + 1
            total = sum(len(source.rows) for source in sources)
            assert total == len({row for source in sources for row in source.rows}), "I1"
            for source in sources:
                source.check()
        for level, ended in enumerate(self._rooted):
            for (atom, _), rooted in ended.items():
                there = self.generations[atom][level].rows
                found_rows = {row for rows in rooted.rows.values() for row in rows}
                assert found_rows == {r for r in there if rooted.root.rows(rooted.given_of(r))}, "I3: rooted"
        for remembered in self._remembered:
            for found in remembered.values():
                for given, rows in list(found.memory.items()):
                    good = {
                        row
                        for row in found.bag.search(*given, *found.indexes)
                        if all(pick(given + row) in there for pick, there in found.holds)
                        and all(child.rows(pick(given + row)) for pick, child in found.children)
                    }
                    assert good == set(rows), "I3"
                for number, home in enumerate(found.homes):
                    assert (found, number) in self._at_home[home], "I3: registered"

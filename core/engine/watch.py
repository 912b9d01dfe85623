"""`auto`: a rule begins as first-order delta, and moves when the stream asks for another view.

Delta needs nothing but indexes and is the fastest while values have few partners.  Other views of a
join are slower on such data, and without bound faster on others.  Which data will come is unknown,
so a rule moves on evidence, as a skier buys a pair when the rents have come to its price.

What a rule spends is counted: by its delta rules themselves (`core.engine.stepping.work`) or by its
view.  For each strategy that the rule could have instead, a *debt* grows by what was spent and
shrinks by what that strategy would have spent; it never falls below zero.  When a debt exceeds the
price of building that view, the rule moves there, between two steps.  So no stream costs more than
a constant factor over the best choice in hindsight, and an expensive minority of updates counts by
its share of the work.

What another view would have spent is a model (`FAIR`, and for generations the combinations that
exist), corrected by what it did spend when it was in use.  What delta would have spent is tried:
now and then its rules run beside the view, with a sixteenth of the work that the view has done.

Until a relation of the rule loses its first fact, the view to move to is `calibrated` (where it
stays small), whose cost is O(N^(w-1)) for each insert; after that, the one with the smallest
exponent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from everlog.core.classify.query import query_of
from everlog.core.engine.keepers.counted import DerivingKeeper
from everlog.core.engine.planning.plan import wanted_of
from everlog.core.engine.stepping.work import MATCH, ROW, UNLIMITED
from everlog.core.joins.exponents import growing_refuge_of, refuges_of
from everlog.core.joins.generations import levels_of
from everlog.core.joins.join_strategies import (
    AUTO,
    CALIBRATED,
    DELTA,
    FACTORIZED,
    GENERATIONS,
    HEAVY_LIGHT,
    JOINS,
    VIEW_TREE,
)

if TYPE_CHECKING:
    from everlog.core.engine.network import Network

# Units of work: see core.engine.stepping.work.  One is about ten nanoseconds.
FAIR = {
    VIEW_TREE: 1_700,
    HEAVY_LIGHT: 2_000,
    GENERATIONS: 3_300,
    CALIBRATED: 2_300,
    FACTORIZED: 2_500,
}  # for one row
COMBINATION = 250  # and for each combination of generations
PRICE = 300  # to put one tuple into a view
LEAST = 50_000  # no view is built for less
OFTEN = 64  # updates between two looks; more with many rules, fewer when much was spent
LIMIT = 50_000_000  # the most that delta may do for one row, unless building a view costs more
EPOCH = 64  # looks after which it is forgotten which relations have changed


@frozen
class Move:
    """A rule that moved: to which strategy, after which step, and why."""

    strategy: str
    step: int
    why: str

    def __str__(self) -> str:
        return f"to {self.strategy} after step {self.step}: {self.why}"


@define(eq=False)
class Watched:
    """A rule that may move, and its debt to each strategy that it could have instead."""

    keeper: DerivingKeeper
    rule: str
    relations: tuple[str, ...]  # of the atoms that are joined, once for each
    refuges: tuple[str, ...]  # the strategies with the smallest exponent for facts that come and go
    growing: str  # and the one until a fact goes
    shows_all: bool = True  # whether every view meets every match
    strategy: str = DELTA
    debts: dict[str, float] = field(factory=dict)
    learned: dict[str, float] = field(factory=dict)  # of a view that was left: work for one row
    seen: tuple[int, int, int] = (0, 0, 0)
    since: tuple[int, int] = (0, 0)  # work and rows when it moved
    epoch: dict[str, int] = field(factory=dict)  # rows of each relation when the epoch began
    size: int = 0  # of its relations, when that was last looked at
    doubt: int = 1  # factor on the price of a move back to delta; it grows when delta fails again
    given_up: int = 0  # the limit that delta has reached for one row

    def spent(self) -> tuple[int, int, int]:
        """Work, matches and rows since the beginning."""
        work, matches, rows = self.keeper.work[self.rule].total()
        joined = self.keeper.joined.get(self.rule)
        if joined is not None:
            work, matches, rows = work + joined.work, matches + joined.matches, rows + joined.rows
        return work, matches, rows

    def has_lost(self) -> bool:
        """Whether a relation of the join has lost a fact since the beginning."""
        counters = self.keeper.work[self.rule].counters
        joined = self.keeper.joined.get(self.rule)
        if joined is not None and joined.losses:
            return True
        return any(c[2] for (name, sign), c in counters.items() if sign < 0 and name in self.relations)

    def limit_work(self, limit: int) -> None:
        """Have delta give up when it does more than this for one row of the join.

        For a row of what stands above the join there is no other way.
        """
        for (name, _), c in self.keeper.work[self.rule].counters.items():
            c[3] = limit if name in self.relations else UNLIMITED

    def others(self) -> list[str]:
        """The strategies that the rule could have instead of the present one."""
        views = self.refuges if self.has_lost() else (self.growing,)
        return [name for name in (DELTA, *views) if name != self.strategy]

    def begin_epoch(self) -> None:
        self.epoch = self._rows()

    def _rows(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for (name, _), c in self.keeper.work[self.rule].counters.items():
            found[name] = found.get(name, 0) + c[2]
        joined = self.keeper.joined.get(self.rule)
        for name, rows in (joined.rows_of if joined is not None else {}).items():
            found[name] = found.get(name, 0) + rows
        return found

    def fair(self, strategy: str) -> float:
        """What one row would cost with a view."""
        fair = float(FAIR[strategy])
        if strategy == GENERATIONS:
            now = self._rows()
            changed = {name: rows - self.epoch.get(name, 0) for name, rows in now.items()}
            filled = [levels_of(self.size, changed.get(name, 0)) for name in self.relations]
            combinations = 1
            for number in sorted(filled)[:-1]:  # all but those of the relation that changes
                combinations *= number
            fair += COMBINATION * combinations
        return max(fair, self.learned.get(strategy, fair))


class JoinWatch:
    """The rules of a network that may move.  `due` counts down the updates until the next look."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.looks = 0
        self.rules = [
            Watched(
                keeper,
                rule.name,
                tuple(a.relation for a in query.atoms),
                refuges,
                growing_refuge_of(query, shown),
                shown.variables == frozenset(query.variables),
            )
            for keeper in network.keepers
            if isinstance(keeper, DerivingKeeper)
            for rule in keeper.planned.unit.rules
            if keeper.planned.joins[rule.name].strategy == AUTO
            for query in [query_of(rule)]
            for shown in [wanted_of(rule, keeper.planned.group).shown]
            if (refuges := refuges_of(query, shown))
        ]
        for watched in self.rules:
            joined = watched.keeper.joined.get(watched.rule)
            if joined is not None:
                watched.strategy = joined.strategy
            watched.seen = watched.spent()
            watched.since = watched.seen[0], watched.seen[2]
        self.interval = max(OFTEN, 4 * len(self.rules)) if self.rules else UNLIMITED
        self.due = 1
        self._between = 1
        for watched in self.rules:
            watched.limit_work(LIMIT)

    def look(self) -> list[tuple[Watched, str]]:
        """Note what was spent since the last look; the rules that are to move now, and where to."""
        self.looks += 1
        moving = []
        self._between = min(self.interval, 2 * self._between)
        for watched in self.rules:
            before = watched.seen[0]
            to = self._judged(watched)
            if watched.seen[0] - before > LEAST:
                self._between = max(1, min(self._between, LEAST * OFTEN // (watched.seen[0] - before)))
            if to is not None:
                moving.append((watched, to))
            if not self.looks % EPOCH:
                watched.begin_epoch()
                watched.size = self._size(watched)
                watched.limit_work(max(LIMIT, PRICE * watched.size))
        self.due = self._between
        return moving

    def given_up(self, rule: str) -> list[tuple[Watched, str]]:
        """A delta rule has reached its limit: it moves at once, whatever its debt is."""
        found = [watched for watched in self.rules if watched.rule == rule and watched.strategy == DELTA]
        assert found, f"only a rule that may move has a limit: {rule}"
        for watched in found:
            counters = watched.keeper.work[rule].counters
            watched.given_up = max(c[3] for (name, _), c in counters.items() if name in watched.relations)
        return [(watched, next(name for name in watched.others() if name != DELTA)) for watched in found]

    def _judged(self, watched: Watched) -> str | None:
        now = watched.spent()
        work, matches, rows = (after - before for after, before in zip(now, watched.seen, strict=True))
        if not rows:
            return None
        watched.seen = now
        for other in watched.others():
            spent = work - MATCH * matches
            if other == DELTA:
                joined = watched.keeper.joined[watched.rule]
                would = joined.delta_estimate(rows) - MATCH * matches
            else:
                would = watched.fair(other) * rows
                if JOINS[other].totals and not watched.shows_all and watched.strategy == DELTA:
                    spent = work + MATCH * matches  # totals stand for matches
            debt = watched.debts[other] = max(0.0, watched.debts.get(other, 0.0) + spent - would)
            price = PRICE * (watched.doubt if other == DELTA else 1)
            if debt > max(LEAST, price * watched.size):
                watched.size = self._size(watched)
                if debt > price * watched.size:
                    return other
        return None

    def _size(self, watched: Watched) -> int:
        """Cost: that of looking at every key of the tables."""
        return sum(len(self.network.store.tables[name]) for name in set(watched.relations))

    def move(self, moving: Iterable[tuple[Watched, str]], step: int) -> dict[str, Move]:
        """Have these rules kept in another way from now on."""
        moves = {watched.rule: self._moved(watched, to, step) for watched, to in moving}
        self.network.listen_again()
        return moves

    def _moved(self, watched: Watched, to: str, step: int) -> Move:
        (work, _, rows), (before, at) = watched.spent(), watched.since
        per_row = (work - before) / max(1, rows - at)
        why = f"{watched.strategy} did {per_row:.0f} units of work for a row, which has paid for the move"
        if watched.given_up:
            per_row, watched.given_up = float(watched.given_up), 0
            why = f"{watched.strategy} gave up after {per_row:.0f} units of work for one row"
        estimate = max(0.0, per_row - ROW)
        if watched.strategy != DELTA:
            watched.learned[watched.strategy] = per_row
            estimate = watched.keeper.joined[watched.rule].delta_estimate(1) - ROW
        watched.keeper.keep_join(watched.rule, to, estimate)
        if watched.strategy == DELTA and watched.learned:
            watched.doubt *= 4
        watched.strategy = to
        watched.debts.clear()
        watched.seen = watched.spent()
        watched.since = watched.seen[0], watched.seen[2]
        return Move(to, step, why)

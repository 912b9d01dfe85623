"""Rules whose joins begin as first-order delta, and move to generations when the stream asks for
it.

(The triangle and the 3-path move to heavy and light values, which are worked out for them and
cheaper.)

Delta rules are compiled and fast; counting inside them would make them slower.  So steps are timed,
one of many single updates and every larger step.  What a step takes beyond a fair time for its
updates and for the facts that change is excess.  When the excess since the beginning has paid for
building generations, the rule that reads what changed moves: between two steps, so that no told
change is lost.  Of the last samples the largest are not counted: one that happened to meet a pause
is no evidence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from attrs import define, field

from everlog.core.classify.query import query_of
from everlog.core.engine.keepers.counted import DerivingKeeper
from everlog.core.joins.generations import combinations_of
from everlog.core.joins.heavy_light import is_served
from everlog.core.joins.join_strategies import AUTO, GENERATIONS, HEAVY_LIGHT
from everlog.core.program import Atom

if TYPE_CHECKING:
    from everlog.core.engine.network import Network

SELDOM = 256  # samples between two looks at sizes
SAMPLES = 12  # that are looked at together
OUTLIERS = 3  # of them are left out
TIMED, CLOSELY = 64, 8  # of so many single updates one is timed; and when the last one was slow
FAIR = 60e-6  # seconds for one update, …
FAIR_COMBINATION = 3e-6  # … for each combination of generations that would be looked at, …
FAIR_ANSWER = 3e-6  # … and for each fact that changes
PRICE = 3e-6  # seconds per tuple to build generations


@define(eq=False)
class Watched:
    """A rule that may move, and the seconds beyond what is fair since the beginning."""

    keeper: DerivingKeeper
    rule: str
    relations: frozenset[str]
    atoms: int
    refuge: str  # the strategy that it would move to
    samples: deque[float] = field(factory=lambda: deque(maxlen=SAMPLES))
    excess: float = 0.0
    size: int = 0  # of what it reads, when that was last looked at

    def note(self, seconds: float, updates: int, answers: int, weight: int) -> None:
        """A step of so many updates took so long, and stands for `weight` such steps."""
        looks = combinations_of(self.atoms, self.size) if self.refuge == GENERATIONS else 1
        fair = FAIR + FAIR_COMBINATION * looks
        self.samples.append((seconds - FAIR_ANSWER * answers) / updates - fair)
        kept = sorted(self.samples)[:-OUTLIERS]
        if len(kept) >= SAMPLES // 2:
            self.excess = max(0.0, self.excess + sum(kept) / len(kept) * updates * weight)


class JoinWatch:
    """The rules of a network that may move."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.interval = TIMED
        self._noted = 0
        self.rules = [
            Watched(
                keeper,
                rule.name,
                frozenset(relations),
                len(relations),
                HEAVY_LIGHT if is_served(query_of(rule)) else GENERATIONS,
            )
            for keeper in network.keepers
            if isinstance(keeper, DerivingKeeper)
            for rule in keeper.planned.unit.rules
            if keeper.planned.joins[rule.name].strategy == AUTO and rule.name not in keeper.joined
            for relations in [[a.relation for a in rule.body if isinstance(a, Atom)]]
        ]

    def moving(
        self, relations: Collection[str], seconds: float, updates: int, answers: int, weight: int
    ) -> list[Watched]:
        """Note a step on these relations; the rules that are to move now.

        Where several rules read what changed, the time is taken to be that of the one with most to
        read.
        """
        concerned = [w for w in self.rules if not w.relations.isdisjoint(relations)]
        if not concerned:
            return []
        self._noted += 1
        if self._noted % SELDOM == 1:
            for watched in self.rules:
                watched.size = self._size(watched)
        largest = concerned[0] if len(concerned) == 1 else max(concerned, key=lambda watched: watched.size)
        largest.note(seconds, updates, answers, weight)
        self.interval = CLOSELY if largest.samples[-1] > 4 * FAIR else TIMED
        if largest.excess <= PRICE * largest.size:
            return []
        largest.size = self._size(largest)
        return [largest] if largest.excess > PRICE * largest.size else []

    def _size(self, watched: Watched) -> int:
        """Cost: that of looking at every key of the tables."""
        return sum(len(self.network.store.tables[name]) for name in watched.relations)

    def move(self, moving: Iterable[Watched]) -> None:
        """Have these rules kept by generations from now on."""
        for watched in moving:
            watched.keeper.keep_join(watched.rule, watched.refuge)
        self.network.listen_again()

"""Facts, bytes and time per relation and per rule."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from everlog.core.engine.network import Network


@frozen
class RelationStatistics:
    """`bytes` counts containers (tables, indexes, counts, ranks), not values."""

    name: str
    strategy: str
    facts: int
    bytes: int
    seconds: float


@frozen
class RuleStatistics:
    """`strategy` is how its join is kept now, for a rule that has one; `work` is counted in units
    that do not depend on the machine (core.engine.stepping.work).  `moved` tells its last move.
    """

    name: str
    text: str
    strategy: str
    runs: int
    seconds: float
    compiling: float
    work: int = 0
    moved: str = ""


@frozen
class UnitStatistics:
    """What a unit did as a whole.

    `ranking` are the seconds in which step `ranked_at` made what deletes need.  In `anew` steps,
    last in `anew_at`, following the change had cost as much as computing the unit, so it was
    computed.
    """

    name: str
    ranking: float = 0.0
    ranked_at: int = 0
    anew: int = 0
    anew_at: int = 0

    def told(self) -> Iterator[str]:
        """Sentences about what users would not expect."""
        if self.ranked_at:
            yield f"{self.name}: step {self.ranked_at} made ranks for deletes, {self.ranking:.3f} s"
        if self.anew:
            times = f"{self.anew} step{'s' if self.anew > 1 else ''}"
            yield (
                f"{self.name}: computed anew in {times}, last in step {self.anew_at}:"
                " following the change had cost as much"
            )


@frozen
class Statistics:
    relations: tuple[RelationStatistics, ...]
    rules: tuple[RuleStatistics, ...]
    units: tuple[UnitStatistics, ...] = ()

    def __str__(self) -> str:
        lines = [f"{'relation':<24} {'kept by':<12} {'facts':>10} {'bytes':>12} {'seconds':>9}"]
        for r in self.relations:
            lines.append(f"{r.name:<24} {r.strategy:<12} {r.facts:>10} {r.bytes:>12} {r.seconds:>9.3f}")
        lines.append(f"{'rule':<24} {'kept by':<12} {'runs':>10} {'seconds':>12} {'compiling':>9}")
        for s in self.rules:
            lines.append(f"{s.name:<24} {s.strategy:<12} {s.runs:>10} {s.seconds:>12.3f} {s.compiling:>9.3f}")
        lines += [line for unit in self.units for line in unit.told()]
        return "\n".join(lines)


def statistics_of(
    network: Network,
    moved: Mapping[str, Sequence[object]],
    proving: Mapping[str, tuple[int, float]],
    anew: Mapping[str, tuple[int, int]],
) -> Statistics:
    """`proving` and `anew` are by unit, as the engine keeps them."""
    store = network.store
    relations = []
    for keeper in network.keepers:
        for name in keeper.relations:
            seconds = sum(
                store.times[rule.name].seconds
                for rule in keeper.planned.unit.rules
                if rule.head.relation == name and rule.name in store.times
            )
            size = sum(map(_bytes, keeper.containers(name)))
            relations.append(
                RelationStatistics(name, keeper.planned.strategy, keeper.size_of(name), size, seconds)
            )
    rules = [
        RuleStatistics(
            rule.name,
            str(rule),
            network.strategy_now(rule),
            time.runs,
            time.seconds,
            time.compiling,
            network.work_of(rule),
            str(moved[rule.name][-1]) if rule.name in moved else "",
        )
        for rule in network.plan.program.rules
        if (time := store.times.get(rule.name)) is not None
    ]
    units = []
    for keeper in network.keepers:
        name = keeper.planned.name
        if keeper.planned.unit.rules:
            step, seconds = proving.get(name, (0, 0.0))
            units.append(UnitStatistics(name, seconds, step, *anew.get(name, (0, 0))))
    return Statistics(tuple(relations), tuple(rules), tuple(units))


def _bytes(container: object) -> int:
    size = sys.getsizeof(container)
    if isinstance(container, dict):
        size += sum(sys.getsizeof(value) for value in container.values() if isinstance(value, dict | set))
    return size

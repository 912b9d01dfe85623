"""The work of a recursive unit's turn, and when to stop it and compute the unit anew.

Most deletes touch few facts.  But a lost fact may take nearly all others with it, and to bring them
back one by one can cost many times what computing the unit costs.  So the rules of a turn count
what they do (`core.engine.stepping.work`), and so do those of the last computation.  A turn that
has done as much work as half a computation stops, and the unit is computed: the worst turn costs
one and a half computations with ranks, which is about twice a plain one.  Work is counted, not
timed, so the same steps stop at the same places.
"""

from __future__ import annotations

from typing import ClassVar

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.stepping.work import UNLIMITED, Counter, Enough, counter
from everlog.core.ir.uses import Action, Meter, Use

_LOCAL = "_t"  # the local that counts
FACT = 50  # units of work for a fact that moves: tables, indexes, ranks, undo
LOOP = 12  # units for one turn of a loop: it compares ranks, and counts
SHARE = 0.5  # of the work of a computation, that a turn may do
LEAST = 200_000  # units, a few milliseconds, that every turn may do
PER_FACT = 100.0  # units for a fact of a unit that was never computed with ranks


class TurnWork:
    """Counts the work of one turn, or of one computation, of a unit.

    `counter[3]` is what may still be done; rules stop when they have done more.
    """

    least: ClassVar[int] = LEAST

    def __init__(self) -> None:
        self.counter: Counter = counter()
        self.per_fact = PER_FACT  # work of the last computation, for each fact that it found
        self.counting = False  # whether a turn has begun

    def use(self, action: Action) -> Use:
        """A rule with this action that counts here, and stops when the turn's work is used up."""
        end = f"{{0}}[0] += {_LOCAL}; {{0}}[3] -= {_LOCAL}"
        meter = Meter(self.counter, Enough, _LOCAL, LOOP, begin=f"{_LOCAL} = 0", end=end, counts_values=True)
        return Use(action, meter=meter)

    def begin(self, keeper: Keeper) -> None:
        """Begin a turn, unless it has begun.

        Without ranks there are only gains, which never cost more than a computation.
        """
        if not self.counting:
            self.counting = True
            facts = sum(keeper.store.tables[name].about() for name in keeper.relations)
            self.allow(self.least + int(SHARE * self.per_fact * facts) if keeper.proven else UNLIMITED)

    def end(self) -> None:
        self.counting = False

    def unlimited(self) -> None:
        """Begin a computation of the unit."""
        self.allow(UNLIMITED)

    def computed(self, facts: int) -> None:
        """End a computation that found this many facts."""
        self.per_fact = self.counter[0] / facts if facts else PER_FACT
        self.end()

    def allow(self, work: int) -> None:
        """Begin to count; `work` is what may be done."""
        self.counter[0], self.counter[3] = 0, work

    def add(self, work: int) -> None:
        """Count work that no rule does; raise `Enough` if the turn has done all that it may."""
        self.counter[0] += work
        self.counter[3] -= work
        if self.counter[3] < 0:
            raise Enough("")

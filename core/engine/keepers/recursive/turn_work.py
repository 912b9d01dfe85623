"""The work of a recursive unit's turn, and when to stop it and compute the unit anew.

Most deletes touch few facts.  But a lost fact may make nearly all others suspect, and to save them
one by one can cost many times what computing the unit costs.  So the rules of a turn count what
they do (`core.engine.stepping.work`), and so do those of the last computation.  A turn that has
done as much work as half a computation stops, and the unit is computed: the worst turn costs one
and a half computations with witnesses, which is about twice a plain one.  Work is counted, not
timed, so the same steps stop at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from attrs import define

from everlog.core.codegen.code_lines import Line
from everlog.core.codegen.derivations import RestoringWriter, SavingWriter, SuspectWriter, WitnessWriter
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.stepping.work import UNLIMITED, Counter, Enough, WorkWriter, counter
from everlog.core.program import Atom
from everlog.core.storage.shape import Shape

FACT = 50  # units of work for a fact that moves: tables, indexes, witnesses, undo
LOOP = 12  # units for one turn of a loop: it tests suspects, and makes rows and witnesses
FOLLOWED = 80  # units for one witness that is followed
SHARE = 0.5  # of the work of a computation, that a turn may do
LEAST = 200_000  # units, a few milliseconds: too little to think about
PER_FACT = 100.0  # units for a fact of a unit that was never computed with witnesses


@define
class TurnWriter(WorkWriter):
    """Adds what a rule does to the work of a turn, and stops it when that is used up."""

    done: ClassVar[str] = "_t"
    turn: ClassVar[int] = LOOP

    def emit(self, head: Atom, shape: Shape) -> None:
        if self.set_in_head:
            self.line(f"{self.done} += {self.per_value()} * _len({self.single_set()})")
        super().emit(head, shape)

    def per_value(self) -> int:
        """Units of work for each value of a set in the head."""
        return 1

    def with_counts(self, lines: Sequence[Line], first: bool) -> list[Line]:
        work, done = self.work_name(), self.done
        end = Line(1, f"{work}[0] += {done}; {work}[3] -= {done}")
        return [Line(1, f"{done} = 0"), *super().with_counts(lines, first), end]


@define
class WitnessWork(TurnWriter, WitnessWriter):
    """A witness for each new fact."""


@define
class SuspectWork(TurnWriter, SuspectWriter):
    """The facts whose witness used a change."""

    def per_value(self) -> int:
        return 1 if self.grouped else LOOP  # the witness of each one is looked up


@define
class SavingWork(TurnWriter, SavingWriter):
    """Another witness for suspects, from a saved fact."""


@define
class RestoringWork(TurnWriter, RestoringWriter):
    """Another witness for suspects, from any facts."""


class TurnWork:
    """Counts the work of one turn, or of one computation, of a unit.

    `counter[3]` is what may still be done; rules stop when they have done more.
    """

    least: ClassVar[int] = LEAST

    def __init__(self) -> None:
        self.counter: Counter = counter()
        self.per_fact = PER_FACT  # work of the last computation, for each fact that it found
        self.counting = False  # whether a turn has begun

    def mode(self, writer: type[TurnWriter]) -> Any:
        """A writer of rules that count here."""
        return partial(writer, work=self.counter)

    def begin(self, keeper: Keeper) -> None:
        """Begin a turn, unless it has begun.

        Without witnesses there are only gains, which never cost more than a computation.
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

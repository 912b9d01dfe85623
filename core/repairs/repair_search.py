"""The search for the least sets of changes that make a fact come or go.

Sets of changes are tried on the engine, smallest first: a trial applies them as a step, looks, and
undoes it.  Where a goal is not reached, or a fact is lost that must stay, `next_changes` says in
that state which changes may come next.  An answer is *minimal* if none of its proper subsets is
one; this is verified by trials, for with negation a smaller set may do what a larger one does not.

For deletes this is the search for minimal hitting sets of all proofs, where each trial that fails
yields one more proof to hit.

Source: R. Reiter, A theory of diagnosis from first principles, Artificial Intelligence 32, 1987.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import combinations, count
from typing import Protocol, TypeVar

from everlog.core.program import Program, Row, atoms_of, draws_numbers
from everlog.core.program.executor import Changes, Update
from everlog.core.program.values import EvaluationError
from everlog.core.proofs.evidence import Evidence
from everlog.core.repairs.domain import computed_columns
from everlog.core.repairs.instances import OutOfWork, Want, Work
from everlog.core.repairs.next_changes import ENOUGH, NextChanges
from everlog.core.repairs.repair import Allowed, Bounds, Repair, Repairs, Step

_T = TypeVar("_T")
WORK = 200_000  # steps of the search in states; in one state, a twentieth of it
DEPTH = 10  # changes of an answer whose subsets are all tried
_NOTHING: Step = frozenset()


class Trial(Protocol):
    """Apply updates, call `ask` with the changes in that state, and undo them."""

    def __call__(self, step: list[Update], ask: Callable[[Changes], _T], /) -> _T: ...


def repairs(
    engine: Evidence, trial: Trial, goals: tuple[Update, ...], allowed: Allowed, bounds: Bounds
) -> Repairs:
    """The minimal sets of changes that reach the goals, fewest side effects first.

    A goal is an insert, for a fact that shall hold, or a delete, for one that shall not.
    """
    return _Search(engine, trial, goals, allowed, bounds).run()


class _Search:
    """One question."""

    def __init__(
        self, engine: Evidence, trial: Trial, goals: tuple[Update, ...], allowed: Allowed, bounds: Bounds
    ) -> None:
        self.engine, self.trial, self.goals = engine, trial, goals
        self.allowed, self.bounds = allowed, bounds
        self.number = 0
        self.remarks = dict.fromkeys(_remarks(engine.program, goals))
        self.found: dict[Step, Changes] = {}
        self._computed = computed_columns(engine.program)
        self._work = WORK
        self._reached: dict[Step, Changes | None] = {}  # of each step tried: its changes, if it is an answer
        self._following: dict[Step, tuple[Step, ...]] = {}  # what may come next, of the others
        self._most = 0  # changes of an answer, at present
        self._cut = False  # whether that has excluded something

    def run(self) -> Repairs:
        """Search for answers of no change, of one, of two, and so on."""
        most = ENOUGH if self.bounds.changes is None else self.bounds.changes
        for self._most in range(most + 1):
            self._cut = False
            self._following.clear()
            if not self._sweep():
                if not self.found:
                    self.dive(most)
                break
            if not self._cut:
                break
            if self.bounds.changes is None and self.found:
                number = "1 change" if self._most == 1 else f"{self._most} changes"
                self.remarks[f"answers of more than {number} were not searched"] = None
                break
        return self.answered()

    def _sweep(self) -> bool:
        """Find all answers of at most `_most` changes; False if a bound ends the search."""
        numbers = count()
        agenda: list[tuple[int, int, Step]] = [(0, 0, _NOTHING)]
        seen = {_NOTHING}
        while agenda:
            _, _, step = heappop(agenda)
            if any(answer <= step for answer in self.found):
                continue
            if len(self.found) >= self.bounds.answers:
                self.remarks[f"the search stopped after {len(self.found)} answers"] = None
                return False
            if self.number >= self.bounds.trials:
                self.remarks[f"the search stopped after {self.number} trials"] = None
                return False
            for more in self.following(step):
                larger = step | more
                if larger not in seen:
                    seen.add(larger)
                    heappush(agenda, (len(larger), next(numbers), larger))
            told = self._reached[step]
            if told is not None and self.is_minimal(step):
                self.found[step] = told
        return True

    # ── trials ───────────────────────────────────────────────────────────────────────────────

    def following(self, step: Step) -> tuple[Step, ...]:
        """The sets of changes that may come next; none for an answer."""
        if self._reached.get(step) is not None:
            return ()
        if step not in self._following:
            self._following[step] = ()
            self._try(step, expand=True)
        return self._following[step]

    def reaches(self, step: Step) -> bool:
        if step not in self._reached:
            self._try(step, expand=False)
        return self._reached[step] is not None

    def _try(self, step: Step, expand: bool) -> None:
        self.number += 1
        self._reached[step] = None
        try:
            self.trial(sorted(step, key=repr), lambda told: self._look(step, told, expand))
        except EvaluationError as problem:
            self.remarks[f"a step that was tried failed: {problem}"] = None

    def _look(self, step: Step, told: Changes, expand: bool) -> None:
        """In the state of a trial: note whether it is an answer, or what comes next."""
        work = Work(min(self._work, WORK // 20))
        left = work.left
        state = NextChanges(self.engine, self.allowed, step, told, self.goals, self._computed, work)
        want = next(self._unmet(state, told), None)
        if want is None:
            self._reached[step] = {name: dict(told[name]) for name in told}
        elif expand:
            following: dict[Step, None] = {}
            try:
                for more in state.sets(want, self._most - len(step)):
                    following[more] = None
            except OutOfWork:
                self.remarks["the search was cut short: there are too many ways to go on"] = None
            self._following[step] = tuple(following)
            self._cut = self._cut or state.cut
            self._work -= left - max(work.left, 0)

    def _unmet(self, state: NextChanges, told: Changes) -> Iterator[Want]:
        """The goals that are not reached, and facts that are lost although they must stay."""
        for goal in self.goals:
            if state.holds(goal.relation, goal.row) is not goal.insert:
                yield Want(goal.relation, goal.row, goal.insert)
        for relation, row in sorted(self.allowed.lost(told), key=repr):
            yield Want(relation, row, comes=True)

    def is_minimal(self, step: Step) -> bool:
        """Whether no proper subset reaches the goals."""
        changes = sorted(step, key=repr)
        if len(changes) > DEPTH:
            return _is_monotone(self.engine.program, self.goals) and not any(
                self.reaches(step - {change}) for change in changes
            )
        return not any(
            self.reaches(frozenset(fewer)) for size in range(len(changes)) for fewer in combinations(changes, size)
        )

    # ── when the bound is reached ────────────────────────────────────────────────────────────

    def dive(self, most: int) -> None:
        """Look for one answer, however large, by the first way to go on from each state."""
        self._most, self._work = most, WORK
        self._following.clear()
        step = _NOTHING
        while following := self.following(step):
            step |= following[0]
        if not self.reaches(step):
            return
        for change in sorted(step, key=repr):
            if self.reaches(step - {change}):
                step -= {change}
        told = self._reached[step]
        assert told is not None
        if self.is_minimal(step):
            self.found[step] = told

    # ── answers ──────────────────────────────────────────────────────────────────────────────

    def answered(self) -> Repairs:
        answers = [self._repair(step, told) for step, told in self.found.items()]
        answers.sort(key=lambda answer: (answer.size, len(answer.step), repr(answer.step)))
        most = self.bounds.changes if self._cut else None
        return Repairs(self.goals, tuple(answers), not self.remarks, self.number, tuple(self.remarks), most)

    def _repair(self, step: Step, told: Changes) -> Repair:
        own = {(change.relation, change.row) for change in (*step, *self.goals)}
        effects: dict[str, dict[Row, int]] = {}
        for name in told:
            others = {row: sign for row, sign in told[name].items() if (name, row) not in own}
            if others:
                effects[name] = others
        return Repair(tuple(sorted(step, key=lambda change: (change.insert, repr(change)))), effects)


# ── what the program has ─────────────────────────────────────────────────────────────────────


def _cone(program: Program, goals: tuple[Update, ...]) -> set[str]:
    """The relations that the goals depend on."""
    reads: dict[str, set[str]] = {}
    for rule in program.rules:
        reads.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in atoms_of(rule.body))
    for subsumption in program.subsumptions:
        reads.setdefault(subsumption.dominated.relation, set()).update(
            atom.relation for atom, _ in atoms_of(subsumption.body)
        )
    found, waiting = set[str](), [goal.relation for goal in goals]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += reads.get(name, ())
    return found


def _remarks(program: Program, goals: tuple[Update, ...]) -> Iterator[str]:
    """What in the program may hide answers from the search."""
    for name in sorted(_cone(program, goals)):
        relation = program.relations[name]
        if relation.equivalence:
            yield f"`{name}` is an equivalence: pairs that follow from others are not searched"
        if relation.choices:
            yield f"`{name}` has a choice-domain: facts that take a key are not searched"
        if name in program.limits:
            yield f"`{name}` has a .limitsize"
        if any(each.dominated.relation == name for each in program.subsumptions):
            yield f"`{name}` has subsumption: better facts are not searched"
        if any(draws_numbers(rule) for rule in program.rules_of(name)):
            yield f"`{name}` draws numbers from autoinc()"


def _is_monotone(program: Program, goals: tuple[Update, ...]) -> bool:
    """Whether more base facts never mean fewer facts, so that dropping single changes suffices."""
    cone = _cone(program, goals)
    uses = {use for rule in program.rules if rule.head.relation in cone for _, use in atoms_of(rule.body)}
    return uses <= {"positive"} and not any(_remarks(program, goals))

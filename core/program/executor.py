"""The protocol of everything that runs a program, and its simplest implementation.

A run holds the relations of a program.  A step inserts and deletes base facts, in order, all or
none, and returns the net change of every relation.  `Recomputing` evaluates the whole program
after each step: slow, and right if its evaluator is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from attrs import evolve, frozen

from everlog.core.program import Program, Row

Changes: TypeAlias = Mapping[str, Mapping[Row, int]]  # relation → fact → +1 or -1
Evaluator: TypeAlias = Callable[[Program, Mapping[str, Iterable[Row]]], Mapping[str, frozenset[Row]]]


@frozen
class Update:
    """One statement of a step: `+fact` (insert) or `-fact`."""

    relation: str
    row: Row
    insert: bool = True


class Run(Protocol):
    def apply(self, step: Iterable[Update]) -> Changes:
        """Apply the updates in order, all or none; return the net change per relation."""

    def view(self, relation: str) -> frozenset[Row]:
        """The facts of a relation now."""

    def check(self) -> None:
        """Assert every invariant."""


class Executor(Protocol):
    def start(self, program: Program) -> Run:
        """A run with the program's own facts and no others."""


class NotABaseRelation(ValueError):
    """An update names a relation that does not exist, or a row that does not fit it."""


class InsertOnly(ValueError):
    """A delete from a relation that the program declares `.insert_only`."""

    def __init__(self, relation: str) -> None:
        super().__init__(f"`{relation}` is `.insert_only`: its facts cannot be deleted")


@frozen
class Recomputing:
    """The executor that evaluates the whole program after each step."""

    evaluate: Evaluator

    def start(self, program: Program) -> RecomputingRun:
        return RecomputingRun(program, self.evaluate)


class RecomputingRun:
    """Invariant: `_state` is the evaluation of the program on `_base`.

    The facts of the program text are base facts like any other: a step may delete them.
    """

    def __init__(self, program: Program, evaluate: Evaluator) -> None:
        self._program, self._evaluate = program, evaluate
        self._base: dict[str, set[Row]] = {name: set(program.facts.get(name, ())) for name in program.relations}
        self._rules_only = evolve(program, facts={})
        self._state = dict(evaluate(self._rules_only, self._base))

    def apply(self, step: Iterable[Update]) -> Changes:
        base = {name: set(rows) for name, rows in self._base.items()}
        for update in step:
            rows = base.get(update.relation)
            if rows is None:
                raise NotABaseRelation(f"undefined relation `{update.relation}`")
            if len(update.row) != self._program.relations[update.relation].arity:
                raise NotABaseRelation(f"`{update.relation}` has another number of columns")
            if update.insert:
                rows.add(update.row)
            elif self._program.relations[update.relation].insert_only:
                raise InsertOnly(update.relation)
            else:
                rows.discard(update.row)
        state = dict(self._evaluate(self._rules_only, base))
        changes = {name: _difference(self._state[name], rows) for name, rows in state.items()}
        self._base, self._state = base, state
        return {name: change for name, change in changes.items() if change}

    def view(self, relation: str) -> frozenset[Row]:
        return self._state[relation]

    def check(self) -> None:
        assert dict(self._evaluate(self._rules_only, self._base)) == self._state


def _difference(before: frozenset[Row], after: frozenset[Row]) -> dict[Row, int]:
    return dict.fromkeys(after - before, 1) | dict.fromkeys(before - after, -1)

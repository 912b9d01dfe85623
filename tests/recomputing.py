"""The simplest executor: evaluate the whole program after each step; right if its evaluator is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import evolve, frozen

from everlog.core.program import Program, Row
from everlog.core.program.executor import Changes, InsertOnly, NotABaseRelation, Update

Evaluator: TypeAlias = Callable[[Program, Mapping[str, Iterable[Row]]], Mapping[str, frozenset[Row]]]


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

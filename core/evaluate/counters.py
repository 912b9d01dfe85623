"""Rules with `autoinc()`: the reference evaluator numbers their bindings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from everlog.core.evaluate.reference import NaiveEvaluation
from everlog.core.program import Program, Row, Rule
from everlog.core.program.order import ordered


class Counting:
    """One counter per run of a program."""

    def __init__(self, program: Program, start: int = 0) -> None:
        self._naive = NaiveEvaluation(program)
        self._naive.numbers = count(start)

    @property
    def next(self) -> int:
        """The number that would be drawn next."""
        number = next(self._naive.numbers)
        self.restart(number)
        return number

    def restart(self, number: int) -> None:
        """Let this be the number that is drawn next."""
        self._naive.numbers = count(number)

    def derive(self, rule: Rule, facts: Mapping[str, Iterable[Row]]) -> set[Row]:
        """The facts of a rule with `autoinc()`, from the facts of the relations it reads."""
        self._naive.facts.update({name: ordered(rows) for name, rows in facts.items()})
        return self._naive.derive_numbered(rule)

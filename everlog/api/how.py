"""How to make facts come or go: the answers of `Database.how`.

`core.repairs` searches; here is what a user writes and reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from attrs import frozen

from everlog.api.changes import Changes
from everlog.api.facts.rows import Relations, Step, pattern_of, step_updates
from everlog.api.parameters import Given
from everlog.api.transactions import Writer
from everlog.core.program import Row
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import FactError, declared
from everlog.core.proofs.render import json_value
from everlog.core.repairs import Bounds, Repairs, repairs
from everlog.core.repairs.repair import allowed
from everlog.dsl.fact_text import fact_text
from everlog.dsl.query_text import parse_query


@frozen(repr=False)
class Answer:
    """A step that reaches the goals, and what else it would change.

    `db.apply(answer.step)` makes it so.
    """

    step: tuple[Update, ...]
    effects: Changes

    def lines(self) -> list[str]:
        """The step as lines `-fact.` and `+fact.`"""
        return [f"{update_text(self.effects.relations, update)}." for update in self.step]

    def text(self) -> str:
        """The step as a text that `apply` reads."""
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        return {"step": self.text(), "effects": changes_json(self.effects)}

    __str__ = text

    def __repr__(self) -> str:
        return f"<Answer {' '.join(self.lines())}>"


class Answers(Sequence[Answer]):
    """The answers of `Database.how`, fewest side effects first.

    `complete` says that there are no others, of at most `most` changes if that is a number;
    otherwise `remarks` say why there may be.  `trials` is the number of steps that were tried.
    """

    def __init__(self, found: Repairs, relations: Relations) -> None:
        self._relations = relations
        self.goals = found.goals
        self.complete, self.remarks, self.trials = found.complete, found.remarks, found.trials
        self.most = found.most
        self._answers = [Answer(each.step, Changes(each.effects, relations)) for each in found.answers]

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> list[Answer]: ...
    def __getitem__(self, place: int | slice) -> Answer | list[Answer]:
        return self._answers[place]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def text(self, effects: int = 5) -> str:
        """The answers, numbered from 1, each with at most this many side effects."""
        return "\n".join(self.lines(effects))

    def lines(self, effects: int = 5) -> Iterator[str]:
        goals = ", ".join(update_text(self._relations, goal) for goal in self.goals)
        for number, answer in enumerate(self, 1):
            if not answer.step:
                yield f"{goals}: nothing to do"
                return
            yield f"{number}  {'  '.join(answer.lines())}"
            also = answer.effects.text().split("\n") if answer.effects else []
            yield from (f"     also {line}" for line in also[:effects])
            if len(also) > effects:
                yield f"     also {len(also) - effects} more"
        yield self._end()

    def _end(self) -> str:
        number = number_of(len(self), "answer") if self else "no answer"
        if self.complete:
            bound = "" if self.most is None else f" of at most {number_of(self.most, 'change')}"
            return f"({number}; there are no others{bound})" if self else f"(no answer{bound})"
        return f"({number}; there may be others: {'; '.join(self.remarks)})"

    def to_json(self) -> dict[str, Any]:
        return {
            "goals": [update_text(self._relations, goal) for goal in self.goals],
            "answers": [answer.to_json() for answer in self],
            "complete": self.complete,
            "remarks": list(self.remarks),
            "trials": self.trials,
        }

    __str__ = text

    def __repr__(self) -> str:
        return f"<{len(self)} answers of {self.trials} trials>"


def answers(
    writer: Writer, goal: Step, change: Iterable[str] | None, keep: Iterable[str], bounds: Bounds
) -> Answers:
    """The answers to `Database.how`."""
    relations, engine = writer.relations, writer.engine
    goals = tuple(step_updates(relations, goal))
    if not goals:
        raise FactError("name a fact that shall come or go, such as `-path(1, 3)`")
    names = None if change is None else [declared(relations, name).name for name in change]
    engine.read_all()
    engine.prove_all()
    conditions = allowed(engine.program, names, _keeps(relations, keep))
    return Answers(repairs(engine, writer.trial, goals, conditions, bounds), relations)


def _keeps(relations: Relations, keep: Iterable[str]) -> Callable[[str, Row], bool]:
    """A test of facts that must stay, from atoms such as `path(1, x)`."""
    texts = [keep] if isinstance(keep, str) else keep
    patterns = [pattern_of(relations, parse_query(text)).filled(Given({})) for text in texts]

    def kept(relation: str, row: Row) -> bool:
        return any(pattern.relation.name == relation and pattern.matches(row) for pattern in patterns)

    return kept


def number_of(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def update_text(relations: Relations, update: Update) -> str:
    return f"{'+' if update.insert else '-'}{fact_text(relations[update.relation], update.row)}"


def changes_json(changes: Changes) -> dict[str, Any]:
    """Changes as an object for JSON: deleted and inserted rows by relation."""

    def rows(found: list[Row]) -> list[list[Any]]:
        return [[json_value(value) for value in row] for row in found]

    return {
        name: {"deleted": rows(changes.deleted(name)), "inserted": rows(changes.inserted(name))}
        for name in changes
    }

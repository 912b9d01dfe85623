"""What is asked of the search for repairs, what is allowed, and what an answer is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Program, Relation, Row
from everlog.core.program.executor import Changes, Update

Step: TypeAlias = frozenset[Update]
Keeps: TypeAlias = Callable[[str, Row], bool]


@frozen
class Bounds:
    """Where the search stops: changes in one answer, answers, and steps that are tried.

    Without a bound on changes, it stops at the number that the smallest answers have.
    """

    changes: int | None = None
    answers: int = 20
    trials: int = 1000


def _keeps_nothing(relation: str, row: Row) -> bool:
    return False


@frozen
class Allowed:
    """The conditions of an answer.

    Facts may be inserted into relations of `inserts` and deleted from those of `deletes`.  A fact
    for which `keeps` is true, and which holds now, holds afterwards.
    """

    inserts: frozenset[str]
    deletes: frozenset[str]
    keeps: Keeps = _keeps_nothing

    def has(self, change: Update) -> bool:
        return change.relation in (self.inserts if change.insert else self.deletes)

    def lost(self, told: Changes) -> Iterable[tuple[str, Row]]:
        """The facts that a step takes away although they must stay."""
        for name in told:
            for row, sign in told[name].items():
                if sign < 0 and self.keeps(name, row):
                    yield name, row


def allowed(program: Program, change: Iterable[str] | None = None, keeps: Keeps = _keeps_nothing) -> Allowed:
    """What may change: the relations `change`; without it, what a user would change by hand.

    By default any base fact may be deleted, and facts may be inserted into relations without rules:
    to insert the fact itself that is asked for would be no answer.
    """
    heads = {rule.head.relation for rule in program.rules}
    own = {name: relation for name, relation in program.relations.items() if not relation.auxiliary_of}
    inserts = set(own) - heads if change is None else set(change)
    deletes = {name for name in (own if change is None else inserts) if _deletable(program.relations[name])}
    return Allowed(frozenset(inserts), frozenset(deletes), keeps)


def _deletable(relation: Relation) -> bool:
    return not relation.insert_only


@frozen
class Repair:
    """A set of changes that makes the goals hold, and what else it changes."""

    step: tuple[Update, ...]
    effects: Mapping[str, Mapping[Row, int]]

    @property
    def size(self) -> int:
        """The number of its side effects."""
        return sum(len(rows) for rows in self.effects.values())


@frozen
class Repairs:
    """The answers, fewest side effects first.

    `complete` says that there are no others of at most `most` changes; otherwise `remarks` say
    where the search stopped.
    """

    goals: tuple[Update, ...]
    answers: tuple[Repair, ...]
    complete: bool
    trials: int
    remarks: tuple[str, ...] = ()
    most: int | None = None  # changes in an answer that were searched, if that was bounded

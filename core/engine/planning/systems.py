"""The protocol of systems that keep a recursive relation with auxiliary relations.

A system serves recursive units of one shape, such as transitive closure.  Providers (`ies`, after
Libkin and Wong) define the systems and recognise the shapes; the engine knows this protocol and the
providers' names, like plug-ins.  A program asks for a system by name, like any strategy; the
auxiliary relations are then ordinary relations of the program, named after the relation that they
help to keep (`path.tree`), and belong to its unit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Protocol, TypeAlias, runtime_checkable

from attrs import evolve, frozen

from everlog.core.program import Program, Relation, Row
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import EvaluationError
from everlog.core.storage.shape import PairFacts


class NoSuchStrategy(ValueError):
    """The requested strategy does not exist, or does not fit the relation."""


@runtime_checkable
class GroupedRows(Protocol):
    """Pairs that are available set by set."""

    def by_key(self, key: int) -> PairFacts:
        """The pairs as {key: values}; `key` is the column of the keys."""


# relation → rows that went, rows that came
RowChanges: TypeAlias = Mapping[str, tuple[Collection[Row], Collection[Row]]]


class Refused(EvaluationError):
    """A system cannot follow an update; the state is as it was before."""


class Maintained(Protocol):
    """A running system, over the program's relations; `Refused` changes nothing."""

    def load(self, rows: Mapping[str, Iterable[Row]]) -> None:
        """Begin with these facts of the relations that the rules read."""

    def change(self, relation: str, row: Row, insert: bool) -> RowChanges:
        """Insert or delete one fact; return the changes.

        Those of auxiliary relations are included only if one was read before.
        """

    def rows(self, relation: str) -> Iterable[Row]:
        """The rows of a relation; once read, `change` reports its changes."""

    def check(self) -> None:
        """Assert every invariant."""


@frozen
class Fit:
    """A system that can keep a unit: the relations it reads, and how to make one."""

    system: str
    answer: str
    inputs: tuple[str, ...]
    make: Callable[[], Maintained]


@frozen
class Described:
    """A system for `explain`: title, auxiliary relations with arity, growth and cost."""

    name: str
    title: str
    auxiliaries: tuple[tuple[str, int], ...]
    growth: str
    cost: str


class Offer(Protocol):
    """One system, requested by its name."""

    @property
    def described(self) -> Described: ...

    def fit(self, program: Program, unit: Unit) -> Fit | str:
        """How it keeps a unit, or why it cannot."""

    def auxiliaries(self, relation: Relation) -> tuple[Relation, ...]:
        """The flat auxiliary relations that it would keep beside a relation."""


Offers: TypeAlias = Mapping[str, Offer]
PROVIDERS = ["everlog.ies.offers"]  # modules with `offers() -> Offers`, imported on demand


def systems() -> Offers:
    """Every system by its name."""
    return {name: offer for module in PROVIDERS for name, offer in import_module(module).offers().items()}


def with_auxiliaries(program: Program, asked: Mapping[str, str]) -> Program:
    """The program with the auxiliary relations of the systems that are asked for."""
    more = {r.name: r for r in _auxiliaries(program, asked) if r.name not in program.relations}
    return evolve(program, relations={**program.relations, **more}) if more else program


def _auxiliaries(program: Program, asked: Mapping[str, str]) -> Iterator[Relation]:
    wishes = [*asked.values(), *(rule.strategy for rule in program.rules)]
    if not any(wishes):
        return
    offers = systems()
    for rule in program.rules:
        head = rule.head.relation
        wish = asked.get(rule.name) or asked.get(head) or rule.strategy
        if wish in offers:
            yield from offers[wish].auxiliaries(program.relations[head])

"""The base class of strategies: the keeper of a unit.

A step passes through the units in order, base facts first.  At its *turn* a keeper settles what its
relations lose and gain, and the engine *spreads* it.  To spread a change is to run every delta rule
that reads the relation, so that later keepers receive it:

    losses   on facts that go, before the table changes: derivations that used them are lost
    gains    on facts that come, after the table changed: derivations that use them are gained

and the other way round for rules that read the relation under `!`.  `core.dbsp.derive` proves that
the sum of these terms is exactly the change of a rule's derivations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import ClassVar, TypeVar

from attrs import evolve

from everlog.core import program as p
from everlog.core.dbsp import delta_rules, each_delta_rule
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Readers, Step
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.ir.set_listing import set_listing
from everlog.core.ir.uses import Use
from everlog.core.program import Row, Rule, Value
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts

_K = TypeVar("_K")
_V = TypeVar("_V")
Derivation = tuple[str, Mapping[str, Value]]  # a rule's name, and values of variables of its body


class Keeper:
    """The state of one unit.  Subclasses define how it is maintained and described."""

    about: ClassVar[str] = ""  # its state, for `explain`
    no_rule: ClassVar[str] = ""  # what is done with a change, where no delta rule runs

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        self.store, self.planned, self.number = store, planned, number
        self.waiting = False
        self.proven = True  # whether it has what losses and `derivation_of` need
        self.exact = False  # whether some rule reads two atoms of this unit, and needs its old tables
        self.given: dict[str, set[Row]] = {name: set() for name in planned.unit.relations}  # base facts

    @property
    def relations(self) -> tuple[str, ...]:
        return self.planned.unit.relations

    def holds(self, relation: str, row: Row) -> bool:
        """Whether a fact is a base fact."""
        return row in self.given[relation]

    def given_rows(self, relation: str) -> Collection[Row]:
        return self.given[relation]

    def refusal(self, relation: str) -> str:
        """Why a relation takes no base facts; empty if it does."""
        return ""

    def ready(self, relation: str) -> None:
        """Prepare for a read of a relation."""

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        """Change the base facts; its own undo, with `gone` and `new` swapped."""
        self.given[relation].difference_update(gone)
        self.given[relation].update(new)

    def use(self, store: Store) -> None:
        """Use another store, which has the same containers for this unit and its inputs."""
        self.store = store
        for task in self.tasks():
            task.store = store

    def tasks(self) -> Iterator[Task]:
        """Every compiled version of a rule so far."""
        yield from ()

    def listen(self, readers: dict[str, Readers]) -> None:
        """Register for changes of the relations that this unit reads."""

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        """Receive a change of the base facts, after `change_given`."""
        raise NotImplementedError

    def turn(self, step: Step) -> None:
        """Settle the unit, and spread its change."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop what was collected for a turn: the step is undone."""

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        """Recompute the unit from the relations it reads, in its tables.

        Returns facts of relations that are also available in containers other than the table's.
        """
        raise NotImplementedError

    def rebuilt_changes(self) -> Mapping[str, tuple[Facts, Facts]] | None:
        """The changes of the last `rebuild`; None: to be found by comparison."""
        return None

    def prove(self, guard: Guard) -> None:
        """Become `proven`, from the state between two steps."""

    def derivation_of(self, relation: str, row: Row) -> Derivation | None:
        """A derivation of a fact from earlier facts; None for a base fact or if unknown."""
        return None

    def _took(self, seconds: float) -> None:
        """Charge each rule its share of the time: all are settled at once."""
        rules = self.planned.unit.rules
        for rule in rules:
            time = self.store.time_of(rule)
            time.runs += 1
            time.seconds += seconds * self.store.weight / len(rules)

    def snapshot(self) -> Callable[[], None]:
        """A function that restores the present state after `rebuild`."""
        tables, besides = table_snapshot(self.store, self.relations), self.snapshot_besides()

        def restore() -> None:
            self.forget()
            besides()
            tables()

        return restore

    def snapshot_besides(self) -> Callable[[], None]:
        """A function that restores what the unit has besides its tables."""
        return _nothing

    def state(self) -> Columns | None:
        """The state of the unit besides base facts, as columns; None: recompute it."""
        return None

    def restore(self, columns: Columns) -> None:
        """Restore what `state` returned for the same base facts and inputs."""
        raise NotImplementedError

    def size_of(self, relation: str) -> int:
        """The number of facts, as far as it is known without looking for them."""
        return len(self.store.tables[relation])

    def containers(self, relation: str) -> list[object]:
        """The containers of a relation, to count bytes."""
        table = self.store.tables[relation]
        return [table.facts, *table.indexes.values()]

    def check(self) -> None:
        """Assert every invariant."""

    # ── reports ──────────────────────────────────────────────────────────────────────────────

    @classmethod
    def described(cls, planned: PlannedUnit) -> Iterator[str]:
        """The strategy of a unit, and why, for `explain`."""
        yield f"kept by {planned.strategy}: {cls.about} ({planned.why})"

    @classmethod
    def told_deltas(cls, planned: PlannedUnit) -> Iterator[str]:
        """The delta rules that run on a change, for `explain --deltas`."""
        if cls.no_rule:
            read = [
                name for rule in planned.unit.rules for name in outside_relations(rule, planned.unit.relations)
            ]
            yield f"on insert or delete of {', '.join(dict.fromkeys(read))}:  no rule runs; {cls.no_rule}"
            return
        for rule in planned.unit.rules:
            for relation in outside_relations(rule, ()):
                for delta in each_delta_rule(rule, relation):
                    yield f"on {delta.event} of {relation}:  {delta}"

    def told_code(self, only: str | None, ir: bool = False) -> Iterator[str]:
        """The Python that small steps may run, or its plans: of all rules, or those of a name."""
        for task in self.tasks():
            if only is None or only in (task.rule.name, task.rule.head.relation):
                code = task.code()
                yield set_listing(code.plan) if ir else code.source

    def work_of(self, name: str) -> int:
        """The work of a rule's join so far, in units of work; 0 where it is not counted."""
        return 0

    def strategy_now(self, rule: Rule) -> str:
        """The strategy that keeps a rule of the unit at present."""
        return self.planned.strategy


def outside_relations(rule: Rule, unit: Iterable[str]) -> list[str]:
    """The relations that a rule in normal form reads beyond its own unit, once each."""
    inside = set(unit)
    return list(dict.fromkeys(a.relation for a, _ in p.atoms_of(rule.body) if a.relation not in inside))


def versions(
    store: Store, rule: Rule, relation: str, uses: Mapping[int, Use], filters: bool = True
) -> Iterator[tuple[str, int, Task, bool]]:
    """The delta rules of a rule: event, sign, task, and whether Δ is read as a table."""
    for version in delta_rules(rule, relation):
        body = version.body if filters else version.body[: len(rule.body)]
        changed = evolve(rule, body=body)
        task = Task(store, changed, version.position, uses[version.sign])
        yield version.event, version.sign, task, len(body) > len(rule.body)


def _nothing() -> None:
    pass


def content_of(kept: dict[_K, _V]) -> Callable[[], None]:
    """A function that restores the present content of a dict.

    >>> numbers = {1: 10}
    >>> restore = content_of(numbers); numbers[2] = 20; restore(); numbers
    {1: 10}
    """
    content = dict(kept)

    def restore() -> None:
        kept.clear()
        kept.update(content)

    return restore


def table_snapshot(store: Store, names: Iterable[str]) -> Callable[[], None]:
    """A function that restores tables.

    It does not copy value sets: a rebuild makes new ones.
    """
    kept = {name: store.tables[name].facts.copy() for name in names}

    def restore() -> None:
        for name, facts in kept.items():
            store.tables[name].replace(facts)

    return restore

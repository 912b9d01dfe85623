"""What every strategy is: the keeper of a unit.

A step goes through the units in order.  Facts that are given come first; then, unit by unit, a
keeper takes its *turn*: it settles what its relations lose and gain and has the engine *spread* it.
To spread a change is to run every delta rule that reads the relation, so that later keepers hear of
it:

    losses   on facts that go, before the table changes: derivations that used them are lost
    gains    on facts that come, after the table changed: derivations that use them are gained

and the other way round for rules that read the relation under `!`.  That a sum of these terms is
exactly the change of a rule's derivations is proved in `core.dbsp.derive`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import ClassVar

from attrs import evolve

from everlog.core import program as p
from everlog.core.codegen.derivations import LivingWriter
from everlog.core.dbsp import delta_rules, each_delta_rule
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Readers, Step
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.program import Row, Rule, Value
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts

Derivation = tuple[str, Mapping[str, Value]]  # a rule's name, and values of variables of its body


class Keeper:
    """The state of one unit.  Subclasses say how it is maintained, and what is told of that."""

    about: ClassVar[str] = ""  # what it keeps, for `explain`

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        self.store, self.planned, self.number = store, planned, number
        self.waiting = False
        self.proven = True  # whether what losses and `derivation_of` need is there
        self.exact = False  # whether some rule reads two atoms of this unit, and needs its tables of before
        self.given: dict[str, set[Row]] = {name: set() for name in planned.unit.relations}

    @property
    def relations(self) -> tuple[str, ...]:
        return self.planned.unit.relations

    def holds(self, relation: str, row: Row) -> bool:
        """Whether a fact is given."""
        return row in self.given[relation]

    def given_rows(self, relation: str) -> Collection[Row]:
        return self.given[relation]

    def refusal(self, relation: str) -> str:
        """Why no facts can be given to a relation; nothing if they can."""
        return ""

    def ready(self, relation: str) -> None:
        """Somebody is about to read a relation."""

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        """Apply a change to the base facts; its own undo, with `gone` and `new` swapped."""
        self.given[relation].difference_update(gone)
        self.given[relation].update(new)

    def use(self, store: Store) -> None:
        """Use another store, which has the same containers for this unit and its inputs."""
        self.store = store
        for task in self.tasks():
            task.store = store

    def tasks(self) -> Iterator[Task]:
        """Every version of a rule that was asked for so far."""
        yield from ()

    def listen(self, readers: dict[str, Readers]) -> None:
        """Say which changes of other relations this unit wants to hear of."""

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        """Facts that are given went and came; `change_given` has noted it."""
        raise NotImplementedError

    def turn(self, step: Step) -> None:
        """Settle the unit, and spread what changed."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop what was collected for a turn that does not come: the step is given up."""

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        """Compute the unit anew from what it reads; the tables are left in the new state.

        Returns the facts of relations for which they happen to be there in other containers than
        the table's.
        """
        raise NotImplementedError

    def prove(self, guard: Guard) -> None:
        """Be `proven`, from the state between two steps."""

    def derivation_of(self, relation: str, row: Row) -> Derivation | None:
        """How a fact was derived from earlier facts; None if it is given or unknown."""
        return None

    def snapshot(self) -> Callable[[], None]:
        """How to come back to the present state after `rebuild`."""
        raise NotImplementedError

    def state(self) -> Columns | None:
        """What the unit keeps beside given facts, as columns; None if it is to be computed."""
        return None

    def restore(self, columns: Columns) -> None:
        """Take over what `state` returned for the same base facts and inputs."""
        raise NotImplementedError

    def containers(self, relation: str) -> list[object]:
        """What the unit keeps for a relation, for those who count bytes."""
        table = self.store.tables[relation]
        return [table.facts, *table.indexes.values()]

    def check(self) -> None:
        """Assert every invariant."""

    # ── reports ──────────────────────────────────────────────────────────────────────────────

    @classmethod
    def described(cls, planned: PlannedUnit) -> Iterator[str]:
        """How a unit is kept, and why, for `explain`."""
        yield f"kept by {planned.strategy}: {cls.about} ({planned.why})"

    @classmethod
    def told_deltas(cls, planned: PlannedUnit) -> Iterator[str]:
        """What runs when a relation changes that the unit reads, for `explain --deltas`."""
        for rule in planned.unit.rules:
            for relation in outside_relations(rule, ()):
                for delta in each_delta_rule(rule, relation):
                    yield f"on {delta.event} of {relation}:  {delta}"

    def told_code(self, only: str | None) -> Iterator[str]:
        """The Python that small steps may run, of all rules, or of one, or of one relation."""
        for task in self.tasks():
            if only is None or only in (task.rule.name, task.rule.head.relation):
                yield task.code().source

    def work_of(self, name: str) -> int:
        """The work of a rule's join so far, in units of work; 0 where it is not counted."""
        return 0

    def strategy_now(self, rule: Rule) -> str:
        """How a rule of the unit is kept at present."""
        return self.planned.strategy


def outside_relations(rule: Rule, unit: Iterable[str]) -> list[str]:
    """The relations that a rule in normal form reads beyond its own unit, once each."""
    inside = set(unit)
    return list(dict.fromkeys(a.relation for a, _ in p.atoms_of(rule.body) if a.relation not in inside))


def versions(
    store: Store, rule: Rule, relation: str, modes: dict[int, type[LivingWriter]], filters: bool = True
) -> Iterator[tuple[str, int, Task, bool]]:
    """The delta rules of a rule: event, sign, task, and whether Δ is read as a table."""
    for version in delta_rules(rule, relation):
        body = version.body if filters else version.body[: len(rule.body)]
        changed = evolve(rule, body=body)
        task = Task(store, changed, version.position, modes[version.sign])
        yield version.event, version.sign, task, len(body) > len(rule.body)


def table_snapshot(store: Store, names: Iterable[str]) -> Callable[[], None]:
    """How to put tables back; sets of values are not copied: a rebuild makes new ones."""
    kept = {name: store.tables[name].facts.copy() for name in names}

    def restore() -> None:
        for name, facts in kept.items():
            store.tables[name].replace(facts)

    return restore

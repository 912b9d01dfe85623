"""The keepers of a plan, their readers, and how they survive a change of rules.

When rules change, a unit keeps all its state if its rules and strategy are the same and it reads
nothing that has to be recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from everlog.core import program as p
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.recomputed import RecomputeKeeper, chain_counters
from everlog.core.engine.keepers.unit_strategies import keeper_of
from everlog.core.engine.keepers.views.view_keeper import ViewKeeper
from everlog.core.engine.keepers.views.view_table import ViewTable
from everlog.core.engine.planning.plan import (
    CLASSES,
    COUNTS,
    FLOW,
    GIVEN,
    RANKED,
    RANKED_PYTHON,
    Plan,
    PlannedUnit,
)
from everlog.core.engine.stepping.found_changes import FoundFacts, StepIsOver
from everlog.core.engine.stepping.step import Readers
from everlog.core.engine.stepping.store import Store
from everlog.core.program import Program, Row, Rule
from everlog.core.storage.shape import Facts
from everlog.core.storage.tables import Table


class Network:
    """Keepers in the order of their turns; `home` maps a relation to its keeper."""

    def __init__(self, plan: Plan, reported: Iterable[str], store: Store | None = None) -> None:
        self.reported = frozenset(reported)  # the relations whose changes a step reports
        self.store = store or Store()
        self.plan = plan
        self.keepers: list[Keeper] = []
        self.home: dict[str, Keeper] = {}
        self.readers: dict[str, Readers] = {}
        self.rules: dict[str, Rule] = {}
        if store is None:
            self.store.adopt(plan)
            self.store.begin(plan.program.relations)
            self._place([keeper_of(self.store, u, n) for n, u in enumerate(plan.units)])

    def _place(self, keepers: list[Keeper]) -> None:
        self.keepers = keepers
        for number, keeper in enumerate(keepers):
            keeper.number = number
            for name in keeper.relations:
                self.home[name] = keeper
            keeper.listen(self.readers)
        self.rules = {rule.name: rule for rule in self.plan.program.rules}
        self._find_exact()
        chain_counters(iter(keepers))

    def _find_exact(self) -> None:
        """Mark units of which a rule reads two atoms: it needs their earlier state."""
        for keeper in self.keepers:
            keeper.exact = False
        for rule in self.plan.program.rules:
            seen: set[int] = set()
            for atom, _ in p.atoms_of(rule.body):
                keeper = self.home[atom.relation]
                if keeper.number in seen and rule.head.relation not in keeper.relations:
                    keeper.exact = True
                seen.add(keeper.number)

    def strategy_now(self, rule: Rule) -> str:
        """The strategy that keeps a rule at present."""
        return self.home[rule.head.relation].strategy_now(rule)

    def work_of(self, rule: Rule) -> int:
        """What the join of a rule has done so far, in units of work."""
        return self.home[rule.head.relation].work_of(rule.name)

    def listen_again(self) -> None:
        """Rebuild the readers, after some keeper changed what it reads."""
        self.readers.clear()
        self._place(self.keepers)

    def resume(self) -> None:
        """Be in force again, after a change that was undone."""
        self.store.adopt(self.plan)
        for keeper in self.keepers:
            keeper.use(self.store)
        self.listen_again()

    def reached(self, relations: Iterable[str]) -> list[Keeper]:
        """The keepers that a change of these relations may reach, in order."""
        dirty = set(relations)
        out = []
        for keeper in self.keepers:
            follows = isinstance(keeper, RecomputeKeeper) and keeper.before in out
            if follows or not dirty.isdisjoint([*keeper.relations, *keeper.planned.unit.reads]):
                dirty.update(keeper.relations)
                out.append(keeper)
        return out

    def after(self, relation: str) -> list[Keeper]:
        """The keepers that a change of a base relation may reach, beyond its own."""
        return [keeper for keeper in self.reached([relation]) if relation not in keeper.relations]

    def may_lose(self, relation: str, insert: bool) -> list[Keeper]:
        """The keepers whose relations may lose facts when a fact comes or goes."""
        changing, losing = {relation}, set() if insert else {relation}
        out = []
        for keeper in self.reached([relation]):
            changing.update(keeper.relations)
            reads = [use for rule in keeper.planned.unit.rules for use in p.atoms_of(rule.body)]
            loses = keeper.planned.strategy not in (GIVEN, COUNTS, FLOW, CLASSES, RANKED, RANKED_PYTHON)
            loses = loses or not losing.isdisjoint([*keeper.relations, *(atom.relation for atom, _ in reads)])
            if loses or any(use != "positive" and atom.relation in changing for atom, use in reads):
                losing.update(keeper.relations)
                out.append(keeper)
        return out

    def is_filtered(self, relation: str) -> bool:
        """Whether some rule reads the relation twice, and needs its change as a table."""
        readers = self.readers.get(relation)
        return readers is not None and readers.filtered

    def forget_grown_tasks(self) -> None:
        sizes: dict[str, int] = {}
        for keeper in self.keepers:
            for task in keeper.tasks():
                task.forget_if_grown(sizes)

    # ── another program ──────────────────────────────────────────────────────────────────────

    def changed(
        self, plan: Plan, old: Program, new: Program, reported: Iterable[str]
    ) -> tuple[Network, list[Keeper]]:
        """The network of another plan, and those of its keepers that must be computed."""
        network = Network(plan, reported, self.store.beside())
        store = network.store
        known = {keeper.planned.unit.relations: keeper for keeper in self.keepers}
        store.adopt(plan)
        dirty: set[str] = set()
        keepers: list[Keeper] = []
        fresh: list[Keeper] = []
        for number, planned in enumerate(plan.units):
            former = known.get(planned.unit.relations)
            if former is not None and self._same(former, planned, old, new, dirty, plan):
                keepers.append(former)
                continue
            dirty.update(planned.unit.relations)
            store.begin(planned.unit.relations)
            keeper = keeper_of(store, planned, number)
            for name in planned.unit.relations:
                rows = list(plan.given[name]) if name in plan.given else self._base_rows(name, old, new)
                keeper.change_given(name, [], rows)
                if not planned.unit.rules:
                    keeper.give(_NoStep(), name, [], rows)  # type: ignore[arg-type]
            keepers.append(keeper)
            fresh.append(keeper)
        for keeper in keepers:
            keeper.use(store)
        for name in set(store.tables) - set(plan.program.relations):
            del store.tables[name]
        network._place(keepers)
        return network, fresh

    def _same(
        self, former: Keeper, planned: PlannedUnit, old: Program, new: Program, dirty: set[str], plan: Plan
    ) -> bool:
        before = former.planned
        return (
            before.strategy == planned.strategy
            and before.unit == planned.unit
            and before.group == planned.group
            and before.joins == planned.joins
            and dirty.isdisjoint(planned.unit.reads)
            and all(
                set(former.given_rows(name)) == set(plan.given[name])
                for name in planned.unit.relations
                if name in plan.given
            )
            and all(
                self.plan.program.relations[name] == plan.program.relations[name]
                and self.plan.shapes[name] == plan.shapes[name]
                and old.facts.get(name, ()) == new.facts.get(name, ())
                and old.limits.get(name) == new.limits.get(name)
                for name in planned.unit.relations
            )
            and not (isinstance(former, RecomputeKeeper) and former.numbers)
            and all(old.functors.get(f) == new.functors.get(f) for f in _functors(planned))
        )

    def _base_rows(self, name: str, old: Program, new: Program) -> list[Row]:
        """The base facts under the new program.

        A deleted fact of the text stays deleted, unless the new text states it more often.
        """
        before, after = Counter(old.facts.get(name, ())), Counter(new.facts.get(name, ()))
        former, declared = old.relations.get(name), new.relations.get(name)
        if former is None or declared is None or _kinds(former) != _kinds(declared):
            return list(after)
        dropped = before.keys() - after.keys()
        rows = dict.fromkeys(row for row in self.home[name].given_rows(name) if row not in dropped)
        rows.update(dict.fromkeys(row for row, times in after.items() if times > before[row]))
        return list(rows)

    def base_change(
        self, old: Network, old_program: Program, program: Program
    ) -> dict[str, tuple[list[Row], list[Row]]]:
        """The base facts that go and come with a change of the program."""
        net = {}
        for name in dict.fromkeys([*old_program.relations, *program.relations]):
            former, now = old.home.get(name), self.home.get(name)
            if former is now:
                continue
            before = [] if former is None else list(former.given_rows(name))
            after = [] if now is None else list(now.given_rows(name))
            declared = old_program.relations.get(name), program.relations.get(name)
            if len({_kinds(relation) for relation in declared if relation is not None}) == 1:
                both = set(before) & set(after)
                before, after = [r for r in before if r not in both], [r for r in after if r not in both]
            if before or after:
                net[name] = before, after
        return net

    def difference(self, name: str, former: Table | None, old: Network) -> tuple[Facts, Facts] | None:
        """The change of a relation since another network; None if there is none."""
        table = self.store.tables.get(name)
        if table is not None and table is old.store.tables.get(name):
            return None
        if isinstance(table, ViewTable) or isinstance(former, ViewTable):
            found = self._found_difference(name, former, table)
            return found if any(found) else None
        shape = self.store.shapes[name]
        after = shape.empty() if table is None else table.facts
        before = None if former is None else former.facts
        if before is None:
            gone, new = (shape.empty(),) * 2 if table is None else table.difference(shape.empty())
        elif old.store.shapes[name] == shape:
            gone, new = (before, shape.empty()) if table is None else table.difference(before)
        else:
            earlier, gone, new = old.store.shapes[name], before, shape.copied(after)
            if earlier.arity == shape.arity:
                gone = shape.facts_of(earlier.rows_of(gone))
                gone, new = shape.minus(gone, new), shape.minus(new, gone)
        return (gone, new) if gone or new else None

    def _found_difference(
        self, name: str, former: Table | None, now: Table | None
    ) -> tuple[FoundFacts, FoundFacts]:
        """The same where a table is that of a view: found when somebody reads it."""
        keeper = self.home.get(name)
        version = keeper.version if isinstance(keeper, ViewKeeper) else 0

        def rows(of: Table | None, but: Table | None) -> FoundFacts:
            def has(row: Row) -> bool:
                if isinstance(keeper, ViewKeeper) and keeper.version != version:
                    raise StepIsOver(name)
                return _holds(of, row) and not _holds(but, row)

            return FoundFacts(lambda: filter(has, of.rows() if of is not None else ()), has)

        return rows(former, now), rows(now, former)


def _holds(table: Table | None, row: Row) -> bool:
    return table is not None and table.arity == len(row) and row in table


class _NoStep:
    def wake(self, keeper: Keeper) -> None:
        pass


def _functors(planned: PlannedUnit) -> set[str]:
    return {c.name[1:] for r in planned.unit.rules for c in p.calls_of(r) if c.name.startswith("@")}


def _kinds(relation: p.Relation) -> tuple[p.Kind, ...]:
    return tuple(column.kind for column in relation.columns)

"""Recursive units: one well-founded witness per fact.

Beside each fact the keeper stores one derivation of it: the rule, and the values of the variables
that the head does not show.  The derivation used only earlier facts, so the witnesses form a
forest.

*Load*: whole evaluation, which needs no witnesses.  They are made on demand, by a step that may
delete facts or a question why a fact is there.  From then on all facts have one.

*Insert*: semi-naive rounds from the new facts; a new fact gets the derivation that produced it.

*Delete*: a fact becomes suspect when its witness used a fact that went or is suspect; not when any
derivation did, as in delete-and-rederive.  Suspects stay in the tables.  Each one that has another
derivation from facts that are not suspect is saved with that as its witness, and may save others.
The remaining suspects go.

A step reports losses and gains of other relations one relation after the other.  Losses mark
suspects at once, while the facts that a witness used are still in the tables.  Gains wait until the
turn of the unit: by then all relations that the rules read are in their new state.

Source: Gupta, Mumick, Subrahmanian, SIGMOD 1993 (delete-and-rederive).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core import program as p
from everlog.core.engine.keepers.keeper import Derivation, Keeper, outside_relations, table_snapshot, versions
from everlog.core.engine.keepers.recursive.ancestry import Ancestry
from everlog.core.engine.keepers.recursive.proofs import GroupedProofs, Proofs, ProofsOf
from everlog.core.engine.keepers.recursive.turn_work import (
    FACT,
    FOLLOWED,
    TurnWork,
)
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.engine.stepping.work import Enough
from everlog.core.evaluate.rounds import Collected, Rounds, RoundTask
from everlog.core.evaluate.seminaive import Context
from everlog.core.ir.uses import Action, hidden_variables
from everlog.core.program import Atom, Negation, Row, Rule
from everlog.core.program.carried import carried_from
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Counted, Facts, Shape
from everlog.core.storage.table_shapes import PairShape
from everlog.core.storage.tables import Table, TableOf

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

GIVEN: tuple[()] = ()  # the witness of a base fact
FEW = 1000  # facts that lost their witness, up to which each is followed up
CHANCES = 2  # generations of suspects, most of them not spared, until no more are followed up
_SUSPECTS = "Δ?"  # prefix of the relation of a relation's suspects


class RecursiveKeeper(Keeper):
    """Keeps any recursion, by one witness per fact.

    Invariants:
      I1  `proofs` has a witness for each fact of the tables, and for no other; until the unit is
          `proven`, some facts may have none;
      I2  a witness is that of a base fact, or an instance of a rule whose body holds;
      I3  the witnesses are well-founded.
    """

    about = "one well-founded witness for each fact"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.shapes = {name: store.shapes[name] for name in self.relations}
        self.tables = {name: store.tables[name] for name in self.relations}
        carried = carried_relations(planned.unit, self.shapes)
        store.grouped.difference_update(self.relations)
        store.grouped.update(carried)
        self.proofs: dict[str, Proofs] = {}
        for name, shape in self.shapes.items():
            data = store.proofs.setdefault(name, {})
            if name in carried and isinstance(shape, PairShape):
                self.proofs[name] = GroupedProofs(shape, data)
            else:
                self.proofs[name] = ProofsOf(shape, data)
        self.suspects: dict[str, Facts] = {}
        self.gains: list[tuple[Task, str, Facts]] = []
        self.brought: dict[str, list[Row]] = {}
        self.proven = False  # whether each fact has its witness
        self.work = TurnWork()
        self.too_much = False  # whether losses have cost as much as a computation before the turn
        self.invents = any(p.invents(rule) for rule in planned.unit.rules)
        self._make_tasks()
        self._ancestry = Ancestry(planned.unit.rules, store.numbers, self.proofs)

    def _make_tasks(self) -> None:
        """Make tasks: whole rules, and each rule from each of its atoms of this unit."""
        store, own = self.store, frozenset(self.relations)
        forward, backward = self.work.use(Action.WITNESS), self.work.use(Action.SUSPECT)
        self._outside: list[Task] = []
        self._whole: list[Task] = []
        self._forward: dict[str, list[Task]] = {name: [] for name in own}
        self._backward: dict[str, list[Task]] = {name: [] for name in own}
        self._again: dict[str, list[Task]] = {name: [] for name in own}
        self._save: dict[str, list[Task]] = {name: [] for name in own}
        for name in own:
            store.shapes[_SUSPECTS + name] = store.shapes[name]
            store.deltas[_SUSPECTS + name] = TableOf(store.shapes[name])
        self._asked = {name: store.deltas[_SUSPECTS + name] for name in own}
        for rule in self.planned.unit.rules:
            head = rule.head.relation
            inside = False
            for position, literal in enumerate(rule.body):
                if isinstance(literal, Atom) and literal.relation in own:
                    inside = True
                    self._forward[literal.relation].append(Task(store, rule, position, forward, own))
                    self._backward[literal.relation].append(Task(store, rule, position, backward, own))
                    self._save[literal.relation].append(self._saving(rule, position))
            if not inside:
                self._whole.append(Task(store, rule, None, forward))
            self._again[head].append(self._restoring(rule))

    def _restoring(self, rule: Rule) -> Task:
        """The rule for facts that are suspects, from facts that are not."""
        asked = Atom(_SUSPECTS + rule.head.relation, rule.head.args)
        # A head that computes cannot be run backwards: then facts come first, and suspects second.
        computes = any(isinstance(a, p.Call) for a in rule.head.args)
        body = (asked, *rule.body, *self._not_suspect(rule, None))
        position = None if computes else 0
        sets = rule.head.relation in self.store.grouped  # else many small sets: row by row is faster
        use = self.work.use(Action.RESTORE)
        return Task(self.store, evolve(rule, body=body), position, use, sets=sets)

    def _saving(self, rule: Rule, position: int) -> Task:
        """The rule from a fact that was just saved, for suspects only."""
        asked = Atom(_SUSPECTS + rule.head.relation, rule.head.args)
        body = (*rule.body, asked, *self._not_suspect(rule, position))
        return Task(self.store, evolve(rule, body=body), position, self.work.use(Action.SAVE))

    def _not_suspect(self, rule: Rule, position: int | None) -> list[Negation]:
        """Tests that the facts of this unit which a rule reads are not suspects."""
        inside = [
            x
            for n, x in enumerate(rule.body)
            if isinstance(x, Atom) and x.relation in self.relations and n != position
        ]
        return [Negation(Atom(_SUSPECTS + atom.relation, atom.args)) for atom in inside]

    def tasks(self) -> Iterator[Task]:
        yield from self._whole
        yield from self._outside
        for by_relation in (self._forward, self._backward, self._again, self._save):
            for tasks in by_relation.values():
                yield from tasks

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        uses = {1: self.work.use(Action.WITNESS), -1: self.work.use(Action.SUSPECT)}
        self._outside.clear()
        for rule in self.planned.unit.rules:
            for relation in outside_relations(rule, self.relations):
                entry = readers.setdefault(relation, Readers())
                for event, sign, task, _ in versions(self.store, rule, relation, uses, filters=False):
                    self._outside.append(task)
                    listener = self._gaining(task) if sign > 0 else self._losing(task)
                    entry.of(event, sign).append(listener)

    def _gaining(self, task: Task) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            self.gains.append((task, task.rule.head.relation, delta))
            step.wake(self)

        return listener

    def _losing(self, task: Task) -> Listener:
        head = task.rule.head.relation

        def listener(step: Step, delta: Facts) -> None:
            assert self.proven, "a loss finds its suspects by witnesses"
            self.work.begin(self)
            try:
                facts = self._taken(step, head, [(task, delta)]) if not self.too_much else None
            except Enough:
                self.too_much, facts = True, None
                step.wake(self)
            if facts:
                self._suspect(head, facts)
                step.wake(self)

        return listener

    def _taken(self, step: Step, name: str, runs: list[tuple[Task, Facts]]) -> Facts:
        """The new suspects that rules find in a relation; they lose their witnesses."""
        proofs = self.proofs[name]
        found = proofs.found()
        facts: Facts = self.shapes[name].empty()
        with step.guard.shield:
            try:
                for task, delta in runs:
                    task(delta, found)
            finally:
                if found:
                    facts, taken = proofs.taken(found)
                    step.undo.append((proofs.put, (taken,)))
        return facts

    def _suspect(self, name: str, facts: Facts) -> None:
        known = self.suspects.get(name)
        if known is None:
            self.suspects[name] = facts
        else:
            self.shapes[name].add_facts(known, facts)

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        shape, proofs = self.shapes[relation], self.proofs[relation]
        lost = [row for row in gone if proofs.get(row) == GIVEN]
        if lost:
            facts = shape.facts_of(lost)
            with step.guard.shield:
                step.undo.append((proofs.put, (proofs.take(facts),)))
            self._suspect(relation, facts)
        if new:
            self.brought[relation] = new
        if lost or new:
            step.wake(self)

    def forget(self) -> None:
        self.suspects, self.gains, self.brought = {}, [], {}
        self.too_much = False
        self.work.end()

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        self.work.begin(self)
        mark = len(step.undo)
        try:
            if self.too_much:
                raise Enough("")
            lost = self._lost(step, self.suspects) if self.suspects else {}
            added = self._gained(step) if self.gains or self.brought else {}
        except Enough:
            with step.guard.shield:
                step.undo_until(mark)
            changes = self._computed_anew(step)
        else:
            changes = self._changes(lost, added)
        self.forget()
        self._tell(step, changes)

    def _gained(self, step: Step) -> dict[str, Facts]:
        """Add the facts that follow from what came."""
        added: dict[str, Facts] = {}
        step.undo.append((self._take_back, (added,)))
        new: dict[str, Counted] = {}
        for name, rows in self.brought.items():
            self._bring(name, rows, new)
        for task, head, delta in self.gains:
            task(delta, new.setdefault(head, {}))
        _WitnessRounds(self, step.guard, added).run_from(new)
        return added

    def _computed_anew(self, step: Step) -> list[tuple[str, Facts, Facts]]:
        """Compute the unit from the relations that it reads; return its changes."""
        before = {name: table.facts.copy() for name, table in self.tables.items()}
        step.undo.append((self.snapshot(), ()))
        self._derive_with_witnesses(step.guard)
        step.anew.append(self)
        return [(name, *self.tables[name].difference(facts)) for name, facts in before.items()]

    def _lost(self, step: Step, roots: dict[str, Facts]) -> dict[str, Facts]:
        """Remove the facts that have no derivation left, and save all other suspects."""
        asked = self._asked
        try:
            self._find_suspects(step, roots)
            new = self._restored({name: table.facts for name, table in asked.items() if table.facts})
            while new:
                new = self._saved(step, new)
            lost = {name: t.shape.copied(t.facts) for name, t in asked.items() if t.facts}
        finally:
            for table in asked.values():
                table.clear()
        for name, facts in lost.items():
            step.undo.append((self.tables[name].merge, (facts,)))
            with step.guard.shield:
                self.tables[name].remove(facts)
        return lost

    def _find_suspects(self, step: Step, frontier: dict[str, Facts]) -> None:
        """Find all facts whose witness leads to a suspect, except those that are spared."""
        chances = CHANCES
        while frontier:
            for name, facts in frontier.items():
                self._asked[name].merge(facts)
            before = self._number(frontier)
            self.work.add(FACT * before)
            if chances:
                frontier = self._spared(step, frontier, before)
                chances -= self._number(frontier) * 2 > before
            runs: dict[str, list[tuple[Task, Facts]]] = {}
            for name, facts in frontier.items():
                for task in self._backward[name]:
                    runs.setdefault(task.rule.head.relation, []).append((task, facts))
            frontier = {}
            for name, tasks in runs.items():
                facts = self._taken(step, name, tasks)
                if facts:
                    frontier[name] = facts

    def _number(self, facts: dict[str, Facts]) -> int:
        return sum(self.shapes[name].size_of(of) for name, of in facts.items())

    def _spared(self, step: Step, suspects: dict[str, Facts], number: int) -> dict[str, Facts]:
        """Give suspects with another well-founded derivation that one; return the others.

        All facts that rested on the spared ones can stay.
        """
        if number > FEW:
            return suspects
        left = dict(suspects)
        for name, new in self._restored(suspects).items():
            shape, proofs, is_founded = self.shapes[name], self.proofs[name], self._ancestry.is_founded
            spared = shape.empty()
            step.undo.append((proofs.take, (spared,)))
            for row, witness in proofs.entries(new):
                founded = is_founded(row, witness)
                self.work.add(FOLLOWED * self._ancestry.followed)
                if founded:
                    shape.add_row(spared, row)
                    proofs.set(row, witness)
            if spared:
                self._asked[name].remove(spared)
                left[name] = shape.minus(suspects[name], spared)
        return {name: facts for name, facts in left.items() if facts}

    def _restored(self, suspects: dict[str, Facts]) -> dict[str, Counted]:
        """The suspects that are base facts, or follow from facts that are not suspect."""
        new: dict[str, Counted] = {}
        for name, facts in suspects.items():
            out = new[name] = {}
            if self.given[name]:
                for row in self.shapes[name].rows_of(facts):
                    if row in self.given[name]:
                        self.proofs[name].bring(out, row, GIVEN)
            for task in self._again[name]:
                task(facts, out)
        return new

    def _saved(self, step: Step, new: dict[str, Counted]) -> dict[str, Counted]:
        """Give suspects their new witnesses; return the suspects that they save in turn."""
        saved: dict[str, Facts] = {}
        self.work.add(0)
        for name, witnesses in new.items():
            if witnesses:
                proofs = self.proofs[name]
                saved[name] = facts = proofs.facts(witnesses)
                step.undo.append((proofs.take, (facts,)))
                with step.guard.shield:
                    proofs.merge(witnesses)
                    self._asked[name].remove(facts)
        found: dict[str, Counted] = {}
        for name, facts in saved.items():
            for task in self._save[name]:
                head = task.rule.head.relation
                if self._asked[head].facts:
                    task(facts, found.setdefault(head, {}))
        return found

    def _bring(self, name: str, rows: list[Row], new: dict[str, Counted]) -> None:
        """Collect base facts that are not present yet."""
        shape, facts = self.shapes[name], self.tables[name].facts
        out = new.setdefault(name, {})
        for row in rows:
            if not shape.has_row(facts, row):
                self.proofs[name].bring(out, row, GIVEN)

    def _changes(self, suspects: dict[str, Facts], added: dict[str, Facts]) -> list[tuple[str, Facts, Facts]]:
        """The net change of each relation."""
        changes: list[tuple[str, Facts, Facts]] = []
        for name in self.relations:
            shape = self.shapes[name]
            lost, came = suspects.get(name), added.get(name)
            gone = shape.minus(lost, self.tables[name].facts) if lost else shape.empty()
            new = shape.empty() if not came else shape.minus(came, lost) if lost else came
            changes.append((name, gone, new))
        return changes

    def _tell(self, step: Step, changes: list[tuple[str, Facts, Facts]]) -> None:
        changes = [change for change in changes if change[1] or change[2]]
        if self.exact and changes:
            with step.guard.shield:  # back to the earlier state for a while: some reader needs it
                for name, gone, new in changes:
                    self.tables[name].remove(new)
                    self.tables[name].merge(gone)
        for name, gone, new in changes:
            step.spread(name, gone, new, applied=not self.exact)

    def _take_back(self, added: dict[str, Facts]) -> None:
        for name, facts in added.items():
            self.tables[name].remove(facts)
            self.proofs[name].take(facts)

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        """Recompute by whole evaluation; with witnesses only if some were needed before."""
        self.forget()
        if self.proven:
            self._derive_with_witnesses(step.guard)
            return {}
        for name, table in self._evaluated(step.guard).items():
            self.proofs[name].data.clear()
            self.tables[name].replace(table.facts)
        return {}

    def _evaluated(self, guard: Guard) -> dict[str, Table]:
        """The unit by whole evaluation of its rules as written, in tables of its own."""
        store, unit = self.store, self.planned.unit
        unit = evolve(unit, rules=tuple(store.plan.written.get(rule.name, rule) for rule in unit.rules))
        program = evolve(store.plan.program, rules=unit.rules)
        reads = {name for rule in unit.rules for name in outside_relations(rule, unit.relations)}
        indexes = {name: set(store.tables[name].indexes) for name in reads}
        try:
            return Context(program, store.shapes, dict(store.tables), guard).run(unit, self.given)
        finally:
            for name, there in indexes.items():  # drop new indexes: each would have to follow changes
                for index in store.tables[name].indexes.keys() - there:
                    del store.tables[name].indexes[index]

    def _derive_with_witnesses(self, guard: Guard) -> None:
        """Derive the unit with witnesses; the caller knows how to undo it."""
        self.work.unlimited()
        for name in self.relations:
            self.tables[name].clear()
            self.proofs[name].data.clear()
        new: dict[str, Counted] = {}
        for name, rows in self.given.items():
            if rows:
                self._bring(name, list(rows), new)
        for task in self._whole:
            task(None, new.setdefault(task.rule.head.relation, {}))
        _WitnessRounds(self, guard, None).run_from(new)
        self.work.computed(sum(map(len, self.tables.values())))
        self.proven = True

    def prove(self, guard: Guard) -> None:
        """Derive the unit once more, beside its tables, which readers may be using."""
        twin = RecursiveKeeper(self.store.beside(self.relations), self.planned, self.number)
        twin.given = self.given
        twin._derive_with_witnesses(guard)
        for name in self.relations:
            self.proofs[name].data.update(twin.proofs[name].data)
        self.work.per_fact = twin.work.per_fact
        self.proven = True

    def state(self) -> Columns:
        return [column for table in self.tables.values() for column in table.columns()]

    def restore(self, columns: Columns) -> None:
        left = iter(columns)
        self.forget()
        for table in self.tables.values():
            table.restore(left)

    def snapshot(self) -> Callable[[], None]:
        tables = table_snapshot(self.store, self.relations)
        proofs = {name: dict(kept.data) for name, kept in self.proofs.items()}
        proven = self.proven

        def restore() -> None:
            self.forget()
            self.proven = proven
            tables()
            for name, kept in proofs.items():
                self.proofs[name].data.clear()
                self.proofs[name].data.update(kept)

        return restore

    def containers(self, relation: str) -> list[object]:
        return [*super().containers(relation), self.proofs[relation].data]

    def derivation_of(self, relation: str, row: Row) -> Derivation | None:
        kept = self.proofs[relation].get(row)
        if not kept:
            return None
        name = self.store.rules[kept[0]]
        hidden = hidden_variables(next(rule for rule in self.planned.unit.rules if rule.name == name))
        return name, {variable.name: value for variable, value in zip(hidden, kept[1:], strict=True)}

    def check(self) -> None:
        for name in self.relations:
            facts = set(self.shapes[name].rows_of(self.proofs[name].everything()))
            there = set(self.tables[name].rows())
            assert facts == there if self.proven else facts <= there, f"I1: {name}"


class _WitnessRounds(Rounds):
    """Rounds that keep a witness for each new fact; `added` collects the facts.

    Without `added` the facts are present already, and only their witnesses are made: then they do
    not count against the limits of a step.
    """

    def __init__(self, keeper: RecursiveKeeper, guard: Guard, added: dict[str, Facts] | None) -> None:
        super().__init__(keeper.planned.name, keeper.shapes, guard, keeper.invents)
        self.keeper, self.added = keeper, added

    def run_from(self, new: dict[str, Counted]) -> None:
        """Keep what was collected, and run rounds from it until nothing is new."""
        tasks = [task for tasks in self.keeper._forward.values() for task in tasks]
        self.run_until_settled(tasks, self.end_round(new, 1))

    def collector(self, task: RoundTask, new: Collected) -> Counted:
        found: Counted = new.setdefault(task.rule.head.relation, {})
        return found

    def keep(self, new: Collected) -> dict[str, Facts]:
        delta: dict[str, Facts] = {}
        for name, witnesses in new.items():
            if witnesses:
                shape, proofs = self.shapes[name], self.keeper.proofs[name]
                delta[name] = facts = proofs.facts(witnesses)
                self.keeper.work.add(FACT * shape.size_of(facts))
                with self.guard.shield:
                    if self.added is not None:
                        shape.add_facts(self.added.setdefault(name, shape.empty()), facts)
                    self.keeper.tables[name].merge(facts)
                    proofs.merge(witnesses)
        return delta

    def size(self, delta: dict[str, Facts]) -> int:
        return 0 if self.added is None else super().size(delta)


def carried_relations(unit: Unit, shapes: Mapping[str, Shape]) -> set[str]:
    """Binary relations whose recursive rules all carry the head's value along."""
    out = set()
    for name, shape in shapes.items():
        rules = [rule for rule in unit.rules if rule.head.relation == name and unit.positions(rule)]
        if not rules or not isinstance(shape, PairShape):
            continue
        if all(carried_from(rule, shape.value, unit.relations) for rule in rules):
            out.add(name)
    return out

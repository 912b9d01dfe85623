"""Running totals and joined values through recursion: what depended on a loss is derived again.

A unit of sets, maps whose facts of one key are joined, and running totals (`aggregates.growing`)
only grows while facts come: `core.evaluate.growing_rounds` takes them in.  Where facts go, what was
joined or added up cannot be told apart again, and facts may support each other in a cycle:

1. *Lost derivations* are followed forward.  Every fact that they lead to is taken away, unless it
   is a base fact of a set.  So nothing that is left depends on what went.
2. Each *key* that lost its fact is asked for its derivations from what is left.
3. From there, and from new facts, the unit grows as in a load.

Only what depends on a loss is visited.  If that is most of the unit, the unit is computed again.

Source: Gupta, Mumick, Subrahmanian, Maintaining views incrementally, SIGMOD 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core.engine.keepers.keeper import Keeper, outside_relations, versions
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.step import Listener, Readers, put_back
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.evaluate.growing_rounds import Cell, Growth, Rows
from everlog.core.ir.uses import Action, Use
from everlog.core.program import Atom, Call, Row, Rule
from everlog.core.storage.shape import Facts
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.tables import Table, TableOf

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

_ASKED = "?"  # prefix of the relation of the keys that a rule is asked for
_MOST = 2  # a turn that takes away more than 1/2 of the unit's facts computes it again


@frozen
class _Question:
    """A rule that is asked for the derivations of some keys."""

    task: Task
    computes: bool  # whether the head computes its key: then the rule is run as a whole


class GrowingKeeper(Keeper):
    """Keeps a unit with running totals and joined values.

    Invariants:
      I1  `growth` has the facts of the tables, by key, and the sums of their contributions;
      I2  the facts are those of a load.
    """

    about = "facts, joined values and running totals; what depended on a loss is derived again"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        assert planned.growing is not None
        self.unit = planned.growing
        self.rules = [rule for rule in planned.unit.rules if rule not in self.unit.links]
        self.lost: list[tuple[str, Rows]] = []
        self.gains: list[tuple[str, Task, Facts]] = []
        self.brought: list[tuple[str, Row]] = []
        self._outside: list[Task] = []
        self._make_tasks()
        self.stale = False  # whether the next turn computes the unit again
        self.growth = self._growth()

    def _growth(self) -> Growth:
        tables = {name: self.store.tables[name] for name in self.relations}
        return Growth(self.planned.name, self.unit, tables, self.store.shapes, self._forward, None)  # type: ignore[arg-type]

    def _make_tasks(self) -> None:
        store = self.store
        self._whole: list[tuple[str, Task]] = []
        self._forward: list[tuple[str, str, Task]] = []
        self._questions: dict[str, list[_Question]] = {name: [] for name in self.relations}
        for name in self.relations:
            shape = store.shapes[_ASKED + name] = shape_of(len(self._key_columns(name)))
            store.deltas[_ASKED + name] = TableOf(shape)
        for rule in self.rules:
            head = rule.head.relation
            positions = self.planned.unit.positions(rule)
            for position in positions:
                source = rule.body[position]
                assert isinstance(source, Atom)
                task = Task(store, rule, position, Use(Action.ROWS), sets=False)
                self._forward.append((source.relation, head, task))
            if not positions:
                self._whole.append((head, Task(store, rule, None, Use(Action.ROWS), sets=False)))
            self._questions[head].append(self._question(rule))

    def _key_columns(self, name: str) -> tuple[int, ...]:
        joined = self.unit.joined.get(name)
        return joined.key if joined is not None else tuple(range(self.store.shapes[name].arity))

    def _question(self, rule: Rule) -> _Question:
        head = rule.head
        keys = tuple(head.args[column] for column in self._key_columns(head.relation))
        computes = any(isinstance(arg, Call) for arg in keys)
        body = (Atom(_ASKED + head.relation, keys), *rule.body)
        asked = Rule(Atom(f"of {head.relation}", head.args), body, rule.name, rule.origin)
        return _Question(Task(self.store, asked, None if computes else 0, Use(Action.ROWS), sets=False), computes)

    def tasks(self) -> Iterator[Task]:
        yield from self._outside
        yield from (task for _, task in self._whole)
        yield from (task for _, _, task in self._forward)
        yield from (question.task for questions in self._questions.values() for question in questions)

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        self._outside.clear()
        for rule in self.rules:
            for relation in outside_relations(rule, self.relations):
                entry = readers.setdefault(relation, Readers())
                uses = {1: Use(Action.ROWS), -1: Use(Action.ROWS)}
                for event, sign, task, _ in versions(self.store, rule, relation, uses, filters=False):
                    task.sets = False
                    self._outside.append(task)
                    hear = self._gaining if sign > 0 else self._losing
                    entry.of(event, sign).append(hear(rule.head.relation, task))

    def _gaining(self, head: str, task: Task) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            self.gains.append((head, task, delta))
            step.wake(self)

        return listener

    def _losing(self, head: str, task: Task) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            found: Rows = set()
            if not self.stale:
                task(delta, found)
            self.lost.append((head, found))
            step.wake(self)

        return listener

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        if gone:
            self.lost.append((relation, set(gone)))
        self.brought += [(relation, row) for row in new]
        step.wake(self)

    def forget(self) -> None:
        self.lost, self.gains, self.brought = [], [], []

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        lost, gains, brought = self.lost, self.gains, self.brought
        self.forget()
        growth = self.growth
        growth.guard = step.guard
        if self.stale:
            self._compute_again(step)
            return
        step.undo.append((self._revert, ({},)))
        growth.touched = {}
        step.undo[-1] = (self._revert, (growth.touched,))
        mark = len(step.undo)
        growth.change = self._changing(step)
        affected = self._affected(lost)
        if _MOST * sum(map(len, affected.values())) > sum(len(self.store.tables[name]) for name in self.relations):
            self._compute_again(step)
            return
        found = self._taken_away(affected)
        for name, row in brought:
            found.setdefault(name, set()).add(row)
        for head, task, delta in gains:
            task(delta, found.setdefault(head, set()))
        growth.run(found)
        changes = self._net()
        step.undo_until(mark)  # readers hear of losses before the tables change
        for name, (gone, new) in changes.items():
            if gone or new:
                shape = self.store.shapes[name]
                step.spread(name, shape.facts_of(gone), shape.facts_of(new))

    def _changing(self, step: Step) -> Callable[[Table, Facts, Facts], None]:
        shield = step.guard.shield

        def change(table: Table, gone: Facts, new: Facts) -> None:
            step.undo.append((put_back, (table, gone, new)))
            shield.held = True
            if gone:
                table.remove(gone)
            if new:
                table.merge(new)
            shield.release()

        return change

    def _affected(self, lost: list[tuple[str, Rows]]) -> dict[str, Rows]:
        """The facts that lost derivations lead to, which are all still in their tables."""
        growth, affected = self.growth, dict[str, Rows]()
        totals = {spec.contributions: spec.totals for spec in self.unit.totals}
        pending: dict[str, Rows] = {}
        for name, rows in lost:
            pending.setdefault(name, set()).update(rows)
        while pending:
            name, rows = pending.popitem()
            there = self._facts_of(name, rows) - affected.get(name, set())
            if name not in self.unit.joined:
                there -= self.given[name]
            if not there:
                continue
            affected.setdefault(name, set()).update(there)
            if name in totals:
                width = self.store.shapes[totals[name]].arity - 1
                known = growth.rows[totals[name]]
                keys = {row[:width] for row in there}
                pending.setdefault(totals[name], set()).update(known[key] for key in keys if key in known)
            delta = self.store.shapes[name].facts_of(there)
            for source, head, task in self._forward:
                if source == name:
                    task(delta, pending.setdefault(head, set()))
        return affected

    def _facts_of(self, name: str, rows: Rows) -> Rows:
        """The facts that have the keys of some rows."""
        joined = self.unit.joined.get(name)
        if joined is None:
            table = self.store.tables[name]
            return {row for row in rows if row in table}
        known = self.growth.rows[name]
        return {known[key] for key in map(joined.key_of, rows) if key in known}

    def _taken_away(self, affected: Mapping[str, Rows]) -> dict[str, Rows]:
        """Take away affected facts; what still follows for their keys."""
        growth = self.growth
        running = {spec.totals for spec in self.unit.totals}
        for name, rows in affected.items():
            if name not in running:
                growth.put(name, rows, ())
        for name, rows in affected.items():
            if name in growth.totals:
                growth.add_up(name, rows, -1, {})
        found: dict[str, Rows] = {}
        for name, rows in affected.items():
            if name in running:  # its heads are asked themselves
                continue
            keys = {growth.key_of(name, row) for row in rows}
            into = found.setdefault(name, set())
            into.update(row for row in self._given_of(name, keys))
            self._ask(name, keys, into)
        return found

    def _given_of(self, name: str, keys: set[Row]) -> Iterator[Row]:
        """The base facts of some keys of a joined relation."""
        joined = self.unit.joined.get(name)
        if joined is not None:
            yield from (row for row in self.given[name] if joined.key_of(row) in keys)

    def _ask(self, name: str, keys: set[Row], into: Rows) -> None:
        table = self.store.deltas[_ASKED + name]
        asked = table.shape.facts_of(keys)
        for question in self._questions[name]:
            if question.computes:
                try:
                    table.merge(asked)
                    question.task(None, into)
                finally:
                    table.clear()
            else:
                question.task(asked, into)

    def _net(self) -> dict[str, tuple[Rows, Rows]]:
        """What went and what came, by relation."""
        growth = self.growth
        changes: dict[str, tuple[Rows, Rows]] = {name: (set(), set()) for name in self.relations}
        for (name, key), before in growth.touched.items():
            known = growth.rows.get(name)
            now = known.get(key) if known is not None else key if key in self.store.tables[name] else None
            if now != before:
                if before is not None:
                    changes[name][0].add(before)
                if now is not None:
                    changes[name][1].add(now)
        return changes

    def _revert(self, touched: Mapping[Cell, Row | None]) -> None:
        """Undo a turn; the tables are put back one by one."""
        growth = self.growth
        for (name, key), before in touched.items():
            known = growth.rows.get(name)
            if known is not None:
                known.pop(key, None)
                if before is not None:
                    known[key] = before
        if growth.totals:
            self.stale = True  # sums are not put back one by one

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def _settle_all(self, step: Step) -> None:
        """Compute the unit, in its tables, from what it reads."""
        self.stale = True
        for name in self.relations:
            self.store.tables[name].replace(self.store.shapes[name].empty())
        growth = self.growth = self._growth()
        growth.guard = step.guard
        found: dict[str, Rows] = {name: set(rows) for name, rows in self.given.items() if rows}
        for head, task in self._whole:
            task(None, found.setdefault(head, set()))
        growth.run(found)
        growth.touched = {}
        self.stale = False

    def _compute_again(self, step: Step) -> None:
        step.undo.append((self._forget_state, ()))
        step.anew.append(self)
        before = {name: set(self.store.tables[name].rows()) for name in self.relations}
        for name in self.relations:
            table = self.store.tables[name]
            step.undo.append((self._put_back_all, (table, table.facts.copy())))
        mark = len(step.undo)
        self._settle_all(step)
        after = {name: set(self.store.tables[name].rows()) for name in self.relations}
        for name, rows in before.items():
            self.store.tables[name].replace(self.store.shapes[name].facts_of(rows))
        assert len(step.undo) == mark
        for name in self.relations:
            gone, new = before[name] - after[name], after[name] - before[name]
            if gone or new:
                shape = self.store.shapes[name]
                step.spread(name, shape.facts_of(gone), shape.facts_of(new))

    def _put_back_all(self, table: Table, facts: Facts) -> None:
        table.replace(facts)

    def _forget_state(self) -> None:
        self.stale = True

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget()
        self._settle_all(step)
        return {}

    def snapshot_besides(self) -> Callable[[], None]:
        def restore() -> None:
            self.stale = True

        return restore

    def check(self) -> None:
        if self.stale:
            return
        growth = self.growth
        for name, known in growth.rows.items():
            assert set(known.values()) == set(self.store.tables[name].rows()), f"I1: {name}"
        for name, total in growth.totals.items():
            fresh = type(total)(total.spec)
            fresh.add(self.store.tables[name].rows(), self.store.shapes[total.spec.totals].arity - 1, 1)
            assert fresh.sums == total.sums, f"I1: {name}"

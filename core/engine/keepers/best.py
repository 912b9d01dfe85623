"""Maps to a best value: kept by the values of their keys, in the order of values.

A unit of maps whose rules read at most one of its values (`best_values`) changes like
the distances of a graph whose arcs change:

*A derivation is lost.*  A key whose value it gave is suspect.  Suspects are visited in the order of
their values.  One that has another derivation of the same value, from a key that comes before it in
that order and is not affected, stays.  Any other is *affected*: it loses its value, and the keys
whose values it gave become suspect.

*Affected keys and new derivations.*  An affected key takes the best of what follows from keys that
are not affected.  New facts offer their values, too.  From there on the values spread as in a load
(`core.evaluate.best_first`): the best pending one is final.

Only keys that change, and the rules from and to them, are visited.  A key that loses its value and
gets it back is not reported.  If a rule makes a value better than its source (an arc of negative
length), there is no such order: then the unit is computed again with every change.

Source: Ramalingam, Reps, An incremental algorithm for a generalization of the shortest-path
problem, Journal of Algorithms 21, 1996.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from everlog.core.engine.keepers.keeper import Keeper, outside_relations, versions
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.evaluate.best_first import Settling, forms_of, offering, only_adds
from everlog.core.evaluate.native.best_maps import settled, why_not_settled
from everlog.core.evaluate.run_relations import Relations
from everlog.core.ir.uses import Action, Use
from everlog.core.program import Atom, Call, Row, Rule, Value
from everlog.core.program.aggregates.best_values import best_maps
from everlog.core.runtime.guards import Guard
from everlog.core.storage.equivalence import Classes
from everlog.core.storage.shape import Facts, Key
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.tables import TableOf

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

_ASKED = "?"  # prefix of the relation of the keys that a rule is asked for


@frozen
class _Question:
    """A rule that is asked for the derivations of some keys, with the key that each came from."""

    task: Task
    source: str  # the relation of that key; empty if the rule reads no value of the unit
    computes: bool  # whether the head computes its key: then the rule is run as a whole


class BestKeeper(Keeper):
    """Keeps maps to a best value.

    Invariants, while values spread in order:
      I1  a table has the facts of the values in `settling`;
      I2  each value is a base fact, or follows from a key that comes before it in the order of
          value and depth;
      I3  no rule derives a better value.
    """

    about = "the best value of each key; changes spread in the order of values"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        program = store.plan.program
        self.maps = best_maps(program, self.relations)
        self.forms = forms_of(program, self.maps, store.shapes)
        self.offered: dict[str, dict[Key, set[Any]]] = {name: {} for name in self.relations}  # base facts
        self.lost: list[tuple[str, dict[Key, Any]]] = []
        self.gains: list[tuple[_Question, Facts]] = []
        self.brought: list[tuple[str, Row]] = []
        self._targets: list[str] = []  # of the gains
        self._outside: list[Task] = []
        self._make_tasks()
        adds = only_adds(planned.unit, self.maps)
        written = tuple(store.plan.written.get(rule.name, rule) for rule in planned.unit.rules)
        self.loaded = evolve(planned.unit, rules=written)  # as a whole evaluation runs it
        self.why_python = why_not_settled(program, self.loaded, self.maps)
        self.reads = sorted(self.loaded.reads.difference(self.relations))
        self.settling = Settling(planned.name, self.forms, self._forward, None, adds)  # type: ignore[arg-type]

    def _make_tasks(self) -> None:
        store, least = self.store, next(iter(self.maps.values())).op == "min"
        self._offers = Use(Action.LEAST if least else Action.GREATEST)
        self._whole: list[tuple[str, Task]] = []
        self._forward: dict[str, list[tuple[str, Task]]] = {name: [] for name in self.relations}
        self._questions: dict[str, list[_Question]] = {name: [] for name in self.relations}
        for name, form in self.forms.items():
            shape = store.shapes[_ASKED + name] = shape_of(form.arity - 1)
            store.deltas[_ASKED + name] = TableOf(shape)
        for rule in self.planned.unit.rules:
            head = rule.head.relation
            made = offering(rule, self.maps[head])
            positions = self.planned.unit.positions(rule)
            if positions:
                source = rule.body[positions[0]]
                assert isinstance(source, Atom)
                task = Task(store, made, positions[0], self._offers, sets=False)
                self._forward[source.relation].append((head, task))
            else:
                self._whole.append((head, Task(store, made, None, self._offers, sets=False)))
            self._questions[head].append(self._question(rule))

    def _told(self, rule: Rule) -> tuple[Rule, str]:
        """The rule with the head `(value, key…, source's value, source's key…)`; that relation."""
        made = offering(rule, self.maps[rule.head.relation])
        for position in self.planned.unit.positions(rule):
            source = rule.body[position]
            assert isinstance(source, Atom)
            column = self.maps[source.relation].column
            rest = source.args[:column] + source.args[column + 1 :]
            args = (*made.head.args, source.args[column], *rest)
            return evolve(made, head=Atom(f"from {source.relation}", args)), source.relation
        return made, ""

    def _question(self, rule: Rule) -> _Question:
        told, source = self._told(rule)
        head = rule.head
        keys = offering(rule, self.maps[head.relation]).head.args[1:]
        computes = any(isinstance(arg, Call) for arg in keys)
        asked = evolve(told, body=(Atom(_ASKED + head.relation, keys), *told.body))
        task = Task(self.store, asked, None if computes else 0, Use(Action.ROWS), sets=False)
        return _Question(task, source, computes)

    def tasks(self) -> Iterator[Task]:
        yield from self._outside
        for _, task in self._whole:
            yield task
        for tasks in self._forward.values():
            for _, task in tasks:
                yield task
        for questions in self._questions.values():
            for question in questions:
                yield question.task

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        self._outside.clear()
        for rule in self.planned.unit.rules:
            offers = offering(rule, self.maps[rule.head.relation])
            told, source = self._told(rule)
            for relation in outside_relations(rule, self.relations):
                entry = readers.setdefault(relation, Readers())
                uses = {1: Use(Action.ROWS), -1: self._offers}
                for event, sign, task, _ in versions(self.store, told, relation, uses, filters=False):
                    if sign > 0:
                        entry.of(event, sign).append(self._gaining(rule.head.relation, task, source))
                for event, sign, task, _ in versions(self.store, offers, relation, uses, filters=False):
                    if sign < 0:
                        entry.of(event, sign).append(self._losing(rule.head.relation, task))

    def _gaining(self, head: str, task: Task, source: str) -> Listener:
        task.sets = False
        self._outside.append(task)
        question = _Question(task, source, False)

        def listener(step: Step, delta: Facts) -> None:
            self.gains.append((question, delta))
            self._targets.append(head)
            step.wake(self)

        return listener

    def _losing(self, head: str, task: Task) -> Listener:
        task.sets = False
        self._outside.append(task)

        def listener(step: Step, delta: Facts) -> None:
            found: dict[Key, Any] = {}
            if self.settling.in_order:
                task(delta, found)
            self.lost.append((head, found))
            step.wake(self)

        return listener

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        super().change_given(relation, gone, new)
        form, offered = self.forms[relation], self.offered[relation]
        for row in gone:
            values = offered.get(form.key(row))
            if values is not None:
                values.discard(row[form.column])
                if not values:
                    del offered[form.key(row)]
        for row in new:
            offered.setdefault(form.key(row), set()).add(row[form.column])

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        form = self.forms[relation]
        self.lost += [(relation, {form.key(row): row[form.column]}) for row in gone]
        self.brought += [(relation, row) for row in new]
        step.wake(self)

    def forget(self) -> None:
        self.lost, self.gains, self.brought = [], [], []
        self._targets = []
        self.settling.heap.clear()
        self.settling.touched = None

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        lost, gains, targets, brought = self.lost, self.gains, self._targets, self.brought
        self.forget()
        settling = self.settling
        settling.guard = step.guard
        if not settling.in_order:
            self._compute_again(step)
            return
        if lost:
            self._prepare_questions()
        touched: dict[tuple[str, Key], tuple[Value | None, int]] = {}
        step.undo.append((settling.restore, (touched,)))
        settling.touched = touched
        affected = self._affected(lost)
        for name, keys in affected.items():
            for key in keys:
                for value in self.offered[name].get(key, ()):
                    settling.offer(name, key, value)
            for question, rows in self._answers(name, keys):
                self._offer(name, question.source, rows)
        for name, row in brought:
            settling.offer(name, self.forms[name].key(row), row[self.forms[name].column])
        for name, (question, delta) in zip(targets, gains, strict=True):
            found: set[Row] = set()
            question.task(delta, found)
            self._offer(name, question.source, found)
        settling.run()
        settling.touched = None
        self._tell(step, touched)

    def _prepare_questions(self) -> None:
        """Build the indexes for losses at the first one, which may need no others yet."""
        for questions in self._questions.values():
            for question in questions:
                if question.task.run is None:
                    question.task.bind()

    def _offer(self, name: str, source: str, rows: Iterable[Row]) -> None:
        """Offer the values that derivations give, if the values that they used still stand."""
        settling, form = self.settling, self.forms[name]
        for row in rows:
            key = _packed(row[1 : form.arity])
            if not source:
                settling.offer(name, key, row[0])
                continue
            used, at = row[form.arity], _packed(row[form.arity + 1 :])
            if settling.best[source].get(at) != used:
                continue
            order, before = settling.order(name, row[0]), settling.order(source, used)
            depth = settling.depth[source].get(at, 0) + 1 if order == before else 0
            if settling.offer(name, key, row[0], depth) and order < before:
                settling.in_order = False

    def _affected(self, lost: Iterable[tuple[str, dict[Key, Any]]]) -> dict[str, list[Key]]:
        """The keys that no derivation supports any more; they lose their values."""
        settling = self.settling
        queue: list[tuple[Any, int, str, Any]] = []
        for name, found in lost:
            self._suspect(queue, name, found)
        affected: dict[str, list[Key]] = {}
        while queue:
            name, keys = self._first(queue)
            form, best = self.forms[name], settling.best[name]
            gone = [key for key in keys if key in best]
            gone = self._unsupported(name, gone) if gone else gone
            if not gone:
                continue
            affected.setdefault(name, []).extend(gone)
            delta = form.shape.facts_of([form.row(key, best[key]) for key in gone])
            for key in gone:
                settling.set(name, key, None)
            for target, task in self._forward[name]:
                passed: dict[Key, Any] = {}
                task(delta, passed)
                self._suspect(queue, target, passed)
        return affected

    def _suspect(self, queue: list[tuple[Any, int, str, Any]], name: str, found: dict[Key, Any]) -> None:
        """Add the keys whose values may have come from what was lost; `found` has the best of each.

        Rules run on tables of which some have changed: a better derivation, which is new, may hide
        the one that gave a key its value.
        """
        best, depths, sign = self.settling.best[name], self.settling.depth[name], self.forms[name].sign
        for key, value in found.items():
            known: Any = best.get(key)
            if known is not None and not (known < value if sign > 0 else known > value):
                heappush(queue, (known if sign > 0 else -known, depths.get(key, 0), name, key))

    @staticmethod
    def _first(queue: list[tuple[Any, int, str, Any]]) -> tuple[str, list[Key]]:
        """The suspects that come first, of one value, depth and relation."""
        order, depth, name, key = heappop(queue)
        keys = {key: None}
        while queue and queue[0][0] == order and queue[0][1] == depth and queue[0][2] == name:
            keys[heappop(queue)[3]] = None
        return name, list(keys)

    def _unsupported(self, name: str, keys: list[Key]) -> list[Key]:
        """The keys whose value follows from nothing that comes before them."""
        form, best = self.forms[name], self.settling.best[name]
        offered = self.offered[name]
        left = {key: None for key in keys if best[key] not in offered.get(key, ())}
        for question, rows in self._answers(name, list(left)) if left else ():
            for row in rows:
                key = _packed(row[1 : form.arity])
                if key in left and best[key] == row[0] and self._comes_before(name, key, question.source, row):
                    del left[key]
        return list(left)

    def _comes_before(self, name: str, key: Key, source: str, row: Row) -> bool:
        """Whether the key that a derivation used stands, and comes before the derived one."""
        if not source:
            return True
        settling, arity = self.settling, self.forms[name].arity
        used, at = row[arity], _packed(row[arity + 1 :])
        return settling.best[source].get(at) == used and settling.rank(source, at) < settling.rank(name, key)

    def _answers(self, name: str, keys: list[Key]) -> Iterator[tuple[_Question, set[Row]]]:
        """The derivations of some keys from the present tables, rule by rule."""
        table = self.store.deltas[_ASKED + name]
        asked: Any = table.shape.facts_of([key if isinstance(key, tuple) else (key,) for key in keys])
        for question in self._questions[name]:
            rows: set[Row] = set()
            if question.computes:
                try:
                    table.merge(asked)
                    question.task(None, rows)
                finally:
                    table.clear()
            else:
                question.task(asked, rows)
            yield question, rows

    def _tell(self, step: Step, touched: Mapping[tuple[str, Key], tuple[Value | None, int]]) -> None:
        """Report the net change of each table."""
        gone: dict[str, list[Row]] = {name: [] for name in self.relations}
        new: dict[str, list[Row]] = {name: [] for name in self.relations}
        for (name, key), (before, _) in touched.items():
            now = self.settling.best[name].get(key)
            if now != before:
                row = self.forms[name].row
                if before is not None:
                    gone[name].append(row(key, before))
                if now is not None:
                    new[name].append(row(key, now))
        for name, form in self.forms.items():
            if gone[name] or new[name]:
                step.spread(name, form.shape.facts_of(gone[name]), form.shape.facts_of(new[name]))

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def _settle_all(self, step: Step) -> None:
        """Compute all values from the tables that the unit reads."""
        settling = self.settling
        settling.guard, settling.in_order = step.guard, True
        if self._settled_natively(step.guard):
            return
        for name in self.relations:
            settling.best[name].clear()
            settling.depth[name].clear()
            for key, values in self.offered[name].items():
                for value in values:
                    settling.offer(name, key, value)
        for name, task in self._whole:
            found: dict[Key, Any] = {}
            task(None, found)
            for key, value in found.items():
                settling.offer(name, key, value)
        settling.run()

    def _settled_natively(self, guard: Guard) -> bool:
        """Whether the compiled machine has computed all values."""
        if self.why_python:
            return False
        if any(isinstance(self.store.tables[name], Classes | SharedTable) for name in self.reads):
            return False  # as rows they would be far larger
        rows: dict[str, Iterable[Row]] = {name: self.store.tables[name].rows() for name in self.reads}
        for name, form in self.forms.items():
            offered = self.offered[name].items()
            rows[name] = [form.row(key, value) for key, values in offered for value in values]
        relations = Relations(self.store.plan.program, self.store.shapes, rows)
        found = settled(relations, self.loaded, self.maps, guard)
        if found is None:
            return False
        self.settling.best.update(found.values())
        self.settling.depth.update(found.depths())
        self.settling.in_order = found.settling.in_order
        return True

    def _compute_again(self, step: Step) -> None:
        step.undo.append((self._stale, ()))
        self._settle_all(step)
        for name, form in self.forms.items():
            facts = form.shape.facts_of(form.rows(self.settling.best[name]))
            before = self.store.tables[name].facts
            gone, new = form.shape.minus(before, facts), form.shape.minus(facts, before)
            if gone or new:
                step.spread(name, gone, new)

    def _stale(self) -> None:
        """Forget the values: the next turn computes them again."""
        self.settling.heap.clear()
        self.settling.in_order = False

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget()
        self._settle_all(step)
        for name, form in self.forms.items():
            self.store.tables[name].replace(form.shape.facts_of(form.rows(self.settling.best[name])))
        return {}

    def snapshot_besides(self) -> Callable[[], None]:
        return self._stale

    def check(self) -> None:
        settling = self.settling
        for name, form in self.forms.items():
            rows = set(self.store.tables[name].rows())
            best = settling.best[name]
            if not settling.in_order:
                continue
            assert rows == set(form.rows(best)), f"I1: {name}"
            assert not self._unsupported(name, list(best)), f"I2: {name}"
            for question, answers in self._answers(name, list(best)):
                for row in answers:
                    key = _packed(row[1 : form.arity])
                    assert not settling.order(name, row[0]) < settling.order(name, best[key]), f"I3: {question}"


def _packed(values: Row) -> Any:
    """A key of several columns, as maps have it: one is bare."""
    return values[0] if len(values) == 1 else values

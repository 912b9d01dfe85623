"""Recursive units in Python: ranks, and counts of derivations from lower ranks.

What is counted, and why that is right, is said in `ranked`, whose algorithm this is.  Two things
differ, because in Python an operation on a set costs as much as one on a row.

*Ranks* are numbers of rounds: all facts that a round finds have the same.  A derivation of a fact
that is not there uses facts of lower ranks only, so rounds count without looking at ranks.  Where
facts are there already, a derivation is counted if all facts of the unit that it uses have lower
ranks than its own (`Action.EARLIER`).

*Changes of other relations* reach the unit one after the other, each by the delta rules of
`core.dbsp`, which find each derivation that comes or goes once.  They are counted at once, while
the facts of the unit stay as they are.  So a fact that loses one derivation and gains another keeps
its place.  At the turn of the unit facts without a derivation go, in rounds; then they are asked
for other derivations from what is left; then rounds follow those that come back, and new ones.

*Load*: whole evaluation, which needs no ranks.  They are made on demand, by a step that may delete
facts or a question why a fact is there.  From then on all facts have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core import program as p
from everlog.core.dbsp import delta_name
from everlog.core.engine.keepers.keeper import Derivation, Keeper, outside_relations, table_snapshot, versions
from everlog.core.engine.keepers.recursive.supports import Supports, without_zeros
from everlog.core.engine.keepers.recursive.turn_work import FACT, TurnWork
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.engine.stepping.work import Enough
from everlog.core.evaluate.rounds import Collected, Rounds, RoundTask
from everlog.core.evaluate.run_context import Context
from everlog.core.evaluate.seminaive import run_unit
from everlog.core.ir.uses import Action, Use
from everlog.core.program import Atom, Negation, Row, Rule, Value, Variable
from everlog.core.program.bodies import variables_of_literal
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Counted, Facts, turned
from everlog.core.storage.tables import Table, TableOf

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

_ASKED = "Δ?"  # prefix of the relation of the facts that are asked for derivations


class PythonRankedKeeper(Keeper):
    """Keeps any recursion, by ranks and counts of derivations from lower ranks.

    Invariants, once the unit is `proven`; until then it has no ranks:
      I1  `supports` has a rank and a count for each fact of the tables, and for no other;
      I2  the count of a fact is the number of its derivations from facts of lower rank, and 1 more
          if it is a base fact.
    """

    about = "for each fact its rank, and the number of its derivations from facts of lower rank"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.shapes = {name: store.shapes[name] for name in self.relations}
        self.tables = {name: store.tables[name] for name in self.relations}
        self.supports = {
            name: Supports(shape, store.ranks.setdefault(name, {})) for name, shape in self.shapes.items()
        }
        self.plus: dict[str, Counted] = {}
        self.minus: dict[str, Counted] = {}
        self.rank = 0  # the highest there is
        self.proven = False  # whether each fact has its rank
        self.work = TurnWork()
        self.too_much = False  # whether changes have cost as much as a computation before the turn
        self.invents = any(p.invents(rule) for rule in planned.unit.rules)
        self._make_tasks()

    def _make_tasks(self) -> None:
        """Make tasks: whole rules, each rule from each of its atoms of this unit, and backwards."""
        store, own = self.store, frozenset(self.relations)
        fresh = evolve(self.work.use(Action.COUNT), known=True)
        earlier = evolve(self.work.use(Action.EARLIER), ranked=own)
        every = self.work.use(Action.COUNT)
        self._outside: list[Task] = []
        self._whole: list[Task] = []
        self._gains: list[Task] = []
        self._losses: dict[str, list[Task]] = {name: [] for name in own}
        self._ask: dict[str, list[Task]] = {name: [] for name in own}
        self._recount: dict[str, list[Task]] = {name: [] for name in own}
        self._why: dict[str, list[tuple[Rule, Task]]] = {name: [] for name in own}
        self._filtered: set[str] = set()  # relations whose change some rule reads under `!`
        for name in own:
            store.shapes[_ASKED + name] = store.shapes[name]
            store.deltas[_ASKED + name] = TableOf(store.shapes[name])
        self._asked = {name: store.deltas[_ASKED + name] for name in own}
        for rule in self.planned.unit.rules:
            inside = [n for n, x in enumerate(rule.body) if isinstance(x, Atom) and x.relation in own]
            for position in inside:
                changed = self._from_change(rule, position)
                literal = rule.body[position]
                assert isinstance(literal, Atom)
                self._gains.append(Task(store, changed, position, fresh))
                self._losses[literal.relation].append(Task(store, changed, position, earlier, sets=False))
            if not inside:
                self._whole.append(Task(store, rule, None, fresh))
            head, (asking, place) = rule.head.relation, _backwards(rule)
            self._ask[head].append(Task(store, asking, place, every, sets=False))
            unmetered = Use(Action.EARLIER, ranked=own)
            self._recount[head].append(Task(store, asking, place, unmetered, sets=False))
            shown = Atom("", tuple(dict.fromkeys(v for x in rule.body for v in variables_of_literal(x))))
            task = Task(store, evolve(asking, head=shown), place, Use(Action.ROWS), sets=False)
            self._why[head].append((rule, task))

    def _from_change(self, rule: Rule, position: int) -> Rule:
        """The rule from a change of one atom: those before it see only what did not change.

        So a derivation with several facts that change is found once.
        """
        earlier = [x for x in rule.body[:position] if isinstance(x, Atom) and x.relation in self.shapes]
        self._filtered.update(atom.relation for atom in earlier)
        return evolve(rule, body=(*rule.body, *(Negation(Atom(delta_name(a.relation), a.args)) for a in earlier)))

    def tasks(self) -> Iterator[Task]:
        yield from self._whole
        yield from self._outside
        yield from self._gains
        for by_relation in (self._losses, self._ask):
            for tasks in by_relation.values():
                yield from tasks

    def use(self, store: Store) -> None:
        super().use(store)
        for tasks in self._recount.values():
            for task in tasks:
                task.store = store
        for whys in self._why.values():
            for _, task in whys:
                task.store = store

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        own = frozenset(self.relations)
        earlier = evolve(self.work.use(Action.EARLIER), ranked=own)
        fresh = evolve(self.work.use(Action.COUNT), known=True)
        self._outside.clear()
        for rule in self.planned.unit.rules:
            is_recursive = any(isinstance(x, Atom) and x.relation in own for x in rule.body)
            use = earlier if is_recursive else self.work.use(Action.COUNT)
            for relation in outside_relations(rule, self.relations):
                entry = readers.setdefault(relation, Readers())
                simple = versions(self.store, rule, relation, {1: fresh, -1: fresh})
                exact = versions(self.store, rule, relation, {1: use, -1: use})
                for (event, sign, new, _), (_, _, task, filtered) in zip(simple, exact, strict=True):
                    task.sets = not is_recursive
                    self._outside.append(task)
                    entry.filtered |= filtered
                    if sign < 0:
                        entry.of(event, sign).append(self._hearing(task, task, self.minus_of))
                    else:
                        self._outside.append(new)
                        entry.of(event, sign).append(self._hearing(task, new, self.plus_of))

    def _hearing(self, task: Task, unproven: Task, counts: Callable[[str], Counted]) -> Listener:
        """Count the derivations that come or go; without ranks, those of new facts."""
        head = task.rule.head.relation

        def listener(step: Step, delta: Facts) -> None:
            self.work.begin(self)
            if not self.too_much:
                out = counts(head)
                try:
                    (task if self.proven else unproven)(delta, out)
                except Enough:
                    self.too_much = True
                if out or self.too_much:
                    step.wake(self)

        return listener

    def plus_of(self, name: str) -> Counted:
        return self.plus.setdefault(name, {})

    def minus_of(self, name: str) -> Counted:
        assert self.proven, "a loss needs ranks"
        return self.minus.setdefault(name, {})

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        shape = self.shapes[relation]
        for row in gone if self.proven else ():  # without ranks the unit will be computed
            shape.count_one(self.minus_of(relation), row, 1)
        for row in new:
            shape.count_one(self.plus_of(relation), row, 1)
        if gone or new:
            step.wake(self)

    def forget(self) -> None:
        self.plus, self.minus = {}, {}
        self.too_much = False
        self.work.end()

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        self.work.begin(self)
        mark = len(step.undo)
        try:
            if self.too_much:
                raise Enough("")
            changes = self._followed(step)
        except Enough:
            with step.guard.shield:
                step.undo_until(mark)
            changes = self._computed_anew(step)
        self.forget()
        self._tell(step, changes)

    def _followed(self, step: Step) -> list[tuple[str, Facts, Facts]]:
        """Count what came and went, and follow it; return the changes."""
        coming: dict[str, Counted] = {}
        bare: dict[str, Facts] = {}
        step.undo.append((self._set_rank, (self.rank,)))
        with step.guard.shield:
            for name, plus in self.plus.items():
                coming[name] = self._new_of(step, name, plus)
        self._withdraw(step, self.minus, coming, bare)
        lost = self._lose(step, coming, bare)
        back = self._revived(lost)
        known = 0
        for name, counts in back.items():
            known += self.shapes[name].size_of(self.shapes[name].support(counts))
            self.shapes[name].merge_counted(coming.setdefault(name, {}), counts)
        added: dict[str, Facts] = {}
        step.undo.append((self._take_back, (added,)))
        new = {name: without_zeros(self.shapes[name], counts) for name, counts in coming.items()}
        _RankedRounds(self, step.guard, added, known).run_from(new)
        return self._changes(lost, added)

    def _new_of(self, step: Step, name: str, plus: Counted) -> Counted:
        """Count the derivations that came; return those of facts that are not there yet."""
        if not self.proven:
            shape, facts = self.shapes[name], self.tables[name].facts
            unknown: Counted = {}
            for row, number in shape.counted_rows(plus):
                if not shape.has_row(facts, row):
                    shape.set_counted(unknown, row, number)
            return unknown
        before: list[tuple[Row, int]] = []
        step.undo.append((self.supports[name].restore, (before,)))
        return self.supports[name].gain(plus, before)

    def _withdraw(
        self, step: Step, found: Mapping[str, Counted], coming: Mapping[str, Counted], bare: dict[str, Facts]
    ) -> None:
        """Take derivations away; facts that have none left are added to `bare`."""
        for name, minus in found.items():
            before: list[tuple[Row, int]] = []
            step.undo.append((self.supports[name].restore, (before,)))
            with step.guard.shield:
                rows = self.supports[name].lose(minus, coming.get(name, {}), before)
            if rows:
                shape = self.shapes[name]
                shape.add_facts(bare.setdefault(name, shape.empty()), shape.facts_of(rows))

    def _lose(self, step: Step, coming: Mapping[str, Counted], bare: dict[str, Facts]) -> dict[str, Facts]:
        """Remove facts without derivations, round by round; return all that went."""
        lost: dict[str, Facts] = {}
        while bare:
            going, bare = bare, {}
            found: dict[str, Counted] = {}
            self.fill(going)
            try:
                for name, facts in going.items():
                    self.work.add(FACT * self.shapes[name].size_of(facts))
                    for task in self._losses[name]:
                        task(facts, found.setdefault(task.rule.head.relation, {}))
            finally:
                self.fill({})
            for name, facts in going.items():
                shape, table, supports = self.shapes[name], self.tables[name], self.supports[name]
                shape.add_facts(lost.setdefault(name, shape.empty()), facts)
                step.undo.append((table.merge, (facts,)))
                with step.guard.shield:
                    table.remove(facts)
                    step.undo.append((supports.put, (supports.take(facts),)))
            self._withdraw(step, found, coming, bare)
        return lost

    def fill(self, change: Mapping[str, Facts]) -> None:
        """Let rules that read a relation twice see its change, as a table; `{}`: none."""
        for name in self._filtered:
            delta = self.store.delta(name)
            delta.clear()
            if name in change:
                delta.merge(change[name])

    def _revived(self, lost: dict[str, Facts]) -> dict[str, Counted]:
        """The facts that went and still have derivations, with their numbers."""
        found: dict[str, Counted] = {}
        for name, facts in lost.items():
            asked = self._asked[name]
            asked.merge(facts)
            try:
                for task in self._ask[name]:
                    task(facts, found.setdefault(name, {}))
            finally:
                asked.clear()
        return found

    def _changes(self, lost: dict[str, Facts], added: dict[str, Facts]) -> list[tuple[str, Facts, Facts]]:
        """The net change of each relation."""
        changes: list[tuple[str, Facts, Facts]] = []
        for name in self.relations:
            shape = self.shapes[name]
            went, came = lost.get(name), added.get(name)
            gone = shape.minus(went, self.tables[name].facts) if went else shape.empty()
            new = shape.empty() if not came else shape.minus(came, went) if went else came
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
            self.supports[name].take(facts)

    def _set_rank(self, rank: int) -> None:
        self.rank = rank

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def _computed_anew(self, step: Step) -> list[tuple[str, Facts, Facts]]:
        """Compute the unit from the relations that it reads; return its changes."""
        before = {name: table.facts.copy() for name, table in self.tables.items()}
        step.undo.append((self.snapshot(), ()))
        self._derive(step.guard)
        step.anew.append(self)
        return [(name, *self.tables[name].difference(facts)) for name, facts in before.items()]

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        """Recompute by whole evaluation; with ranks only if some were needed before."""
        self.forget()
        if self.proven:
            self._derive(step.guard)
            return {}
        for name, table in self._evaluated(step.guard).items():
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
            return run_unit(Context(program, store.shapes, dict(store.tables), guard), unit, self.given)
        finally:
            for name, there in indexes.items():  # drop new indexes: each would have to follow changes
                for index in store.tables[name].indexes.keys() - there:
                    del store.tables[name].indexes[index]

    def _derive(self, guard: Guard, found_before: bool = False) -> None:
        """Derive the unit with ranks; the caller knows how to undo it.

        Facts that were `found_before` do not count against the limits of a step.
        """
        self.work.unlimited()
        self.proven = True
        self.rank = 0
        for name in self.relations:
            self.tables[name].clear()
            self.supports[name].clear()
        new: dict[str, Counted] = {}
        for name, rows in self.given.items():
            for row in rows:
                self.shapes[name].count_one(new.setdefault(name, {}), row, 1)
        for task in self._whole:
            task(None, new.setdefault(task.rule.head.relation, {}))
        _RankedRounds(self, guard, None if found_before else {}).run_from(new)
        self.work.computed(sum(map(len, self.tables.values())))

    def prove(self, guard: Guard) -> None:
        """Derive the unit once more, beside its tables, which readers may be using."""
        twin = PythonRankedKeeper(self.store.beside(self.relations), self.planned, self.number)
        twin.given = self.given
        twin._derive(guard, found_before=True)
        with guard.shield:
            for name, supports in self.supports.items():
                supports.replace((twin.supports[name].ranks, twin.supports[name].counts))
            self.rank, self.work.per_fact = twin.rank, twin.work.per_fact
            self.proven = True

    def state(self) -> Columns:
        columns: Columns = []
        for name, shape in self.shapes.items():
            supports = self.supports[name]
            rows = list(self.tables[name].rows())
            columns += turned(rows, shape.arity) if shape.arity else [[len(rows)]]
            for counted in (supports.ranks, supports.counts):
                columns.append([shape.get_counted(counted, row) for row in rows] if self.proven else [])
        return columns

    def restore(self, columns: Columns) -> None:
        left = iter(columns)
        self.forget()
        self.proven = True
        for name, shape in self.shapes.items():
            values = [next(left) for _ in range(shape.arity or 1)]
            rows: list[Row] = list(zip(*values, strict=True)) if shape.arity else [()] * values[0][0]
            ranks, counts = next(left), next(left)
            self.tables[name].replace(shape.facts_of(rows))
            self.supports[name].clear()
            self.proven = self.proven and len(ranks) == len(rows)
            for row, rank, count in zip(rows, ranks, counts, strict=False):
                shape.set_counted(self.supports[name].ranks, row, rank)
                shape.set_counted(self.supports[name].counts, row, count)
            self.rank = max(self.rank, max(ranks, default=0))

    def snapshot(self) -> Callable[[], None]:
        tables = table_snapshot(self.store, self.relations)
        supports = {name: kept.copied() for name, kept in self.supports.items()}
        proven, rank = self.proven, self.rank

        def restore() -> None:
            self.forget()
            self.proven, self.rank = proven, rank
            tables()
            for name, kept in supports.items():
                self.supports[name].replace(kept)

        return restore

    # ── reports ──────────────────────────────────────────────────────────────────────────────

    def containers(self, relation: str) -> list[object]:
        supports = self.supports[relation]
        return [*super().containers(relation), supports.ranks, supports.counts]

    def derivation_of(self, relation: str, row: Row) -> Derivation | None:
        rank = self.supports[relation].rank(row)
        if rank is None or row in self.given[relation]:
            return None
        facts = self.shapes[relation].facts_of([row])
        for rule, task in self._why[relation]:
            found: set[Row] = set()
            self._asked[relation].merge(facts)
            try:
                task(facts, found)
            finally:
                self._asked[relation].clear()
            names = [arg.name for arg in task.rule.head.args if isinstance(arg, Variable)]
            bindings = [dict(zip(names, values, strict=True)) for values in found]
            earlier = [one for one in bindings if self._highest(rule, one) < rank]
            if earlier:
                return rule.name, min(earlier, key=lambda one: (self._highest(rule, one), repr(one)))
        return None

    def _highest(self, rule: Rule, binding: Mapping[str, Value]) -> int:
        """The highest rank of the facts of the unit that a derivation uses."""
        highest = 0
        for literal in rule.body:
            if isinstance(literal, Atom) and literal.relation in self.supports:
                row = tuple(binding[a.name] if isinstance(a, Variable) else _constant(a) for a in literal.args)
                highest = max(highest, self.supports[literal.relation].rank(row) or 0)
        return highest

    def check(self) -> None:
        for name, supports in self.supports.items():
            shape, rows = self.shapes[name], set(self.tables[name].rows())
            there = set(shape.rows_of(shape.support(supports.ranks)))
            assert there == set(shape.rows_of(shape.support(supports.counts))), f"I1: {name}"
            assert there == rows if self.proven else not there, f"I1: {name}"
            if not self.proven:
                continue
            expected: Counted = {}
            for row in self.given[name]:
                shape.count_one(expected, row, 1)
            self._asked[name].merge(self.tables[name].facts)
            for task in self._recount[name]:
                task(self.tables[name].facts, expected)
            self._asked[name].clear()
            counts, wanted = (dict(shape.counted_rows(one)) for one in (supports.counts, expected))
            assert counts == wanted, f"I2: {name}: {counts}, not {wanted}"


class _RankedRounds(Rounds):
    """Rounds that rank and count what they find; `added` collects the facts.

    Without `added`, and for the first `known` facts, the facts were there before: they do not count
    against the limits of a step.
    """

    def __init__(
        self, keeper: PythonRankedKeeper, guard: Guard, added: dict[str, Facts] | None, known: int = 0
    ) -> None:
        super().__init__(keeper.planned.name, keeper.shapes, guard, keeper.invents)
        self.keeper, self.added, self.known = keeper, added, known

    def run_from(self, new: dict[str, Counted]) -> None:
        """Keep what was collected, and run rounds from it until nothing is new."""
        try:
            self.run_until_settled(self.keeper._gains, self.end_round(new, 1))
        finally:
            self.keeper.fill({})

    def collector(self, task: RoundTask, new: Collected) -> Counted:
        found: Counted = new.setdefault(task.rule.head.relation, {})
        return found

    def keep(self, new: Collected) -> dict[str, Facts]:
        keeper, delta = self.keeper, {}
        keeper.rank += 1
        for name, counts in new.items():
            if counts:
                shape = self.shapes[name]
                delta[name] = facts = shape.support(counts)
                keeper.work.add(FACT * shape.size_of(facts))
                with self.guard.shield:
                    if self.added is not None:
                        shape.add_facts(self.added.setdefault(name, shape.empty()), facts)
                    keeper.tables[name].merge(facts)
                    if keeper.proven:
                        keeper.supports[name].add(counts, keeper.rank)
        keeper.fill(delta)
        return delta

    def size(self, delta: dict[str, Facts]) -> int:
        known, self.known = self.known, 0
        return 0 if self.added is None else super().size(delta) - known


def _backwards(rule: Rule) -> tuple[Rule, int | None]:
    """The rule for facts that are asked, and the place of the atom that reads them as Δ.

    A head that computes cannot be run backwards: then facts come first, and those asked second.
    """
    asked = Atom(_ASKED + rule.head.relation, rule.head.args)
    computes = any(isinstance(arg, p.Call) for arg in rule.head.args)
    return evolve(rule, body=(asked, *rule.body)), None if computes else 0


def _constant(term: p.Term) -> Value:
    assert isinstance(term, p.Constant), f"not lowered: {term}"
    return term.value

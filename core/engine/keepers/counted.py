"""Views that are not recursive: a fact is there while it has a derivation.

Each fact has the number of its derivations, over all rules, and one more if it is a base fact.
Delta rules tell how many derivations came and went; a fact appears when its number leaves zero and
disappears when it is back.  This is the incremental form of `distinct` (core.dbsp).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core.engine.keepers.joined import JoinedRule
from everlog.core.engine.keepers.keeper import Keeper, content_of, outside_relations, versions
from everlog.core.engine.planning.plan import VIEWS, PlannedUnit, wanted_of
from everlog.core.engine.stepping.saved_state import Columns as SavedColumns
from everlog.core.engine.stepping.saved_state import count_columns, counts_from
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.engine.stepping.work import RuleWork, counting_uses
from everlog.core.ir.uses import Action, Use
from everlog.core.joins.join_strategies import AUTO, DELTA
from everlog.core.program import Atom, Row, Rule, Variable
from everlog.core.storage.shape import Columns, Counted, Facts, Key, PairFacts
from everlog.core.storage.table_shapes import PairShape

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

SMALL = 8  # limits are not checked for up to this many new facts


@frozen(slots=True, eq=False)
class Counting:
    """A listener: it runs a delta rule, whose derivations its keeper counts as gains or losses."""

    keeper: DerivingKeeper
    task: Task
    gains: bool

    def __call__(self, step: Step, delta: Facts) -> None:
        keeper = self.keeper
        derived = keeper.plus if self.gains else keeper.minus
        self.task(delta, derived)
        if derived and not keeper.waiting:
            step.wake(keeper)


class DerivingKeeper(Keeper):
    """A unit of one relation whose derivations are counted as they come and go.

    `plus` and `minus` collect them during a step, as counted facts.
    """

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.name = planned.unit.relations[0]
        self.shape = store.shapes[self.name]
        self.plus: Counted = {}
        self.minus: Counted = {}
        self._whole = [Task(store, rule, None, Use(Action.COUNT)) for rule in planned.unit.rules]
        self._versions: list[Task] = []
        self.work: dict[str, RuleWork] = {
            rule.name: RuleWork() for rule in planned.unit.rules if sum(isinstance(x, Atom) for x in rule.body) > 1
        }
        self.joined = {
            rule.name: JoinedRule(store, rule, choice.strategy, wanted_of(rule, planned.group))
            for rule in planned.unit.rules
            if (choice := planned.joins.get(rule.name)) is not None and choice.strategy in VIEWS
        }

    def tasks(self) -> Iterator[Task]:
        yield from self._whole
        yield from self._versions
        for rule in self.joined.values():
            yield from rule.trials()
            if rule.rest is not None:
                yield rule.rest

    def strategy_now(self, rule: Rule) -> str:
        """The strategy that keeps the join of a rule at present, or else that of the unit."""
        joined, choice = self.joined.get(rule.name), self.planned.joins.get(rule.name)
        if joined is not None:
            return joined.strategy
        if choice is not None:
            return DELTA if choice.strategy == AUTO else choice.strategy
        return super().strategy_now(rule)

    def use(self, store: Store) -> None:
        super().use(store)
        for rule in self.joined.values():
            rule.use(store)

    def listen(self, readers: dict[str, Readers]) -> None:
        self._versions.clear()
        for rule in self.planned.unit.rules:
            joined = self.joined.get(rule.name)
            for relation in outside_relations(rule, self.relations):
                if joined is not None and relation in joined.copies:
                    entry = readers.setdefault(relation, Readers())
                    entry.losses.append(self._hearing(joined, relation, gains=False))
                    entry.gains.append(self._hearing(joined, relation, gains=True))
                    continue
                work = self.work.get(rule.name)
                for event, sign, task, filtered in versions(
                    self.store, rule, relation, counting_uses(work, relation)
                ):
                    self._versions.append(task)
                    entry = readers.setdefault(relation, Readers())
                    entry.filtered |= filtered
                    entry.of(event, sign).append(Counting(self, task, sign > 0))

    def _hearing(self, joined: JoinedRule, relation: str, gains: bool) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            derived = self.plus if gains else self.minus
            joined.follow(step, relation, delta, derived, gains)
            if derived and not self.waiting:
                step.wake(self)

        return listener

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        for row in gone:
            self.shape.count_one(self.minus, row, 1)
        for row in new:
            self.shape.count_one(self.plus, row, 1)
        step.wake(self)

    def settle(self, step: Step) -> tuple[Facts, Facts]:
        """Take what was collected into the state; the facts that went and came."""
        raise NotImplementedError

    def turn(self, step: Step) -> None:
        gone, new = self.settle(step)
        if gone or new:
            step.spread(self.name, gone, new)

    def derive_all(self) -> Counted:
        """Every derivation, from what the rules read now."""
        self.plus, self.minus = {}, {}
        counted: Counted = {}
        for task in self._whole:
            task(None, counted)
        for row in self.given[self.name]:
            self.shape.count_one(counted, row, 1)
        return counted

    def forget(self) -> None:
        self.plus, self.minus = {}, {}

    def keep_join(self, name: str, strategy: str, estimate: float) -> None:
        """Have the join of a rule kept in another way from now on; the network has to listen again.

        `estimate` is what delta did for one row, in units of work.
        """
        rule = next(rule for rule in self.planned.unit.rules if rule.name == name)
        left = self.joined.pop(name, None)
        if left is not None:
            self.work[name].take_over(left.work, left.matches, left.rows_of, left.losses)
        if strategy in VIEWS:
            want = wanted_of(rule, self.planned.group)
            self.joined[name] = JoinedRule(self.store, rule, strategy, want)
            self.joined[name].try_delta(estimate)

    def work_of(self, name: str) -> int:
        """What the join of a rule has done so far, in units of work."""
        joined, work = self.joined.get(name), self.work.get(name)
        return (joined.work if joined is not None else 0) + (work.total()[0] if work is not None else 0)

    def forget_views(self) -> None:
        for rule in self.joined.values():
            rule.forget()

    def check(self) -> None:
        for rule in self.joined.values():
            rule.check()


def _projected(planned: PlannedUnit) -> tuple[str, Columns] | None:
    """The relation of which a unit has some columns, and which; None if it has anything else."""
    if len(planned.unit.rules) != 1 or len(planned.unit.rules[0].body) != 1:
        return None
    (rule,) = planned.unit.rules
    (atom,) = rule.body
    if not isinstance(atom, Atom) or len(set(atom.args)) < len(atom.args) or not rule.head.args:
        return None
    if not all(isinstance(arg, Variable) for arg in atom.args) or not set(rule.head.args) <= set(atom.args):
        return None
    return atom.relation, tuple(atom.args.index(arg) for arg in rule.head.args)


class CountKeeper(DerivingKeeper):
    """Most facts have one derivation, so only larger numbers are written down.

    Invariants:
    I1  `counts` has the number of derivations of each fact that has more than one (a given fact has
        one more), under (key, value) for a binary relation;
    I2  the table holds exactly the facts that have a derivation.
    """

    about = "the number of derivations of each fact"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.counts: dict[Key, int] = {}
        self.table = store.tables[self.name]
        self.projected = _projected(planned)

    def containers(self, relation: str) -> list[object]:
        return [*super().containers(relation), self.counts]

    def settle(self, step: Step) -> tuple[Facts, Facts]:
        plus, minus = self.plus, self.minus
        self.plus, self.minus = {}, {}
        if plus and minus:
            self.shape.cancel(plus, minus)
        before: dict[Key, int | None] = {}
        step.undo.append((self._put_back, (before,)))
        shield = step.guard.shield
        shield.held = True
        gone: Facts
        new: Facts
        if isinstance(self.shape, PairShape):
            gone, new = self._settled_pairs(plus, minus, before)
        else:
            facts = self.table.facts
            gone = {fact for fact, n in minus.items() if self._lessened(fact, n, before)}
            new = {fact for fact, n in plus.items() if self._increased(fact, n, fact in facts, before)}
        shield.release()
        number = self.shape.size_of(new)
        if number > SMALL or step.guard.progress is not None:
            step.guard.derived(self.name, number)
        return gone, new

    def _settled_pairs(self, plus: Counted, minus: Counted, before: dict[Key, int | None]) -> tuple[Facts, Facts]:
        """The same for a binary relation, key by key."""
        facts, counts = self.table.facts, self.counts
        gone: PairFacts = {}
        for key, of_key in minus.items():
            if counts:
                lost = {value for value, n in of_key.items() if self._lessened((key, value), n, before)}
            else:
                lost = set(of_key)
            if lost:
                gone[key] = lost
        new: PairFacts = {}
        for key, of_key in plus.items():
            known = facts.get(key)
            came = set()
            for value, n in of_key.items():
                if known is None or value not in known:
                    came.add(value)
                    if n > 1:
                        before[key, value] = None
                        counts[key, value] = n
                else:
                    self._increased((key, value), n, True, before)
            if came:
                new[key] = came
        return gone, new

    def _lessened(self, fact: Key, number: int, before: dict[Key, int | None]) -> bool:
        """Take derivations away; whether none is left."""
        counts = self.counts
        known = counts.get(fact)
        if known is None:
            return True
        before[fact] = known
        if known - number > 1:
            counts[fact] = known - number
        else:
            del counts[fact]
        return known == number

    def _increased(self, fact: Key, number: int, there: bool, before: dict[Key, int | None]) -> bool:
        """Add derivations; whether the fact is new."""
        counts = self.counts
        if there or number > 1:
            known = counts.get(fact)
            before[fact] = known
            counts[fact] = (known or (1 if there else 0)) + number
        return not there

    def _put_back(self, before: dict[Key, int | None]) -> None:
        for fact, number in before.items():
            if number is None:
                self.counts.pop(fact, None)
            else:
                self.counts[fact] = number

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget_views()
        found: dict[str, Facts] = {}
        if self.projected is not None and not self.given[self.name]:
            self.plus, self.minus = {}, {}
            facts, repeated = self._counted_columns(*self.projected)
        else:
            counted = found[self.name] = self.derive_all()
            facts, repeated = self.shape.support(counted), self.shape.repeated(counted)
        self.counts.clear()
        self.counts.update(repeated)
        step.guard.derived(self.name, self.shape.size_of(facts))
        self.table.replace(facts)
        return found

    def _counted_columns(self, relation: str, columns: Columns) -> tuple[Facts, Mapping[Key, int]]:
        """Some columns of a relation, and how often those that occur more than once do.

        Cost: no Python code runs per row.
        """
        table = self.store.tables[relation]
        if len(columns) == 1:
            number = Counter(map(itemgetter(*columns), table.rows()))
            return set(number), {value: n for value, n in number.items() if n > 1}
        facts = self.shape.facts_of(map(itemgetter(*columns), table.rows()))
        if self.shape.size_of(facts) == len(table):
            return facts, {}
        key = itemgetter(*(columns[c] for c in (*self.shape.key_columns, *self.shape.fact_columns)))
        return facts, {row: n for row, n in Counter(map(key, table.rows())).items() if n > 1}

    def snapshot_besides(self) -> Callable[[], None]:
        counts = content_of(self.counts)

        def restore() -> None:
            self.forget_views()
            counts()

        return restore

    def state(self) -> SavedColumns:
        return [*self.table.columns(), *count_columns(self.shape, self.counts)]

    def restore(self, columns: SavedColumns) -> None:
        left = iter(columns)
        self.forget_views()
        self.table.restore(left)
        self.counts.clear()
        self.counts.update(counts_from(self.shape, left))

    def check(self) -> None:
        super().check()
        expected = self.derive_all()
        assert self.counts == self.shape.repeated(expected), f"I1: {self.name}: {self.counts} of {expected}"
        facts = set(self.shape.rows_of(self.shape.support(expected)))
        assert set(self.table.rows()) == facts, f"I2: {self.name}"

"""Recursive units on the compiled machine: ranks, and counts of derivations from lower ranks.

Each fact has a *rank*, the moment at which it came, and a count of its derivations from facts of
the unit that all came before it.  Facts of other relations come before any.  That is all the state
there is: no derivation is kept, and no edges between facts.

*Insert*: facts are followed in the order in which they came.  A derivation is found once, at its
latest premise.  A fact that is new is added with count 1; one that is there gets 1 more only if
all premises came before it.

*Delete*: a derivation whose premises all came before its head takes 1 from the head's count; at 0
the head goes, too.  Then the facts that went are asked for other derivations from what is left.
Those that have some come back, with a new rank, later than all others.  So nobody else counts
derivations from them, and whether they are followed or the facts still missing are asked again is a
matter of how many there are of each.

It is right because ranks order every counted derivation: nothing holds itself up.  A fact with two
independent derivations from earlier facts costs one subtraction when one of them goes.

The machine has copies of the relations that the unit reads, as words.  Changes of them are
collected until the turn of the unit, so it needs no particular order of losses and gains.

Source: Gupta, Mumick, Subrahmanian, SIGMOD 1993 (counting, and delete-and-rederive); the order
that makes counting sound in recursion is that of Even and Shiloach, J. ACM 28(1), 1981.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from time import perf_counter
from typing import TYPE_CHECKING

from everlog.core import program as p
from everlog.core.engine.keepers.keeper import Derivation, Keeper, outside_relations
from everlog.core.engine.keepers.recursive.forecast import Forecast
from everlog.core.engine.keepers.recursive.ranked_plans import Follower, RankedPlans
from everlog.core.engine.stepping.changes import rows_of_change, size_of_change
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.word_table import WordTable
from everlog.core.native.words import column_of, empty_words, new_symbols, words_of
from everlog.core.program import Kind, Row, Rule
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts
from everlog.core.storage.table_statistics import SAMPLE, Guess, Statistics, is_other_size

if TYPE_CHECKING:
    from everlog.core.engine.planning.plan import PlannedUnit
    from everlog.core.engine.stepping.step import Step
    from everlog.core.engine.stepping.store import Store
    from everlog.core.native import _machine as machine

SHARE = 0.5  # a turn may do this share of the work of a computation
LEAST = 200_000  # units of work, a few milliseconds, that every turn may do
COPY = 20  # units of work to copy a row
WASTE = 1000  # compact when more rows have gone than this, and than are there


class RankedKeeper(Keeper):
    """Keeps any recursion whose rules the compiled machine runs.

    Invariants, beyond those of `core/native/live.h`:
      I1  between steps the copies of other relations have the facts of their tables;
      I2  the count of a fact is the number of its derivations from facts of lower rank, and 1 more
          if it is a base fact.
    """

    about = "for each fact its rank, and the number of its derivations from facts of lower rank"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        from everlog.core.native import _machine as machine  # here: only where the machine was built

        self._machine = machine
        self.rules = planned.unit.rules
        self.reads = sorted({name for rule in self.rules for name in outside_relations(rule, self.relations)})
        self.invents = any(p.invents(rule) for rule in self.rules)
        self.schema = {name: store.plan.program.relations[name] for name in (*self.relations, *self.reads)}
        self.symbols = store.symbols()
        self.plans: RankedPlans | None = None
        self.guard: Guard | None = None
        self.load_work = 0  # the work of the last computation
        self.forecast = Forecast()
        uses = [use for rule in self.rules for use in p.atoms_of(rule.body)]
        self.negated = {atom.relation for atom, use in uses if use != "positive"}
        self.tables: dict[str, WordTable] = {}
        for name in self.relations:
            table = store.tables[name]
            assert isinstance(table, WordTable)
            self.tables[name] = table
        self._adopt(*self._new_relations())
        self._empty_turn()

    def _new_relations(self) -> tuple[machine.Unit, dict[str, machine.Live]]:
        unit = self._machine.Unit()
        live: dict[str, machine.Live] = {}
        for name, relation in self.schema.items():
            words = empty_words(relation, self.symbols)
            live[name] = self._machine.Live(words, unit, name in self.relations)
        return unit, live

    def _adopt(self, unit: machine.Unit, live: dict[str, machine.Live]) -> None:
        self.unit, self.live = unit, live
        self.own = {name: self.live[name] for name in self.relations}
        self.others = {name: self.live[name] for name in self.reads}
        self.plans = None
        for name, table in self.tables.items():
            table.source = self.live[name]

    def _empty_turn(self) -> None:
        self.went: dict[str, list[Facts]] = {}
        self.came: dict[str, list[Facts]] = {}
        self.dropped: dict[str, list[Row]] = {}
        self.brought: dict[str, list[Row]] = {}

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        for name in self.reads:
            entry = readers.setdefault(name, Readers())
            entry.losses.append(self._hearing(name, "went"))
            entry.gains.append(self._hearing(name, "came"))

    def _hearing(self, name: str, what: str) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            getattr(self, what).setdefault(name, []).append(delta)
            step.wake(self)

        return listener

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        if gone:
            self.dropped[relation] = gone
        if new:
            self.brought[relation] = new
        if gone or new:
            step.wake(self)

    def forget(self) -> None:
        self._empty_turn()

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        self._prepare(step.guard)
        allowed = self.allowed()
        self._begin(allowed)
        unread: list[WordTable] = []
        step.undo.append((self._undo_turn, (unread,)))
        if not self._is_followed(step.guard, allowed):
            self._compute(step.guard)
            step.anew.append(self)
        self.forget()
        self._tell(step, unread)

    def _is_followed(self, guard: Guard, allowed: int) -> bool:
        """Follow the changes; False, without a trace, if that would cost more than it may."""
        losses, gains = self._heard()
        if self.forecast.work(losses, gains) > allowed:
            return False
        try:
            self._hear()
            self._follow(guard)
        except (self._machine.UsedUp, self._machine.Uncountable):
            self._roll_back()
            return False
        self.forecast.learn(losses, gains, self.unit.work)
        return True

    def _heard(self) -> tuple[int, int]:
        """The number of rows that may take facts away, and of those that may add some."""
        number = [0, 0]
        for came, changes in enumerate((self.went, self.came)):
            for name, all_of in changes.items():
                rows = sum(size_of_change(self.store.shapes[name], facts) for facts in all_of)
                number[not came if name in self.negated else came] += rows
        dropped, brought = (sum(map(len, rows.values())) for rows in (self.dropped, self.brought))
        return number[0] + dropped, number[1] + brought

    def allowed(self) -> int:
        """The work that a turn may do before it stops, and the unit is computed.

        A computation copies the relations that the unit reads, too.
        """
        copied = COPY * sum(len(live) for live in self.others.values())
        return max(LEAST, int(SHARE * (self.load_work + copied)))

    def _prepare(self, guard: Guard) -> None:
        """Drop rows that went, and plan again if the relations have other sizes now."""
        self.guard = guard
        kept = self.live.values()  # all are copied, so all of what is there counts
        if sum(live.waste for live in kept) > max(WASTE, sum(map(len, kept))):
            self._compact()
        if self.plans is not None:
            now = {name: len(live) for name, live in self.others.items()}
            if any(is_other_size(self.plans.sizes[name], size) for name, size in now.items()):
                self.plans = None
        if self.plans is None:
            self._plan()

    def _plan(self) -> None:
        self.plans = RankedPlans(
            self.rules, self.schema, self.live, self.symbols, self._statistics, lambda: self._look()
        )

    def _look(self) -> None:
        if self.guard is not None:
            self.guard.look()

    def _statistics(self, name: str) -> Statistics:
        live = self.live[name]
        if name in self.own or not live:
            return Guess(self.schema[name].arity)
        size = len(live)
        return Statistics(size, list(live.every(max(1, size // SAMPLE))))

    def _begin(self, work: int | None = None) -> None:
        for live in self.live.values():
            live.begin()
        self.unit.begin(work)

    def _roll_back(self) -> None:
        for live in self.live.values():
            live.roll_back()

    def _undo_turn(self, unread: list[WordTable]) -> None:
        self._roll_back()
        for table in unread:
            table.renew()  # somebody may have read it since

    def _rows(self, name: str, changes: list[Facts]) -> Iterator[Row]:
        return chain.from_iterable(rows_of_change(self.store.shapes[name], facts) for facts in changes)

    def _hear(self) -> None:
        for name, changes in self.went.items():
            self.live[name].went(self._rows(name, changes))
        for name, changes in self.came.items():
            self.live[name].came(self._rows(name, changes))
        for name, rows in self.dropped.items():
            self.live[name].withdraw(rows)

    def _follow(self, guard: Guard) -> None:
        """Take back derivations, bring back what has others, and follow what came."""
        assert self.plans is not None
        outer = self.plans.outer
        self._lose(outer)
        self._bring_back(guard)
        for name, rows in self.brought.items():
            self.live[name].support(rows)
        for one in outer:
            source = self.live[one.source]
            if one.negated and source.going:
                self._run(one.rule, one.plan.gain_unblocked, source)
            elif not one.negated and source.coming:
                self._run(one.rule, one.plan.gain, source, False)
        for live in self.others.values():
            live.settle()
        self._gain(guard)

    def _run(self, rule: Rule, run: Callable[..., None], *what: object) -> None:
        """Run a plan, and count its time for the rule."""
        start = perf_counter()
        run(*what)
        time = self.store.time_of(rule)
        time.runs += 1
        time.seconds += perf_counter() - start

    def _lose(self, outer: list[Follower]) -> None:
        """Take back derivations, round by round; facts without any go."""
        assert self.plans is not None
        for one in outer:
            source = self.live[one.source]
            if one.negated and source.coming:
                self._run(one.rule, one.plan.lose_blocked, source)
            elif not one.negated and source.going:
                self._run(one.rule, one.plan.lose, source, False)
        while any(live.going for live in self.own.values()):
            delta = [name for name, live in self.own.items() if live.doom()]
            for name in delta:
                for one in self.plans.inner[name]:
                    self._run(one.rule, one.plan.lose, self.live[name], True)
            for name in delta:
                self.live[name].bury()

    def _bring_back(self, guard: Guard) -> None:
        """Let facts that went come back if they have other derivations, round by round.

        A round asks the facts that are missing, or follows those that came back in the last one:
        whichever is less work, by what the turn has taken for each so far.  All that come back in
        a round have the same rank.
        """
        missing = sum(live.missing for live in self.own.values())
        follow = self.unit.work / max(1, missing)
        ask, back, number = 0.0, 0, 0
        while missing:
            number += 1
            guard.round(self.planned.name, number, 0, self.invents)
            self.unit.begin_round(together=True)
            delta = [name for name, live in self.own.items() if live.take()]
            before = self.unit.work
            if back * follow < missing * ask:
                self._follow_inner(delta)
            else:
                self._ask()
                ask = ask or (self.unit.work - before) / missing
            back = sum(live.coming for live in self.own.values())
            missing = missing - back if back else 0
        for live in self.own.values():
            live.take()
        self.unit.begin_round(together=False)

    def _ask(self) -> None:
        """Count the derivations of the facts that are missing; those with some come back."""
        assert self.plans is not None
        for name, live in self.own.items():
            if live.missing:
                live.revive([proof.plan for proof in self.plans.proofs[name]])

    def _follow_inner(self, names: list[str]) -> None:
        """Follow the facts of the unit that came in the round before."""
        assert self.plans is not None
        for name in names:
            for one in self.plans.inner[name]:
                self._run(one.rule, one.plan.gain, self.live[name], True)

    def _gain(self, guard: Guard) -> None:
        """Follow the facts that came, round by round."""
        number = 0
        while any(live.coming for live in self.own.values()):
            for live in self.own.values():
                live.advance()
            sizes = {name: size for name, live in self.own.items() if (size := live.take())}
            number += 1
            guard.round(self.planned.name, number, sum(sizes.values()), self.invents)
            self._follow_inner(list(sizes))

    def _tell(self, step: Step, unread: list[WordTable]) -> None:
        """Tell the change; tables that have no reader yet go to `unread`, and are made later."""
        told = {name: live.told() for name, live in self.own.items()}
        changes: list[tuple[str, Facts, Facts]] = []
        for name, (gone, new) in told.items():
            table = self.tables[name]
            if not gone and not new:
                continue
            if table.made or name in step.readers:
                shape = table.shape
                went, came = shape.facts_of(gone), shape.facts_of(new)
                step.undo.append((table.caught_up, ()))
                table.fall_behind(went, came)
                changes.append((name, went, came))
            else:
                step.changes[name] = gone, new
                unread.append(table)
        for name, before, after in changes:
            step.spread(name, before, after)
            self.tables[name].caught_up()

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def _compute(self, guard: Guard) -> None:
        """Compute the unit from the tables that it reads, in a turn that has begun."""
        self.guard = guard
        for live in self.live.values():
            live.clear()
        self.unit.restart()  # ranks are used up after 2^32 facts
        for name, live in self.others.items():
            live.load(self.store.tables[name].rows())
        for name, rows in self.given.items():
            if rows:
                self.live[name].support(rows)
        if self.plans is None:
            self._plan()
        assert self.plans is not None
        for rule, plan in self.plans.whole:
            self._run(rule, plan.whole, self.own[rule.head.relation])
        self._gain(guard)
        self.load_work = self.unit.work

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget()
        if not any(len(live) for live in self.live.values()):
            self._adopt(*self._new_relations())
        self._begin()
        self._compute(step.guard)
        for table in self.tables.values():
            table.renew()
        return {}

    def rebuilt_changes(self) -> Mapping[str, tuple[Facts, Facts]]:
        return {name: live.told() for name, live in self.own.items()}

    def snapshot(self) -> Callable[[], None]:
        self._begin()
        live, unit, plans, work = self.live, self.unit, self.plans, self.load_work

        def restore() -> None:
            self.forget()
            self._adopt(unit, live)
            self.plans, self.load_work = plans, work
            self._roll_back()
            for table in self.tables.values():
                table.renew()

        return restore

    def _compact(self) -> None:
        """Copy the rows that are left, without those that went, and without their symbols.

        All stays as it is if that fails.
        """
        former, symbols = (self.unit, self.live), self.symbols
        try:
            self.symbols = new_symbols()
            unit, made = self._new_relations()
            for name, live in self.live.items():
                if name in self.others:
                    made[name].load(live)
                else:
                    made[name].restore(self._words(name, self._columns(name, live, symbols), self.symbols))
            self._adopt(unit, made)
        except BaseException:
            self.symbols = symbols
            self._adopt(*former)
            raise

    def state(self) -> Columns:
        columns: Columns = []
        for name, live in self.own.items():
            columns += self._columns(name, live, self.symbols)
        return columns

    def _columns(self, name: str, live: machine.Live, symbols: machine.Symbols) -> Columns:
        """The columns of a relation of the unit, then its ranks and its counts."""
        kinds = [*(column.kind for column in self.schema[name].columns), Kind.NUMBER, Kind.NUMBER]
        return [column_of(words, kind, symbols) for words, kind in zip(live.columns(), kinds, strict=True)]

    def _words(self, name: str, columns: Columns, symbols: machine.Symbols) -> list[bytes | memoryview]:
        """The inverse of `_columns`."""
        kinds = [*(column.kind for column in self.schema[name].columns), Kind.NUMBER, Kind.NUMBER]
        return [words_of(column, kind, symbols) for column, kind in zip(columns, kinds, strict=True)]

    def restore(self, columns: Columns) -> None:
        left = iter(columns)
        self.forget()
        self._adopt(*self._new_relations())
        for name, live in self.others.items():
            live.load(self.store.tables[name].rows())
        for name, live in self.own.items():
            live.restore(self._words(name, list(islice(left, self.schema[name].arity + 2)), self.symbols))
        for table in self.tables.values():
            table.renew()

    # ── reports ──────────────────────────────────────────────────────────────────────────────

    def containers(self, relation: str) -> list[object]:
        table = self.tables[relation]
        return [self.live[relation], *([table.facts, *table.indexes.values()] if table.made else [])]

    def derivation_of(self, relation: str, row: Row) -> Derivation | None:
        if row in self.given[relation]:
            return None
        if self.plans is None:
            self._plan()
        assert self.plans is not None
        for proof in self.plans.proofs[relation]:
            values = proof.plan.proof(self.live[relation], row, proof.registers, proof.kinds)
            if values is not None:
                names = (variable.name for variable in proof.variables)
                return proof.rule.name, dict(zip(names, values, strict=True))
        return None

    def check(self) -> None:
        if self.plans is None:
            self._plan()
        assert self.plans is not None
        for name, live in self.live.items():
            live.check()
            assert set(live) == set(self.store.tables[name].rows()), f"I1: {name}"
        for name, live in self.own.items():
            counts = self._columns(name, live, self.symbols)[-1]
            counted = [proof.plan.derivations_of(live) for proof in self.plans.proofs[name]]
            for number, (row, count) in enumerate(zip(live, counts, strict=True)):
                expected = sum(one[number] for one in counted) + (row in self.given[name])
                assert count == expected > 0, f"I2: {name}{row} has {count}, not {expected}"

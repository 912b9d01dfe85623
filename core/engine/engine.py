"""The in-process engine: relations that follow inserts and deletes.

A step is a list of updates, applied in order, all or none.  A small step passes through the units
as a change (`core.engine.stepping.step`); a large one, or the first, recomputes the units that it
reaches, set at a time.  Either way the relations afterwards are those of an evaluation from
scratch.

A small step passes through states in which some relations are new and others old.  If a rule fails
on values that meet only there (a division by zero, say), the engine undoes the step and recomputes
the units: then only an error of the new state itself is an error of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from time import perf_counter
from typing import Any, NoReturn, TypeAlias, TypeVar

from everlog.core.engine.demands import Demands
from everlog.core.engine.fused import Fused, MetFailure
from everlog.core.engine.keepers.base import BaseKeeper
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.views.view_table import ViewTable
from everlog.core.engine.net_change import BaseFacts, Net
from everlog.core.engine.network import Network
from everlog.core.engine.planning.plan import GIVEN as BASE_ONLY
from everlog.core.engine.planning.plan import Plan, make_plan
from everlog.core.engine.planning.systems import Refused, with_auxiliaries
from everlog.core.engine.reads import Reads
from everlog.core.engine.stepping.broken import BrokenEngine
from everlog.core.engine.stepping.changes import NOTHING, BaseRows, ToldChanges
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Step
from everlog.core.engine.stepping.word_table import WordTable
from everlog.core.engine.stepping.work import Enough
from everlog.core.engine.usage import Usage
from everlog.core.engine.watch import JoinWatch, Move, Watched
from everlog.core.engine.ways import Ways
from everlog.core.program import Program, Row, Rule
from everlog.core.program.executor import Changes, InsertOnly, NotABaseRelation, Update
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.collector import Pause, collector_paused, without_collections
from everlog.core.runtime.guards import Broken, Guard, LimitExceeded, Limits, Progress
from everlog.core.storage.equivalence import Classes
from everlog.core.storage.shape import Facts
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.tables import Table

_T = TypeVar("_T")

LARGE = 64  # updates from which a step may be a large one
TOLD_MOVES = 15  # earlier moves of a rule that reports list
PART = 4  # a large step changes at least 1/4 of the base facts
MEASURED = 200  # one of this many fused updates takes the general way, to measure rules

Seal: TypeAlias = Callable[[Net], None]


_Step = TypeVar("_Step", bound=Callable[..., Changes])


class _Answered(Exception):
    """Ends a trial, so that the engine undoes its step; `answer` is what was found."""

    def __init__(self, answer: Any) -> None:
        super().__init__("a trial is over")
        self.answer = answer


def _whole(method: _Step) -> _Step:
    """Run a step; an error after the step is committed breaks the engine."""

    @wraps(method)
    def step(self: Engine, *args: Any, **more: Any) -> Changes:
        self.guard.committed = False
        try:
            return method(self, *args, **more)
        except Broken:
            raise
        except BaseException as error:
            self._left(error)
            raise

    return step  # type: ignore[return-value]  # of the same signature


def reported_by(plan: Plan, program: Program) -> frozenset[str]:
    """The relations whose changes a step reports: those declared, and parts of those on demand."""
    if plan.demand is None:
        return frozenset(program.relations)
    return frozenset(program.relations.keys() - plan.demand.parts.keys()) | plan.demand.made


def _derived(program: Program) -> frozenset[str]:
    return frozenset(rule.head.relation for rule in program.rules)


def _difference(before: Mapping[str, set[Row]], after: Mapping[str, set[Row]]) -> dict[str, dict[Row, int]]:
    """Facts that went and came, for relations that have any."""
    found: dict[str, dict[Row, int]] = {}
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, set()), after.get(name, set())
        if old != new:
            found[name] = dict.fromkeys(old - new, -1) | dict.fromkeys(new - old, 1)
    return found


@without_collections
def _followed(step: Step, name: str, gone: Facts, new: Facts) -> None:
    step.spread(name, gone, new)
    step.run()


class Engine(Reads):
    """A program and its relations.

    >>> from everlog.dsl.check import compile_text
    >>> engine = Engine(compile_text('''
    ...   .decl edge(x:number, y:number)  .decl path(x:number, y:number)
    ...   path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).'''))
    >>> dict(engine.apply([Update("edge", (1, 2)), Update("edge", (2, 3))])["path"])
    {(1, 2): 1, (1, 3): 1, (2, 3): 1}
    >>> engine.apply([Update("edge", (1, 2), insert=False)])["path"] == {(1, 2): -1, (1, 3): -1}
    True
    """

    is_asleep = False  # whether relations are only read from where they are stored

    def __init__(
        self,
        program: Program,
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
        strategies: Mapping[str, str] | None = None,
        large: int = LARGE,
        given: Mapping[str, Iterable[Row]] | None = None,
        kept: Mapping[str, Columns] | None = None,
    ) -> None:
        """Run a program with its own facts, or with the base facts `given` instead.

        `kept` is the saved state of another engine with the same program, strategies and facts: it
        is restored instead of computed.

        `seal`, if set, is called with each step at its very end: if it raises, the step is undone;
        if it returns, the step is committed for good.
        """
        self.program = with_auxiliaries(program, strategies or {})
        self.guard = Guard(limits or Limits(), progress)
        self.seal: Seal | None = None
        self.usage = Usage()
        self.moved: dict[str, tuple[Move, ...]] = {}  # rules that moved, with their last moves
        self._trial: Callable[[Changes], Any] | None = None  # asked at the end of a step: see `what_if`
        self._asked = dict(strategies or {})
        self._start(self.program, program.facts if given is None else given, kept, large)

    def _start(
        self,
        program: Program,
        start: Mapping[str, Iterable[Row]],
        kept: Mapping[str, Columns] | None,
        large: int = LARGE,
    ) -> None:
        """Plan the program, and make the first step."""
        self.large = large
        self._steps = 0
        self.measured = MEASURED  # 1: no update is fused, for a profile
        self.anew: dict[str, tuple[int, int]] = {}  # unit → steps in which it gave up following, the last one
        self.proving: dict[str, tuple[int, float]] = {}  # unit → step that made its ranks, seconds
        self.demands = Demands(self)
        self.own_facts = _derived(program).intersection(name for name, rows in start.items() if rows)
        plan = make_plan(program, self._asked, own=self.own_facts)
        self._network = Network(plan, reported_by(plan, program))
        self._base_facts = 0
        self._know(program)
        rows_of_start = {name: list(dict.fromkeys(rows)) for name, rows in (*start.items(), *plan.given.items())}
        self.computed: dict[str, tuple[float, int]] = {}  # unit → seconds and facts when last computed
        net: Net = {name: ([], rows) for name, rows in rows_of_start.items() if rows}
        self._compute(net, everything=True, kept=kept)

    def _know(self, program: Program) -> None:
        self._told = frozenset(name for name in program.relations if not self.demands.is_on_demand(name))
        self._base = BaseFacts(program, self._network.home)
        self._small = self._begin()
        self._proved: set[tuple[str, bool]] = set()  # relations and whether a fact comes: `_prove_for`
        self._answering: tuple[Rule, ...] | None = None  # found when somebody queries
        self._read_instead = self._network.plan.read_instead
        self._watch = JoinWatch(self._network)
        self._base_only = {name for name in program.relations if self.strategy_of(name)[0] == BASE_ONLY}
        self._ways = Ways(self._network, self._base_only)

    @property
    def in_trial(self) -> bool:
        """Whether a step is being tried: until it is undone, no other can be made."""
        return self._trial is not None

    @property
    def limits(self) -> Limits:
        return self.guard.limits

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def apply(self, step: Iterable[Update]) -> Changes:
        """Apply the updates in order, all or none; return the net change per relation."""
        updates = step if isinstance(step, list | tuple) else list(step)
        if len(updates) == 1:
            update = updates[0]
            return self.update(update.relation, update.row, update.insert)
        return self._apply_all(updates)

    @_whole
    def _apply_all(self, updates: Sequence[Update]) -> Changes:
        self._count_step()
        return self._apply(self._base.net(updates))

    def update(self, relation: str, row: Row, insert: bool = True) -> Changes:
        """Apply one insert or delete as a step, without making an `Update`."""
        self.guard.committed = False
        try:  # as `_whole` does, without another call
            return self._update(relation, row, insert)
        except Broken:
            raise
        except BaseException as error:
            self._left(error)
            raise

    def _update(self, relation: str, row: Row, insert: bool) -> Changes:
        self._count_step()
        if relation not in self._base_only:
            return self._apply(self._base.net([Update(relation, row, insert)]))
        guard, fused = self.guard, None
        self._network.store.weight = 1
        if guard.progress is None and guard.limits.facts is None:  # derived facts are not counted
            fused = self._ways.fused(relation, insert)
            if fused is not None and not self._steps % self.measured:
                fused, self._network.store.weight = None, self.measured
        told = self._single(relation, row, insert, fused)
        watch = self._watch
        watch.due -= 1
        if watch.due < 0:
            self._look_at_joins()
        return told

    def _count_step(self) -> None:
        self._steps += 1
        if not self._steps & (self._steps - 1):  # 1, 2, 4, 8, …
            self._network.forget_grown_tasks()
            self._ways.forget_if_grown()

    @_whole
    def insert(self, rows: Mapping[str, Iterable[Row]]) -> Changes:
        """Insert many facts as one step, without an `Update` for each.

        Cost: for a first load, that of sets of rows; no Python code runs per row.
        """
        net = self._base.inserted(rows)
        self._steps += 1
        return self._apply(net)

    @_whole
    def change(self, net: Net) -> Changes:
        """Apply the net change of a step that was made elsewhere."""
        self._steps += 1
        return self._apply(net)

    def what_if(self, updates: Sequence[Update], ask: Callable[[Changes], _T]) -> _T:
        """Apply a step, call `ask` with its changes in the state that it makes, and undo the step.

        `ask` may read and must not write.  Nothing is sealed.  A step that fails raises its error.

        Cost: that of the step, of `ask`, and of undoing the step.
        """
        net = self._base.net(updates)
        return self.trial(net, ask) if net else ask(NOTHING)

    def trial(self, net: Net, ask: Callable[[Changes], _T]) -> _T:
        """As `what_if`, for a change of base facts."""
        self._read_bodies_again(net)
        self._trial = ask
        try:
            self._try(net)
        except _Answered as over:
            answer: _T = over.answer
            return answer
        finally:
            self._trial = None
        raise AssertionError("a trial ends before its step is committed")

    @_whole
    def _try(self, net: Net) -> Changes:
        return self._apply(net)

    @_whole
    def ask_for(self, net: Net) -> Changes:
        """Change what is asked for of relations on demand: a step that is not sealed."""
        seal, self.seal = self.seal, None
        try:
            return self._apply(net)
        finally:
            self.seal = seal

    def prove_all(self) -> None:
        """Make the ranks of all facts, which proofs in a trial need."""
        self._prove(self._network.keepers)

    def _apply(self, net: Net) -> Changes:
        if not net:
            return NOTHING
        self._read_bodies_again(net)
        number = sum(len(gone) + len(new) for gone, new in net.values())
        if number >= self.large and number * PART >= self._base_facts:
            return self._compute(net)
        self._network.store.weight = 1
        with self.guard:
            try:
                changes = self._follow(net)
            except (LimitExceeded, Refused):
                raise
            except Enough as enough:  # it was taken back: once more, with another view of the join
                self._move_joins(self._watch.given_up(enough.rule))
                return self._apply(net)
            except EvaluationError:  # perhaps only on the way: see above
                return self._compute(net)
        self._watch.due -= number
        if self._watch.due < 0:
            self._look_at_joins()
        return changes

    def _read_bodies_again(self, net: Net) -> None:
        """Before a step gives a relation facts of its own: no rule may read it instead of its body.

        It stays so while the engine lives, also when these facts go.
        """
        if self._read_instead and any(net[name][1] for name in self._read_instead.intersection(net)):
            before = self.own_facts
            self.own_facts |= {name for name in self._read_instead.intersection(net) if net[name][1]}
            try:
                self.plan_again()
            except BaseException:
                self.own_facts = before
                raise

    def _look_at_joins(self) -> None:
        """After a step, move joins whose work has paid for it to another view."""
        try:
            moving = self._watch.look()
        except MemoryError:  # the step stands, and another time will do
            return
        self._move_joins(moving)

    def _move_joins(self, moving: list[tuple[Watched, str]]) -> None:
        if moving:
            with self.guard.shield:
                for rule, move in self._watch.move(moving, self._steps).items():
                    self.moved[rule] = (*self.moved.get(rule, ())[-TOLD_MOVES:], move)
                self._small = self._begin()
                self._ways = Ways(self._network, self._base_only)

    def _begin(self) -> Step:
        network = self._network
        return Step(network.store, network.keepers, network.readers, self.guard)

    def _give(self, step: Step, net: Net) -> None:
        for name, (gone, new) in net.items():
            keeper = self._network.home[name]
            step.undo.append((keeper.change_given, (name, new, gone)))
            keeper.change_given(name, gone, new)
            keeper.give(step, name, gone, new)

    def _base_facts_after(self, net: Net) -> int:
        return self._base_facts + sum(len(new) - len(gone) for gone, new in net.values())

    def _changes(self, step: Step) -> Changes:
        """The changes of a step in declared relations."""
        declared = {name: change for name, change in step.changes.items() if name in self._told}
        told = ToldChanges(self._network.store.shapes, declared)
        return told.with_rows(self.demands.told(step.changes)) if self.demands.watched else told

    def _single(self, name: str, row: Row, insert: bool, fused: Fused | None) -> Changes:
        """Apply one update of a base relation, by its compiled function if there is one."""
        table = self._network.store.tables[name]
        shape = table.shape
        if len(row) != shape.arity:
            raise NotABaseRelation(self._base.misfit(name, row))
        if not insert and name in self._base.insert_only:
            raise InsertOnly(name)
        if insert is shape.has_row(table.facts, row):
            return NOTHING
        if fused is None and (name, insert) not in self._proved:  # what is fused only counts
            self._prove_for(name, insert)
        step, guard = self._small, self.guard
        if fused is None or step.undo:
            step.again()
        rows: dict[str, dict[Row, int]] = {name: {row: 1 if insert else -1}}
        number = self._base_facts + (1 if insert else -1)
        with guard:
            try:
                if fused is not None:
                    fused(step, row, rows)
                    changes: Changes = rows
                    if self._network.plan.demand is not None:
                        changes = self.demands.of_rows(rows, self._told)
                else:
                    facts, nothing = shape.facts_of([row]), shape.empty()
                    _followed(step, name, *((nothing, facts) if insert else (facts, nothing)))
                    changes = self._changes(step)
                if self.seal is not None:
                    self._have_sealed({name: ([], [row]) if insert else ([row], [])})
                step.undo.clear()
                anew = self.anew if fused is not None or not step.anew else self._anew_after(step)
                self._base_facts, self.anew, guard.committed = number, anew, True
            except BaseException as error:
                self._take_back(step, error)
                if isinstance(error, Enough):
                    self._move_joins(self._watch.given_up(error.rule))
                if isinstance(error, (MetFailure, Enough)):
                    return self._apply({name: ([], [row]) if insert else ([row], [])})
                if isinstance(error, EvaluationError) and not isinstance(error, (LimitExceeded, Refused)):
                    return self._compute({name: ([], [row]) if insert else ([row], [])})
                raise
            finally:
                if Pause.on:
                    Pause.end()
        return changes

    def _take_back(self, step: Step, error: BaseException) -> None:
        """Undo a step; break the engine if that fails."""
        if self.guard.committed:  # the file has the step, so memory must keep it
            self.give_up(error)
        halfway = self.guard.shield.held and not isinstance(error, (EvaluationError, MetFailure, Enough))
        try:
            with self.guard.shield:
                step.roll_back()
                if halfway or isinstance(error, (MemoryError, SystemError)):
                    self._derive_anew()
        except BaseException as problem:
            self.give_up(problem)

    def _derive_anew(self) -> None:
        """Recompute all derived facts from the base facts, after an interrupted change."""
        step = self._begin()
        for keeper in self._network.keepers:
            keeper.forget()
            if isinstance(keeper, BaseKeeper):
                keeper.table.rebuild()
            keeper.rebuild(step)
        step.all_awake()

    def _left(self, error: BaseException) -> None:
        """After an error: break if the step is committed, unless it is a late Ctrl-C."""
        if self.guard.committed and isinstance(error, Exception):
            self.give_up(error)

    def give_up(self, problem: BaseException) -> NoReturn:
        """Break the engine: its memory may be wrong, and is not read any more."""
        self.__class__ = BrokenEngine  # type: ignore[assignment]
        raise Broken(f"a step could not be taken back ({problem!r}): open the database anew") from problem

    @without_collections
    def _follow(self, net: Net) -> Changes:
        """A small step: the change passes from unit to unit."""
        for name, (gone, _) in net.items():
            if (name, not gone) not in self._proved:
                self._prove_for(name, not gone)
        step = self._begin()
        with self.guard:
            try:
                self._give(step, net)
                step.run()
                changes, number, anew = self._changes(step), self._base_facts_after(net), self._anew_after(step)
                self._have_sealed(net, changes)
                # last: nothing may fail after it
                self._base_facts, self.anew, self.guard.committed = number, anew, True
            except BaseException as error:
                self._take_back(step, error)
                raise
        return changes

    def _anew_after(self, step: Step) -> dict[str, tuple[int, int]]:
        """`anew`, with the units that a step computed anew."""
        if not step.anew:
            return self.anew
        names = [keeper.planned.name for keeper in step.anew]
        return self.anew | {name: (self.anew.get(name, (0, 0))[0] + 1, self._steps) for name in names}

    def _prove_for(self, relation: str, insert: bool) -> None:
        """Make the ranks that a change of a relation needs, once."""
        self._prove(self._network.may_lose(relation, insert))
        self._proved.add((relation, insert))

    def _compute(self, net: Net, everything: bool = False, kept: Mapping[str, Columns] | None = None) -> Changes:
        """A large step: recompute the units that it reaches, or restore them from `kept`."""
        step = self._begin()
        network = self._network
        network.store.weight = 1
        self.guard.facts = 0
        with collector_paused(), self.guard:
            try:
                self._give(step, net)
                for name, (gone, new) in net.items():
                    if isinstance(network.home[name], BaseKeeper):
                        step.changes[name] = BaseRows(gone), BaseRows(new)
                reached = network.keepers if everything else network.reached(net)
                for keeper in reached:
                    columns = None if kept is None else kept.get(keeper.planned.name)
                    if columns is None:
                        self._rebuild(step, keeper, report=not everything)
                    else:
                        keeper.restore(columns)
                        keeper.forget()
                with self.guard.shield:
                    step.all_awake()
                network.forget_grown_tasks()
                changes, number = self._changes(step), self._base_facts_after(net)
                self._have_sealed(net, changes)
                self._base_facts, self.guard.committed = number, True  # last: nothing may fail after it
            except BaseException as error:
                self._take_back(step, error)
                raise
        return changes

    def _have_sealed(self, net: Net, changes: Changes = NOTHING) -> None:
        """End a step: nothing after this fails, and signals wait until the guard exits."""
        if self._trial is not None:
            raise _Answered(self._trial(changes))
        if self.seal is not None:
            with self.guard.sealing():
                self.seal(net)
                self.guard.committed = True  # whatever fails from here on

    def _rebuild(self, step: Step, keeper: Keeper, report: bool) -> None:
        """Recompute a unit, and record what changed if that is reported."""
        store = self._network.store
        before: dict[str, Facts] = {}
        reported = [name for name in keeper.relations if name in self._network.reported]
        if isinstance(keeper, BaseKeeper) or not report:
            reported = []  # the change of base facts is known: see `_compute`
        told = bool(reported) and isinstance(store.tables[reported[0]], WordTable | ViewTable)
        if told:
            reported = []  # the keeper tells it
        for name in reported:
            table = store.tables[name]
            shared = isinstance(table, Classes | SharedTable)  # a rebuild replaces their many sets
            before[name] = dict(table.facts) if shared else table.shape.copied(table.facts)
        sizes: dict[str, int] = {}
        for task in keeper.tasks():
            task.forget_if_grown(sizes)
        step.undo.append((keeper.snapshot(), ()))
        start = perf_counter()
        computed = keeper.rebuild(step)
        self.computed[keeper.planned.name] = (
            perf_counter() - start,
            sum(keeper.size_of(n) for n in keeper.relations),
        )
        if told:
            changes = keeper.rebuilt_changes() or {}
            step.changes.update({name: change for name, change in changes.items() if any(change)})
        for name in reported:
            if name in computed and not before[name]:
                gone, new = before[name], computed[name]
            else:
                gone, new = store.tables[name].difference(before[name])
            if gone or new:
                step.changes[name] = gone, new

    # ── other rules ──────────────────────────────────────────────────────────────────────────

    def change_program(self, program: Program) -> Changes:
        """Change rules and declarations, all or none; compute only what depends on them."""
        return self._switch(with_auxiliaries(program, self._asked))

    def plan_again(self) -> None:
        """Plan the same program again: other parts of relations on demand are asked for."""
        seal, self.seal = self.seal, None
        try:
            self._switch(self.program)
        finally:
            self.seal = seal

    def _own_facts_in(self, program: Program) -> frozenset[str]:
        """The derived relations of a program that have, or had, facts of their own."""
        known = self.own_facts | {name for name in _derived(self.program) if self.given(name)}
        return known & _derived(program)

    @_whole
    def _switch(self, program: Program) -> Changes:
        old, old_program = self._network, self.program
        own = self._own_facts_in(program)
        plan = make_plan(program, self._asked, self.demands.asked, own)
        before: dict[str, Table] = {name: table for name, table in old.store.tables.items() if name in self._told}
        watched = self.demands.watched_rows()
        with collector_paused(), self.guard:
            try:
                network, fresh = old.changed(plan, old_program, program, reported_by(plan, program))
                self._network, self.program = network, program
                step = self._begin()
                for keeper in fresh:
                    keeper.rebuild(step)
                with self.guard.shield:
                    step.all_awake()
                    self._know(program)
                number = sum(len(self.given(name)) for name in (*program.relations, *plan.given))
                now = {rule.name: network.strategy_now(rule) for rule in plan.program.rules}
                moved = {rule: to for rule, to in self.moved.items() if now.get(rule) == to[-1].strategy}
                changes = {}
                for name in dict.fromkeys([*old_program.relations, *program.relations]):
                    if self.demands.is_on_demand(name) or (name in old_program.relations and name not in before):
                        continue
                    change = network.difference(name, before.get(name), old)
                    if change is not None:
                        changes[name] = change
                reported = ToldChanges({**old.store.shapes, **network.store.shapes}, changes)
                reported = reported.with_rows(_difference(watched, self.demands.watched_rows()))
                self._have_sealed(network.base_change(old, old_program, program))
                self._base_facts, self.moved, self.own_facts = number, moved, own
                self.guard.committed = True
            except BaseException as error:
                self._resume(old, old_program, error)
                raise
        return reported

    def _resume(self, network: Network, program: Program, error: BaseException) -> None:
        """Continue with the earlier rules."""
        if self.guard.committed:
            self.give_up(error)
        try:
            with self.guard.shield:
                self._network, self.program = network, program
                network.resume()
                self._know(program)
        except BaseException as problem:
            self.give_up(problem)

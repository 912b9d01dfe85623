"""The containers of an engine: tables, changes, ranks, group values.

Compiled rules ask for indexes by name.  Besides tables there are `Δ` names (the change of a
relation while it is being spread, for rules that read it twice), the values of groups, and ranks
of facts.  All stay in place for the life of the store, so that a rule is bound to them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import define, evolve

from everlog.core import program as p
from everlog.core.dbsp import delta_name
from everlog.core.engine.planning.plan import FLOW, RANKED, Plan
from everlog.core.engine.stepping.word_table import WordTable
from everlog.core.ir.compile import Compiled, Run, compile_rule
from everlog.core.ir.heads import RANKS_OF
from everlog.core.ir.printer import LAZY, VALUES_OF, Access
from everlog.core.ir.set_operations import SetPlan
from everlog.core.ir.uses import Use, is_risky
from everlog.core.native.words import new_symbols
from everlog.core.program import Rule, Value
from everlog.core.program.values import EvaluationError
from everlog.core.storage.equivalence import Classes
from everlog.core.storage.lazy_index import LazyIndex
from everlog.core.storage.shape import Counted, Facts, Key, Shape
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.table_statistics import SMALL, UNKNOWN, Guess, Sampled, Statistics, is_other_size
from everlog.core.storage.tables import Table, TableOf

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine

LARGE = 10_000  # facts of a table whose index takes noticeably long to build


@define
class RuleTime:
    """How often and how long a rule ran, and how long its compilation took."""

    runs: int = 0
    seconds: float = 0.0
    compiling: float = 0.0


class Store:
    """Invariant: containers are changed in place and never replaced."""

    def __init__(self) -> None:
        self.plan: Plan
        self.functors: Mapping[str, p.Functor] = {}
        self.failing: frozenset[str] = frozenset()  # the groups whose value may be a failure
        self.shapes: dict[str, Shape] = {}
        self.tables: dict[str, Table] = {}
        self.deltas: dict[str, Table] = {}
        self.ranks: dict[str, Counted] = {}  # of relations that are ranked in Python
        self.values: dict[str, dict[Key, Value]] = {}
        self.times: dict[str, RuleTime] = {}
        self.sampled = Sampled(growing=True)
        self._symbols: machine.Symbols | None = None  # of relations that the compiled machine keeps
        self.plans: dict[tuple[str, int | None], SetPlan] = {}  # of rules, and the places of Δ: in use
        self.weight = 1  # runs of a rule that a measured one stands for

    def symbols(self) -> machine.Symbols:
        """The symbols of all relations that the compiled machine keeps."""
        if self._symbols is None:
            self._symbols = new_symbols()
        return self._symbols

    def beside(self, names: Iterable[str] = ()) -> Store:
        """A store with the same containers, except empty ones for these relations."""
        other = copy(self)
        other.shapes, other.tables, other.deltas = dict(self.shapes), dict(self.tables), dict(self.deltas)
        other.ranks, other.values, other.plans = dict(self.ranks), dict(self.values), {}
        other.begin(names)
        return other

    def adopt(self, plan: Plan) -> None:
        """Switch to another plan; unchanged units keep their tables."""
        self.plan = plan
        self._recursive = {n for unit in plan.units if unit.unit.recursive for n in unit.unit.relations}
        self.functors = plan.program.functors
        self.failing = plan.failing
        self.shapes.update(plan.shapes)
        self.shapes.update({delta_name(name): shape for name, shape in plan.shapes.items()})

    def begin(self, names: Iterable[str]) -> None:
        """Make empty tables for these relations."""
        shared = {
            name for planned in self.plan.units if planned.strategy == FLOW for name in planned.unit.relations
        }
        ranked = {n for planned in self.plan.units if planned.strategy == RANKED for n in planned.unit.relations}
        for name in names:
            kind: Callable[[Shape], Table] = SharedTable if name in shared else TableOf
            if self.plan.program.relations[name].equivalence:
                kind = Classes
            elif name in ranked:
                kind = WordTable
            self.tables[name] = kind(self.shapes[name])
            self.deltas.pop(delta_name(name), None)
            self.ranks.pop(name, None)
            self.values.pop(name, None)

    def delta(self, relation: str) -> Table:
        """The table of a relation's change, filled only while the change is spread."""
        name = delta_name(relation)
        if name not in self.deltas:
            self.deltas[name] = TableOf(self.shapes[relation])
        return self.deltas[name]

    def has_index(self, access: Access) -> bool:
        """Whether an index of a table is built, so that reading it costs nothing more."""
        table = self.tables.get(access.relation)
        return table is not None and table.find(access.key, access.rest) is not None

    def index(self, access: Access) -> object:
        """The index that compiled code asks for; a lazy one for a large table, if that will do."""
        name = access.relation
        if name.startswith(LAZY):
            table = self.tables[name.removeprefix(LAZY)]
            if table.find(access.key, access.rest) is None and table.about() > LARGE:
                return LazyIndex(table, access.key, access.rest)
            return table.index(access.key, access.rest)
        if name.startswith(VALUES_OF):
            return self.values.setdefault(name.removeprefix(VALUES_OF), {})
        if name.startswith(RANKS_OF):
            return self.ranks.setdefault(name.removeprefix(RANKS_OF), {})
        found = self.tables.get(name)
        if found is None:
            found = self.deltas[name] if name in self.deltas else self.delta(name[1:])
        return found.index(access.key, access.rest)

    def statistics(self, rule: Rule) -> dict[str, Statistics]:
        """Statistics of the relations that a rule reads.

        While all of them are small, nothing is known of empty ones: they may be about to be filled.
        Once one has been filled, another one that is still empty is best looked at first.
        """
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}.intersection(self.tables)
        found = self.sampled.known((name, self.tables[name]) for name in names)
        if any(known.rows > SMALL for known in found.values()):
            for name in names.difference(found, self._recursive):
                known = self.tables[name].statistics()
                if known is not None:
                    found[name] = known
        return found

    def of_rule(self, rule: Rule, error: EvaluationError) -> EvaluationError:
        """The error, with the rule that raised it as its author wrote it."""
        written = self.plan.written.get(rule.name, rule)
        return error.with_rule(written.written, str(written.origin))

    def time_of(self, rule: Rule) -> RuleTime:
        found = self.times.get(rule.name)
        if found is None:
            found = self.times[rule.name] = RuleTime()
        return found


class Task:
    """One version of a rule: compiled at its first run, and again after growth.

    `use` says what becomes of a derivation; the body atom at `position` reads Δ (None: no Δ).
    """

    __slots__ = ("compiled", "large", "position", "rule", "run", "sets", "source", "store", "time", "use")

    def __init__(
        self,
        store: Store,
        rule: Rule,
        position: int | None,
        use: Use,
        large: frozenset[str] = frozenset(),
        sets: bool = True,
    ) -> None:
        self.store, self.rule, self.position, self.use, self.large = store, rule, position, use, large
        self.sets = sets
        read = None if position is None else rule.body[position]
        self.source = read.relation if isinstance(read, p.Atom) else None
        self.run: Run | None = None
        self.compiled: dict[str, float] | None = None  # the sizes that decided the order of joins
        self.time = store.time_of(rule)

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        """Run on a change; an error names the rule."""
        start = perf_counter()
        try:
            (self.run or self.bind())(delta, out)
        except EvaluationError as error:
            raise self.store.of_rule(self.rule, error) from error.__cause__
        self.time.seconds += (perf_counter() - start) * self.store.weight
        self.time.runs += 1

    def bind(self) -> Run:
        start = perf_counter()
        code = self.code()
        self.store.plans[self.rule.name, self.position] = code.plan
        self.run = code.bound_to(self.store.index)
        self.time.compiling += perf_counter() - start
        return self.run

    def code(self) -> Compiled:
        store = self.store
        statistics = store.statistics(self.rule)
        read = {atom.relation for atom, _ in p.atoms_of(self.rule.body)}.intersection(store.tables)
        self.compiled = {name: float(store.tables[name].about()) for name in read}
        for name in self.large:
            statistics[name] = Guess(store.shapes[name].arity, max(self.compiled.get(name, 0), UNKNOWN))
        use = evolve(self.use, living=True, failing=store.failing)
        sets = self.sets and not is_risky(self.rule, store.failing)
        return compile_rule(
            self.rule, self.position, store.shapes, statistics, store.functors, use, sets, store.has_index
        )

    def forget_if_grown(self, sizes: dict[str, int]) -> None:
        """Compile again at the next run, if the sizes that decided the order have changed.

        `sizes` caches sizes from one call to the next.
        """
        for name, before in (self.compiled or {}).items():
            if name not in sizes:
                sizes[name] = self.store.tables[name].about()
            now = sizes[name]
            if is_other_size(before, now):
                self.run = self.compiled = None
                self.store.plans.pop((self.rule.name, self.position), None)
                return

"""One update of one relation as one Python function, like a hand-written trigger.

Between two units a change is a set of facts, and most of the cost of a single update is building
and reading such sets.  If all units that an update reaches keep counts of derivations, or counts or
sums of groups, its whole effect is compiled row by row instead: the row's tables and indexes, the
delta rules for this row, and the facts they derive, counted until the turn of their unit.  A row is
a change of its own, so the sums of `core.dbsp.derive` hold row by row as well.

All others (recursion, a relation that a rule reads twice, other aggregates) go the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, evolve, field

from everlog.core.codegen.code_lines import Line, comment, defined, identifier
from everlog.core.codegen.expressions import Expressions
from everlog.core.engine import row_undo
from everlog.core.engine.keepers.counted import Counting, CountKeeper, DerivingKeeper
from everlog.core.engine.keepers.groups import GroupKeeper, GroupValues
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Task
from everlog.core.engine.stepping.work import LOCAL, LOOK_UP, TURN, Enough
from everlog.core.ir.compile import planned
from everlog.core.ir.heads import RulePrinter
from everlog.core.ir.printer import MAX_LOOPS, Access
from everlog.core.ir.python_text import key_text, packed
from everlog.core.ir.set_operations import Derive, Row, SetOperation, SetPlan
from everlog.core.ir.uses import Action, Meter, Use
from everlog.core.program import Failure, Kind, Variable
from everlog.core.program import Row as Fact
from everlog.core.program.values import MASK, wrap
from everlog.core.runtime.collector import Pause
from everlog.core.storage.shape import Columns
from everlog.core.storage.table_shapes import PairShape, ValueShape
from everlog.core.storage.tables import Table

if TYPE_CHECKING:
    from everlog.core.engine.network import Network
    from everlog.core.engine.stepping.step import Step

Told: TypeAlias = dict[str, dict[Fact, int]]
Orders: TypeAlias = dict[tuple[str, int | None], SetPlan]  # by rule, and position of Δ
Fused: TypeAlias = Callable[["Step", Fact, Told], None]

MOST_UNITS = 40  # reached by one update
MOST_LINES = 4_000
MANY = 512  # facts of one unit from which on collections are put off: see core.runtime.collector


class CannotFuse(Exception):
    """A unit that the update reaches cannot be compiled row by row."""


class MetFailure(Exception):
    """A condition cannot be computed: the general way decides what that means."""


@define
class RowPrinter(RulePrinter):
    """Prints a delta rule for one row, whose values have names; it runs in a loop of one turn."""

    within: Function = field(kw_only=True)
    values: Sequence[str] = field(kw_only=True)  # of the row
    derived: str = field(kw_only=True)  # where derivations are counted, or a column is summed
    sign: str = field(kw_only=True)
    sums: bool = field(kw_only=True)  # the last column of the head

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        return self.within.container(Access(relation, key, rest))

    def work(self) -> str:
        assert self.use.meter is not None
        return self.within.named(self.use.meter.counter, "w")

    def operation(self, operation: SetOperation) -> None:
        if isinstance(operation, Row):
            self.here.update((variable, self.values[column]) for column, variable in operation.binds)
        else:
            super().operation(operation)

    def fail(self, error: str, bound: Mapping[Variable, str]) -> None:
        """Raise; no index may be built here, while a row is half inserted."""
        if self.plan.rule.failure is not Failure.NOTHING:
            self.line("raise _MetFailure")

    def split(self, operations: Sequence[SetOperation]) -> None:
        raise CannotFuse("too many loops")

    def derive(self, derive: Derive) -> None:
        args = [self.term(arg) for arg in derive.head.args]
        amount = f"({args.pop()})" if self.sums else "1"
        self.line(f"_f = {key_text(args)}")
        self.line(f"{self.derived}[_f] = {self.derived}.get(_f, 0) {self.sign} {amount}")
        self.line("_m += 1")


class Function:
    """A function under construction: the effect of a row that comes or goes."""

    def __init__(self, network: Network, relation: str, orders: Orders) -> None:
        self.network, self.store, self.orders = network, network.store, orders
        self.lines: list[Line] = []
        self.expressions = Expressions(self.store.functors)
        self.scope = self.expressions.scope
        self.scope.update(
            _ONCE=(None,), _MetFailure=MetFailure, put_row=row_undo.put_row, take_row=row_undo.take_row
        )
        self.scope.update(_pause=Pause.begin, set_count=row_undo.set_count, set_group=row_undo.set_group)
        self.names: dict[int, str] = {}
        keepers = network.after(relation)
        if len(keepers) > MOST_UNITS or any(network.is_filtered(r) for k in keepers for r in k.relations):
            raise CannotFuse(relation)
        self.keepers: list[DerivingKeeper] = []
        for keeper in keepers:
            if not isinstance(keeper, CountKeeper) and not _is_linear(keeper):
                raise CannotFuse(keeper.planned.name)
            assert isinstance(keeper, DerivingKeeper)
            if keeper.joined:
                raise CannotFuse("a view of a join")
            self.keepers.append(keeper)
        self.pending = {id(keeper): f"_p{number}" for number, keeper in enumerate(self.keepers)}

    def line(self, depth: int, text: str) -> None:
        self.lines.append(Line(depth, text))
        if len(self.lines) > MOST_LINES:
            raise CannotFuse("too long")

    def named(self, value: object, prefix: str) -> str:
        if id(value) not in self.names:
            self.names[id(value)] = name = f"_{prefix}{len(self.scope)}"
            self.scope[name] = value
        return self.names[id(value)]

    def container(self, access: Access) -> str:
        return self.named(self.store.index(access), "x")

    # ── the whole ────────────────────────────────────────────────────────────────────────────

    def written(self, relation: str, event: str) -> Fused:
        arity = self.store.shapes[relation].arity
        row = [f"_v{n}" for n in range(arity)]
        self.line(0, "def fused(step, row, told):")
        self.line(1, comment(f"{event} of {relation}"))
        self.line(1, "undo, shield = step.undo, step.guard.shield")
        self.line(1, "shield.held = True")
        if row:
            self.line(1, f"{', '.join(row)}, = row")
        for keeper in self.keepers:
            self.line(1, f"{self.pending[id(keeper)]} = {{}}")
        self.change(1, relation, row, "row", event)
        for number, keeper in enumerate(self.keepers):
            self.line(1, f"if {self.pending[id(keeper)]}:  {comment(keeper.planned.name)}")
            self.line(2, f"if _len({self.pending[id(keeper)]}) > {MANY}: _pause()")
            if isinstance(keeper, CountKeeper):
                self.turn_of_counts(keeper, number)
            else:
                assert isinstance(keeper, GroupKeeper)
                self.turn_of_groups(keeper, number)
        self.line(1, "if shield.pending is None: shield.held = False")
        self.line(1, "else: shield.release()")
        source = "\n".join(map(str, self.lines))
        fused: Fused = defined("fused", source, identifier(f"{event} of ", relation), self.scope)
        return fused

    def change(self, depth: int, relation: str, row: list[str], whole: str, event: str) -> None:
        """One row comes or goes: early rules, the table, late rules."""
        readers = self.network.readers.get(relation, Readers())
        early, late = (
            (readers.early_losses, readers.gains) if event == "insert" else (readers.losses, readers.late_gains)
        )
        self.rules(depth, early, row)
        table = self.store.tables[relation]
        if not isinstance(table, GroupValues):
            undo = "take_row" if event == "insert" else "put_row"
            self.line(depth, f"undo.append(({undo}, ({self.named(table, 'table')}, {whole})))")
            self.table(depth, table, row, event)
        self.rules(depth, late, row)

    # ── rules ────────────────────────────────────────────────────────────────────────────────

    def rules(self, depth: int, listeners: list[Listener], row: list[str]) -> None:
        for listener in listeners:
            if not isinstance(listener, Counting) or id(listener.keeper) not in self.pending:
                raise CannotFuse("a unit of another kind listens")
            self.rule(depth, listener.task, listener.keeper, "+" if listener.gains else "-", row)

    def rule(self, depth: int, task: Task, keeper: DerivingKeeper, sign: str, row: list[str]) -> None:
        rule, work = task.rule, None if task.use.meter is None else task.use.meter.counter
        sums = isinstance(keeper, GroupKeeper) and keeper.group.op == "sum"
        if isinstance(keeper, GroupKeeper) and not sums:  # groups are counted: no target is needed
            rule = evolve(rule, head=evolve(rule.head, args=rule.head.args[:-1]))
        meter = None if work is None else Meter(work, Enough, LOCAL, TURN, look_up=LOOK_UP)
        use = Use(Action.COUNT, living=True, row_given=True, failing=self.store.failing, meter=meter)
        store, pending = self.store, self.pending[id(keeper)]
        plan = self.orders.get((rule.name, task.position))
        if plan is None:
            plan = planned(rule, task.position, store.shapes, store.statistics(rule), use, sets=False)
            self.orders[rule.name, task.position] = store.plans[rule.name, task.position] = plan
        plan = evolve(plan, use=use)
        printer = RowPrinter(
            store.shapes,
            self.expressions,
            plan,
            most_loops=MAX_LOOPS - 4,
            has_index=store.has_index,
            within=self,
            values=row,
            derived=pending,
            sign=sign,
            sums=sums,
        )
        printer.depth, printer.loops = depth + 1, 1
        printer.body(plan.operations)
        self.line(depth, "_n = _m = 0")
        title = comment(str(task.rule))
        self.line(depth, f"for _ in _ONCE:  {title}" if printer.skips else title)
        for line in printer.lines:
            self.line(line.depth if printer.skips else line.depth - 1, line.text)
        if work is not None:
            name = self.named(work, "w")
            self.line(depth, f"if _n: {name}[0] += _n; {name}[1] += _m")
            self.line(depth, f"{name}[2] += 1")

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    def turn_of_counts(self, keeper: CountKeeper, number: int) -> None:
        shape, name = keeper.shape, keeper.name
        row = [f"_r{number}_{n}" for n in range(shape.arity)]
        facts, counts = self.named(keeper.table.facts, "facts"), self.named(keeper.counts, "counts")
        self.line(2, f"_told{number} = {{}}")
        self.line(2, f"for _f, _d in {self.pending[id(keeper)]}.items():")
        self.line(3, "if not _d: continue")
        self.line(3, "if shield.pending is not None: shield.release()")
        if row:
            self.line(3, f"{', '.join(row)} = _f")
        columns = shape.key_columns + shape.fact_columns
        key = "_f" if columns == tuple(range(shape.arity)) else packed(row, columns)
        if isinstance(shape, PairShape):
            self.line(3, f"_known = {facts}.get({row[shape.key]})")
            self.line(3, f"_there = _known is not None and {row[shape.value]} in _known")
        else:
            self.line(3, f"_there = _f in {facts}")
        told = f"_told{number}[_row{number}]"
        self.line(3, f"_row{number} = {'(_f,)' if isinstance(shape, ValueShape) else '_f'}")
        self.line(3, "if not _there:")
        self.line(4, f"if _d > 1: undo.append((set_count, ({counts}, {key}, None))); {counts}[{key}] = _d")
        self.line(4, f"{told} = 1")
        self.change(4, name, row, f"_row{number}", "insert")
        self.line(4, "continue")
        self.line(3, f"_c = {counts}.get({key})")
        self.line(3, f"if _c is not None: undo.append((set_count, ({counts}, {key}, _c)))")
        self.line(3, f"elif _d > 0: undo.append((set_count, ({counts}, {key}, None)))")
        self.line(3, "_d += 1 if _c is None else _c")
        self.line(3, f"if _d > 1: {counts}[{key}] = _d")
        self.line(3, f"elif _c is not None: del {counts}[{key}]")
        self.line(3, "if not _d:")
        self.line(4, f"{told} = -1")
        self.change(4, name, row, f"_row{number}", "delete")
        if name in self.network.reported:
            self.line(2, f"if _told{number}: told[{name!r}] = _told{number}")

    def turn_of_groups(self, keeper: GroupKeeper, number: int) -> None:
        outer = [f"_r{number}_{n}" for n in range(keeper.shape.arity - 1)]
        groups, values = self.named(keeper.totals.groups, "groups"), self.named(keeper.values, "values")
        self.line(2, f"for _g{number}, _d in {self.pending[id(keeper)]}.items():")
        self.line(3, "if not _d: continue")
        self.line(3, "if shield.pending is not None: shield.release()")
        if outer:
            self.line(3, f"{', '.join(outer)} = _g{number}")
        group = f"_g{number}"
        self.line(3, f"_old{number} = {groups}.get({group}, 0)")
        self.line(3, f"_now{number} = _old{number} + _d")
        self.line(3, f"_was{number} = {values}.get({group}, 0)")
        self.line(3, f"_is{number} = {self.wrapped(keeper, f'_now{number}')}")
        self.line(3, f"undo.append((set_group, ({groups}, {values}, {group}, _old{number}, _was{number})))")
        readers = self.network.readers.get(keeper.name, Readers())
        if readers.early_losses or readers.late_gains:
            raise CannotFuse("a negated group")
        self.rules(3, readers.losses, [*outer, f"_was{number}"])
        for stored, now in ((groups, f"_now{number}"), (values, f"_is{number}")):
            self.line(3, f"if {now}: {stored}[{group}] = {now}")
            self.line(3, f"else: {stored}.pop({group}, None)")
        self.rules(3, readers.gains, [*outer, f"_is{number}"])

    def wrapped(self, keeper: GroupKeeper, total: str) -> str:
        """The value of a group: its total, within 64 bits."""
        if keeper.group.op == "count":
            return total
        if keeper.group.kind is Kind.UNSIGNED:
            return f"{total} & {MASK}"
        return f"{self.named(wrap, 'wrap')}({total})"

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    def table(self, depth: int, table: Table, row: list[str], event: str) -> None:
        """Add a row to, or remove it from, a table and each of its indexes."""
        shape, facts = table.shape, self.named(table.facts, "facts")
        self.entry(depth, facts, row, shape.key_columns, shape.fact_columns, event)
        for (key, rest), index in table.indexes.items():
            if len(key) + len(rest) < shape.arity:
                raise CannotFuse("an index that leaves columns out")
            self.entry(depth, self.named(index, "x"), row, key, rest, event)

    def entry(self, depth: int, container: str, row: list[str], key: Columns, rest: Columns, event: str) -> None:
        if not key or not rest:
            change = "add" if event == "insert" else "discard"
            self.line(depth, f"{container}.{change}({packed(row, key + rest)})")
            return
        value = packed(row, rest)
        self.line(depth, f"_k = {packed(row, key)}")
        self.line(depth, f"_a = {container}.get(_k)")
        if event == "insert":
            self.line(depth, f"if _a is None: {container}[_k] = {{{value}}}")
            self.line(depth, f"else: _a.add({value})")
        else:
            self.line(depth, f"_a.discard({value})")
            self.line(depth, f"if not _a: del {container}[_k]")


def _is_linear(keeper: object) -> bool:
    """Whether groups are counts, or sums of whole numbers."""
    group = keeper.group if isinstance(keeper, GroupKeeper) else None
    return (
        group is not None and group.op in ("count", "sum") and group.kind is not Kind.FLOAT and not group.may_fail
    )


def fused(network: Network, relation: str, insert: bool, orders: Orders) -> Fused | None:
    """The function of an insert (or delete) of one row; None if it cannot be compiled.

    `orders` has the plans of delta rules that were made before, and gets those that are made.
    """
    if network.is_filtered(relation):
        return None
    try:
        return Function(network, relation, orders).written(relation, "insert" if insert else "delete")
    except CannotFuse:
        return None

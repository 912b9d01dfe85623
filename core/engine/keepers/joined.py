"""A rule whose join is kept by a view: changes of its atoms go in, changed answers come out.

The view has the rows of every atom (constants and repeated variables are selected before).  A row
of a relation that goes is looked up in the view, copy by copy where it stands in several atoms, and
then taken out; one that comes is put in, and then looked up.  What the view tells are derivations
lost and gained.

The view has only the variables that the head or the rest of the rule needs, and counts the matches
that differ in others.  Where a rule also has negation, comparisons, arithmetic or aggregates (they
stand *above the join*), the changed answers of the view run through that rest as the change of a
relation `⋈rule`, once for each number of derivations.

The view is made when a change first arrives, from the tables as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, TypeGuard

from attrs import evolve

from everlog.core.classify.query import query_of
from everlog.core.engine.keepers.keeper import versions
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.engine.stepping.work import ROW as DELTA_ROW
from everlog.core.engine.stepping.work import Counter as Work
from everlog.core.engine.stepping.work import Enough, counted_use
from everlog.core.ir.uses import Action, Use
from everlog.core.joins.join_strategies import JOINS, view_of
from everlog.core.joins.leapfrog import Bound
from everlog.core.joins.strategy_choice import (
    Wanted,
    above_the_join,
    selections,
    shown_variables,
    shows_head_only,
)
from everlog.core.joins.view import Asked, JoinView
from everlog.core.program import Atom, Comparison, Constant, Kind, Row, Rule, Term, Value, Variable
from everlog.core.program.values import EvaluationError
from everlog.core.storage.shape import Counted, Facts
from everlog.core.storage.table_shapes import shape_of

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

Select = Callable[[Row], Row | None]
Log = list[tuple[int, Row, bool]]
ROW = 1_600  # units of work for one row, beside the steps of its view
TRIED = 16  # trial runs of delta take 1/16 of the work of a view
APART = 64  # rows between two trials, on average


class JoinedRule:
    """Invariant: `view` is None, or holds what the atoms select from the relations as they were
    last told.

    `work`, `matches` and `rows` count as delta rules do (core.engine.stepping.work).  With
    `trials`, delta rules are tried beside the view from time to time, to know what they would do.
    """

    def __init__(self, store: Store, rule: Rule, strategy: str, want: Wanted) -> None:
        self.store, self.rule, self.strategy = store, rule, strategy
        self.view: JoinView | None = None
        self._time = store.time_of(rule)
        totals = JOINS[strategy].totals
        summed, averaged = (want.summed, want.averaged) if totals else ((), "")
        run = want.rule if summed else rule
        query = query_of(run)
        self.shape = store.shapes[rule.head.relation]
        atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        tests = selections(rule)
        self.atoms = [(atom.relation, selection(atom, tests.get(n, ()))) for n, atom in enumerate(atoms)]
        self.copies: dict[str, list[tuple[int, Select]]] = {}
        for number, (relation, select) in enumerate(self.atoms):
            self.copies.setdefault(relation, []).append((number, select))
        self.rest: Task | None = None
        kept = shown_variables(run, query)
        if shows_head_only(run):
            self._head = head_of(run, kept)
        else:
            self._name = f"⋈{rule.name}"
            self._joined = shape_of(len(kept))
            store.shapes[self._name] = self._joined
            joined = Atom(self._name, tuple(map(Variable, kept)))
            self.rest = Task(store, evolve(run, body=(joined, *above_the_join(rule))), 0, Use(Action.COUNT))
        self.asked = Asked(query, kept, bounds_of(rule), counting=True, enumerated=False, summed=summed)
        self.asked = evolve(self.asked, averaged=averaged, floats=want.floats)
        self.matches = self.losses = self.rows = 0
        self.rows_of: dict[str, int] = dict.fromkeys(self.copies, 0)
        self._step = JOINS[strategy].step
        self._left = 0  # steps of earlier views, minus those that built any of them
        self._trials: dict[tuple[str, str], list[Task]] = {}
        self._tried: Work = [0, 0, 0, 0]
        self._trial_at = self._trial_work = 0  # rows at the next trial; work of all trials
        self._draw = Random(rule.name)  # trials at equal distances could miss every expensive row
        self._estimate = 0.0  # what delta would do for one row: of late trials, the mean

    @property
    def work(self) -> int:
        """What the view has done, in units of work."""
        steps = self._left + (0 if self.view is None else self.view.steps)
        return self._step * steps + ROW * self.rows + self._trial_work

    def use(self, store: Store) -> None:
        self.store = store
        if self.rest is not None:
            store.shapes[self._name] = self._joined

    def forget(self) -> None:
        """The relations changed as a whole: the view is made again when it is needed."""
        if self.view is not None:
            self._left += self.view.steps
            self.view = None

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    def follow(self, step: Step, relation: str, facts: Facts, out: Counted, insert: bool) -> None:
        """Have the view follow a change; an error names the rule."""
        start, before, runs = perf_counter(), self._time.seconds, self._time.runs
        try:
            view = self.view or self._made(step, relation, facts, insert)
            self._apply(step, view, relation, facts, out, insert)
            if self._trials and self.rows >= self._trial_at:
                self._try(self._trials[relation, "insert" if insert else "delete"], relation, facts)
        except EvaluationError as error:
            raise self.store.of_rule(self.rule, error) from error.__cause__
        self._time.seconds = before + (perf_counter() - start) * self.store.weight  # with the rest of the rule
        self._time.runs = runs + 1

    def _apply(self, step: Step, view: JoinView, relation: str, facts: Facts, out: Counted, insert: bool) -> None:
        shield, log, copies = step.guard.shield, Log(), self.copies[relation]
        step.undo.append((self._revert, (log,)))
        told: dict[Row, int] = {}
        change = view.insert if insert else view.delete
        for row in self.store.shapes[relation].rows_of(facts):
            self.rows += len(copies)
            self.rows_of[relation] += len(copies)
            self.losses += not insert
            for atom, select in copies:
                selected = select(row)
                if selected is None:
                    continue
                if not insert:
                    self._tell(view, atom, selected, told, out)
                shield.held = True
                log.append((atom, selected, insert))
                change(atom, selected)
                shield.release()
                if insert:
                    self._tell(view, atom, selected, told, out)
        if told:
            self._run_rest(told, out)

    def _run_rest(self, told: Mapping[Row, int], out: Counted) -> None:
        """Run the rest of the rule on changed answers, each with a number or a sum."""
        assert self.rest is not None
        by_number: dict[int, list[Row]] = {}
        for row, number in told.items():
            if number:  # sums may cancel, and be negative
                by_number.setdefault(number, []).append(row)
        for number, rows in by_number.items():
            found: Counted = out if number == 1 else {}
            self.rest(self._joined.facts_of(rows), found)
            if number != 1:
                for head, times in self.shape.counted_rows(found):
                    self.shape.count_one(out, head, times * number)

    def _tell(self, view: JoinView, atom: int, row: Row, told: dict[Row, int], out: Counted) -> None:
        if self.rest is not None:
            for answer, weight in view.delta(atom, row):
                told[answer] = told.get(answer, 0) + weight
                self.matches += 1
            return
        head, shape = self._head, self.shape
        for answer, weight in view.delta(atom, row):
            shape.count_one(out, head(answer), weight)
            self.matches += 1

    def _revert(self, log: Log) -> None:
        """Undo the changes that the view was told, whether or not it has made them."""
        view = self.view
        while log:
            atom, row, insert = log.pop()
            if view is not None:
                (view.delete if insert else view.insert)(atom, row)

    # ── what delta would do ──────────────────────────────────────────────────────────────────

    def try_delta(self, estimate: float) -> None:
        """From now on, try the delta rules beside the view; so far they did this much for a row."""
        self._estimate = estimate
        use = counted_use(self._tried, row_by_row=True)
        for relation in self.copies:
            for event, sign, task, _ in versions(self.store, self.rule, relation, {1: use, -1: use}):
                task.sets = False  # as single updates run them: see core.engine.fused
                if (event == "insert") == (sign > 0):
                    self._trials.setdefault((relation, event), []).append(task)

    def trials(self) -> Iterable[Task]:
        return (task for tasks in self._trials.values() for task in tasks)

    def _try(self, tasks: list[Task], relation: str, facts: Facts) -> None:
        """Run delta rules on a change, for what they do and not for what they find."""
        size = sum(1 for _ in self.store.shapes[relation].rows_of(facts)) * len(tasks)
        own = self.work - self._trial_work
        allowed = own // TRIED - self._trial_work
        wanted = 2 * size * own // self.rows
        if allowed < wanted:  # too little work to compare delta with the view
            self._trial_at = self.rows + 1 + (wanted - allowed) * TRIED * self.rows // own
            return
        self._trial_at = self.rows + 1 + self._draw.randrange(2 * APART)
        self._tried[3] = allowed
        before, known = self._tried[0], 0.0
        try:
            for task in tasks:
                task(facts, {})
        except Enough:
            known = self._estimate  # it would have done more than it was allowed to
        except EvaluationError:
            return
        done = self._tried[0] - before
        self._trial_work += done
        self._estimate += (max(known, done / size) - self._estimate) / 8

    def delta_estimate(self, rows: int) -> float:
        """What delta would have done for the last rows."""
        return (self._estimate + DELTA_ROW) * rows

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _made(self, step: Step, relation: str, facts: Facts, insert: bool) -> JoinView:
        """The view of the state before this change: tables may be ahead of what was told."""
        view = view_of(self.strategy, self.asked)
        shape = self.store.shapes[relation]
        new = facts if insert else step.changes.get(relation, (None, None))[1]
        without = set(shape.rows_of(new)) if new else set()
        extra = [] if insert else list(shape.rows_of(facts))
        rows: dict[int, Iterable[Row]] = {}
        for number, (name, select) in enumerate(self.atoms):
            there: Iterable[Row] = self.store.tables[name].rows()
            if name == relation:
                there = [*(row for row in there if row not in without), *extra]
            rows[number] = filter(_is_row, map(select, there))
        view.load(rows)
        self._left -= view.steps  # of updates alone: making a view has a price of its own
        self.view = view
        return view

    def check(self) -> None:
        if self.view is None:
            return
        self.view.check()
        for number, (name, select) in enumerate(self.atoms):
            expected = {found for row in self.store.tables[name].rows() if (found := select(row)) is not None}
            assert set(self.view.rows(number)) == expected, f"{self.rule.name}: atom {number + 1} of its view"


# ── compiled selections and heads ────────────────────────────────────────────────────────────


def selection(atom: Atom, comparisons: Iterable[Comparison] = ()) -> Select:
    """From a row of the relation to the values of the atom's distinct variables; None if it does
    not match.

    >>> x, y = Variable("x"), Variable("y")
    >>> atom = Atom("r", (x, Constant(7, Kind.NUMBER), x, y))
    >>> select = selection(atom, [Comparison("<", x, y, Kind.NUMBER)])
    >>> select((1, 7, 1, 2)), select((1, 7, 3, 2)), select((1, 8, 1, 2)), select((1, 7, 1, 0))
    ((1, 2), None, None, None)
    """
    first: dict[Variable, int] = {}
    tests: list[str] = []
    values: list[Value] = []
    for column, arg in enumerate(atom.args):
        match arg:
            case Variable() if arg in first:
                tests.append(_same(f"row[{column}]", f"row[{first[arg]}]"))
            case Variable():
                first[arg] = column
            case Constant(value=value):
                tests.append(_same(f"row[{column}]", f"values[{len(values)}]"))
                values.append(value)
            case _:
                raise AssertionError(f"not to be selected: {atom}")
    for comparison in comparisons:
        left, right = (_operand(side, first, values) for side in (comparison.left, comparison.right))
        tests.append(f"{left} {'==' if comparison.op == '=' else comparison.op} {right}")
    if not tests and list(first.values()) == list(range(len(atom.args))):
        return lambda row: row
    found = f"({''.join(f'row[{c}], ' for c in first.values())})"
    text = f"lambda row: {found} if {' and '.join(tests)} else None" if tests else f"lambda row: {found}"
    select: Select = eval(text, {"values": values})  # our own text, made above
    return select


def _operand(term: Term, columns: Mapping[Variable, int], values: list[Value]) -> str:
    """Python for a variable, which has a column of `row`, or for a constant, which is added to
    `values`.
    """
    if isinstance(term, Variable):
        return f"row[{columns[term]}]"
    assert isinstance(term, Constant)
    values.append(term.value)
    return f"values[{len(values) - 1}]"


def _is_row(row: Row | None) -> TypeGuard[Row]:
    return row is not None


def _same(one: str, other: str) -> str:
    """NaN is equal to itself here, as in a set."""
    return f"({one} is {other} or {one} == {other})"


def head_of(rule: Rule, kept: tuple[str, ...]) -> Callable[[Row], Row]:
    """From the values of the head's variables to the row of the head."""
    values: list[Value] = []
    columns = {Variable(name): column for column, name in enumerate(kept)}
    parts = [_operand(arg, columns, values) for arg in rule.head.args]
    if parts == [f"row[{n}]" for n in range(len(kept))]:
        return lambda row: row
    head: Callable[[Row], Row] = eval(f"lambda row: ({''.join(p + ', ' for p in parts)})", {"values": values})
    return head


def bounds_of(rule: Rule) -> tuple[Bound, ...]:
    """Comparisons between two atoms that bound a search over numbers; the rest of the rule tests
    them again.
    """
    inside = {v.name for x in rule.body if isinstance(x, Atom) for v in x.args if isinstance(v, Variable)}
    out = []
    for literal in above_the_join(rule):
        match literal:
            case Comparison("<" | "<=" | ">" | ">=", Variable(x), Variable(y), Kind.NUMBER | Kind.UNSIGNED):
                if x in inside and y in inside and x != y:
                    out.append(Bound(x, literal.op, y))
            case _:
                pass
    return tuple(out)

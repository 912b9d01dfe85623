"""Rules: the body, then the head at the bottom; and aggregates, which are bodies with a sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from itertools import product
from typing import Any

from attrs import define, field

from everlog.core import program as p
from everlog.core.codegen.body import aggregated_sets, set_variables
from everlog.core.codegen.code_lines import Line, Loop, Test, Values, comment, defined
from everlog.core.codegen.failures import FailurePoint
from everlog.core.codegen.interval_values import interval_values
from everlog.core.codegen.joins import JoinWriter
from everlog.core.codegen.writer import DELTA, Compiled, NoSet, deeper, key_text, packed, same, tuple_text
from everlog.core.program import (
    Aggregate,
    Atom,
    Failure,
    Literal,
    Rule,
    Variable,
)
from everlog.core.program.bodies import may_fail, variables_of_literal
from everlog.core.program.ordered_groups import OrderedAggregate, ordered_aggregate
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import PairShape, ValueShape
from everlog.core.storage.table_statistics import Statistics

_MANY_TURNS = 1_000_000_000


def compile_rule(
    rule: Rule,
    delta: int | None,
    shapes: Mapping[str, Shape],
    statistics: Mapping[str, Statistics],
    functors: Mapping[str, p.Functor],
    writer: Callable[..., RuleWriter] | None = None,
    sets: bool = True,
    known: bool = False,
) -> Compiled:
    """The function that derives `rule`; with `delta` the body atom at that position reads Δ.

    `writer` says what becomes of a derivation (see `core.codegen.derivations`); by default its fact
    is added to a set.  Without `sets` no variable is one: better where Δ has few facts of a key.
    With `known`, sets of facts are left out that the head's relation has: most of what a recursion
    derives.
    """
    make = writer or RuleWriter
    sets = sets and not may_fail(rule.head)  # what may fail there is computed when the rest holds
    candidates = set_variables(rule, shapes) if sets else []
    for candidate in [*candidates, None]:
        try:
            return make(shapes, statistics, functors, candidate, known=known).rule(rule, delta)
        except NoSet:
            continue
    raise AssertionError("a rule without set variable always compiles")


def compile_late(
    rule: Rule,
    delta: int,
    shapes: Mapping[str, Shape],
    statistics: Mapping[str, Statistics],
    functors: Mapping[str, p.Functor],
    known: bool,
) -> Compiled | None:
    """Compile `rule` from another atom than Δ, with one union of sets of Δ at a time.

    Where Δ has many keys those are fewer and larger operations:
    `points_to(v, o) :- load(v, p), points_to(p, q), Δ(q, o)` is one union for each load.  None if
    the rule has no such form.
    """
    atom = rule.body[delta]
    if not isinstance(atom, Atom) or sum(literal is atom for literal in rule.body) > 1 or may_fail(rule.head):
        return None
    for candidate, turned in product(set_variables(rule, shapes), (True, False)):
        try:
            writer = RuleWriter(shapes, statistics, functors, candidate, known=known, late=atom, turned=turned)
            found = writer.rule(rule, delta)
        except NoSet:
            continue
        scans = sum(isinstance(line, Loop) and line.values.items for line in writer.all_lines)
        if found.driver is not None and writer.unions_of_delta and scans == 1:
            return found
    return None


@define
class RuleWriter(JoinWriter):
    """Writes rules and aggregates."""

    written: Rule = field(factory=lambda: Rule(Atom("", ()), ()))
    parameters: tuple[str, ...] = ()

    def rule(self, rule: Rule, delta: int | None) -> Compiled:
        self.written = rule
        self.kept = self.variables_to_keep(rule)
        self.join(rule.body, delta, lambda: self.emit_head(rule.head))
        return self.finish(rule, delta)

    def variables_to_keep(self, rule: Rule) -> frozenset[Variable]:
        """What the head needs; any other variable may vanish in a union of sets."""
        return frozenset(v for arg in rule.head.args for v in p.variables_of(arg))

    @property
    def all_lines(self) -> list[Line]:
        return [*self.helpers, *self.lines]

    def finish(self, rule: Rule, delta: int | None) -> Compiled:
        order = list(self.accesses.values())
        text = [
            Line(0, f"def make({', '.join(['_lookup', *order])}):"),
            *self.helpers,
            Line(1, f"def rule({', '.join(['_delta', '_new', *self.parameters])}):"),
            *deeper(self.lines),
            Line(1, "return rule"),
        ]
        source = "\n".join(map(str, text))
        make = defined("make", source, "rule", dict(self.expressions.scope))
        version = "" if delta is None else f"   Δ at body atom {delta + 1}"
        constants = ", ".join(f"{name} = {value!r}" for name, value in self.expressions.constants.items())
        title = [comment(f"{rule}{version}"), *([comment(f"where {constants}")] if constants else [])]
        index = self.driver.index if self.late is not None and self.driver is not None else ""
        driver = order.index(index) if index in order else None
        first = self.lines[0]
        from_delta = isinstance(first, Loop) and first.values.index == DELTA.text
        return Compiled("\n".join([*title, source]), tuple(self.accesses), make, driver, self.only_new, from_delta)

    # ── failures ─────────────────────────────────────────────────────────────────────────────

    def fail(self, error: str, bound: dict[Variable, str]) -> None:
        if self.written.failure is Failure.NOTHING:
            return
        here = {v: name for v, name in bound.items() if name not in self.out_of_reach}
        body = list(self.whole)
        if self.delta is not None and self.is_delta_bound(here.keys()):
            del body[self.delta]  # it is a fact of Δ, which need not be in its table
        shape = self.shapes.get(self.written.head.relation)
        point = FailurePoint(self.written, shape, body, list(here), self.solutions)
        name = self.expressions.named("fail", point)
        self.line(f"{name}({', '.join(['_lookup', '_new', error, *here.values()])})")

    def is_delta_bound(self, bound: Set[Variable]) -> bool:
        assert self.delta is not None
        literal = self.whole[self.delta]
        return bound >= set(variables_of_literal(literal))

    def solutions(self, body: Sequence[Literal], given: Sequence[Variable], new: Sequence[Variable]) -> Compiled:
        """A generator of the values of `new` for which literals hold, from those of `given`."""
        return SolutionWriter(self.shapes, self.statistics, self.functors, None).solved(body, given, new)

    # ── heads ────────────────────────────────────────────────────────────────────────────────

    def emit_head(self, head: Atom) -> None:
        shape = self.shapes[head.relation]
        if self.set_variable is not None:
            self.emit_set(head, shape)
            return
        values = [self.expr(a) for a in head.args]
        self.emit_row(shape, values)

    def emit_row(self, shape: Shape, values: list[str]) -> None:
        fact = packed(values, shape.fact_columns)
        if isinstance(shape, PairShape):
            self.line(f"_k = {values[shape.key]}")
            self.add_under_key(f"{{{fact}}}", f"_a.add({fact})")
        elif not self.emit_comprehension(fact):
            self.line(f"_new.add({fact})")

    def add_under_key(self, first: str, further: str) -> None:
        """Write what the key `_k` gets in `_new`: its first entry, or one further in `_a`."""
        self.line("_a = _new.get(_k)")
        self.line(f"if _a is None: _new[_k] = {first}")
        self.line(f"else: {further}".rstrip())

    def emit_comprehension(self, value: str, into: str = "_new.update") -> bool:
        """The innermost loop, with nothing but tests in it, as one comprehension: twice as fast."""
        found = self.innermost_loop()
        if found is not None:
            loop, tests = found
            self.line(f"{into}([{value} {loop.header}{''.join(tests)}])")
        return found is not None

    def innermost_loop(self) -> tuple[Loop, list[str]] | None:
        """A loop that has nothing but tests in it, and those, taken back; None if there is none."""
        at = len(self.lines)
        tests: list[str] = []
        while at and isinstance(test := self.lines[at - 1], Test) and test.depth == self.depth:
            tests.insert(0, f" if {test.condition}")
            at -= 1
        loop = self.lines[at - 1] if at else None
        if not isinstance(loop, Loop) or loop.depth != self.depth - 1:
            return None
        del self.lines[at - 1 :]
        self.depth -= 1
        return loop, tests

    def emit_set(self, head: Atom, shape: Shape) -> None:
        variable = self.set_variable
        assert variable is not None
        if variable not in head.args:  # only whether there is a value matters
            self.any_value()
            self.emit_row(shape, [self.expr(a) for a in head.args])
            return
        known = self.known and isinstance(shape, PairShape)
        values = self.intersection() if known else self.single_set()
        if isinstance(shape, PairShape):
            self.line(f"_k = {self.expr(head.args[shape.key])}")
            new = self.owned(values)
            if known:
                self.line(f"_f = {self.stored(head)}.get(_k)")
                self.line(f"_n = {new} if _f is None else {values} - _f")
                if self.dropped:
                    self.line(f"_n.discard({self.dropped})")
                self.line(f"if not _n: {self.skip()}")
                new = values = "_n"
                self.only_new = True
            self.add_under_key(new, f"_a |= {values}")
        elif isinstance(shape, ValueShape):
            self.line(f"_new |= {values}")
        else:
            columns = [values if a == variable else f"({self.expr(a)},)" for a in head.args]
            self.take_loop_into(columns, head)
            self.line(f"_new.update(_product({', '.join(columns)}))")

    def take_loop_into(self, columns: list[str], head: Atom) -> None:
        """Turn an empty loop over a column's values into a factor of the product."""
        names = [self.bound.get(arg) if isinstance(arg, Variable) else None for arg in head.args]
        last = self.lines[-1] if self.loops else None
        if not isinstance(last, Loop) or len(last.targets) != 1 or names.count(last.targets[0]) != 1:
            return
        place = names.index(last.targets[0])
        others = [arg for column, arg in enumerate(head.args) if column != place and arg != self.set_variable]
        if self.loop_without([*self.names_in(others), *self.sets]):
            columns[place] = str(self.leave_loop().values)

    def any_value(self) -> None:
        """Go on only where the sets have a value in common."""
        if len(self.sets) == 2 and not self.dropped:
            self.line(f"if {self.sets[0]}.isdisjoint({self.sets[1]}): {self.skip()}")
        else:
            self.single_set()

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def aggregate(self, literal: Aggregate) -> None:
        """A cached call of the function that computes the aggregate of a group."""
        function = f"_agg{self.expressions.number()}"
        self.helpers += self.aggregate_function(function, literal)
        arguments = ", ".join(self.bound[v] for v in literal.outer)
        if literal.result in self.bound:
            value = self.temporary()
            self.line(f"{value} = {function}({arguments})")
            self.test(f"{value} is not None and ({same(value, self.bound[literal.result])})")
        else:
            name = self.name(literal.result)
            self.line(f"{name} = {function}({arguments})")
            self.line(f"if {name} is None: {self.skip()}")
            self.bound[literal.result] = name

    def aggregate_function(self, function: str, literal: Aggregate) -> list[Line]:
        """The function that computes an aggregate for values of its outer variables.

        Where the body itself gives values to all of them, a second function goes through the body
        once, for all groups.  It is called when the first one has cost as much as it will.
        """
        one = self.aggregated(literal, literal.outer)
        text = [Line(1, comment(str(literal))), Line(1, f"{function}_known = {{}}")]
        text += one.helpers
        text += [Line(1, f"def {function}_run({', '.join(['_new', *one.parameters])}):"), *deeper(one.lines)]
        form = ordered_aggregate(literal)
        if form is not None:
            return text + self.ordered_function(function, literal, form, one)
        if not self.is_grouped(literal):
            return text + one.call_for_one(function, literal)
        every = self.aggregated(literal, ())
        text += every.helpers
        text += [Line(1, f"def {function}_groups(_new):"), *deeper(every.lines)]
        turns = every.ordering.cost / max(one.ordering.cost, 1.0)
        return text + one.call_for_all(function, literal, max(1, round(min(turns, _MANY_TURNS))))

    def ordered_function(
        self, function: str, literal: Aggregate, form: OrderedAggregate, one: RuleWriter
    ) -> list[Line]:
        """The call of an aggregate over intervals: all facts are put in order when that pays."""
        every = RuleWriter(self.shapes, self.statistics, self.functors, None)
        every.accesses, every.expressions = self.accesses.copy(), self.expressions
        every.kept = frozenset(v for x in form.inner for v in variables_of_literal(x))
        every.join(form.inner, None, partial(every.accumulate_place, form))
        self.accesses.update(every.accesses)
        turns = max(1, round(min(every.ordering.cost / max(one.ordering.cost, 1.0), _MANY_TURNS)))
        values = self.expressions.named("intervals", interval_values(form))
        group = key_text([one.bound[v] for v in form.group])
        outside = tuple_text([one.bound[v] for v in form.outside])
        return [
            *every.helpers,
            Line(1, f"def {function}_groups(_new):"),
            *deeper(every.lines),
            Line(1, f"{function}_turns, {function}_all = {turns}, {{}}"),
            Line(1, f"def {function}({', '.join(one.parameters)}):"),
            Line(2, f"nonlocal {function}_turns"),
            Line(2, f"_v = {function}_known.get({key_text(one.parameters)}, _MISSING)"),
            Line(2, "if _v is not _MISSING: return _v"),
            Line(2, f"if {function}_turns > 0:"),
            Line(3, "_new = []"),
            Line(3, f"{function}_run({', '.join(['_new', *one.parameters])})"),
            Line(3, f"_v = _total_{literal.op}_{literal.kind}(_new)"),
            Line(2, "else:"),
            Line(3, f"if {function}_turns == 0: {function}_groups({function}_all)"),
            Line(3, f"_v = {values}({function}_all, {group}, {outside})"),
            Line(2, f"{function}_turns -= 1"),
            Line(2, f"{function}_known[{key_text(one.parameters)}] = _v"),
            Line(2, "return _v"),
        ]

    def accumulate_place(self, form: OrderedAggregate) -> None:
        """At the bottom: count a place with its target in its group."""
        self.line(f"_k = {key_text([self.bound[v] for v in form.group])}")
        self.line("_a = _new.get(_k)")
        self.line("if _a is None: _a = _new[_k] = {}")
        target = "1" if form.target is None else self.expr(form.target)
        self.line(f"_v = ({self.expr(form.place)}, {target})")
        self.line("_a[_v] = _a.get(_v, 0) + 1")

    def aggregated(self, literal: Aggregate, outer: Sequence[Variable]) -> RuleWriter:
        """The body of an aggregate as code, for values of some variables, grouped by others."""
        body, groups = literal.body, [v for v in literal.outer if v not in outer]
        candidates = [] if groups or may_fail(literal.target) else aggregated_sets(literal, body)
        for candidate in [*candidates, None]:
            inner = RuleWriter(self.shapes, self.statistics, self.functors, candidate)
            inner.accesses, inner.expressions = self.accesses.copy(), self.expressions
            inner.kept = frozenset(v for x in body for v in variables_of_literal(x))  # all of them count
            for variable in outer:
                inner.bound[variable] = inner.name(variable)
            inner.parameters = tuple(inner.bound.values())
            bottom = (
                partial(inner.accumulate_group, literal, groups) if groups else partial(inner.accumulate, literal)
            )
            try:
                inner.join(body, None, bottom)
            except NoSet:
                continue
            self.accesses.update(inner.accesses)
            return inner
        raise AssertionError("an aggregate without set variable always compiles")

    def is_grouped(self, literal: Aggregate) -> bool:
        """Whether all groups can be computed at once; not if an unread one could fail.

        A body with an aggregate of its own is not grouped: then each level would be compiled twice
        for the level around it.
        """
        if any(isinstance(x, Aggregate) for x in literal.body):
            return False
        given = {a for x in literal.body if isinstance(x, Atom) for a in x.args}
        certain = not may_fail(literal.target) and not any(map(may_fail, literal.body))
        return certain and bool(literal.outer) and given.issuperset(literal.outer)

    def call_for_one(self, function: str, literal: Aggregate) -> list[Line]:
        """The call for one group, whose value is remembered."""
        key = key_text(self.parameters)
        return [
            Line(1, f"def {function}({', '.join(self.parameters)}):"),
            Line(2, f"_v = {function}_known.get({key}, _MISSING)"),
            Line(2, "if _v is _MISSING:"),
            Line(3, "_new = []"),
            Line(3, f"{function}_run({', '.join(['_new', *self.parameters])})"),
            Line(3, f"_v = {function}_known[{key}] = _total_{literal.op}_{literal.kind}(_new)"),
            Line(2, "return _v"),
        ]

    def call_for_all(self, function: str, literal: Aggregate, turns: int) -> list[Line]:
        """The call for one group, until that has been done often; then for all groups at once."""
        key = key_text(self.parameters)
        total = f"_total_{literal.op}_{literal.kind}"
        return [
            Line(1, f"{function}_turns = {turns}"),
            Line(1, f"def {function}({', '.join(self.parameters)}):"),
            Line(2, f"nonlocal {function}_turns"),
            Line(2, f"_v = {function}_known.get({key}, _MISSING)"),
            Line(2, "if _v is not _MISSING: return _v"),
            Line(2, "_new = []"),
            Line(2, f"if {function}_turns > 0: {function}_run({', '.join(['_new', *self.parameters])})"),
            Line(2, f"elif {function}_turns == 0:"),
            Line(3, "_all = {}"),
            Line(3, f"{function}_groups(_all)"),
            Line(3, f"for _k, _found in _all.items(): {function}_known[_k] = {total}(_found)"),
            Line(3, f"_new = _all.get({key}, _new)"),
            Line(2, f"{function}_turns -= 1"),
            Line(2, f"_v = {function}_known[{key}] = {total}(_new)"),
            Line(2, "return _v"),
        ]

    def accumulate_group(self, literal: Aggregate, groups: Sequence[Variable]) -> None:
        """At the bottom of an aggregate's body: note the value of its target for its group."""
        self.line(f"_k = {key_text([self.bound[v] for v in groups])}")
        self.line("_a = _new.get(_k)")
        self.line("if _a is None: _a = _new[_k] = []")
        target = None if literal.op == "count" else literal.target
        self.line(f"_a.append({'1' if target is None else self.expr(target)})")

    def number_of_turns(self) -> str:
        """How often the innermost loop reaches its bottom; without tests it need not run."""
        found = self.innermost_loop()
        if found is None:
            return "1"
        loop, tests = found
        if tests or not loop.values.sized:
            return f"_sum([1 {loop.header}{''.join(tests)}])"
        return f"_len({loop.values})"

    def accumulate(self, literal: Aggregate) -> None:
        """At the bottom of an aggregate's body: note the value, or the whole set, of its target."""
        if literal.op == "count":
            if self.set_variable is not None:
                self.line(f"_new.append(_len({self.single_set()}))")
            else:
                self.line(f"_new.append({self.number_of_turns()})")
            return
        assert literal.target is not None
        if self.set_variable is None:
            value = self.expr(literal.target)
            if not self.emit_comprehension(value, "_new.extend"):
                self.line(f"_new.append({value})")
        else:
            self.line(f"_new.extend({self.single_set()})")


class Yielding:
    """A writer of generators, in which no set is built before the first answer."""

    __slots__ = ()

    def variables_to_keep(self, rule: Rule) -> frozenset[Variable]:
        """All: a variable that vanishes does so in a union, which would be made at once."""
        shown = frozenset(v for arg in rule.head.args for v in p.variables_of(arg))
        return shown | frozenset(v for x in rule.body for v in variables_of_literal(x))

    def emit_head(self: Any, head: Atom) -> None:
        self.line(f"yield {tuple_text([self.expr(arg) for arg in head.args])}")

    def restricted(self, container: Values, variable: Variable) -> Values:
        return container

    def call_part(self: Any, call: str) -> None:
        self.line(f"yield from {call}")

    def solved(self: Any, body: Sequence[Literal], given: Sequence[Variable], new: Sequence[Variable]) -> Compiled:
        """The literals as a generator; what fails in one of them is left to the caller."""
        self.guards = False
        for variable in given:
            self.bound[variable] = self.name(variable)
        self.parameters = tuple(self.bound.values())
        rule = Rule(Atom("", tuple(new)), tuple(body), "open conditions")
        compiled: Compiled = self.rule(rule, None)
        return compiled


@define
class SolutionWriter(Yielding, RuleWriter):
    """Writes literals as a generator of the values for which they hold."""

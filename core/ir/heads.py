"""The bottom of a plan as Python: what becomes of a derivation, and what aggregates make of values.

`_new` takes what is derived.  Of a relation that is stored as sets of values, one for each key, it
is a dict of sets; otherwise a set.  With numbers it is {fact: …} or {key: {value: …}}.

A whole set of facts is counted by the loop in C behind `collections.Counter`.
"""

from __future__ import annotations

from collections import _count_elements  # type: ignore[attr-defined]  # what Counter.update runs in C
from collections.abc import Sequence
from sys import maxsize

from attrs import define

from everlog.core.codegen.code_lines import Line, comment
from everlog.core.codegen.interval_values import interval_values
from everlog.core.ir import set_operations as ir
from everlog.core.ir.passes.mentioned import only_variable
from everlog.core.ir.printer import Printer
from everlog.core.ir.python_text import key_text, tuple_text
from everlog.core.ir.set_operations import Derive, Gather, SetPlan, Total
from everlog.core.ir.uses import Action
from everlog.core.program import Atom, Term
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import PairShape, ValueShape

RANKS_OF = "ranks of "  # before a relation's name: the ranks of its facts
NO_RANK = maxsize  # of a fact that is not there: above all others
_OBJECTS = {"_count": _count_elements, "_NONE": {}, "_LAST": NO_RANK}


@define(slots=False)
class RulePrinter(Printer):
    """Prints whole plans."""

    def derive(self, derive: Derive) -> None:
        """The action at the bottom, with what it counts."""
        self.take(derive.sets)
        meter, head = self.use.meter, derive.head
        if self.use.living:
            self.expressions.scope.update(_OBJECTS)
        if meter is not None and meter.counts_values and self.set_in_head:
            self.line(f"{meter.local} += _len({self.single_set()})")
        match derive.action:
            case Action.ADD:
                self.add(derive, self.shapes[head.relation])
            case Action.LEAST | Action.GREATEST:
                self.offer(head, "<" if derive.action is Action.LEAST else ">")
            case Action.ROWS:
                self.line(f"_new.add({self.row(head)})")
            case Action.YIELD:
                self.line(f"yield {self.row(head)}")
            case Action.COLLECT:
                self.collect(derive)
            case Action.PLACE:
                self.place(derive)
            case Action.COUNT:
                self.count(head, self.shapes[head.relation])
            case Action.EARLIER:
                self.count_earlier(head, self.shapes[head.relation])
        if meter is not None and meter.counts_matches:
            size = f"_len({self.sets[0]})" if self.set_in_head else ""
            self.line(f"{meter.local} += {size}; _m += {size}" if size else "_m += 1")

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    @property
    def set_in_head(self) -> bool:
        variable = self.plan.set_variable
        return variable is not None and variable in self.plan.rule.head.args

    def row(self, head: Atom) -> str:
        return tuple_text([self.term(arg) for arg in head.args])

    def fact(self, head: Atom, shape: Shape) -> str:
        """What the head adds to a set of facts."""
        return key_text([self.term(head.args[column]) for column in shape.fact_columns])

    def facts(self, head: Atom, shape: Shape) -> str:
        """What a head that has the set variable adds to a set of facts, as one iterable."""
        values, args = self.single_set(), [head.args[column] for column in shape.fact_columns]
        if len(args) == 1:
            return values
        variable = self.plan.set_variable
        return f"_product({', '.join(values if a == variable else f'({self.term(a)},)' for a in args)})"

    def key_line(self, head: Atom, shape: Shape) -> None:
        """Name the key of the head, if facts of its shape have one."""
        for column in shape.key_columns:
            self.line(f"_k = {self.term(head.args[column])}")

    def add_under_key(self, first: str, further: str) -> None:
        """What the key `_k` gets in `_new`: its first entry, or one further in `_a`."""
        self.line("_a = _new.get(_k)")
        self.line(f"if _a is None: _new[_k] = {first}")
        self.line(f"else: {further}".rstrip())

    # ── add ──────────────────────────────────────────────────────────────────────────────────

    def add(self, derive: Derive, shape: Shape) -> None:
        head = derive.head
        if self.set_in_head:
            self.add_set(derive, shape)
            return
        if self.sets:  # only whether there is a value matters
            self.any_value()
        if isinstance(shape, PairShape):
            self.key_line(head, shape)
            fact = self.fact(head, shape)
            self.add_under_key(f"{{{fact}}}", f"_a.add({fact})")
        else:
            self.line(f"_new.add({self.fact(head, shape)})")

    def any_value(self) -> None:
        """Go on only where the sets have a value in common."""
        if len(self.sets) == 2 and not self.dropped:
            self.unless(f"{self.sets[0]}.isdisjoint({self.sets[1]})")
        else:
            self.single_set()

    def add_set(self, derive: Derive, shape: Shape) -> None:
        head = derive.head
        if isinstance(shape, PairShape):
            self.add_values(head, shape)
        elif isinstance(shape, ValueShape):
            self.line(f"_new |= {self.single_set()}")
        else:
            values = self.single_set()
            columns = [self.column(arg, values, derive.factor) for arg in head.args]
            self.line(f"_new.update(_product({', '.join(columns)}))")

    def column(self, arg: Term, values: str, factor: ir.Loop | None) -> str:
        """The values of one column of the head."""
        if arg == self.plan.set_variable:
            return values
        if factor is not None and arg == only_variable(factor):
            return self.cut_values(factor, self.values_of(factor))
        return f"({self.term(arg)},)"

    def add_values(self, head: Atom, shape: PairShape) -> None:
        """Add a set of values under a key; `known` ones are left out first."""
        values = self.intersection() if self.use.known else self.single_set()
        self.key_line(head, shape)
        new = self.owned(values)
        if self.use.known:
            self.line(f"_f = {self.stored(head.relation)}.get(_k)")
            self.line(f"_n = {new} if _f is None else {values} - _f")
            for value in self.dropped:
                self.line(f"_n.discard({value})")
            self.unless("not _n")
            new = values = "_n"
            self.only_new = True
        self.add_under_key(new, f"_a |= {values}")

    def gather(self, gather: Gather) -> None:
        """The innermost loop as a comprehension."""
        derive = gather.derive
        outside = dict(self.here)
        header = self.counted(gather.loop) if self.use.meter is not None else self.header(gather.loop)
        tests = "".join(f" if {self.condition(test)}" for test in gather.tests)
        if derive.action is Action.ADD:
            self.line(
                f"_new.update([{self.fact(derive.head, self.shapes[derive.head.relation])} {header}{tests}])"
            )
        elif derive.target is not None:
            self.line(f"_new.extend([{self.term(derive.target)} {header}{tests}])")
        elif tests or not _is_sized(gather.loop):
            self.line(f"_new.append(_sum([1 {header}{tests}]))")
        else:
            values = self.cut_values(gather.loop, self.values_of(gather.loop))
            self.line(f"_new.append(_len({values}))")
        self.here = outside

    def counted(self, loop: ir.Loop) -> str:
        """A loop within an expression, whose turns are counted before it."""
        if not _is_sized(loop):
            return self.header(loop)
        assert self.use.meter is not None
        name, values = self.temporary("_z"), self.cut_values(loop, self.values_of(loop))
        self.line(f"{name} = {values}")
        self.line(f"{self.use.meter.local} += {self.use.meter.turn} * _len({name})")
        return f"for {self.pattern(loop)} in {name}"

    def offer(self, head: Atom, better: str) -> None:
        self.line(f"_v = {self.term(head.args[0])}")
        self.line(f"_k = {key_text([self.term(arg) for arg in head.args[1:]])}")
        self.line("_a = _new.get(_k)")
        self.line(f"if _a is None or _v {better} _a or _v != _v: _new[_k] = _v")

    # ── derivations ──────────────────────────────────────────────────────────────────────────

    def count(self, head: Atom, shape: Shape) -> None:
        """Count derivations; `known` leaves out those of facts that are there."""
        amount = "1" if self.plan.set_variable is None else f"_len({self.single_set()})"
        self.key_line(head, shape)
        known = self.known_facts(head, shape) if self.use.known else ""
        if not self.set_in_head:
            self.line(f"_v = {self.fact(head, shape)}")
            if known:
                self.unless(f"_v in {known}")
            self.count_one(shape, amount)
            return
        facts = self.facts(head, shape)
        if known:
            facts = facts if len(shape.fact_columns) == 1 else f"_set({facts})"
            self.line(f"_b = {facts} - {known}")
            self.unless("not _b")
            facts = "_b"
        self.line(f"_count({self.counts_here(shape)}, {facts})")

    def known_facts(self, head: Atom, shape: Shape) -> str:
        """The facts that are there, under the key of the head."""
        known = self.stored(head.relation)
        if not shape.key_columns:
            return known
        self.line(f"_f = {known}.get(_k, _EMPTY)")
        return "_f"

    def counts_here(self, shape: Shape) -> str:
        """The numbers of facts under the key of the head."""
        if not shape.key_columns:
            return "_new"
        self.line("_a = _new.get(_k)")
        self.line("if _a is None: _a = _new[_k] = {}")
        return "_a"

    def count_one(self, shape: Shape, amount: str) -> None:
        counts = self.counts_here(shape)
        self.line(f"{counts}[_v] = {counts}.get(_v, 0) + {amount}")

    def count_earlier(self, head: Atom, shape: Shape) -> None:
        """Count a derivation if all facts of its unit have lower ranks than its own fact."""
        ranks = self.index(RANKS_OF + head.relation, (), ())
        self.key_line(head, shape)
        self.line(f"_v = {self.fact(head, shape)}")
        of_key = f"{ranks}.get(_k, _NONE)" if shape.key_columns else ranks
        self.line(f"_r = {of_key}.get(_v, _LAST)")
        for literal in self.plan.rule.body:
            if isinstance(literal, Atom) and literal.relation in self.use.ranked:
                self.unless(f"{self.rank(literal)} >= _r")
        self.count_one(shape, "1")

    def rank(self, atom: Atom) -> str:
        """The rank of a fact that is there."""
        shape, ranks = self.shapes[atom.relation], self.index(RANKS_OF + atom.relation, (), ())
        of_key = "".join(f"[{self.term(atom.args[column])}]" for column in shape.key_columns)
        return f"{ranks}{of_key}[{self.fact(atom, shape)}]"

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def collect(self, derive: Derive) -> None:
        """Take in the value, or the whole set, of the target."""
        target = derive.target
        if derive.groups:
            self.line(f"_k = {key_text([self.here[v] for v in derive.groups])}")
            self.line("_a = _new.get(_k)")
            self.line("if _a is None: _a = _new[_k] = []")
            self.line(f"_a.append({'1' if target is None else self.term(target)})")
        elif self.sets:
            values = self.single_set()
            self.line(f"_new.append(_len({values}))" if target is None else f"_new.extend({values})")
        else:
            self.line(f"_new.append({'1' if target is None else self.term(target)})")

    def place(self, derive: Derive) -> None:
        """Count a place with its target in its group."""
        self.line(f"_k = {key_text([self.here[v] for v in derive.groups])}")
        self.line("_a = _new.get(_k)")
        self.line("if _a is None: _a = _new[_k] = {}")
        target = "1" if derive.target is None else self.term(derive.target)
        self.line(f"_v = ({self.term(derive.head.args[0])}, {target})")
        self.line("_a[_v] = _a.get(_v, 0) + 1")

    def total(self, total: Total) -> None:
        """A cached call of the function that computes the aggregate of a group."""
        function = f"_agg{self.expressions.number()}"
        self.helpers += self.aggregate_function(function, total)
        arguments = ", ".join(self.here[v] for v in total.literal.outer)
        name = self.bind(total.target)
        self.line(f"{name} = {function}({arguments})")
        self.unless(f"{name} is None")

    def aggregate_function(self, function: str, total: Total) -> list[Line]:
        literal, value_of = total.literal, self.expressions.total(total.literal)
        text = [Line(1, comment(str(literal))), Line(1, f"{function}_known = {{}}")]
        one = self.inner(total.one)
        text += one.function(f"{function}_run", ["_new"])
        parameters = [one.name(v) for v in literal.outer]
        if total.every is None:
            return [*one.helpers, *text, *_call_for_one(function, value_of, parameters)]
        every = self.inner(total.every)
        text += every.function(f"{function}_groups", ["_new"])
        if total.ordered is None:
            call = _call_for_all(function, value_of, parameters, total.turns)
        else:
            values = self.expressions.named("intervals", interval_values(total.ordered))
            group = key_text([one.name(v) for v in total.ordered.group])
            outside = tuple_text([one.name(v) for v in total.ordered.outside])
            value = f"{values}({function}_all, {group}, {outside})"
            call = _call_for_intervals(function, value_of, parameters, total.turns, value)
        return [*one.helpers, *every.helpers, *text, *call]

    def inner(self, plan: SetPlan) -> RulePrinter:
        """A printer of another function beside this one."""
        return RulePrinter(self.shapes, self.expressions, plan, self.solve, self.accesses)


def _is_sized(loop: ir.Loop) -> bool:
    return not (isinstance(loop, ir.Each) and not isinstance(loop.values, ir.Local))


def _call_for_one(function: str, total: str, parameters: Sequence[str]) -> list[Line]:
    """The call for one group, whose value is remembered."""
    key = key_text(parameters)
    return [
        Line(1, f"def {function}({', '.join(parameters)}):"),
        Line(2, f"_v = {function}_known.get({key}, _MISSING)"),
        Line(2, "if _v is _MISSING:"),
        Line(3, "_new = []"),
        Line(3, f"{function}_run({', '.join(['_new', *parameters])})"),
        Line(3, f"_v = {function}_known[{key}] = {total}(_new)"),
        Line(2, "return _v"),
    ]


def _call_for_all(function: str, total: str, parameters: Sequence[str], turns: int) -> list[Line]:
    """The call for one group, until that has been done often; then for all groups at once."""
    key = key_text(parameters)
    return [
        Line(1, f"{function}_turns = {turns}"),
        *_opening(function, parameters),
        Line(2, "_new = []"),
        Line(2, f"if {function}_turns > 0: {function}_run({', '.join(['_new', *parameters])})"),
        Line(2, f"elif {function}_turns == 0:"),
        Line(3, "_all = {}"),
        Line(3, f"{function}_groups(_all)"),
        Line(3, f"for _k, _found in _all.items(): {function}_known[_k] = {total}(_found)"),
        Line(3, f"_new = _all.get({key}, _new)"),
        Line(2, f"{function}_turns -= 1"),
        Line(2, f"_v = {function}_known[{key}] = {total}(_new)"),
        Line(2, "return _v"),
    ]


def _opening(function: str, parameters: Sequence[str]) -> list[Line]:
    """The first lines of the call of an aggregate: a value that is known is returned."""
    return [
        Line(1, f"def {function}({', '.join(parameters)}):"),
        Line(2, f"nonlocal {function}_turns"),
        Line(2, f"_v = {function}_known.get({key_text(parameters)}, _MISSING)"),
        Line(2, "if _v is not _MISSING: return _v"),
    ]


def _call_for_intervals(
    function: str, total: str, parameters: Sequence[str], turns: int, value: str
) -> list[Line]:
    """The same of intervals of an order: all facts are put in order when that pays."""
    key = key_text(parameters)
    return [
        Line(1, f"{function}_turns, {function}_all = {turns}, {{}}"),
        *_opening(function, parameters),
        Line(2, f"if {function}_turns > 0:"),
        Line(3, "_new = []"),
        Line(3, f"{function}_run({', '.join(['_new', *parameters])})"),
        Line(3, f"_v = {total}(_new)"),
        Line(2, "else:"),
        Line(3, f"if {function}_turns == 0: {function}_groups({function}_all)"),
        Line(3, f"_v = {value}"),
        Line(2, f"{function}_turns -= 1"),
        Line(2, f"{function}_known[{key}] = _v"),
        Line(2, "return _v"),
    ]

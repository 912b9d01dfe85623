"""A rule as a plan: atoms in the planned order, and every test as soon as it is ready.

An atom whose columns all have values is a test; one with some is a probe; one with none is a scan.
A variable that stands twice in an atom gets a second name, and a test that both are the same.  An
equality that gives a variable its value is a `Let`.

Sets of values wait: where a key leads to the values of a variable, the loop over them
begins when nothing better is to be done, and the *set variable* is never looped over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define, field

from everlog.core import program as p
from everlog.core.codegen.join_order import Ordering
from everlog.core.ir import set_operations as ir
from everlog.core.ir.agenda import Agenda, Item, Offer
from everlog.core.ir.atoms import AtomLowering, NoSet
from everlog.core.ir.operations import Compare, Let
from everlog.core.ir.passes import passed
from everlog.core.ir.set_operations import Local, SetPlan, Sets
from everlog.core.ir.set_variables import aggregated_sets
from everlog.core.ir.uses import Action, Use, is_risky
from everlog.core.program import Aggregate, Atom, Comparison, Kind, Literal, Negation, Range, Rule, Variable
from everlog.core.program.aggregates.ordered_groups import OrderedAggregate, ordered_aggregate
from everlog.core.program.bodies import may_fail, variables_of_literal

_MANY_TURNS = 1_000_000_000


@define
class Lowering(AtomLowering):
    """A rule under construction."""

    given: tuple[Variable, ...] = field(default=(), kw_only=True)
    ordering: Ordering = field(init=False)

    def plan(self, delta: int | None) -> SetPlan:
        """The whole rule; raises `NoSet` if the set variable cannot be one."""
        use, body = self.use, self.rule.body
        self.from_delta, self.single = delta is not None, sum(isinstance(x, Atom) for x in body) == 1
        self.risky = use.living and is_risky(self.rule, use.failing)
        self.join(delta)
        self.derive(use.action)
        return self.made(delta)

    def made(self, delta: int | None) -> SetPlan:
        cost, variable = self.ordering.cost, self.set_variable
        operations, number = tuple(self.operations), self.temporaries
        order = self.ordering.final.order
        return SetPlan(self.rule, delta, operations, self.use, self.given, variable, number, cost, order)

    def derive(self, action: Action) -> None:
        shape = self.shapes.get(self.rule.head.relation)
        keyed = shape is not None and bool(shape.key_columns)
        self.operations.append(ir.Derive(action, self.rule.head, self.sets, keyed=keyed))

    def kept(self) -> frozenset[Variable]:
        """The variables that must not vanish in a union of sets."""
        shown = frozenset(v for arg in self.rule.head.args for v in p.variables_of(arg))
        if not self.use.keeps_all:
            return shown
        return shown | frozenset(v for x in self.rule.body for v in variables_of_literal(x))

    # ── the body ─────────────────────────────────────────────────────────────────────────────

    def join(self, delta: int | None) -> None:
        """Lower the whole body."""
        body = self.rule.body
        self.bound.update(dict.fromkeys(self.given))
        self.agenda = agenda = Agenda(body, self.set_variable)
        first, late = (delta, None) if self.late is None else (None, delta)
        self.ordering = Ordering(
            body,
            self.statistics,
            self.bound.keys(),
            first,
            self.set_variable,
            self.kept(),
            late,
            fixed=self.rule.order_of(delta) if late is None else (),
        )
        agenda.follow(estimate.position for estimate in self.ordering.chosen())
        if delta is not None and self.late is None:
            atom = body[delta]
            assert isinstance(atom, Atom)
            agenda.done(delta)
            self.delta_atom(atom)
        while True:
            self.settle()
            if not agenda.open:
                break
            if agenda.only_tests_left():
                for literal in list(agenda.open.values()):
                    assert not isinstance(literal, Offer)
                    self.filter_set(literal)
                break
            position = self.next_of()
            chosen = agenda.done(position)
            if isinstance(chosen, Range):
                self.range(chosen)
            elif isinstance(chosen, Offer):
                self.values(chosen.values, chosen.variable)
            else:
                assert isinstance(chosen, Atom), f"never ready: {chosen}"
                self.atom(chosen)

    def settle(self) -> None:
        """Lower every test and equality that has become ready since the last call."""
        while positions := self.agenda.touched(self.bound):
            for position in positions:
                literal = self.agenda.open.get(position)
                if literal is not None and self.is_lowered(literal):
                    self.agenda.done(position)

    def is_lowered(self, literal: Item) -> bool:
        """Lower a literal if it is ready."""
        match literal:
            case Offer(variable, values):
                if variable not in self.bound:
                    return False
                self.operations.append(ir.Member(variable, values))
                return True
            case Comparison():
                if not self.is_decided(literal):
                    return False
                with self.guarded(literal):
                    self.comparison(literal)
                return True
            case Negation(atom):
                if not self.is_bound(atom.args):
                    return False
                with self.guarded(literal):
                    self.exists(atom, negated=True)
                return True
            case Aggregate(outer=outer):
                if not self.is_bound(outer):
                    return False
                with self.guarded(literal):
                    self.aggregate(literal)
                return True
            case Atom(args=args):
                known = all(isinstance(a, p.Wildcard) or self.is_bound((a,)) for a in args)
                if self.set_variable in args or not known or self.ordering.fixed:
                    return False
                self.atom(literal)
                return True
            case _:
                return False

    def next_of(self) -> int:
        """The next atom or range of the planned order, or a set of values to run through before it.

        A set that is there already is run through first if it has fewer values than the atom has
        matches: the atom may need its variable.
        """
        planned, offer = self.agenda.planned(), self.agenda.smallest_offer()
        if offer is None or planned is None:
            position = planned if offer is None else offer
            assert position is not None, f"no order: {[str(x) for x in self.agenda.open.values()]}"
            return position
        literal, values = self.agenda.open[planned], self.agenda.open[offer]
        assert isinstance(values, Offer)
        if isinstance(literal, Range):
            return planned if self.is_bound(literal.bounds) else offer
        assert isinstance(literal, Atom)
        if [a for a in literal.args if self.is_new(a)] == [self.set_variable]:
            return planned
        return offer if values.size < self.ordering.matches_of(planned, self.bound.keys()) else planned

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def is_decided(self, literal: Comparison) -> bool:
        """Whether a comparison can be tested, or binds a variable."""
        sides = (literal.left, literal.right), (literal.right, literal.left)
        if self.is_bound(sides[0]):
            return True
        return literal.op == "=" and any(
            isinstance(one, Variable) and one != self.set_variable and self.is_bound((other,))
            for one, other in sides
        )

    def comparison(self, literal: Comparison) -> None:
        left, right = literal.left, literal.right
        if self.is_bound((left, right)):
            self.operations.append(Compare(literal.op, left, right, literal.kind))
            return
        new, term = (left, right) if self.is_bound((right,)) else (right, left)
        assert isinstance(new, Variable)
        self.operations.append(Let(new, "", (term,), literal.kind, literal.kind))
        self.bind(new)

    @contextmanager
    def guarded(self, literal: Literal) -> Iterator[None]:
        """Around the operations of a literal: they are guarded if it may fail."""
        start = len(self.operations)
        yield
        if self.use.guards and may_fail(literal):
            self.operations[start:] = [ir.Guarded(tuple(self.operations[start:]))]

    def range(self, literal: Range) -> None:
        values: Local | Range = literal
        if may_fail(literal):
            values = self.local("_r")
            with self.guarded(literal):
                self.operations.append(ir.Numbers(values, literal))
        if literal.result in self.bound:
            self.operations.append(ir.Member(literal.result, values))
        else:
            self.operations.append(ir.Each((literal.result,), values))
            self.bind(literal.result)

    def filter_set(self, literal: Literal) -> None:
        """A test on the set variable cuts down the set at the bottom."""
        variable = self.set_variable
        assert variable is not None
        if isinstance(literal, Negation):
            atom = literal.atom
            column = atom.args.index(variable)
            key = tuple((c, a) for c, a in self.columns_of(atom) if c != column)
            index = self.index(atom, tuple(c for c, _ in key), (column,))
            sets, values = self.sets, self.local("_S")
            with self.guarded(literal):
                self.operations.append(ir.Without(values, sets, index, key))
        else:
            assert isinstance(literal, Comparison), f"no test on a set: {literal}"
            other = literal.right if literal.left == variable else literal.left
            value = self.temporary()
            with self.guarded(literal):
                self.operations.append(Let(value, "", (other,), literal.kind, literal.kind))
            if literal.op == "!=" and literal.kind is not Kind.FLOAT:  # NaN differs from itself
                self.sets = Sets(self.sets.members, (*self.sets.dropped, value))
                return
            sides = (variable, value) if literal.left == variable else (value, variable)
            sets, values = self.sets, self.local("_S")
            test = Compare(literal.op, *sides, literal.kind)
            self.operations.append(ir.Filter(values, sets, variable, test))
        self.sets = Sets((values,))

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def aggregate(self, literal: Aggregate) -> None:
        target, again = self.fresh(literal.result)
        if self.use.living:
            assert isinstance(literal.body[0], Atom), f"not normalised: {literal}"
            self.operations.append(ir.Lookup(target, literal))
        else:
            self.operations.append(self.total(target, literal))
        self.operations += again

    def total(self, target: Variable, literal: Aggregate) -> ir.Total:
        """An aggregate that is computed.

        Where its body gives values to all outer variables, a second plan goes through the body
        once, for all groups.  It is run when the first one has cost as much as it will.
        """
        one, ordered = self.aggregated(literal, literal.outer), ordered_aggregate(literal)
        if ordered is not None:
            every = self.placed(literal, ordered)
        elif _is_grouped(literal):
            every = self.aggregated(literal, ())
        else:
            return ir.Total(target, literal, one, None, 0)
        turns = max(1, round(min(every.cost / max(one.cost, 1.0), _MANY_TURNS)))
        return ir.Total(target, literal, one, every, turns, ordered)

    def placed(self, literal: Aggregate, ordered: OrderedAggregate) -> SetPlan:
        """All facts of an aggregate over intervals, each with its place."""
        body = Rule(Atom("", (ordered.place,)), ordered.inner, str(literal))
        inner = Lowering(self.shapes, self.statistics, Use(Action.COLLECT), None, body)
        inner.join(None)
        groups = tuple(ordered.group)
        inner.operations.append(ir.Derive(Action.PLACE, body.head, Sets(), groups, ordered.target))
        return passed(inner.made(None))

    def aggregated(self, literal: Aggregate, outer: Sequence[Variable]) -> SetPlan:
        """The body of an aggregate, for values of some variables, grouped by the others."""
        groups = tuple(v for v in literal.outer if v not in outer)
        candidates = [] if groups or may_fail(literal.target) else aggregated_sets(literal, literal.body)
        body = Rule(Atom("", ()), literal.body, str(literal))
        for candidate in [*candidates, None]:
            inner = Lowering(
                self.shapes, self.statistics, Use(Action.COLLECT), candidate, body, given=tuple(outer)
            )
            try:
                inner.join(None)
            except NoSet:
                continue
            target = None if literal.op == "count" else literal.target
            inner.operations.append(ir.Derive(Action.COLLECT, body.head, inner.sets, groups, target))
            return passed(inner.made(None))
        raise AssertionError("an aggregate without set variable always has a plan")


def _is_grouped(literal: Aggregate) -> bool:
    """Whether all groups can be computed at once; not if an unread one could fail.

    A body with an aggregate of its own is not grouped: then each level would be compiled twice
    for the level around it.
    """
    if any(isinstance(x, Aggregate) for x in literal.body):
        return False
    given = {a for x in literal.body if isinstance(x, Atom) for a in x.args}
    return not may_fail(literal) and bool(literal.outer) and given.issuperset(literal.outer)

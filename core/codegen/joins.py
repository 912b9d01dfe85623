"""A whole body: in which order its literals are joined, its tests, the set at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from attrs import define, field

from everlog.core import program as p
from everlog.core.codegen.agenda import Agenda, Item, Member, variables_of_literal
from everlog.core.codegen.atoms import AtomWriter
from everlog.core.codegen.code_lines import Values
from everlog.core.codegen.join_order import Ordering
from everlog.core.program import (
    Aggregate,
    Atom,
    Comparison,
    Literal,
    Negation,
    Range,
    Variable,
)
from everlog.core.program.bodies import may_fail

_MOST_SETS = 20  # of one expression: the compiler of Python nests a call for each operator


@define
class JoinWriter(AtomWriter):
    """Writes bodies."""

    whole: Sequence[Literal] = ()  # the body
    delta: int | None = None  # the place of the atom that is read from Δ
    ordering: Ordering = field(init=False)

    def join(self, body: Sequence[Literal], delta: int | None, emit: Callable[[], None]) -> None:
        """Loops and tests for the whole body, then `emit` at the bottom."""
        agenda = Agenda(body, self.set_variable)
        self.agenda = agenda
        self.whole, self.delta = body, delta
        first, late = (delta, None) if self.late is None else (None, delta)
        self.ordering = Ordering(
            body, self.statistics, self.bound.keys(), first, self.set_variable, self.kept, late
        )
        agenda.follow(estimate.position for estimate in self.ordering.chosen())
        if delta is not None and self.late is None:
            atom = body[delta]
            assert isinstance(atom, Atom)
            agenda.done(delta)
            self.delta_atom(atom)
        while True:
            self.settle(agenda)
            if not agenda.open:
                break
            if agenda.only_tests_left():
                for literal in list(agenda.open.values()):
                    assert not isinstance(literal, Member)
                    self.filter_set(literal)
                break
            position = self.next_of(agenda)
            chosen = agenda.done(position)
            self.current = frozenset(variables_of_literal(chosen))
            if isinstance(chosen, Range):
                self.range_loop(chosen)
            elif isinstance(chosen, Member):
                self.values(chosen.values, chosen.variable)
            else:
                assert isinstance(chosen, Atom), f"never ready: {chosen}"
                self.atom(chosen)
        emit()
        self.collect_parts()

    def settle(self, agenda: Agenda) -> None:
        """Write every test and equality that has become ready since the last call."""
        while True:
            positions = agenda.touched(self.bound)
            if not positions:
                return
            for position in positions:
                literal = agenda.open.get(position)
                if literal is not None and self.write_ready(literal):
                    agenda.done(position)

    def write_ready(self, literal: Item) -> bool:
        match literal:
            case Member(variable, values):
                if variable not in self.bound:
                    return False
                self.test(f"{self.bound[variable]} in {values}")
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
                    self.negation(atom)
                return True
            case Aggregate(outer=outer):
                if not self.is_bound(outer):
                    return False
                with self.guarded(literal):
                    self.aggregate(literal)
                return True
            case Atom(args=args):
                if self.set_variable in args or not all(
                    isinstance(a, p.Wildcard) or self.is_bound((a,)) for a in args
                ):
                    return False
                self.atom(literal)
                return True
            case _:
                return False

    def next_of(self, agenda: Agenda) -> int:
        """The next atom or range of the planned order, or a set of values to run through before it.

        A set that is there already is run through first if it has fewer values than the atom has
        matches: the atom may need its variable.
        """
        planned, member = agenda.planned(), agenda.smallest_member()
        if member is None or planned is None:
            position = planned if member is None else member
            assert position is not None, f"no order: {[str(x) for x in agenda.open.values()]}"
            return position
        literal, values = agenda.open[planned], agenda.open[member]
        assert isinstance(values, Member)
        if isinstance(literal, Range):
            return planned if self.is_bound(literal.bounds) else member
        assert isinstance(literal, Atom)
        new = [a for a in literal.args if isinstance(a, Variable) and self.is_new(a)]
        if new == [self.set_variable]:
            return planned
        return member if values.size < self.ordering.matches_of(planned, self.bound.keys()) else planned

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def aggregate(self, literal: Aggregate) -> None:
        raise NotImplementedError("see RuleWriter")

    def negation(self, atom: Atom) -> None:
        key = [c for c, arg in enumerate(atom.args) if not isinstance(arg, p.Wildcard)]
        condition = self.contains(atom, key)
        self.line(f"if {condition}: {self.skip()}")

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
            self.test(self.expressions.comparison(literal.op, self.expr(left), self.expr(right), literal.kind))
            return
        new, term = (left, right) if self.is_bound((right,)) else (right, left)
        assert isinstance(new, Variable)
        self.line(f"{self.name(new)} = {self.expr(term)}")
        self.bound[new] = self.name(new)

    @contextmanager
    def guarded(self, literal: Literal) -> Iterator[None]:
        """Around the code of a literal that may fail: tell what a failure means."""
        if not (self.guards and may_fail(literal)):
            yield
            return
        bound = dict(self.bound)
        self.line("try:")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("except _Error as _e:")
        self.depth += 1
        self.fail("_e", bound)
        self.line(self.skip())
        self.depth -= 1

    def fail(self, error: str, bound: dict[Variable, str]) -> None:
        """Write the failure of the present bindings: the rule fails unless excluded."""
        raise NotImplementedError("see RuleWriter")

    def range_loop(self, literal: Range) -> None:
        step = "None" if literal.step is None else self.expr(literal.step)
        text, names = (
            f"_range({self.expr(literal.start)}, {self.expr(literal.stop)}, {step})",
            self.names_in(literal.bounds),
        )
        if may_fail(literal):
            name = self.temporary("_r")
            with self.guarded(literal):
                self.line(f"{name} = {text}")
            text, names = name, {name}
        if literal.result in self.bound:
            self.test(f"{self.expr(literal.result)} in {text}")
        else:
            self.loop([literal.result], "", Values(text, frozenset(names), sized=False))

    def filter_set(self, literal: Literal) -> None:
        """A test on the set variable: it cuts down the set at the bottom."""
        current = self.single_set()
        name = self.temporary("_S")
        variable = self.set_variable
        assert variable is not None
        match literal:
            case Negation(Atom() as atom):
                column = atom.args.index(variable)
                key = [c for c, a in enumerate(atom.args) if c != column and not isinstance(a, p.Wildcard)]
                if key:
                    index = self.index(atom.relation, tuple(key), (column,))
                    with self.guarded(literal):
                        self.line(f"{name} = {current} - {index}.get({self.key(atom, key)}, _EMPTY)")
                else:
                    self.line(f"{name} = {current} - {self.index(atom.relation, (), (column,))}")
            case Comparison(op, left, right, kind):
                other = right if left == variable else left
                value = self.temporary()
                with self.guarded(literal):
                    self.line(f"{value} = {self.expr(other)}")
                inner = self.name(variable)
                sides = (inner, value) if left == variable else (value, inner)
                condition = self.expressions.comparison(op, *sides, kind)
                if op == "!=" and kind is not p.Kind.FLOAT:  # NaN differs from itself
                    self.dropped = value
                    return
                self.line(f"{name} = {{{inner} for {inner} in {current} if {condition}}}")
            case _:
                raise AssertionError(f"no test on a set: {literal}")
        self.line(f"if not {name}: {self.skip()}")
        self.sets, self.made[name] = [name], self.depth

    def single_set(self) -> str:
        """The intersection of the sets of all atoms, under one name, without dropped values."""
        current = self.intersection()
        if self.dropped:  # copying a set and dropping a value is quicker than a difference
            name = self.temporary("_S")
            self.line(f"{name} = {self.owned(current)}")
            self.line(f"{name}.discard({self.dropped})")
            self.line(f"if not {name}: {self.skip()}")
            self.sets, self.made[name], self.dropped = [name], self.depth, ""
        return self.sets[0]

    def intersection(self) -> str:
        self.sets = list(dict.fromkeys(self.sets))
        if len(self.sets) > 1:
            name = self.temporary("_S")
            self.line(f"{name} = {' & '.join(self.sets[:_MOST_SETS])}")
            for start in range(_MOST_SETS, len(self.sets), _MOST_SETS):
                self.line(f"{name} = {' & '.join([name, *self.sets[start : start + _MOST_SETS]])}")
            self.line(f"if not {name}: {self.skip()}")
            self.sets = [name]
            self.made[name] = self.depth
        return self.sets[0]

    def owned(self, values: str) -> str:
        """A set that may be changed: a copy, unless the innermost loop has just made it."""
        return values if self.made.get(values) == self.depth else f"_set({values})"

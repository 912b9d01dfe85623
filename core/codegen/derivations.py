"""The uses of a derivation: count it, keep it as a witness, or compare it with one.

Whole-program evaluation only wants to know which facts there are.  A live engine wants more:

`CountWriter`     how many derivations each fact has: one per binding of all variables of the body
`WitnessWriter`   for each fact that is not there yet, one derivation: (rule, hidden values)
`SuspectWriter`   the facts whose kept witness is the derivation at hand
`SavingWriter`    another derivation for facts whose witness is lost

The *hidden* values are those of the body's variables that the head does not show, so head and
witness together name every fact that the derivation used.  No variable may vanish in a union here,
but the one at the bottom is still a set: a whole set of facts takes one witness by `dict.fromkeys`,
and is counted by the C loop behind `collections.Counter`.

Aggregates are not computed here but looked up: the engine keeps the value of every group.
"""

from __future__ import annotations

from collections import _count_elements  # type: ignore[attr-defined]  # what Counter.update runs in C
from collections.abc import Collection, Sequence, Set

from attrs import define, evolve

from everlog.core import program as p
from everlog.core.codegen.agenda import Agenda
from everlog.core.codegen.atoms import local
from everlog.core.codegen.code_lines import Values
from everlog.core.codegen.rule_code import RuleWriter, Yielding
from everlog.core.codegen.writer import Compiled, NoSet, key_text, packed, same, tuple_text
from everlog.core.program import Aggregate, Atom, Literal, Rule, Variable
from everlog.core.program.bodies import may_fail, variables_of_literal
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import ValueShape

VALUES_OF = "values of "  # before a group's name: its values, by the outer variables
PROOFS_OF = "proofs of "  # before a relation's name: its witnesses
FEW = 16  # values of a key that are looked up one by one


def hidden_variables(rule: Rule) -> tuple[Variable, ...]:
    """The variables of a rule's body that its head does not show, sorted by name.

    Computed arguments are left out: they follow from the others.

    >>> x, y, z = map(Variable, "xyz")
    >>> body = Atom("path", (x, y)), Atom("edge", (y, z))
    >>> print(*hidden_variables(Rule(Atom("path", (x, z)), body)))
    y
    """
    found = dict.fromkeys(v for literal in rule.body for v in variables_of_literal(literal))
    computed = p.computed_arguments(rule.body)
    hidden = (v for v in found if v not in rule.head.args and v not in computed)
    return tuple(sorted(hidden, key=lambda v: v.name))


def is_risky(rule: Rule, failing: Collection[str]) -> bool:
    """Whether a condition of a rule may fail, or reads a group of those that may."""
    return any(may_fail(x) or (isinstance(x, Atom) and x.relation in failing) for x in rule.body)


@define
class LivingWriter(RuleWriter):
    """Keeps every variable, and looks aggregates up."""

    number: int = 0  # of the rule, in witnesses
    grouped: bool = False  # whether witnesses stand for sets of facts: see core.engine.keepers.recursive.proofs
    hidden: tuple[Variable, ...] = ()
    head_args: tuple[p.Term, ...] = ()
    from_delta: bool = False
    single: bool = False  # one atom is all that the body has
    risky: bool = False  # whether a condition may fail

    def variables_to_keep(self, rule: Rule) -> frozenset[Variable]:
        scope = self.expressions.scope
        scope.update(_count=_count_elements, _fromkeys=dict.fromkeys, _next=next, _iter=iter)
        self.hidden, self.head_args = hidden_variables(rule), rule.head.args
        return frozenset(v for x in rule.body for v in variables_of_literal(x)) | frozenset(
            v for a in rule.head.args for v in p.variables_of(a)
        )

    def rule(self, rule: Rule, delta: int | None) -> Compiled:
        self.from_delta, self.single = delta is not None, sum(isinstance(x, Atom) for x in rule.body) == 1
        self.risky = is_risky(rule, self.failing)
        return super().rule(rule, delta)

    def restricted(self, container: Values, variable: Variable) -> Values:
        """Do not cut down a small set from a change: looking up each value costs less."""
        cut = super().restricted(container, variable)
        if not self.from_delta or cut == container:
            return cut
        name = self.temporary("_z")
        self.line(f"{name} = {container}")
        return local(f"({name} if _len({name}) < {FEW} else {evolve(cut, text=name)})", name)

    def set_atom(self, atom: Atom, key: list[int], rest: list[int], column: int) -> None:
        """Refuse sets that need a walk through a relation, or an index for one walk only."""
        stored = self.shapes[atom.relation].is_stored(tuple(rest), (column,))
        if rest and not key and (self.from_delta or (self.single and not stored)):
            raise NoSet
        super().set_atom(atom, key, rest, column)

    # ── failures ─────────────────────────────────────────────────────────────────────────────

    def solutions(self, body: Sequence[Literal], given: Sequence[Variable], new: Sequence[Variable]) -> Compiled:
        return LivingSolutionWriter(self.shapes, self.statistics, self.functors, None).solved(body, given, new)

    def is_delta_bound(self, bound: Set[Variable]) -> bool:
        """Always: where a condition may fail, Δ is gone through row by row, at once."""
        return True

    def values_of_key(self, container: Values, arg: p.Term, atom: Atom) -> None:
        if self.risky and self.from_delta:
            self.values(container, arg)
        else:
            super().values_of_key(container, arg, atom)

    def delta_atom(self, atom: Atom) -> None:
        """Read an atom from Δ; the value of a group may be a failure."""
        if atom.relation not in self.failing:
            super().delta_atom(atom)
            return
        found, result = Variable("value@"), atom.args[-1]
        super().delta_atom(Atom(atom.relation, (*atom.args[:-1], found)))
        name, bound = self.bound[found], {v: name for v, name in self.bound.items() if v != found}
        self.line(f"if {name}.__class__ is _Failed:")
        self.depth += 1
        self.fail(f"{name}.error", bound)
        self.line(self.skip())
        self.depth -= 1
        assert isinstance(result, Variable)
        if result in self.bound:
            self.test(same(name, self.bound[result]))
        else:
            self.bound[result] = name

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def aggregate(self, literal: Aggregate) -> None:
        group = literal.body[0]
        assert isinstance(group, Atom), f"not normalised: {literal}"
        outer = tuple(range(len(literal.outer)))
        values = self.index(VALUES_OF + group.relation, outer, ())
        key = key_text([self.bound[v] for v in literal.outer])
        default = {"count": "0", "sum": "0"}.get(literal.op, "None")
        if literal.kind is p.Kind.FLOAT and default == "0":
            default = "0.0"
        value = self.temporary() if literal.result in self.bound else self.name(literal.result)
        self.line(f"{value} = {values}.get({key}, {default})")
        if literal.partial:
            self.line(f"if {value}.__class__ is _Failed: raise {value}.error")
        if default == "None":
            self.line(f"if {value} is None: {self.skip()}")
        if literal.result in self.bound:
            self.test(same(value, self.bound[literal.result]))
        else:
            self.bound[literal.result] = value

    def emit_comprehension(self, value: str, into: str = "_new.update") -> bool:
        return False

    def key_line(self, head: Atom, shape: Shape) -> None:
        """Name the key of the head, if facts of its shape have one."""
        for column in shape.key_columns:
            self.line(f"_k = {self.expr(head.args[column])}")

    def fact(self, head: Atom, shape: Shape) -> str:
        """What the head adds to a set of facts."""
        return packed([self.expr(a) for a in head.args], shape.fact_columns)

    def facts(self, head: Atom, shape: Shape) -> str:
        """What a head that has the set variable adds to a set of facts, as one iterable."""
        values, args = self.single_set(), [head.args[column] for column in shape.fact_columns]
        if len(args) == 1:
            return values
        return f"_product({', '.join(values if a == self.set_variable else f'({self.expr(a)},)' for a in args)})"

    @property
    def set_in_head(self) -> bool:
        return self.set_variable is not None and self.set_variable in self.head_args

    def emit_head(self, head: Atom) -> None:
        self.emit(head, self.shapes[head.relation])

    def emit(self, head: Atom, shape: Shape) -> None:
        raise NotImplementedError


@define
class LivingSolutionWriter(Yielding, LivingWriter):
    """Writes literals as a generator of the values for which they hold."""


@define
class CountWriter(LivingWriter):
    """`_new` maps each fact to its derivations; a binary one as {key: {value: n}}."""

    def emit(self, head: Atom, shape: Shape) -> None:
        amount = "1" if self.set_variable is None else f"_len({self.single_set()})"
        counts = "_new"
        if shape.key_columns:
            counts = "_a"
            self.key_line(head, shape)
            self.line("_a = _new.get(_k)")
            self.line("if _a is None: _a = _new[_k] = {}")
        if self.set_in_head:
            self.line(f"_count({counts}, {self.facts(head, shape)})")
            return
        self.line(f"_v = {self.fact(head, shape)}")
        self.line(f"{counts}[_v] = {counts}.get(_v, 0) + {amount}")


@define
class WitnessWriter(LivingWriter):
    """`_new` maps each fact that is not there yet to a witness."""

    hoisted: int | None = None  # in which part of the code the witness has a name already

    def settle(self, agenda: Agenda) -> None:
        """Name the witness once all hidden values are known, outside of further loops."""
        super().settle(agenda)
        if self.hoisted is None and self.hidden and all(v in self.bound for v in self.hidden):
            self.line(f"_w = {self.witness()}")
            self.hoisted = len(self.pending)

    def witness(self) -> str:
        if self.hoisted == len(self.pending):
            return "_w"
        names = dict(self.bound)
        if self.set_variable is not None and not self.set_in_head:
            names[self.set_variable] = f"_next(_iter({self.single_set()}))"
        return tuple_text([str(self.number), *(names[v] for v in self.hidden)])

    def emit(self, head: Atom, shape: Shape) -> None:
        known = self.stored(head)
        witness = self.witness()
        if shape.key_columns:
            self.emit_pairs(head, shape, known, witness)
        elif self.set_in_head:
            facts = (
                self.facts(head, shape) if isinstance(shape, ValueShape) else f"_set({self.facts(head, shape)})"
            )
            self.line(f"_new.update(_fromkeys({facts} - {known}, {witness}))")
        else:
            self.line(f"_v = {self.fact(head, shape)}")
            self.line(f"if _v not in {known}: _new[_v] = {witness}")

    def emit_pairs(self, head: Atom, shape: Shape, known: str, witness: str) -> None:
        self.key_line(head, shape)
        self.line(f"_f = {known}.get(_k, _EMPTY)")
        if self.grouped:
            self.emit_grouped(head, shape, witness)
        elif self.set_in_head:
            self.line(f"_n = {self.single_set()} - _f")
            self.line(f"if not _n: {self.skip()}")
            self.line(f"_n = _fromkeys(_n, {witness})")
            self.add_under_key("_n", "_a.update(_n)")
        else:
            self.line(f"_v = {self.fact(head, shape)}")
            self.line(f"if _v in _f: {self.skip()}")
            self.add_under_key(f"{{_v: {witness}}}", f"_a[_v] = {witness}")

    def emit_grouped(self, head: Atom, shape: Shape, witness: str) -> None:
        """{key: (values, {witness: values})}: a value is in the set of one witness only."""
        values = self.single_set() if self.set_in_head else f"{{{self.fact(head, shape)}}}"
        self.line(f"_n = {values} - _f")
        self.line(f"if not _n: {self.skip()}")
        self.add_to_group(witness)

    def add_to_group(self, witness: str, are_new: bool = False) -> None:
        self.add_under_key(f"(_set(_n), {{{witness}: _n}})", "")
        self.depth += 1
        if not are_new:
            self.line("_n -= _a[0]")
            self.line(f"if not _n: {self.skip()}")
        self.line("_a[0].update(_n)")
        self.line(f"_b = _a[1].get({witness})")
        self.line(f"if _b is None: _a[1][{witness}] = _n")
        self.line("else: _b |= _n")
        self.depth -= 1


@define
class SavingWriter(WitnessWriter):
    """`_new` maps present facts to another witness; the first one found serves."""

    def emit(self, head: Atom, shape: Shape) -> None:
        witness = self.witness()
        self.key_line(head, shape)
        if self.grouped:
            values = self.owned(self.single_set()) if self.set_in_head else f"{{{self.fact(head, shape)}}}"
            self.line(f"_n = {values}")
            self.add_to_group(witness)
            return
        facts = self.facts(head, shape) if self.set_in_head else tuple_text([self.fact(head, shape)])
        found = f"_fromkeys({facts}, {witness})"
        if shape.key_columns:
            self.add_under_key(found, f"_a.update({found})")
        else:
            self.line(f"_new.update({found})")


@define
class RestoringWriter(SavingWriter):
    """The same with suspects as Δ; a key is left when all its facts are saved."""

    left: bool = False
    delta_key: str = ""

    def values_of_key(self, container: Values, arg: p.Term, atom: Atom) -> None:
        if self.grouped and arg == self.set_variable and self.loops == 1:
            self.left = True
            self.line(f"_a = _new.get({self.delta_key})")
            self.line(f"_left = _set({container}) if _a is None else {container} - _a[0]")
            self.line(f"if not _left: {self.skip()}")
            container = local("_left")
        super().values_of_key(container, arg, atom)

    def delta_atom(self, atom: Atom) -> None:
        for column in self.shapes[atom.relation].key_columns:
            key = atom.args[column]
            if isinstance(key, Variable):
                self.delta_key = self.name(key)
        super().delta_atom(atom)

    def emit(self, head: Atom, shape: Shape) -> None:
        super().emit(head, shape)
        if self.left and not self.pending:
            self.line("_left -= _n")
            if self.loops > 1:
                self.line("if not _left: break")


@define
class SuspectWriter(WitnessWriter):
    """`_new` collects the facts whose witness this derivation is."""

    def emit(self, head: Atom, shape: Shape) -> None:
        if self.set_variable is not None and not self.set_in_head:
            raise NoSet
        proofs = self.index(PROOFS_OF + head.relation, (), ())
        if shape.key_columns:
            self.key_line(head, shape)
            self.line(f"_p = {proofs}.get(_k)")
            self.line(f"if _p is None: {self.skip()}")
            proofs = "_p"
        if self.grouped:
            self.take_group(head, shape, self.witness())
            return
        witness = self.witness()
        self.line(f"_g = {proofs}.get")
        if self.set_in_head:
            self.line(f"_r = {self.facts(head, shape)}")
            self.line(f"_n = {{_x for _x in _r if _g(_x) == {witness}}}")
            self.line(f"if not _n: {self.skip()}")
        else:
            self.line(f"_v = {self.fact(head, shape)}")
            self.line(f"if _g(_v) != {witness}: {self.skip()}")
            self.line("_n = {_v}")
        self.collect(shape)

    def take_group(self, head: Atom, shape: Shape, witness: str) -> None:
        """Move suspects from their witness to `_new`: {key: (values, {witness: values})}."""
        values = self.single_set() if self.set_in_head else f"{{{self.fact(head, shape)}}}"
        self.line(f"_g = _p.get({witness})")
        self.line(f"if _g is None: {self.skip()}")
        self.line(f"_n = _g & {values}")
        self.line(f"if not _n: {self.skip()}")
        self.line("_g -= _n")
        self.line(f"if not _g: del _p[{witness}]")
        self.add_to_group(witness, are_new=True)

    def collect(self, shape: Shape) -> None:
        if shape.key_columns:
            self.add_under_key("_n", "_a |= _n")
        else:
            self.line("_new |= _n")

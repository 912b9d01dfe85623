"""A rule as a plan: atoms in the chosen order, everything else as soon as it is ready.

An atom whose columns all have values is a test; one with some is a probe; one with none is a scan.
A variable that stands twice in an atom gets a second name, and a comparison.  An equality that
gives a variable its value is a `Let`.

What may fail (`core.program.bodies`) comes last, when no other literal excludes the choice of
facts.  Where it fails nevertheless, Python evaluates the rule: it knows what a failure means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from attrs import evolve

from everlog.core.codegen.join_estimates import Estimate
from everlog.core.ir.operations import (
    Add,
    Compare,
    Count,
    Exists,
    Fold,
    Let,
    Loop,
    Operand,
    Operation,
    Plan,
    Probe,
    Scan,
    Source,
    Step,
    Unknown,
    Version,
)
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Range,
    Relation,
    Rule,
    Term,
    Variable,
    Wildcard,
    variables_of,
)
from everlog.core.program.bodies import may_fail, rule_may_fail, variables_of_literal

# The order in which to join the atoms and ranges of a body whose `bound` variables have values.
Order: TypeAlias = Callable[[Sequence[Literal], Set[Variable], int | None], Sequence[Estimate]]


def lower(
    rule: Rule,
    order: Order,
    relations: Mapping[str, Relation],
    recursive: Sequence[int],
    delta: int | None,
) -> Plan:
    """The plan of a rule; `order` orders its atoms, and those of its aggregates.

    The atom at `delta` reads Δ.  Of the other `recursive` atoms, those before it read what is old
    and those after it everything, so no derivation is found twice.
    """
    body = _Body(rule.body, relations, order)
    if delta is not None:
        body.versions = {place: Version.OLD if place < delta else Version.ALL for place in recursive}
        body.versions[delta] = Version.DELTA
    body.literals(delta)
    body.head(rule)
    return Plan(rule, delta, tuple(body.operations), tuple(body.steps))


def lower_living(rule: Rule, order: Order, relations: Mapping[str, Relation], delta: int | None) -> Plan:
    """The plan of a rule that finds each of its derivations, not only each fact.

    The atom at `delta` is read from Δ, first.  Of all others, negated ones too, those before it
    read what is old and those after it everything.  No literal may fail.
    """
    body = _Body(rule.body, relations, order)
    if delta is not None:
        reads = [n for n, literal in enumerate(rule.body) if isinstance(literal, Atom | Negation)]
        body.versions = {place: Version.OLD if place < delta else Version.ALL for place in reads}
        body.change(delta)
    body.literals(delta, follows=True)
    args = tuple(map(body.operand, rule.head.args))
    body.operations.append(Add(rule.head.relation, args))
    return Plan(rule, delta, tuple(body.operations))


class _Body:
    """A body under construction: that of a rule, or of an aggregate."""

    def __init__(
        self,
        body: Sequence[Literal],
        relations: Mapping[str, Relation],
        order: Order,
        bound: Set[Variable] = frozenset(),
    ) -> None:
        self.body, self.relations, self.order = body, relations, order
        self.versions: dict[int, Version] = {}
        self.waiting: list[Literal] = [x for x in body if not isinstance(x, Atom | Range)]
        self.operations: list[Operation] = []
        self.steps: list[Step] = []
        self.bound: set[Variable] = set(bound)
        self.temporaries = 0

    def literals(self, delta: int | None = None, follows: bool = False) -> None:
        """Atoms and ranges in order, conditions as soon as they are ready; what may fail last.

        `follows`: the atom at `delta` was read already.
        """
        self.ready_conditions()
        for expected in self.order(self.body, frozenset() if follows else self.bound, delta):
            if follows and expected.position == delta:
                continue
            literal = self.body[expected.position]
            self.wanted_conditions(literal)
            before = len(self.operations)
            if isinstance(literal, Range):
                self.range(literal)
            else:
                self.atom(expected.position)
            reading = next(x for x in self.operations[before:] if isinstance(x, Scan | Probe | Exists | Count))
            self.steps.append(Step(literal, reading, expected.tried, expected.rows, expected.bound))
            self.ready_conditions()
        self.ready_conditions(last=True)
        assert not self.waiting, f"not grounded: {self.body}"

    def temporary(self, like: str = "") -> Variable:
        """A variable of ours: its name begins with `%`, which none in a text does."""
        self.temporaries += 1
        return Variable(f"%{like}{self.temporaries}")

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def operand(self, term: Term) -> Operand:
        """The value of a term, computed first if need be."""
        match term:
            case Call():
                target = self.temporary()
                self.let(target, term)
                return target
            case Variable() | Constant():
                return term
            case _:
                raise AssertionError(f"no value: {term}")

    def let(self, target: Variable, term: Term, kind: Kind | None = None) -> None:
        match term:
            case Call(name, args, operand, result):
                values = tuple(self.operand(arg) for arg in args)
                self.operations.append(Let(target, name, values, operand, result))
            case _:
                assert kind is not None
                self.operations.append(Let(target, "", (self.operand(term),), kind, kind))
        self.bound.add(target)

    def has_value(self, term: Term) -> bool:
        return self.bound.issuperset(variables_of(term))

    # ── atoms ────────────────────────────────────────────────────────────────────────────────

    def source(self, atom: Atom, version: Version = Version.ALL) -> Source:
        return Source(atom.relation, len(atom.args), version)

    def atom(self, place: int) -> None:
        atom = self.body[place]
        assert isinstance(atom, Atom)
        source = self.source(atom, self.versions.get(place, Version.ALL))
        key = [(column, arg) for column, arg in enumerate(atom.args) if self._is_known(arg)]
        binds: dict[int, Variable] = {}
        again: list[Compare] = []
        columns = self.relations[atom.relation].columns
        for column, arg in enumerate(atom.args):
            if isinstance(arg, Variable) and arg not in self.bound:
                if arg in binds.values():
                    binds[column] = self.temporary(arg.name)
                    again.append(Compare("=", arg, binds[column], columns[column].kind))
                else:
                    binds[column] = arg
        self._read(source, tuple((c, self.operand(a)) for c, a in key), tuple(binds.items()))
        self.bound.update(binds.values())
        self.operations += again

    def change(self, place: int) -> None:
        """Read an atom from Δ row by row; its constants become comparisons."""
        atom = self.body[place]
        assert isinstance(atom, Atom)
        binds: dict[int, Variable] = {}
        again: list[Compare] = []
        for column, arg in enumerate(atom.args):
            if isinstance(arg, Variable) and arg not in binds.values():
                binds[column] = arg
            elif isinstance(arg, Variable | Constant):
                binds[column] = self.temporary()
                again.append(Compare("=", arg, binds[column], self.relations[atom.relation].columns[column].kind))
        self.operations.append(Scan(self.source(atom, Version.DELTA), tuple(binds.items())))
        self.bound.update(binds.values())
        self.operations += again

    def _is_known(self, arg: Term) -> bool:
        return isinstance(arg, Constant) or arg in self.bound

    def _read(
        self, source: Source, key: tuple[tuple[int, Operand], ...], binds: tuple[tuple[int, Variable], ...]
    ) -> None:
        if source.version is Version.DELTA and not key:
            self.operations.append(Scan(source, binds))
        elif not binds:
            self.operations.append(Exists(source, key))
        elif key:
            self.operations.append(Probe(source, key, binds))
        else:
            self.operations.append(Scan(source, binds))

    # ── conditions ───────────────────────────────────────────────────────────────────────────

    def ready_conditions(self, last: bool = False) -> None:
        """Every condition whose variables have values; equalities give further ones.

        What may fail waits until it is `last`, and then for all others.
        """
        found = True
        while found:
            found = False
            for literal in sorted(self.waiting, key=may_fail):
                if (last or not may_fail(literal)) and self._condition(literal):
                    self.waiting = [x for x in self.waiting if x is not literal]
                    found = True
                    if may_fail(literal):
                        break

    def wanted_conditions(self, literal: Literal) -> None:
        """Conditions that may fail, but give a value by which an atom is looked up."""
        wanted = set(variables_of_literal(literal)).difference(self.bound)
        for one in list(self.waiting):
            if isinstance(one, Comparison) and wanted.intersection((one.left, one.right)) and self._condition(one):
                self.waiting = [x for x in self.waiting if x is not one]
        if isinstance(literal, Range) and not all(map(self.has_value, literal.bounds)):
            self.ready_conditions(last=True)

    def _condition(self, literal: Literal) -> bool:
        """Write a condition if it is ready."""
        match literal:
            case Negation(atom):
                place = next(n for n, other in enumerate(self.body) if other is literal)
                return self._negation(atom, self.versions.get(place, Version.ALL))
            case Comparison(op, left, right, kind):
                return self._comparison(op, left, right, kind)
            case Aggregate():
                return self._aggregate(literal)
            case _:
                raise AssertionError(f"not lowered: {literal}")

    def _negation(self, atom: Atom, version: Version) -> bool:
        if not all(map(self.has_value, atom.args)):
            return False
        key = tuple((c, self.operand(a)) for c, a in enumerate(atom.args) if not isinstance(a, Wildcard))
        self.operations.append(Exists(self.source(atom, version), key, negated=True))
        return True

    def _comparison(self, op: str, left: Term, right: Term, kind: Kind) -> bool:
        if self.has_value(left) and self.has_value(right):
            self.operations.append(Compare(op, self.operand(left), self.operand(right), kind))
            return True
        for one, other in ((left, right), (right, left)):
            if op == "=" and isinstance(one, Variable) and one not in self.bound and self.has_value(other):
                self.let(one, other, kind)
                return True
        return False

    def _aggregate(self, literal: Aggregate) -> bool:
        if not self.bound.issuperset(literal.outer):
            return False
        inner = _Body(literal.body, self.relations, self.order, frozenset(literal.outer))
        inner.literals()
        value = None if literal.target is None else inner.operand(literal.target)
        kind = literal.kind if value is None else self._kind_of(value, literal)
        target = self.temporary(literal.result.name) if literal.result in self.bound else literal.result
        self.steps += [evolve(step, within=step.within + 1) for step in inner.steps]
        outer, body = literal.outer, tuple(inner.operations)
        self.operations.append(Fold(target, literal.op, value, outer, body, kind, literal.kind, literal.start))
        self._given(target, literal.result, literal.kind)
        return True

    def _kind_of(self, value: Operand, literal: Aggregate) -> Kind:
        """The kind of what an aggregate is of: `mean` and users' functions may give another one."""
        if isinstance(value, Constant):
            return value.kind
        if literal.op != "mean" and literal.start is None:
            return literal.kind
        if isinstance(literal.target, Call):
            return literal.target.kind
        assert isinstance(value, Variable)
        found = next((k for x in (*literal.body, *self.body) for k in self._kinds(x, value)), None)
        assert found is not None, f"no kind: {literal}"
        return found

    def _kinds(self, literal: Literal, variable: Variable) -> Iterator[Kind]:
        """The kinds that a literal gives to a variable: one or none."""
        match literal:
            case Atom(name, args):
                columns = self.relations[name].columns
                yield from (columns[place].kind for place, arg in enumerate(args) if arg == variable)
            case Comparison(_, left, right, kind) if variable in (left, right):
                yield kind
            case Aggregate(result=result, kind=kind) | Range(result=result, kind=kind) if result == variable:
                yield kind

    def _given(self, target: Variable, result: Variable, kind: Kind) -> None:
        """The result has a value; if it had one before, both are the same."""
        self.bound.add(target)
        if target != result:
            self.operations.append(Compare("=", result, target, kind))

    def range(self, literal: Range) -> None:
        bounds = tuple(map(self.operand, literal.bounds))
        self.operations.append(Count(literal.result, bounds, literal.kind, literal.result in self.bound))
        self.bound.add(literal.result)

    # ── the head ─────────────────────────────────────────────────────────────────────────────

    def head(self, rule: Rule) -> None:
        """Derive the fact; where one row of a loop is enough, the loop ends with it."""
        head = rule.head
        needless = [] if rule_may_fail(rule) else self._needless_loops(head)
        if needless and not any(isinstance(arg, Call) for arg in head.args):
            place = next(n for n, operation in enumerate(self.operations) if operation is needless[0])
            self.operations.insert(place, Unknown(head.relation, tuple(map(self.operand, head.args))))
        args = tuple(map(self.operand, head.args))
        self.operations.append(Add(head.relation, args, len(needless)))

    def _needless_loops(self, head: Atom) -> list[Loop]:
        """The innermost loops that give no value to the head: one row of each is enough."""
        needed = {variable for arg in head.args for variable in variables_of(arg)}
        loops: list[Loop] = []
        for operation in reversed(self.operations):
            match operation:
                case Let(target=target, args=args) if target in needed:
                    needed.update(arg for arg in args if isinstance(arg, Variable))
                case Fold(target=target, outer=outer) if target in needed:
                    needed.update(outer)
                case Count(target=target, is_test=False):
                    if target in needed:
                        break
                    loops.insert(0, operation)
                case Scan(binds=binds) | Probe(binds=binds):
                    if any(variable in needed for _, variable in binds):
                        break
                    loops.insert(0, operation)
        return loops

"""A rule as a plan: atoms in the chosen order, everything else as soon as it is ready.

An atom whose columns all have values is a test; one with some is a probe; one with none is a scan.
A variable that stands twice in an atom gets a second name, and a comparison.  An equality that
gives a variable its value is a `Let`.

Only for rules that cannot fail (`core.program.bodies`): then the order of tests does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlog.core.ir.operations import (
    Add,
    Compare,
    Exists,
    Let,
    Operand,
    Operation,
    Plan,
    Probe,
    Scan,
    Source,
    Unknown,
    Version,
)
from everlog.core.program import (
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Relation,
    Rule,
    Term,
    Variable,
    Wildcard,
    variables_of,
)


def lower(
    rule: Rule,
    order: Sequence[int],
    relations: Mapping[str, Relation],
    recursive: Sequence[int],
    delta: int | None,
) -> Plan:
    """The plan of a rule whose atoms are joined in `order`.

    The atom at `delta` reads Δ.  Of the other `recursive` atoms, those before it read what is old
    and those after it everything, so no derivation is found twice.
    """
    body = _Body(rule, relations)
    if delta is not None:
        body.versions = {place: Version.OLD if place < delta else Version.ALL for place in recursive}
        body.versions[delta] = Version.DELTA
    body.ready_conditions()
    for place in order:
        body.atom(place)
        body.ready_conditions()
    assert not body.waiting, f"not grounded: {rule}"
    body.head()
    return Plan(rule, delta, tuple(body.operations))


def lower_living(rule: Rule, order: Sequence[int], relations: Mapping[str, Relation], delta: int | None) -> Plan:
    """The plan of a rule that finds each of its derivations, not only each fact.

    The atom at `delta` is read from Δ, first.  Of all others, negated ones too, those before it
    read what is old and those after it everything.
    """
    body = _Body(rule, relations, every=True)
    if delta is not None:
        reads = [n for n, literal in enumerate(rule.body) if isinstance(literal, Atom | Negation)]
        body.versions = {place: Version.OLD if place < delta else Version.ALL for place in reads}
        body.change(delta)
    body.ready_conditions()
    for place in order:
        if place != delta:
            body.atom(place)
            body.ready_conditions()
    assert not body.waiting, f"not grounded: {rule}"
    body.head()
    return Plan(rule, delta, tuple(body.operations))


class _Body:
    """A rule under construction; `every`: each derivation is wanted, not only each fact."""

    def __init__(self, rule: Rule, relations: Mapping[str, Relation], every: bool = False) -> None:
        self.rule, self.relations, self.every = rule, relations, every
        self.versions: dict[int, Version] = {}
        self.waiting: list[Literal] = [x for x in rule.body if not isinstance(x, Atom)]
        self.operations: list[Operation] = []
        self.bound: set[Variable] = set()
        self.temporaries = 0

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
        atom = self.rule.body[place]
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
        atom = self.rule.body[place]
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

    def ready_conditions(self) -> None:
        """Every condition whose variables have values; equalities give further ones."""
        found = True
        while found:
            found = False
            for literal in list(self.waiting):
                if self._condition(literal):
                    self.waiting = [x for x in self.waiting if x is not literal]
                    found = True

    def _condition(self, literal: Literal) -> bool:
        """Write a condition if it is ready."""
        match literal:
            case Negation(atom):
                place = next(n for n, other in enumerate(self.rule.body) if other is literal)
                return self._negation(atom, self.versions.get(place, Version.ALL))
            case Comparison(op, left, right, kind):
                return self._comparison(op, left, right, kind)
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

    # ── the head ─────────────────────────────────────────────────────────────────────────────

    def head(self) -> None:
        head = self.rule.head
        needless = [] if self.every else self._needless_loops()
        if needless and not any(isinstance(arg, Call) for arg in head.args):
            place = next(n for n, operation in enumerate(self.operations) if operation is needless[0])
            self.operations.insert(place, Unknown(head.relation, tuple(map(self.operand, head.args))))
        args = tuple(map(self.operand, head.args))
        self.operations.append(Add(head.relation, args, len(needless)))

    def _needless_loops(self) -> list[Scan | Probe]:
        """The innermost loops that give no value to the head: one row of each is enough."""
        needed = {variable for arg in self.rule.head.args for variable in variables_of(arg)}
        loops: list[Scan | Probe] = []
        for operation in reversed(self.operations):
            match operation:
                case Let(target=target, args=args) if target in needed:
                    needed.update(arg for arg in args if isinstance(arg, Variable))
                case Scan(binds=binds) | Probe(binds=binds):
                    if any(variable in needed for _, variable in binds):
                        break
                    loops.insert(0, operation)
        return loops

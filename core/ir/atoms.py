"""One atom of a body: the loop over its matches, or the set of values that it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from everlog.core import program as p
from everlog.core.ir import set_operations as ir
from everlog.core.ir.agenda import Agenda, Offer
from everlog.core.ir.operations import Binds, Exists, Index, Let, Probe, Scan, Source, Version
from everlog.core.ir.set_operations import Local, SetOperation, Sets
from everlog.core.ir.uses import Action, Use
from everlog.core.program import Atom, Constant, Rule, Term, Variable
from everlog.core.storage.shape import Columns, Shape
from everlog.core.storage.table_shapes import PairShape
from everlog.core.storage.table_statistics import Statistics


class NoSet(Exception):
    """The set variable that was tried cannot be one in this order of the body."""


@define(slots=False)
class AtomLowering:
    """Lowers one atom at a time; `late` is an atom that reads Δ in its turn."""

    shapes: Mapping[str, Shape]
    statistics: Mapping[str, Statistics]
    use: Use
    set_variable: Variable | None
    rule: Rule
    late: Atom | None = field(default=None, kw_only=True)
    turned: bool = field(default=False, kw_only=True)  # binary relations are run through by value
    operations: list[SetOperation] = field(factory=list, init=False)
    bound: dict[Variable, None] = field(factory=dict, init=False)
    sets: Sets = field(default=Sets(), init=False)
    temporaries: int = field(default=0, init=False)
    agenda: Agenda = field(init=False)
    from_delta: bool = field(default=False, init=False)
    single: bool = field(default=False, init=False)  # one atom is all that the body has
    risky: bool = field(default=False, init=False)  # a condition may fail

    # ── names and variables ──────────────────────────────────────────────────────────────────

    def local(self, prefix: str) -> Local:
        self.temporaries += 1
        return Local(f"{prefix}{self.temporaries}")

    def temporary(self) -> Variable:
        """A variable of ours: its name begins with `%`, which none in a text does."""
        self.temporaries += 1
        variable = Variable(f"%t{self.temporaries}")
        self.bind(variable)
        return variable

    def bind(self, variable: Variable) -> None:
        self.bound[variable] = None

    def is_bound(self, terms: Sequence[Term]) -> bool:
        return all(v in self.bound for t in terms for v in p.variables_of(t))

    def is_new(self, arg: Term) -> bool:
        return isinstance(arg, Variable) and arg not in self.bound

    def fresh(self, arg: Term) -> tuple[Variable, list[SetOperation]]:
        """A variable to bind for an argument; where that has a value, a test that it fits."""
        if isinstance(arg, Variable) and arg not in self.bound:
            self.bind(arg)
            return arg, []
        target = self.temporary()
        return target, [ir.Same(target, arg)]

    def bindings(self, columns: Sequence[int], args: Sequence[Term]) -> tuple[Binds, list[SetOperation]]:
        """The variables that columns bind, and the tests of those that have values already."""
        binds: list[tuple[int, Variable]] = []
        tests: list[SetOperation] = []
        for column in columns:
            if not isinstance(args[column], p.Wildcard):
                variable, again = self.fresh(args[column])
                binds.append((column, variable))
                tests += again
        return tuple(binds), tests

    def columns_of(self, atom: Atom) -> list[tuple[int, Term]]:
        return [(c, a) for c, a in enumerate(atom.args) if not isinstance(a, p.Wildcard)]

    def is_pair(self, atom: Atom) -> bool:
        return isinstance(self.shapes[atom.relation], PairShape)

    # ── sources ──────────────────────────────────────────────────────────────────────────────

    def source(self, atom: Atom) -> Source:
        version = Version.DELTA if atom is self.late else Version.ALL
        return Source(atom.relation, len(atom.args), version)

    def index(self, atom: Atom, key: Columns, rest: Columns) -> Index:
        """An index that an atom is read through; Δ has no other one than its facts."""
        if atom is self.late:
            shape = self.shapes[atom.relation]
            if not shape.key_columns or not shape.is_stored(key, rest):
                raise NoSet
        return Index(self.source(atom), key, rest)

    def leading(self, variable: Variable) -> tuple[Index, ...]:
        """The indexes of open atoms that a variable alone leads into, at most two."""
        found: list[Index] = []
        for position in self.agenda.positions(variable):
            atom = self.agenda.open[position]
            if not isinstance(atom, Atom) or atom.args.count(variable) != 1 or len(found) > 1:
                continue
            column = atom.args.index(variable)
            others = [c for c, _ in self.columns_of(atom) if c != column]
            if len(others) == 1 and self.is_new(atom.args[others[0]]):
                found.append(self.index(atom, (column,), (others[0],)))
        return tuple(found)

    def cut(self, variable: Variable) -> tuple[Index, ...]:
        """The indexes to which the values of a loop are cut down: others match nothing later."""
        if self.use.action is Action.YIELD:
            return ()
        return self.leading(variable)

    # ── Δ ────────────────────────────────────────────────────────────────────────────────────

    def delta_atom(self, atom: Atom) -> None:
        """Read an atom from Δ; the value of a group may be a failure."""
        if atom.relation not in self.use.failing:
            self.change(atom)
            return
        found, result = Variable("%value"), atom.args[-1]
        self.change(Atom(atom.relation, (*atom.args[:-1], found)))
        self.operations.append(ir.Broken(found))
        assert isinstance(result, Variable)
        if result in self.bound:
            self.operations.append(ir.Same(found, result))
        else:
            self.operations.append(Let(result, "", (found,), p.Kind.NUMBER, p.Kind.NUMBER))
            self.bind(result)

    def change(self, atom: Atom) -> None:
        """Read an atom from Δ, in the form of its relation, and test what is not new."""
        source, delta = Source(atom.relation, len(atom.args), Version.DELTA), Local("_delta")
        shape = self.shapes[atom.relation]
        if self.use.row_given:
            binds, again = self.bindings(range(len(atom.args)), atom.args)
            self.operations += [ir.Row(source, binds), *again]
        elif self.is_pair(atom):
            self.change_of_pairs(atom, source)
        elif not atom.args:
            self.operations.append(ir.Filled(delta))
        elif len(atom.args) == 1 and not self.is_new(atom.args[0]):
            self.values(delta, atom.args[0])
        elif self.set_variable in atom.args:
            if len(atom.args) > 1:
                raise NoSet
            self.sets = Sets((delta,))
        else:
            self.scan_columns(source, shape.fact_columns, atom.args)

    def change_of_pairs(self, atom: Atom, source: Source) -> None:
        shape = self.shapes[atom.relation]
        (key,), (value,) = shape.key_columns, shape.fact_columns
        if atom.args[key] == self.set_variable:
            raise NoSet
        index, name = Index(source, (key,), (value,)), self.local("_values")
        if isinstance(atom.args[key], Constant) or atom.args[key] in self.bound:
            self.operations.append(ir.Entry(name, index, ((key, atom.args[key]),)))
        else:
            self.keys(index, atom, name)
        if (self.risky and self.from_delta) or self.use.row_by_row:
            self.values(name, atom.args[value])
        else:
            self.values_of_key(name, atom.args[value], atom)

    def keys(self, index: Index, atom: Atom, values: Local) -> None:
        """A loop over the keys of a binary relation, without those that a further atom lacks."""
        binds, again = self.bindings(index.key, atom.args)
        self.operations.append(ir.Keys(index, binds, values))
        self.operations += again
        for _, variable in binds:
            if variable in atom.args:
                self.operations += [ir.Leads(variable, other) for other in self.leading(variable)]

    def values_of_key(self, values: Local, arg: Term, atom: Atom) -> None:
        """The values of a key: a loop over them waits until nothing better is to be done."""
        if self.is_new(arg) and arg != self.set_variable:
            assert isinstance(arg, Variable)
            known, key = self.statistics.get(atom.relation), self.shapes[atom.relation].key_columns
            size = 10.0 if known is None else known.rows / known.distinct(key)
            self.agenda.add(Offer(arg, values, size))
        else:
            self.values(values, arg)

    def values(self, values: Local, arg: Term) -> None:
        """One column whose values are a set."""
        if arg == self.set_variable:
            self.sets = Sets((*self.sets.members, values), self.sets.dropped)
        elif isinstance(arg, p.Wildcard):
            self.operations.append(ir.Filled(values))
        elif isinstance(arg, Constant) or arg in self.bound:
            self.operations.append(ir.Member(arg, values))
        else:
            assert isinstance(arg, Variable)
            self.operations.append(ir.Each((arg,), values, self.cut(arg)))
            self.bind(arg)

    # ── whole relations ──────────────────────────────────────────────────────────────────────

    def atom(self, atom: Atom) -> None:
        """Join with a relation through the index that its bound columns ask for."""
        key: list[int] = []
        rest: list[int] = []
        set_column: int | None = None
        for column, arg in self.columns_of(atom):
            if arg == self.set_variable:
                set_column = column
            elif isinstance(arg, Constant) or arg in self.bound:
                key.append(column)
            else:
                rest.append(column)
        if set_column is not None:
            self.set_atom(atom, key, rest, set_column)
        elif key and rest:
            self.probe(atom, key, rest)
        elif rest:
            self.scan(atom, rest)
        else:
            self.exists(atom)

    def exists(self, atom: Atom, negated: bool = False) -> None:
        key = tuple(self.columns_of(atom))
        if atom is self.late and not (self.is_pair(atom) and len(key) == 2):
            raise NoSet
        self.operations.append(Exists(self.source(atom), key, negated))

    def probe(self, atom: Atom, key: Sequence[int], rest: Sequence[int]) -> None:
        self.index(atom, tuple(key), tuple(rest))
        given = tuple((column, atom.args[column]) for column in key)
        cut = self.cut_of(atom, rest)
        binds, again = self.bindings(rest, atom.args)
        self.operations.append(Probe(self.source(atom), given, binds, cut))
        self.operations += again

    def cut_of(self, atom: Atom, rest: Sequence[int]) -> tuple[Index, ...]:
        """The cut of a loop over one column."""
        arg = atom.args[rest[0]]
        return self.cut(arg) if len(rest) == 1 and isinstance(arg, Variable) else ()

    def scan(self, atom: Atom, rest: list[int]) -> None:
        """A loop over a whole relation, as it is stored if that is all it needs."""
        whole = len(rest) == len(atom.args) or self.use.lazy
        shape = self.shapes[atom.relation]
        if whole and self.is_pair(atom):
            (key,), (value,) = shape.key_columns, shape.fact_columns
            pair = (value, key) if self.turned else (key, value)
            values = self.local("_values")
            self.keys(self.index(atom, pair[:1], pair[1:]), atom, values)
            self.values_of_key(values, atom.args[pair[1]], atom)
            return
        columns = shape.key_columns + shape.fact_columns if whole else tuple(rest)
        self.index(atom, (), columns)
        self.scan_columns(self.source(atom), columns, atom.args)

    def scan_columns(self, source: Source, columns: Columns, args: Sequence[Term]) -> None:
        arg = args[columns[0]]
        cut = self.cut(arg) if len(columns) == 1 and isinstance(arg, Variable) else ()
        binds, again = self.bindings(columns, args)
        self.operations.append(Scan(source, binds, columns, cut))
        self.operations += again

    def set_atom(self, atom: Atom, key: Sequence[int], rest: Sequence[int], column: int) -> None:
        """The set of values of the set variable, for what the other columns hold.

        In a living program sets are refused that need a walk through a relation, or an index for
        one walk only.
        """
        if rest and not key and self.use.living:
            stored = self.shapes[atom.relation].is_stored(tuple(rest), (column,))
            if self.from_delta or (self.single and not stored):
                raise NoSet
        name = self.local("_S")
        if not rest:
            given = tuple((c, atom.args[c]) for c in key)
            self.operations.append(ir.Entry(name, self.index(atom, tuple(key), (column,)), given))
        elif key or self.sets.members:  # only the set leads here: through its values there are fewer matches
            raise NoSet
        else:
            index = self.index(atom, tuple(rest), (column,))
            binds, again = self.bindings(rest, atom.args)
            self.operations.append(ir.Keys(index, binds, name))
            self.operations += again
        self.sets = Sets((*self.sets.members, name), self.sets.dropped)

"""Nested auxiliary relations as flat ones: Theorem 9, by p and q.

    type            stored as                  p
    b               b                          o
    s1 * ... * sn   the columns of all         the columns of all parts, in every combination
    {s}             num * num * columns of s   (1, rank of o in O, columns of o) for each o in O,
                                               or (0, 0, 0...) if O is empty

q is the inverse: the rows with one number give one element of a set.  The columns outside a nested
set are the same in all of them, so q takes them from any row; the paper uses singletons for this.
Both are terms of the calculus, so the flat system is one in the sense of Section 3, with orders on
the constants for the ranks.

Only stored relations become flat; terms may still use nested sets in between.

Source: Libkin and Wong, Theorem 9 with its proof, Proposition 11.
"""

from __future__ import annotations

from everlog.ies.encodings.coding import Coded, Note, coded_system, pattern_of, tuple_of
from everlog.ies.encodings.orders import Names, Ordering
from everlog.ies.nrc.terms import (
    Bind,
    Comprehension,
    Const,
    Empty,
    Equal,
    Generator,
    If,
    Let,
    Parts,
    Project,
    Qualifier,
    Single,
    Term,
    Tuple,
    Var,
)
from everlog.ies.nrc.types import NUM, Base, Product, SetOf, Type, height
from everlog.ies.system import Stored, System

NOTE = Note(
    "with flat auxiliary relations",
    "flat by Theorem 9",
    "stored flat, with a row for each way to take an element of each nested set, beside orders of n(n + 1)/2 rows",
    "reading everything that is stored, and comparing the elements of each set that is written, each with each",
)


def flatten(system: System) -> System:
    """The same answers with flat auxiliary relations.

    A system that has no nested ones is returned unchanged.
    """
    nested = [stored for stored in system.auxiliaries if height(stored.type) > 1]
    if not nested:
        return system

    def codes(original: System, names: Names, ordering: Ordering) -> list[Coded]:
        coder = Flat(names, ordering)
        return [_coded(relation, names, coder) for relation in nested]

    return coded_system(system, nested, codes, "flatten", NOTE)


def _coded(relation: Stored, names: Names, coder: Flat) -> Coded:
    name = names.new(f"{relation.name}_flat")
    meaning = f": {relation.meaning}" if relation.meaning else ""
    stored = Stored(
        name,
        SetOf(Product(columns_of(relation.type))),
        f"{relation.name} as rows, each set numbered{meaning}",
    )

    def encode(value: Term) -> dict[str, Term]:
        return {name: coder.p(relation.type, value)}

    return Coded(relation, (stored,), coder.q(relation.type, Var(name)), encode)


def columns_of(type_: Type) -> tuple[Base, ...]:
    """The columns that store a value of a type.

    >>> " ".join(map(str, columns_of(SetOf(Product((Base("node"), SetOf(Base("node"))))))))
    'num num node num num node'
    """
    match type_:
        case Base():
            return (type_,)
        case Product(parts):
            return tuple(column for part in parts for column in columns_of(part))
        case SetOf(element):
            return (NUM, NUM, *columns_of(element))


def _plain(type_: Type) -> list[bool]:
    """For each column of a value, whether it is outside all nested sets."""
    match type_:
        case Base():
            return [True]
        case Product(parts):
            return [plain for part in parts for plain in _plain(part)]
        case SetOf():
            return [False] * len(columns_of(type_))


def default(base: Base) -> Const:
    """The value in the columns of an empty set."""
    match base:
        case Base("bool"):
            return Const(True)
        case Base("num"):
            return Const(0)
        case _:
            return Const("")


class Flat:
    """The terms of p and q."""

    def __init__(self, names: Names, ordering: Ordering) -> None:
        self.names, self.ordering = names, ordering

    def p(self, type_: SetOf, value: Term) -> Term:
        """The rows that store a set; `value` is repeated, so it should be short."""
        element = type_.element
        nothing = tuple(default(column) for column in columns_of(element))
        item, rank = self.names.new("item"), self.names.new("rank_of")
        qualifiers, columns = self._spread(element, Var(item))
        ranked = Generator(Parts((Bind(item), Bind(rank))), self.ordering.rank(element, value))
        rows = Comprehension(Tuple((Const(1), Var(rank), *columns)), (ranked, *qualifiers))
        empty = Single(Tuple((Const(0), Const(0), *nothing)))
        return If(Equal(value, Empty(element)), empty, rows)

    def _spread(self, type_: Type, value: Term) -> tuple[list[Qualifier], list[Term]]:
        """Qualifiers that run through the rows of a value, and the columns of a row."""
        match type_:
            case Base():
                return [], [value]
            case Product(parts):
                qualifiers: list[Qualifier] = []
                columns: list[Term] = []
                for place, part in enumerate(parts, 1):
                    more, further = self._spread(part, Project(value, place))
                    qualifiers += more
                    columns += further
                return qualifiers, columns
            case SetOf():
                variables = [self.names.new("c") for _ in columns_of(type_)]
                return [Generator(pattern_of(variables), self.p(type_, value))], [Var(v) for v in variables]

    def q(self, type_: SetOf, rows: Term) -> Term:
        """The set that rows store; `rows` is repeated, so it should be short."""
        tag, number = self.names.new("d"), self.names.new("d")
        inside = [self.names.new("d") if plain else "_" for plain in _plain(type_.element)]
        value = self._built(type_.element, rows, number, inside, 0, len(inside))
        return Comprehension(
            value, (Generator(pattern_of([tag, number, *inside]), rows), Equal(Var(tag), Const(1)))
        )

    def _built(self, type_: Type, rows: Term, number: str, columns: list[str], start: int, stop: int) -> Term:
        """A part of an element, from columns start to stop of its rows.

        A nested set is built from all of the element's rows, any other part from one.
        """
        match type_:
            case Base():
                return Var(columns[start])
            case Product(parts):
                built: list[Term] = []
                for part in parts:
                    width = len(columns_of(part))
                    built.append(self._built(part, rows, number, columns, start, start + width))
                    start += width
                return Tuple(tuple(built))
            case SetOf():
                # let G = {columns | (1, j, columns) in rows, j = number} in q(G)
                tag, other, group = self.names.new("d"), self.names.new("d"), self.names.new("g")
                mine = [self.names.new("d") if start <= place < stop else "_" for place in range(len(columns))]
                taken = Comprehension(
                    tuple_of([Var(name) for name in mine if name != "_"]),
                    (
                        Generator(pattern_of([tag, other, *mine]), rows),
                        Equal(Var(tag), Const(1)),
                        Equal(Var(other), Var(number)),
                    ),
                )
                return Let(Bind(group), taken, self.q(type_, Var(group)))

"""A linear order on every type, from maintained orders on base types, and ranks.

The calculus has only equality on a named base type.  A system can maintain an order on its
constants in a binary auxiliary relation.  The relation includes the diagonal, so it also lists the
constants; a new constant goes to the end.  Numbers have their own order, false comes before true,
tuples are compared from left to right, and of two sets the smaller is the one that lacks the
greatest element in which they differ.

Source: Libkin and Wong, Proposition 8, and `rank` after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import count

from everlog.ies.nrc.terms import (
    And,
    BigUnion,
    Bind,
    Call,
    Comprehension,
    Const,
    Definition,
    Equal,
    Exists,
    ForAll,
    Generator,
    If,
    In,
    Less,
    Not,
    Or,
    Parts,
    Project,
    Single,
    SumOf,
    Term,
    Tuple,
    Union,
    Var,
)
from everlog.ies.nrc.types import Base, Product, SetOf, Type
from everlog.ies.nrc.walk import finite_set

PLAIN = frozenset({"num", "bool"})  # base types whose order is known


class Names:
    """Generates unused names."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def new(self, wanted: str) -> str:
        """The given name, or that name with a number if it is taken.

        >>> names = Names({"x"})
        >>> names.new("x"), names.new("x"), names.new("y")
        ('x_2', 'x_3', 'y')
        """
        found = (
            wanted
            if wanted not in self.taken
            else next(name for n in count(2) if (name := f"{wanted}_{n}") not in self.taken)
        )
        self.taken.add(found)
        return found


class Ordering:
    """Terms that compare; the functions they call are collected in `definitions`.

    `orders` names, for each named base type, the variable that holds the order on its constants.
    """

    def __init__(self, orders: Mapping[str, str], names: Names) -> None:
        self.orders, self.names = dict(orders), names
        self.definitions: list[Definition] = []
        self._functions: dict[Type, str] = {}
        self._ranks: dict[Type, str] = {}

    def less(self, type_: Type, left: Term, right: Term) -> Term:
        """left < right."""
        match type_:
            case Base("num"):
                return Less(left, right)
            case Base("bool"):
                return And(Not(left), right)
            case Base(name):
                return And(Not(Equal(left, right)), In(Tuple((left, right)), Var(self.orders[name])))
            case _:
                return Call(self._function(type_), (left, right, *map(Var, self.orders.values())))

    def rank(self, type_: Type, of: Term) -> Term:
        """rank(of) : {type * num}: each element with the number of smaller ones."""
        if type_ not in self._ranks:
            # {(a, sum{| 1 | b in O, b < a |}) | a in O}
            rank = SumOf(Const(1), (Generator(Bind("b"), Var("O")), self.less(type_, Var("b"), Var("a"))))
            body = Comprehension(Tuple((Var("a"), rank)), (Generator(Bind("a"), Var("O")),))
            self._ranks[type_] = self.names.new("rank")
            self.definitions.append(Definition(self._ranks[type_], ("O", *self.orders.values()), body))
        return Call(self._ranks[type_], (of, *map(Var, self.orders.values())))

    # ── functions ────────────────────────────────────────────────────────────────────────────

    def _function(self, type_: Product | SetOf) -> str:
        if type_ not in self._functions:
            x, y = Var("x"), Var("y")
            match type_:
                case Product(parts):
                    body = self._lexicographic(parts, x, y)
                case SetOf(element):
                    # exists{ b in y, b not in x, all{ a in y or a < b | a in x } }
                    a, b = Var("a"), Var("b")
                    smaller = ForAll(Or(In(a, y), self.less(element, a, b)), (Generator(Bind("a"), x),))
                    body = Exists((Generator(Bind("b"), y), Not(In(b, x)), smaller))
            name = self.names.new("before")
            self._functions[type_] = name
            self.definitions.append(Definition(name, ("x", "y", *self.orders.values()), body))
        return self._functions[type_]

    def _lexicographic(self, parts: Sequence[Type], x: Term, y: Term) -> Term:
        *first, last = range(len(parts))
        body = self.less(parts[last], Project(x, last + 1), Project(y, last + 1))
        for place in reversed(first):
            left, right = Project(x, place + 1), Project(y, place + 1)
            body = Or(self.less(parts[place], left, right), And(Equal(left, right), body))
        return body


# ── maintained orders ────────────────────────────────────────────────────────────────────────────


def appended(order: Term, constant: Term) -> Term:
    """The order with a constant appended, unless present; repeats both terms."""
    # if (c, c) in L then L else L union {(c, c)} union {(x, c) | (x, y) in L, x = y}
    both = Tuple((constant, constant))
    others = Comprehension(
        Tuple((Var("x_"), constant)),
        (Generator(Parts((Bind("x_"), Bind("y_"))), order), Equal(Var("x_"), Var("y_"))),
    )
    return If(In(both, order), order, Union(Union(order, Single(both)), others))


def restricted(order: Term, active: Term) -> Term:
    """The order restricted to the constants in `active`."""
    pair = Tuple((Var("x_"), Var("y_")))
    return Comprehension(
        pair, (Generator(Parts((Bind("x_"), Bind("y_"))), order), In(Var("x_"), active), In(Var("y_"), active))
    )


def chain(constants: Sequence[Term]) -> Term:
    """The order in which constants are listed.

    >>> chain([])
    Empty(element=None)
    """
    return finite_set([Tuple((a, b)) for n, b in enumerate(constants) for a in constants[: n + 1]])


def constants_in(base: str, type_: Type, term: Term, depth: int = 0) -> Term | None:
    """The constants of a base type in a term's value; None if its type has none."""
    match type_:
        case Base(name):
            return Single(term) if name == base else None
        case Product(parts):
            found = [constants_in(base, part, Project(term, n), depth) for n, part in enumerate(parts, 1)]
            return united([part for part in found if part is not None])
        case SetOf(element):
            item = f"item_{depth}"
            inside = constants_in(base, element, Var(item), depth + 1)
            return None if inside is None else BigUnion(inside, Bind(item), term)


def united(sets: Sequence[Term]) -> Term | None:
    """The union of sets; None if there are none."""
    return reduce(Union, sets) if sets else None

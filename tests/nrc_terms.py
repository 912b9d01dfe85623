"""Random well-typed terms of the calculus, and values for their variables."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.parser import parse_definitions
from everlog.ies.nrc.types import BOOL, NUM, Base, Product, SetOf, Type

NODE = Base("node")
PAIR = Product((NODE, NUM))
TYPES: list[Type] = [BOOL, NUM, NODE, PAIR, SetOf(NUM), SetOf(NODE), SetOf(PAIR), SetOf(Product((NODE, NODE)))]
TYPES += [SetOf(SetOf(NUM)), SetOf(Product((NODE, SetOf(NUM)))), Product((BOOL, Product((NUM, NODE))))]
ENVIRONMENT: dict[str, Type] = {
    "n": NUM,
    "m": NUM,
    "u": NODE,
    "X": SetOf(NUM),
    "R": SetOf(Product((NODE, NODE))),
    "W": SetOf(PAIR),
    "N": SetOf(Product((NODE, SetOf(NUM)))),
    "S": SetOf(SetOf(NUM)),
}
FUNCTIONS = """def size(Y) = sum{| 1 | x in Y |}
def joined(A, B) = {(x, z) | (x, y) in A, (y', z) in B, y = y'}
def more(x, y) = let (x, y) = (y, x) in x + n * y
def has(Y, x) = x in Y and exists{ y in Y, y = x }
def near(x, Y) = {y | y in Y, all{ x <= z | z in Y }} minus {x}"""
DEFINITIONS = {definition.name: definition for definition in parse_definitions(FUNCTIONS)}
NAMES = ["x", "y", "z", "x'", "n", "R"]  # the last two hide what is outermost


def values(type_: Type) -> st.SearchStrategy[Any]:
    match type_:
        case Base("bool"):
            return st.booleans()
        case Base("num"):
            return st.one_of(st.integers(-2, 3), st.sampled_from([Fraction(1, 2), Fraction(-2, 3)]))
        case Base():
            return st.sampled_from([1, 2, 3, "a"])
        case Product(parts):
            return st.tuples(*map(values, parts))
        case SetOf(element):
            return st.frozensets(values(element), max_size=4 if not isinstance(element, SetOf) else 3)


environments = st.fixed_dictionaries({name: values(type_) for name, type_ in ENVIRONMENT.items()})


@st.composite
def typed_terms(draw: st.DrawFn) -> tuple[t.Term, Type]:
    """A term and its type, over ENVIRONMENT and DEFINITIONS."""
    type_ = draw(st.sampled_from(TYPES))
    return Draw(draw).term(type_, dict(ENVIRONMENT), draw(st.integers(1, 5))), type_


class Draw:
    """One term being drawn."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def one_of(self, items: list[Any]) -> Any:
        return self.draw(st.sampled_from(items))

    def term(self, type_: Type, scope: dict[str, Type], depth: int) -> t.Term:
        ways: list[Callable[[], t.Term]] = [lambda: self.leaf(type_, scope)]
        if depth > 0:
            ways = [*self.of_type(type_, scope, depth - 1), *self.of_any(type_, scope, depth - 1)]
        return self.one_of(ways)()  # type: ignore[no-any-return]

    def leaf(self, type_: Type, scope: dict[str, Type]) -> t.Term:
        known = [name for name, each in scope.items() if each == type_]
        if known and self.draw(st.booleans()):
            return t.Var(self.one_of(known))
        match type_:
            case Base("bool"):
                return t.Const(self.draw(st.booleans()))
            case Base("num"):
                return t.Const(self.draw(st.integers(-2, 3)))
            case Base():
                return t.Const(self.one_of([1, 2, "a"])) if not known else t.Var(self.one_of(known))
            case Product(parts):
                return t.Tuple(tuple(self.leaf(part, scope) for part in parts))
            case SetOf(element):
                return t.Var(self.one_of(known)) if known else t.Empty(element)

    def any_type(self) -> Type:
        return self.one_of(TYPES)  # type: ignore[no-any-return]

    def of_any(self, type_: Type, scope: dict[str, Type], depth: int) -> list[Callable[[], t.Term]]:
        """Terms that may have any type."""

        def let() -> t.Term:
            of = self.any_type()
            pattern, inner = self.pattern(of, scope)
            return t.Let(pattern, self.term(of, scope, depth), self.term(type_, inner, depth))

        def project() -> t.Term:
            others = [self.any_type() for _ in range(2)]
            place = self.draw(st.integers(0, 2))
            parts = [*others[:place], type_, *others[place:]]
            return t.Project(self.term(Product(tuple(parts)), scope, depth), place + 1)

        def choice() -> t.Term:
            return t.If(*(self.term(each, scope, depth) for each in (BOOL, type_, type_)))

        return [lambda: self.leaf(type_, scope), let, project, choice]

    def of_type(self, type_: Type, scope: dict[str, Type], depth: int) -> list[Callable[[], t.Term]]:
        def at(each: Type) -> t.Term:
            return self.term(each, scope, depth)

        match type_:
            case Base("bool"):
                return self.booleans(scope, depth)
            case Base("num"):
                return self.numbers(scope, depth)
            case Base():
                return [lambda: self.leaf(type_, scope)]
            case Product(parts):
                return [lambda: t.Tuple(tuple(at(part) for part in parts))]
            case SetOf(element):
                return self.sets(type_, element, scope, depth)

    def booleans(self, scope: dict[str, Type], depth: int) -> list[Callable[[], t.Term]]:
        def at(each: Type) -> t.Term:
            return self.term(each, scope, depth)

        def pair(make: Any, of: Type) -> t.Term:
            return make(at(of), at(of))  # type: ignore[no-any-return]

        def qualified(make: Any) -> t.Term:
            qualifiers, inner = self.qualifiers(scope, depth)
            return make(qualifiers, inner)  # type: ignore[no-any-return]

        def member() -> t.Term:
            of = self.any_type()
            return t.In(at(of), at(SetOf(of)))

        return [
            lambda: pair(t.Equal, self.any_type()),
            lambda: pair(t.AtMost, NUM),
            lambda: pair(t.Less, NUM),
            lambda: pair(self.one_of([t.And, t.Or]), BOOL),
            lambda: t.Not(at(BOOL)),
            member,
            lambda: t.Not(member()),
            lambda: pair(t.Subset, SetOf(self.one_of([NUM, PAIR]))),
            lambda: qualified(lambda qualifiers, inner: t.Exists(qualifiers)),
            lambda: qualified(lambda qualifiers, inner: t.ForAll(self.term(BOOL, inner, depth), qualifiers)),
            lambda: qualified(lambda qualifiers, inner: t.ForAll(self.order(inner, depth), qualifiers)),
            lambda: t.Call("has", (at(SetOf(NODE)), at(NODE))),
            lambda: t.Equal(at(SetOf(NUM)), t.Empty(NUM)),
        ]

    def order(self, scope: dict[str, Type], depth: int) -> t.Term:
        make = self.one_of([t.AtMost, t.Less])
        return make(self.leaf(NUM, scope), self.leaf(NUM, scope))  # type: ignore[no-any-return]

    def numbers(self, scope: dict[str, Type], depth: int) -> list[Callable[[], t.Term]]:
        def at(each: Type) -> t.Term:
            return self.term(each, scope, depth)

        def arithmetic() -> t.Term:
            return t.Arith(self.one_of(list("++--**/")), at(NUM), at(NUM), self.one_of([0, 0, 0, 7]))

        def sum_of() -> t.Term:
            qualifiers, inner = self.qualifiers(scope, depth)
            head = self.term(NUM, inner, depth)
            match qualifiers:
                case (t.Generator(pattern, source),):
                    return t.Sum(head, pattern, source)
            return t.SumOf(head, qualifiers)

        def rank() -> t.Term:
            over = t.Generator(t.Bind("z"), at(SetOf(NUM)))
            return t.SumOf(t.Const(1), (over, self.order({**scope, "z": NUM}, depth)))

        return [
            arithmetic,
            arithmetic,
            sum_of,
            rank,
            lambda: t.Call("size", (at(SetOf(self.any_type())),)),
            lambda: t.Call("more", (at(NUM), at(NUM))),
        ]

    def sets(self, type_: SetOf, element: Type, scope: dict[str, Type], depth: int) -> list[Callable[[], t.Term]]:
        def at(each: Type) -> t.Term:
            return self.term(each, scope, depth)

        def comprehension() -> t.Term:
            qualifiers, inner = self.qualifiers(scope, depth)
            return t.Comprehension(self.term(element, inner, depth), qualifiers)

        def big_union() -> t.Term:
            of = self.any_type()
            pattern, inner = self.pattern(of, scope)
            return t.BigUnion(self.term(type_, inner, depth), pattern, at(SetOf(of)))

        ways = [
            comprehension,
            comprehension,
            big_union,
            lambda: t.Single(at(element)),
            lambda: self.one_of([t.Union, t.Minus, t.Intersect])(at(type_), at(type_)),
            lambda: t.Empty(element),
        ]
        if element == Product((NODE, NODE)):
            ways.append(lambda: t.Call("joined", (at(type_), at(type_))))
        if element == NUM:
            ways.append(lambda: t.Call("near", (at(NUM), at(type_))))
        return ways

    def pattern(self, type_: Type, scope: dict[str, Type]) -> tuple[t.Pattern, dict[str, Type]]:
        used: set[str] = set()
        inner = dict(scope)

        def drawn(each: Type) -> t.Pattern:
            if isinstance(each, Product) and self.draw(st.integers(0, 3)) > 0:
                return t.Parts(tuple(drawn(part) for part in each.parts))
            name = self.one_of([*(name for name in NAMES if name not in used), "_"])
            if name != "_":
                used.add(name)
                inner[name] = each
            return t.Bind(name)

        return drawn(type_), inner

    def qualifiers(self, scope: dict[str, Type], depth: int) -> tuple[tuple[t.Qualifier, ...], dict[str, Type]]:
        found: list[t.Qualifier] = []
        for number in range(self.draw(st.integers(1, 3))):
            kind = self.draw(st.integers(0, 3))
            if kind == 0:
                found.append(self.term(BOOL, scope, min(depth, 2)))
            elif kind == 1 and number > 0:
                of = self.one_of([NODE, NUM])
                known = [name for name, each in scope.items() if each == of]
                found.append(t.Equal(t.Var(self.one_of(known)), self.term(of, scope, min(depth, 1))))
            else:
                of = self.any_type()
                source = self.term(SetOf(of), scope, depth - 1)
                pattern, scope = self.pattern(of, scope)
                found.append(t.Generator(pattern, source))
        return tuple(found), scope

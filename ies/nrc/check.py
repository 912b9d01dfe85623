"""The types of terms, by the rules of Section 2, and all type errors.

Types are inferred; expected types are passed down, so that an error is reported at the smallest
term that has it.  Each error is reported once: a term with an error has a type that fits
everywhere.  A function is checked again at each call, with the types of its arguments, so it may be
used at many types.  Its body sees its parameters and the outermost names (the relations of a
system), never the variables around the call.

Source: Libkin and Wong, Section 2 (typing rules, height of an expression).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

from attrs import frozen

from everlog.dsl.diagnostics import Label, Report
from everlog.dsl.source import Source
from everlog.ies.nrc import terms as t
from everlog.ies.nrc.errors import MAX_CALLS
from everlog.ies.nrc.types import BOOL, NUM, Type, height
from everlog.ies.nrc.unify import Open, OpenProduct, OpenSet, Unknown, closed, found_of, opened, shown, unify

Scope: TypeAlias = Mapping[str, Open]


@frozen
class Checked:
    """The result of checking a term.

    It has the term's type, the types of its subterms (by identity), its height, and the typed
    constants of the term and of the functions it calls.
    """

    type: Type
    height: int
    _types: Mapping[int, Type]
    constants: frozenset[tuple[Type, bool | int | Fraction | str]] = frozenset()

    def at(self, term: t.Term) -> Type:
        """The type of a subterm of the checked term (this object, not an equal one)."""
        return self._types[id(term)]


def check(
    term: t.Term,
    environment: Mapping[str, Type],
    definitions: Mapping[str, t.Definition],
    report: Report,
    want: Type | None = None,
) -> Checked | None:
    """The types of a term; None if it has none, with the reasons in `report`.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> term = parse_term("{(1, {x | x in {}, x = true})}")
    >>> checked = check(term, {}, {}, Report(Source("")))
    >>> str(checked.type), checked.height
    ('{num * {bool}}', 2)

    Cost: linear in the term and, for each call, in the function's body.
    """
    scope = {name: opened(type_) for name, type_ in environment.items()}
    checker = _Checker(scope, definitions, report)
    found = checker.term(term, scope, None if want is None else opened(want))
    return checker.finished(term, found)


def type_of(
    term: t.Term,
    environment: Mapping[str, Type],
    definitions: Mapping[str, t.Definition],
    report: Report,
    want: Type | None = None,
) -> Type | None:
    """The type of a term; None if it has none, with the reasons in `report`.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> str(type_of(parse_term("sum{| x / 2 | x in {1, 2} |}"), {}, {}, Report(Source(""))))
    'num'
    """
    checked = check(term, environment, definitions, report, want)
    return None if checked is None else checked.type


def height_of(term: t.Term, environment: Mapping[str, Type], definitions: Mapping[str, t.Definition]) -> int:
    """The height of a well-typed term: the maximum over its typing derivation.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> height_of(parse_term("sum{| 1 | x in {{1}, {2}} |}"), {}, {})
    2
    """
    report = Report(Source(""))
    checked = check(term, environment, definitions, report)
    report.raise_errors()
    assert checked is not None
    return checked.height


class _Checker:
    def __init__(self, outermost: Scope, definitions: Mapping[str, t.Definition], report: Report) -> None:
        self.outermost, self.definitions, self.report = outermost, definitions, report
        self.calls: list[t.Call] = []
        self.types: list[tuple[t.Term, Open]] = []  # includes the bodies of functions
        self.empties: list[tuple[t.Empty, Open, tuple[t.Call, ...]]] = []
        self.results: dict[tuple[str, tuple[Type, ...]], Type] = {}
        self.mistakes = self.called = 0

    def finished(self, term: t.Term, found: Open) -> Checked | None:
        for empty, type_, calls in self.empties:
            if closed(type_) is None and not self.mistakes:
                self.calls = list(calls)
                self.tell("NRC034", "nothing says what this empty set holds", empty, hint="write `({} : {num})`")
                self.calls = []
        type_of_all = closed(found)
        if self.mistakes:
            return None
        types = {id(node): known for node, type_ in self.types if (known := closed(type_)) is not None}
        if type_of_all is None:
            self.tell("NRC034", f"nothing says what `?` is in the type {shown(found)} of this", term)
            return None
        constants = frozenset(
            (known, node.value)
            for node, type_ in self.types
            if isinstance(node, t.Const) and (known := closed(type_)) is not None
        )
        return Checked(type_of_all, max(map(height, {*types.values(), type_of_all})), types, constants)

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def tell(self, code: str, message: str, node: Any, *labels: Label, hint: str = "") -> None:
        """Report an error at the node, or at the call if the node has no place.

        Functions of the prelude have no place.
        """
        self.mistakes += 1
        placed = [call for call in self.calls if call.pos >= 0]
        if node.pos < 0 and placed:
            self.report.error(code, f"in `{self.calls[-1].function}`: {message}", placed[-1], hint=hint)
            return
        if placed:
            labels = (*labels, Label(placed[-1].pos, placed[-1].end, "in this call"))
        self.report.error(code, message, node, *(label for label in labels if label.pos >= 0), hint=hint)

    def wanted(self, node: t.Term, found: Open, want: Open, why: str = "") -> Open:
        if unify(found, want):
            return found
        asked = found_of(want)
        any_set = isinstance(asked, OpenSet) and isinstance(found_of(asked.element), Unknown)
        wants = f"{why or 'here must stand'} {'a set' if any_set else shown(want)}"
        self.tell("NRC030", f"{wants}, and this is {shown(found)}", node)
        return Unknown()

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def term(self, term: t.Term, scope: Scope, want: Open | None = None, why: str = "") -> Open:
        found = self._inferred(term, scope, want)
        if want is not None:
            found = self.wanted(term, found, want, why)
        self.types.append((term, found))
        return found

    def _inferred(self, term: t.Term, scope: Scope, want: Open | None) -> Open:
        match term:
            case t.Var(name):
                return self._variable(term, scope, name)
            case t.Const(bool()):
                return BOOL
            case t.Const(str()):
                return Unknown("text")
            case t.Const(int()):
                return Unknown("number")
            case t.Const():
                return NUM
            case t.Tuple(parts):
                return self._tuple(parts, scope, want)
            case t.Project(of, index):
                return self._projected(term, self.term(of, scope), index)
            case t.Empty(element):
                found = OpenSet(Unknown() if element is None else opened(element))
                self.empties.append((term, found, tuple(self.calls)))
                return found
            case t.Single(of):
                return OpenSet(self.term(of, scope, _element(want)))
            case t.Union(left, right):
                return self._sets(left, right, scope, want)
            case t.BigUnion(body, pattern, source):
                inner = self._generated(pattern, source, scope)
                return self.term(body, inner, want if want is not None else OpenSet(Unknown()))
            case t.Sum(body, pattern, source):
                return self.term(body, self._generated(pattern, source, scope), NUM, "`sum` adds up")
            case t.Equal(left, right):
                return self._equal(term, self.term(left, scope), self.term(right, scope))
            case t.If(condition, then, other):
                self.term(condition, scope, BOOL, "a condition is")
                first = self.term(then, scope, want)
                return self._alike(then, other, first, scope)
            case t.Arith(op, left, right):
                for side in (left, right):
                    self.term(side, scope, NUM, f"`{op}` wants")
                return NUM
            case t.AtMost(left, right):
                return self._compared(left, right, scope, "<=")
            case _:
                return self._inferred_short(term, scope, want)

    def _inferred_short(self, term: t.Short, scope: Scope, want: Open | None) -> Open:
        match term:
            case t.Comprehension(head, qualifiers):
                return OpenSet(self.term(head, self._qualified(qualifiers, scope), _element(want)))
            case t.SumOf(head, qualifiers):
                return self.term(head, self._qualified(qualifiers, scope), NUM, "`sum` adds up")
            case t.Exists(qualifiers):
                self._qualified(qualifiers, scope)
                return BOOL
            case t.ForAll(condition, qualifiers):
                return self.term(condition, self._qualified(qualifiers, scope), BOOL, "a condition is")
            case t.In(element, of):
                inside = self.term(element, scope)
                whole = self.term(of, scope, OpenSet(Unknown()), "`in` looks into")
                if not unify(OpenSet(inside), whole):
                    self._differ("`in`", term, element, inside, of, whole)
                return BOOL
            case t.Minus(left, right) | t.Intersect(left, right):
                return self._sets(left, right, scope, want)
            case t.Subset(left, right):
                self._sets(left, right, scope, None)
                return BOOL
            case t.And(left, right) | t.Or(left, right):
                word = "and" if isinstance(term, t.And) else "or"
                for side in (left, right):
                    self.term(side, scope, BOOL, f"`{word}` wants")
                return BOOL
            case t.Not(of):
                return self.term(of, scope, BOOL, "`not` wants")
            case t.Less(left, right):
                return self._compared(left, right, scope, "<")
            case t.Let(pattern, value, body):
                bound = self._bound(pattern, self.term(value, scope))
                return self.term(body, {**scope, **bound}, want)
            case t.Call(function, arguments):
                return self._called(term, function, [self.term(argument, scope) for argument in arguments])
        assert_never(term)

    def _compared(self, left: t.Term, right: t.Term, scope: Scope, operator: str) -> Open:
        for side in (left, right):
            self.term(side, scope, NUM, f"`{operator}` compares")
        return BOOL

    def _variable(self, term: t.Term, scope: Scope, name: str) -> Open:
        if name in scope:
            return scope[name]
        if name == "_":
            self.tell("NRC020", "`_` takes a value and keeps none", term, hint="give it a name in its pattern")
        elif name in self.definitions:
            self.tell("NRC020", f"`{name}` is a function", term, hint=f"call it: `{name}(…)`")
        else:
            known = ", ".join(f"`{other}`" for other in sorted(scope)) or "nothing"
            self.tell("NRC020", f"`{name}` is not known here", term, hint=f"known are {known}")
        return Unknown()

    def _tuple(self, parts: tuple[t.Term, ...], scope: Scope, want: Open | None) -> Open:
        asked = found_of(want) if want is not None else None
        if isinstance(asked, OpenProduct) and len(asked.parts) == len(parts):
            pairs = zip(parts, asked.parts, strict=True)
            return OpenProduct(tuple(self.term(part, scope, each) for part, each in pairs))
        return OpenProduct(tuple(self.term(part, scope) for part in parts))

    def _projected(self, term: t.Project, of: Open, index: int) -> Open:
        product = found_of(of)
        if isinstance(product, OpenProduct) and 1 <= index <= len(product.parts):
            return product.parts[index - 1]
        if isinstance(product, OpenProduct):
            message = f"there is no part {index} in {shown(of)}"
            self.tell("NRC032", message, term, hint=f"parts are 1 to {len(product.parts)}")
        elif not isinstance(product, Unknown) or product.kind != "any":
            self.tell("NRC032", f"`.{index}` wants a tuple, and this is {shown(of)}", term.of)
        elif not self.mistakes:
            self.tell("NRC032", f"`.{index}` wants a tuple, and nothing says what this is", term.of)
        return Unknown()

    def _sets(self, left: t.Term, right: t.Term, scope: Scope, want: Open | None) -> Open:
        both = OpenSet(Unknown())
        if want is not None and isinstance(found_of(want), OpenSet):
            unify(both, want)
        first = self.term(left, scope, both)
        return self._alike(left, right, first, scope)

    def _alike(self, left: t.Term, right: t.Term, first: Open, scope: Scope) -> Open:
        """The type of `right`, which must be that of `left`."""
        asked = found_of(first)
        pushed = first if isinstance(asked, (OpenSet, OpenProduct)) and isinstance(right, _OPEN_TERMS) else None
        second = self.term(right, scope, pushed)
        if not unify(first, second):
            message = f"this must be {shown(first)}, like the other, and is {shown(second)}"
            self.tell("NRC031", message, right, Label(left.pos, left.end, f"this is {shown(first)}"))
            return Unknown()
        return first

    def _equal(self, term: t.Equal, left: Open, right: Open) -> Open:
        if not unify(left, right):
            self._differ("`=`", term, term.left, left, term.right, right)
        return BOOL

    def _differ(self, sign: str, term: t.Term, left: t.Term, first: Open, right: t.Term, second: Open) -> None:
        message = f"{sign} between {shown(first)} and {shown(second)}"
        labels = (Label(left.pos, left.end, shown(first)), Label(right.pos, right.end, shown(second)))
        self.tell("NRC031", message, term, *labels)

    # ── what binds ───────────────────────────────────────────────────────────────────────────

    def _qualified(self, qualifiers: tuple[t.Qualifier, ...], scope: Scope) -> Scope:
        for qualifier in qualifiers:
            if isinstance(qualifier, t.Generator):
                scope = self._generated(qualifier.pattern, qualifier.source, scope)
            else:
                self.term(qualifier, scope, BOOL, "a condition is")
        return scope

    def _generated(self, pattern: t.Pattern, source: t.Term, scope: Scope) -> Scope:
        element = Unknown()
        self.term(source, scope, OpenSet(element), "a generator runs over")
        return {**scope, **self._bound(pattern, element)}

    def _bound(self, pattern: t.Pattern, type_: Open) -> dict[str, Open]:
        match pattern:
            case t.Bind("_"):
                return {}
            case t.Bind(name):
                return {name: type_}
            case t.Parts(parts):
                product = OpenProduct(tuple(Unknown() for _ in parts))
                if not unify(product, type_):
                    message = f"a pattern of {len(parts)} parts for {shown(type_)}"
                    self.tell("NRC033", message, pattern)
                bound: dict[str, Open] = {}
                for part, each in zip(parts, product.parts, strict=True):
                    bound |= self._bound(part, each)
                return bound

    def _called(self, term: t.Call, name: str, arguments: list[Open]) -> Open:
        definition = self.definitions.get(name)
        if definition is None:
            known = ", ".join(f"`{other}`" for other in sorted(self.definitions)) or "none"
            self.tell("NRC021", f"function `{name}` is not known", term, hint=f"known are {known}")
            return Unknown()
        if len(arguments) != len(definition.parameters):
            wants = f"`{name}({', '.join(definition.parameters)})` takes {len(definition.parameters)}"
            self.tell("NRC021", f"{wants} arguments, not {len(arguments)}", term)
            return Unknown()
        if any(call.function == name for call in self.calls):
            self.tell("NRC022", f"function `{name}` is defined by itself", term)
            return Unknown()
        types = tuple(type_ for argument in arguments if (type_ := _exact(argument)) is not None)
        known_call = (name, types)
        if len(types) == len(arguments) and known_call in self.results:
            return opened(self.results[known_call])
        mistakes = self.mistakes
        self.called += 1
        if self.called > MAX_CALLS:
            if self.called == MAX_CALLS + 1:
                self.tell("NRC023", f"functions call functions more than {MAX_CALLS:,} times here", term)
            return Unknown()
        self.calls.append(term)
        scope = {**self.outermost, **dict(zip(definition.parameters, arguments, strict=True))}
        found = self.term(definition.body, scope)
        self.calls.pop()
        result = _exact(found)
        if len(types) == len(arguments) and result is not None and mistakes == self.mistakes:
            self.results[known_call] = result
        return found if mistakes == self.mistakes else Unknown()


_OPEN_TERMS = (t.Comprehension, t.Single, t.Union, t.BigUnion, t.Tuple, t.If, t.Let, t.Minus, t.Intersect)


def _element(want: Open | None) -> Open | None:
    found = found_of(want) if want is not None else None
    return found.element if isinstance(found, OpenSet) else None


def _exact(type_: Open) -> Type | None:
    """The type if it is fully known, literals included; else None."""
    match found_of(type_):
        case Unknown():
            return None
        case OpenProduct() as product:
            return closed(type_) if all(_exact(part) is not None for part in product.parts) else None
        case OpenSet() as found:
            return closed(type_) if _exact(found.element) is not None else None
        case base:
            return closed(base)

"""Terms to Python source, construct by construct."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import assert_never

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.code_writer import Known, Lines, Scope
from everlog.ies.nrc.errors import MAX_CALLS, CalculusError
from everlog.ies.nrc.looping import Looping, projected
from everlog.ies.nrc.term_analysis import KEPT
from everlog.ies.nrc.types import Value
from everlog.ies.nrc.walk import elements_of, names

_SETS = (t.BigUnion, t.Comprehension, t.Union, t.Single, t.Empty)


class Generator(Looping):
    """The source of one function for one term."""

    def function(self, term: t.Term, parameters: tuple[str, ...]) -> Lines:
        """The lines of `def run(parameters)`."""
        self.facts.count(term)
        self.outermost = {name: Known(self.fresh("r"), 0) for name in parameters}
        inside: Lines = []
        with self.deeper(inside, 0):
            result = self.value(term, self.outermost)
            self.put(f"return {result}")
        head = ", ".join(known.code for known in self.outermost.values())
        return [f"def run({head}):", inside]

    # ── values ───────────────────────────────────────────────────────────────────────────────

    def value(self, term: t.Term, scope: Scope) -> str:
        """An expression for the value of a term; needed statements are put before it."""
        code = self.kept(term, scope) or self.plain(term, scope)
        if len(code) > 400:  # Python nests 200 parentheses
            name = self.fresh("v")
            self.put(f"{name} = {code}")
            return name
        return code

    def plain(self, term: t.Term, scope: Scope) -> str:
        """Like `value`, computed in place."""
        if isinstance(term, (t.Single, t.Union)) and (literal := _literal_set(term)) is not None:
            return self._constant(literal)
        match term:
            case t.Var(name):
                if name not in scope:
                    raise CalculusError(f"`{name}` is not known here", term.pos, term.end)
                return scope[name].code
            case t.Const(value):
                return self._constant(value)
            case t.Tuple(parts):
                return f"({', '.join(self.value(part, scope) for part in parts)},)"
            case t.Project(of, index):
                return f"{self.value(of, scope)}[{index - 1}]"
            case t.Empty():
                return "NONE"
            case t.Single(of):
                return f"frozenset(({self.value(of, scope)},))"
            case t.Union() | t.BigUnion() | t.Comprehension():
                return self.collected(term, scope)
            case t.Sum() | t.SumOf():
                return self.summed(term, scope)
            case t.Minus(left, right):
                return f"({self.value(left, scope)} - {self.value(right, scope)})"
            case t.Intersect(left, right):
                return f"({self.value(left, scope)} & {self.value(right, scope)})"
            case t.If(condition, then, other):
                return self._chosen(condition, then, other, scope)
            case t.Arith():
                return self._arithmetic(term, self.value(term.left, scope), self.value(term.right, scope))
            case t.AtMost(left, right):
                return f"({self.value(left, scope)} <= {self.value(right, scope)})"
            case t.Less(left, right):
                return f"({self.value(left, scope)} < {self.value(right, scope)})"
            case t.Subset(left, right):
                return f"({self.value(left, scope)} <= {self.value(right, scope)})"
            case t.Equal(left, right):
                return self._equal(left, right, scope)
            case t.Exists(qualifiers):
                return self.exists(t.Comprehension(t.Const(True), qualifiers), scope)
            case t.ForAll(condition, qualifiers):
                if (extreme := self.extreme(condition, qualifiers, scope)) is not None:
                    return extreme
                unlike = t.Comprehension(t.Const(True), (*qualifiers, t.Not(condition)))
                return f"(not {self.exists(unlike, scope)})"
            case t.In(element, of):
                return self._member(element, of, scope)
            case t.And(left, right):
                return self._chosen(left, right, t.Const(False), scope)
            case t.Or(left, right):
                return self._chosen(left, t.Const(True), right, scope)
            case t.Not(of):
                return f"(not {self.value(of, scope)})"
            case t.Let(pattern, value, body):
                return self.value(body, self.let(pattern, value, body, scope))
            case t.Call():
                with self.call(term, scope) as (body, inner):
                    return self.value(body, inner)
        assert_never(term)

    def _constant(self, value: bool | int | Fraction | str | frozenset[Value]) -> str:
        if isinstance(value, int):
            return repr(value) if value >= 0 else f"({value})"
        name = self.fresh("c")
        self.constants[name] = value
        return name

    def _chosen(self, condition: t.Term, then: t.Term, other: t.Term, scope: Scope) -> str:
        test = self.value(condition, scope)
        first: Lines = []
        second: Lines = []
        with self.into(first):
            yes = self.value(then, scope)
        with self.into(second):
            no = self.value(other, scope)
        if not first and not second:
            match yes, no:
                case "True", "False":
                    return test
                case "False", "True":
                    return f"(not {test})"
                case _, "False":
                    return f"({test} and {yes})"
                case "True", _:
                    return f"({test} or {no})"
            return f"({yes} if {test} else {no})"
        name = self.fresh("v")
        self.body += [f"if {test}:", [*first, f"{name} = {yes}"], "else:", [*second, f"{name} = {no}"]]
        return name

    def _arithmetic(self, term: t.Arith, left: str, right: str) -> str:
        if term.op == "/" and not term.modulus:
            return f"divided({left}, {right}, {self.place(term)})"
        if term.op == "/":
            return f"modular('/', {left}, {right}, {term.modulus}, {self.place(term)})"
        result = self.fresh("t")
        if not term.modulus:
            return f"({result} if ({result} := {left} {term.op} {right}).__class__ is int else plain({result}))"
        one, two = self.fresh("t"), self.fresh("t")
        quick = f"({result} := ({one} := {left}) {term.op} ({two} := {right})).__class__ is int"
        slow = f"modular({term.op!r}, {one}, {two}, {term.modulus}, {self.place(term)})"
        return f"({result} % {term.modulus} if {quick} else {slow})"

    def _equal(self, left: t.Term, right: t.Term, scope: Scope) -> str:
        for side, other in ((left, right), (right, left)):
            if isinstance(other, t.Empty):
                if isinstance(side, _SETS) and not self.again(self.depends(side, scope)):
                    return f"(not {self.exists(side, scope)})"
                return f"(not {self.value(side, scope)})"
        return f"({self.value(left, scope)} == {self.value(right, scope)})"

    def _member(self, element: t.Term, of: t.Term, scope: Scope) -> str:
        """Whether a set has an element; does not build the set for a single test."""
        if isinstance(of, t.Empty):
            return "False"
        if isinstance(of, KEPT) and (kept := self.kept(of, scope)) is not None:
            return f"({self.value(element, scope)} in {kept})"
        if isinstance(of, (*_SETS, t.Minus, t.Intersect)) and self.facts.total(of) and self.facts.total(element):
            known = self.named(element, scope)
            name = f" {self.fresh('e')}"  # no variable of a term contains a blank
            return self._member_of(t.Var(name), of, {**scope, name: known})
        return f"({self.value(element, scope)} in {self.value(of, scope)})"

    def _member_of(self, element: t.Term, of: t.Term, scope: Scope) -> str:
        match of:
            case t.Single(one):
                return self.value(t.Equal(element, one), scope)
            case t.Union(left, right):
                return self.value(t.Or(t.In(element, left), t.In(element, right)), scope)
            case t.Minus(left, right):
                return self.value(t.And(t.In(element, left), t.Not(t.In(element, right))), scope)
            case t.Intersect(left, right):
                return self.value(t.And(t.In(element, left), t.In(element, right)), scope)
            case t.Comprehension(head, qualifiers):
                found = t.Comprehension(t.Const(True), (*qualifiers, t.Equal(head, element)))
                return self.exists(found, scope)
            case t.BigUnion(body, pattern, source):
                inside = t.In(element, body)
                return self.exists(t.Comprehension(t.Const(True), (t.Generator(pattern, source), inside)), scope)
            case _:
                return f"({self.value(element, scope)} in {self.value(of, scope)})"

    # ── let and calls ────────────────────────────────────────────────────────────────────────

    def let(self, pattern: t.Pattern, value: t.Term, body: t.Term, scope: Scope) -> Scope:
        used = names(pattern) & self.facts.free(body)
        if not used:
            return scope
        match pattern, value:
            case t.Parts(parts), t.Tuple(values) if len(parts) == len(values) and self.facts.total(value):
                bound: dict[str, Known] = dict(scope)
                for part, each in zip(parts, values, strict=True):
                    bound |= {k: v for k, v in self.let(part, each, body, scope).items() if k in names(part)}
                return bound
        return {**scope, **projected(pattern, self.named(value, scope))}

    @contextmanager
    def call(self, term: t.Call, scope: Scope) -> Iterator[tuple[t.Term, Scope]]:
        """The body of a function, with its parameters bound."""
        definition = self.definitions.get(term.function)
        if definition is None or len(definition.parameters) != len(term.arguments):
            raise CalculusError(f"`{term.function}` cannot be called like this", term.pos, term.end)
        if any(call.function == term.function for call in self.calls):
            raise CalculusError(f"`{term.function}` is defined by itself", term.pos, term.end)
        self.called += 1
        if self.called > MAX_CALLS:
            raise CalculusError(f"functions call functions more than {MAX_CALLS:,} times", term.pos, term.end)
        inner = dict(self.outermost)
        used = self.facts.free(definition.body)
        for name, argument in zip(definition.parameters, term.arguments, strict=True):
            inner.pop(name, None)
            if name in used:
                inner[name] = self.named(argument, scope)
        self.calls.append(term)
        yield definition.body, inner
        self.calls.pop()


def _literal_set(term: t.Term) -> frozenset[Value] | None:
    """The set that a term spells out, if it is a set of constants."""
    elements = elements_of(term)
    if elements is None or not all(map(_is_literal, elements)):
        return None
    return frozenset(map(_literal, elements))


def _is_literal(term: t.Term) -> bool:
    return isinstance(term, t.Const) or (isinstance(term, t.Tuple) and all(map(_is_literal, term.parts)))


def _literal(term: t.Term) -> Value:
    match term:
        case t.Const(value):
            return value
        case t.Tuple(parts):
            return tuple(map(_literal, parts))

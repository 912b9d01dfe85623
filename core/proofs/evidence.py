"""The interface of an engine for proofs, and rules read backwards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from attrs import field, frozen

from everlog.core.program import (
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Program,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
    draws_numbers,
    written_body,
)
from everlog.core.program.bodies import Binding
from everlog.core.program.executor import NotABaseRelation
from everlog.core.program.functors import COMPARISONS
from everlog.core.program.shown import shown_name
from everlog.core.proofs.notation import constant
from everlog.core.proofs.solve import names_in
from everlog.core.storage.tables import Table

Fact: TypeAlias = tuple[str, Row]
same = COMPARISONS["="]


class LastStep(Protocol):
    """A rule of the program, and values of the variables of its body.

    The binding may also have the values that the wildcards of positive atoms matched, in the order
    of the body, under names that the rule does not have.  Missing values are searched for.
    """

    @property
    def rule(self) -> Rule: ...
    @property
    def binding(self) -> Mapping[str, Value]: ...


class Evidence(Protocol):
    """The part of an engine that proofs use."""

    @property
    def program(self) -> Program: ...
    @property
    def tables(self) -> Mapping[str, Table]: ...
    def given(self, relation: str) -> Collection[Row]:
        """The base facts of a relation."""

    def last_step(self, relation: str, row: Row) -> LastStep | None:
        """A derivation of a fact from facts derived before it; None if none is known."""


def checked(engine: Evidence, relation: str, row: Row) -> Fact:
    """A fact of a declared relation; anything else is the caller's mistake."""
    declared = engine.program.relations.get(relation)
    if declared is None:
        raise NotABaseRelation(f"undefined relation `{relation}`")
    if len(row) != declared.arity:
        raise NotABaseRelation(f"`{relation}` has {declared.arity} columns, not {len(row)}")
    return relation, tuple(row)


# ── goals ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Goal:
    """A rule read backwards.

    `literals` is its body with a variable `?i.j` for each wildcard of a positive atom, so that a
    binding says which facts were used.  `body` must hold for a row: the literals, and `?j = term`
    for each computed column j of the head, without literals that draw a number from `autoinc()`.
    """

    rule: Rule
    literals: tuple[Literal, ...]
    body: tuple[Literal, ...]
    atoms: tuple[Atom, ...] = field(init=False)
    names: frozenset[str] = field(init=False)
    wildcards: tuple[str, ...] = field(init=False)

    @atoms.default
    def _positive(self) -> tuple[Atom, ...]:
        return tuple(literal for literal in self.literals if isinstance(literal, Atom))

    @names.default
    def _names(self) -> frozenset[str]:
        return frozenset().union(*map(names_in, self.literals))

    @wildcards.default
    def _wildcards(self) -> tuple[str, ...]:
        args = [arg.name for atom in self.atoms for arg in atom.args if isinstance(arg, Variable)]
        return tuple(name for name in args if name.startswith("?"))

    def binding(self, row: Row) -> Binding | str:
        """The binding of the head for a row, or a text that says why it does not match."""
        found = matched(self.rule.head.args, row)
        if isinstance(found, str):
            return found
        computed = {f"?{n}": row[n] for n, arg in enumerate(self.rule.head.args) if isinstance(arg, Call)}
        return found | computed

    def completed(self, binding: Mapping[str, Value]) -> Mapping[str, Value]:
        """The binding of a last step, with the names that wildcards have here."""
        if not self.wildcards:
            return binding
        extra = [value for name, value in binding.items() if name not in self.names]
        if len(extra) != len(self.wildcards):
            return binding
        own = {name: value for name, value in binding.items() if name in self.names}
        return own | dict(zip(self.wildcards, extra, strict=True))


def goal_of(rule: Rule) -> Goal:
    """A rule read backwards.

    >>> n, x = Kind.NUMBER, Variable("x")
    >>> head = Atom("p", (Call("+", (x, Constant(1, n)), n, n),))
    >>> print(*goal_of(Rule(head, (Atom("e", (x, Wildcard())),))).body)
    e(x, ?0.1) ?0 = (x + 1)
    """
    literals = tuple(named_wildcards(written_body(rule.body)))
    equations = tuple(
        Comparison("=", Variable(f"?{column}"), arg, arg.kind)
        for column, arg in enumerate(rule.head.args)
        if isinstance(arg, Call) and not draws((arg,))
    )
    kept = tuple(literal for literal in literals if not draws((), (literal,)))
    return Goal(rule, literals, kept + equations)


def draws(terms: Sequence[Term], literals: Sequence[Literal] = ()) -> bool:
    """Whether any of these draws a number from `autoinc()`."""
    return draws_numbers(Rule(Atom("", tuple(terms)), tuple(literals)))


def named_wildcards(body: Sequence[Literal]) -> Iterator[Literal]:
    """The literals, with a variable for each wildcard of an atom."""
    for place, literal in enumerate(body):
        if not isinstance(literal, Atom) or not any(isinstance(arg, Wildcard) for arg in literal.args):
            yield literal
            continue
        named = (Variable(f"?{place}.{n}") if isinstance(a, Wildcard) else a for n, a in enumerate(literal.args))
        yield Atom(literal.relation, tuple(named))


def matched(args: Sequence[Term], row: Sequence[Value]) -> Binding | str:
    """The binding that makes terms a row, calls aside, or a text if there is none.

    >>> x, y = Variable("x"), Variable("y")
    >>> matched((x, y), (1, 2)), matched((x, x), (1, 2))
    ({'x': 1, 'y': 2}, 'x would be 1 and 2')
    """
    found: Binding = {}
    for column, (arg, value) in enumerate(zip(args, row, strict=True), 1):
        match arg:
            case Constant(fixed) if not same(fixed, value):
                return f"column {column} is always {arg}"
            case Variable(name):
                if not same(found.setdefault(name, value), value):
                    both = (str(constant(one, Kind.NUMBER)) for one in (found[name], value))
                    return f"{shown_name(name)} would be {' and '.join(both)}"
            case _:
                pass
    return found

"""The delta rules of a rule: derivations that a changed relation adds or removes.

A rule body is a product.  A positive atom reads the indicator A of a relation, 0 or 1; a negated
one reads 1 - A; an aggregate literal reads the indicator of the graph of a function, with the rows
(outer …, result); a comparison and a range read a constant.  The number of derivations of a head
row is the sum of that product over all bindings.  When one relation changes, the change of the
product follows from Theorem 3.4 (bilinear), used once for each factor:

    Δ(a × b) = Δa × old b + new a × Δb,        Δ(1 - A) = -ΔA,        Δconstant = 0,

so it is a sum with one term for each occurrence of the relation: the occurrences before it in the
product read new, the one itself reads Δ, those after it read old.

But an engine has one version of a table at a time.  The trick is to choose the order of the
product.  A change is split into deletes D and then inserts I, so that at each event an occurrence
either only loses derivations or only gains them:

    event     the new table A'           loses (sign -1)    gains (sign +1)
    delete    A - D, where D ⊆ A         positive           negated
    insert    A + I, where I ∩ A = ∅     negated            positive

Multiply in this order: what loses, from left to right; then what gains, from right to left.

- A losing term is evaluated *before* the change is made: the table is old.  Only losing occurrences
  further left come before it in the product, and must read new.  All the rest reads old.
- A gaining term is evaluated *after* the change is made: the table is new.  Only gaining
  occurrences further left come after it in the product, and must read old.  All the rest reads new.

So the occurrences that must read the other version are those further left with the sign of the
term.  In all four cases one more literal `!ΔA(args)` turns the version that the table has into the
other:

    delete, positive:  the table is A,   A' = A and not D
    delete, negated:   the table is A',  !A = !A' and not D
    insert, negated:   the table is A,   !A' = !A and not I
    insert, positive:  the table is A',  A = A' and not I

Several relations that change are several events, one after the other.

Source: Budiu et al., PVLDB 16(7), 2023, Theorem 3.4; signs and order are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import assert_never

from attrs import frozen

from everlog.core.program import (
    Aggregate,
    Atom,
    Comparison,
    Literal,
    Negation,
    Range,
    Rule,
    Wildcard,
    written_body,
)

DIRECTION = {"delete": -1, "insert": 1}  # event → the sign of ΔA; in the order of a step


def delta_name(relation: str) -> str:
    """The name under which a filter reads the change of a relation.

    >>> delta_name("edge")
    'Δedge'
    """
    return f"Δ{relation}"


@frozen
class DeltaRule:
    """One term of the delta of a rule, for an engine with one version of each table.

    The literal at `position` reads Δ: it is an atom of `relation`, whatever the rule has there.
    The rest of `body` reads tables, except that filters at its end read `delta_name(relation)`.
    Each binding of the body is one derivation of the head gained (`sign` +1) or lost (-1).
    """

    relation: str
    event: str
    sign: int
    position: int
    body: tuple[Literal, ...]
    head: Atom

    @property
    def before(self) -> bool:
        """Whether it is evaluated before the change is made to the table, or after."""
        return self.sign < 0

    def __str__(self) -> str:
        change = self.body[self.position]
        assert isinstance(change, Atom)
        marked = Atom(f"Δ{change.relation}", change.args)
        body = (*self.body[: self.position], marked, *self.body[self.position + 1 :])
        return f"{self.head} {'-' if self.before else '+'}:= {', '.join(map(str, written_body(body)))}."


# ── products ─────────────────────────────────────────────────────────────────────────────────────


@frozen
class Factor:
    """One occurrence of the changing relation A in a body.

    `coefficient` is that of A: +1 if the occurrence reads A, -1 if it reads 1 - A.
    `outside` is the literal that keeps a binding only if its row is not in ΔA.
    """

    position: int
    atom: Atom
    coefficient: int
    outside: Negation


@frozen
class Product:
    """One term of a delta: `new` in the new version, Δ of `change`, `old` in the old."""

    new: tuple[Factor, ...]
    change: Factor
    old: tuple[Factor, ...]


def expand(factors: tuple[Factor, ...]) -> Iterator[Product]:
    """Δ(f₁ × … × fₙ), one term after the other.

    The product is f₁ × (f₂ × (…)).  The theorem gives one term, and the delta of a shorter product;
    a loop goes on with that one.

    Cost: copies of the tuple; no step in Python for each pair of factors.
    """
    read: tuple[Factor, ...] = ()
    while factors:
        a, b = factors[0], factors[1:]
        yield Product(read, a, b)  # Δa × old b, behind the factors that already read new
        read, factors = (*read, a), b  # new a × Δb


# ── from a rule to products, and back ────────────────────────────────────────────────────────────


def occurrences(rule: Rule, relation: str) -> tuple[Factor, ...]:
    """Where a body reads a relation, from left to right.

    A group of aggregates is read by aggregates only, all with one operator: else "the change of the
    group" would mean rows of two kinds.
    """
    found: list[Factor] = []
    readers: set[str] = set()
    change = delta_name(relation)
    for position, literal in enumerate(rule.body):
        match literal:
            case Atom():
                atom, coefficient, reader = literal, 1, ""
            case Negation():
                atom, coefficient, reader = literal.atom, -1, ""
            case Aggregate():
                assert len(literal.body) == 1, f"not the aggregate of a group: {literal}"
                group = literal.body[0]
                assert isinstance(group, Atom), f"not the aggregate of a group: {literal}"
                atom, coefficient, reader = Atom(group.relation, (*literal.outer, literal.result)), 1, literal.op
            case Comparison() | Range():
                continue
            case _:
                assert_never(literal)
        if atom.relation == relation:
            assert Wildcard not in map(type, atom.args), f"a wildcard in {literal}"
            readers.add(reader)
            found.append(Factor(position, atom, coefficient, Negation(Atom(change, atom.args))))
    assert len(readers) <= 1, f"{relation} is read in different ways in {rule}"
    return tuple(found)


def arranged(factors: tuple[Factor, ...], event: str) -> tuple[Factor, ...]:
    """The order of the product: losing factors, then gaining ones in reverse."""
    direction = DIRECTION[event]
    losing = (f for f in factors if f.coefficient * direction < 0)
    gaining = (f for f in reversed(factors) if f.coefficient * direction > 0)
    return (*losing, *gaining)


def realised(rule: Rule, event: str, product: Product) -> DeltaRule:
    """A term as a rule over the one version of the table that exists."""
    change = product.change
    sign = change.coefficient * DIRECTION[event]
    other = product.new if sign < 0 else product.old[::-1]  # the version that the table does not have
    i, body = change.position, rule.body
    literals = (*body[:i], change.atom, *body[i + 1 :], *map(attrgetter("outside"), other))
    return DeltaRule(change.atom.relation, event, sign, i, literals, rule.head)


def each_delta_rule(rule: Rule, relation: str) -> Iterator[DeltaRule]:
    """The delta rules in the order of a step, deletes before inserts.

    They are generated one by one: n occurrences give 2n rules with up to n filters each, too many
    to hold when a body has thousands.
    """
    factors = occurrences(rule, relation)
    for event in DIRECTION:
        for product in expand(arranged(factors, event)):
            yield realised(rule, event, product)


def delta_rules(rule: Rule, relation: str) -> tuple[DeltaRule, ...]:
    """All delta rules of a rule for the change of one relation.

    >>> from everlog.core.program import Variable
    >>> x, y, z = map(Variable, "xyz")
    >>> body = Atom("e", (x, y)), Atom("e", (y, z)), Negation(Atom("e", (x, z)))
    >>> for delta in delta_rules(Rule(Atom("q", (x, z)), body), "e"):
    ...     print(f"{delta.event}, {'before' if delta.before else 'after'}: {delta}")
    delete, before: q(x, z) -:= Δe(x, y), e(y, z), !e(x, z).
    delete, before: q(x, z) -:= e(x, y), Δe(y, z), !e(x, z), !Δe(x, y).
    delete, after: q(x, z) +:= e(x, y), e(y, z), Δe(x, z).
    insert, before: q(x, z) -:= e(x, y), e(y, z), Δe(x, z).
    insert, after: q(x, z) +:= e(x, y), Δe(y, z), !e(x, z), !Δe(x, y).
    insert, after: q(x, z) +:= Δe(x, y), e(y, z), !e(x, z).
    """
    return tuple(each_delta_rule(rule, relation))

"""Terms of the calculus: the constructs of Section 2, and notation for them.

The first half is NRC^aggr itself; the second half is notation for people.  `ies.nrc.desugar` turns
any term into one of the first half, by the equations of the paper; the evaluator runs both, and a
law compares them.

Equality of terms ignores their place in the text (`pos`, `end`, offsets as in dsl.source).

Source: Libkin and Wong, Section 2 (typing rules; comprehension notation; pattern matching).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from attrs import field, frozen

from everlog.ies.nrc.types import Type


@frozen
class _Node:
    pos: int = field(default=-1, eq=False, repr=False, kw_only=True)
    end: int = field(default=-1, eq=False, repr=False, kw_only=True)


# ── patterns ─────────────────────────────────────────────────────────────────────────────────────


@frozen
class Bind(_Node):
    """A variable that takes the value at its place; `_` takes none."""

    name: str


@frozen
class Parts(_Node):
    """A tuple of patterns."""

    parts: tuple[Pattern, ...]


Pattern: TypeAlias = Bind | Parts


# ── NRC^aggr ─────────────────────────────────────────────────────────────────────────────────────


@frozen
class Var(_Node):
    """A variable: a relation, a part of the update, or bound by a pattern."""

    name: str


@frozen
class Const(_Node):
    """A constant: a bool, a number, or a string (of any named base type)."""

    value: bool | int | Fraction | str = field(eq=lambda value: (type(value), value))  # true is not 1


@frozen
class Tuple(_Node):
    parts: tuple[Term, ...]


@frozen
class Project(_Node):
    """πᵢ e, counted from 1: `e.1`."""

    of: Term
    index: int


@frozen
class Empty(_Node):
    """{}, of the type that its place needs; `element` if stated: `{} : {num}`."""

    element: Type | None = None


@frozen
class Single(_Node):
    """{e}."""

    of: Term


@frozen
class Union(_Node):
    """e1 union e2."""

    left: Term
    right: Term


@frozen
class BigUnion(_Node):
    """⋃{body | pattern ∈ source}: `union{ body | pattern in source }`."""

    body: Term
    pattern: Pattern
    source: Term


@frozen
class Sum(_Node):
    """Σ{|body | pattern ∈ source|}, with duplicates.

    Written `sum{| body | pattern in source |}`.
    """

    body: Term
    pattern: Pattern
    source: Term


@frozen
class Equal(_Node):
    """e1 = e2, at every type."""

    left: Term
    right: Term


@frozen
class If(_Node):
    condition: Term
    then: Term
    other: Term


@frozen
class Arith(_Node):
    """Arithmetic on exact rationals; `op` is one of + - * /.

    `modulus`, if not 0, selects the field of the integers modulo that prime (`e1 *[p] e2`).  It is
    the only extension of the paper, for systems that store a matrix inverse.
    """

    op: str
    left: Term
    right: Term
    modulus: int = 0


@frozen
class AtMost(_Node):
    """e1 ≤ e2, on rationals."""

    left: Term
    right: Term


# ── what is short for them ───────────────────────────────────────────────────────────────────────


@frozen
class Generator(_Node):
    """`pattern in source`."""

    pattern: Pattern
    source: Term


Qualifier: TypeAlias = "Generator | Term"  # a generator, or a condition


@frozen
class Comprehension(_Node):
    """{head | qualifiers}."""

    head: Term
    qualifiers: tuple[Qualifier, ...]


@frozen
class SumOf(_Node):
    """sum{| head | qualifiers |}."""

    head: Term
    qualifiers: tuple[Qualifier, ...]


@frozen
class Exists(_Node):
    """exists{qualifiers}: whether the comprehension has an element."""

    qualifiers: tuple[Qualifier, ...]


@frozen
class ForAll(_Node):
    """all{condition | qualifiers}: whether the condition holds for each."""

    condition: Term
    qualifiers: tuple[Qualifier, ...]


@frozen
class In(_Node):
    """e1 in e2; `e1 not in e2` is Not(In(...))."""

    element: Term
    of: Term


@frozen
class Minus(_Node):
    """e1 minus e2, of sets."""

    left: Term
    right: Term


@frozen
class Intersect(_Node):
    """e1 intersect e2, of sets."""

    left: Term
    right: Term


@frozen
class Subset(_Node):
    """e1 subset e2 (or equal)."""

    left: Term
    right: Term


@frozen
class And(_Node):
    left: Term
    right: Term


@frozen
class Or(_Node):
    left: Term
    right: Term


@frozen
class Not(_Node):
    of: Term


@frozen
class Less(_Node):
    """e1 < e2, on rationals; `>` and `>=` become `<` and `<=` with sides exchanged."""

    left: Term
    right: Term


@frozen
class Let(_Node):
    """let pattern = value in body."""

    pattern: Pattern
    value: Term
    body: Term


@frozen
class Call(_Node):
    """A call of a function defined by `def`; not recursive, checked at each call."""

    function: str
    arguments: tuple[Term, ...]


Core: TypeAlias = (
    Var | Const | Tuple | Project | Empty | Single | Union | BigUnion | Sum | Equal | If | Arith | AtMost
)
Short: TypeAlias = (  # for terms of the core
    Comprehension | SumOf | Exists | ForAll | In | Minus | Intersect | Subset | And | Or | Not | Less | Let | Call
)
Term: TypeAlias = Core | Short


@frozen
class Definition(_Node):
    """def name(parameters) = body."""

    name: str
    parameters: tuple[str, ...]
    body: Term

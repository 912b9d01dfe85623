"""The operations of a plan, and the versions of the relations that they read.

A plan runs depth first.  `Scan`, `Probe` and `Count` are loops: each row gives values to variables,
and the operations below run for it.  A test that fails returns to the loop above it.  `Add`
stands at the bottom: it derives a fact.

Operands are variables and constants.  A term that computes something is a `Let` before its use; in
plans for Python (`set_operations`) it may stand anywhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Constant, Kind, Literal, Rule, Term, Variable
from everlog.core.storage.shape import Columns

Operand: TypeAlias = Term  # for the compiled machine: a variable or a constant
Key: TypeAlias = tuple[tuple[int, Operand], ...]  # columns, ascending, with the values they must have
Binds: TypeAlias = tuple[tuple[int, Variable], ...]  # columns, ascending, with the variables that get them


class Version(StrEnum):
    """The facts that an operation reads, as of the beginning of a round."""

    ALL = "all"
    OLD = "old"  # without those of the last round
    DELTA = "Δ"  # those of the last round


@frozen
class Source:
    """A version of a relation."""

    relation: str
    arity: int
    version: Version = Version.ALL


@frozen
class Index:
    """The values of the columns `rest`, for each value of the columns `key`."""

    source: Source
    key: Columns
    rest: Columns


@frozen
class Scan:
    """A loop over all rows.

    In plans for Python, `columns` are those of the rows, and of a single column only values come
    that are keys of the indexes in `cut`.
    """

    source: Source
    binds: Binds
    columns: Columns = ()
    cut: tuple[Index, ...] = ()


@frozen
class Probe:
    """A loop over the rows with some values, through an index."""

    source: Source
    key: Key
    binds: Binds
    cut: tuple[Index, ...] = ()


@frozen
class Exists:
    """A test that some row has these values; `negated`: that none has."""

    source: Source
    key: Key
    negated: bool = False


@frozen
class Compare:
    op: str
    left: Operand
    right: Operand
    kind: Kind


@frozen
class Let:
    """The value of a functor; without a name, the value of its only argument."""

    target: Variable
    functor: str
    args: tuple[Operand, ...]
    operand: Kind
    kind: Kind


@frozen
class Unknown:
    """A test that the fact to be derived is not there yet, before loops that it does not need."""

    relation: str
    args: tuple[Operand, ...]


@frozen
class Add:
    """Derive a fact.  Then the innermost `leave` loops end: they bind nothing of it."""

    relation: str
    args: tuple[Operand, ...]
    leave: int = 0


@frozen
class Count:
    """A loop over the values of a range; `is_test`: a test that `target` is one of them."""

    target: Variable
    bounds: tuple[Operand, ...]
    kind: Kind
    is_test: bool = False


@frozen
class Fold:
    """The value of an aggregate over what `body` finds, once for each value of `outer`.

    `body` has variables of its own; of those around it, it reads `outer` alone.  Without a value
    (`min`, `max` and `mean` over nothing) the fold fails as a test does.
    """

    target: Variable
    op: str
    value: Operand | None  # computed in the body
    outer: tuple[Variable, ...]
    body: tuple[Operation, ...]
    value_kind: Kind
    kind: Kind
    start: Constant | None = None  # of a function of the user: `op` is `@f`


Loop: TypeAlias = Scan | Probe | Count
Operation: TypeAlias = Scan | Probe | Count | Exists | Compare | Let | Fold | Unknown | Add


def is_loop(operation: Operation) -> bool:
    return isinstance(operation, Scan | Probe) or (isinstance(operation, Count) and not operation.is_test)


@frozen
class Step:
    """An atom or a range in the order in which a plan joins them, with what the planner expected.

    `operation` reads it; `within` counts the aggregates around it.  `tried` and `kept` are rows in
    all; inside an aggregate, for one value of its outer variables.
    """

    literal: Literal
    operation: Operation
    tried: float
    kept: float
    bound: frozenset[Variable]  # those of its variables that have values before
    within: int = 0


@frozen
class Plan:
    """One version of a rule; `delta` is the place of the atom that reads Δ, if one does."""

    rule: Rule
    delta: int | None
    operations: tuple[Operation, ...]
    steps: tuple[Step, ...] = ()

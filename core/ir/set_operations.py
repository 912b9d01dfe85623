"""The operations of plans for Python: those on rows, on sets of values, and actions at the bottom.

A plan runs depth first.  A loop gives values to variables, and the operations below run for each
turn.  A test that fails goes on with the next turn of the loop above it.  `Derive` stands at the
bottom: it says what becomes of a derivation.

The operations on sets serve a *set variable*, which is never looped over: `Entry` and `Union` name
sets of its values, `Without` and `Filter` cut them down, and `Derive` takes their intersection.
Operands may be terms that compute something.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import field, frozen

from everlog.core.codegen.join_estimates import Estimate
from everlog.core.ir.operations import Binds, Compare, Exists, Index, Key, Let, Operand, Probe, Scan, Source
from everlog.core.ir.uses import Action, Use
from everlog.core.program import Aggregate, Atom, Range, Rule, Term, Variable
from everlog.core.program.aggregates.ordered_groups import OrderedAggregate


@frozen
class Local:
    """A set that an operation has given a name."""

    name: str

    def __str__(self) -> str:
        return self.name


# ── loops ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Each:
    """A loop over a set that is there, or over a range of numbers."""

    variables: tuple[Variable, ...]
    values: Local | Range
    cut: tuple[Index, ...] = ()


@frozen
class Keys:
    """A loop over the keys of an index; `values` is the set of each."""

    index: Index
    binds: Binds
    values: Local


@frozen
class Row:
    """The one row of Δ, whose columns have names already."""

    source: Source
    binds: Binds


# ── sets ─────────────────────────────────────────────────────────────────────────────────────


@frozen
class Entry:
    """The set that an index has for a key, or all values of a column; nothing matches without."""

    values: Local
    index: Index
    key: Key


@frozen
class Union:
    """The union of what an index has for all turns of a loop, which is not run."""

    values: Local
    index: Index
    over: Scan | Probe | Each
    leads_into_loop: bool = False
    is_outside: bool = False  # of loops that do not need it: without values, they are left out


@frozen
class Numbers:
    """A range of numbers under a name, where computing it may fail."""

    values: Local
    numbers: Range


@frozen
class Sets:
    """The sets that the set variable is in, and the values that it is not."""

    members: tuple[Local, ...] = ()
    dropped: tuple[Variable, ...] = ()


@frozen
class Without:
    """What the sets have in common, without what an index has for a key."""

    values: Local
    sets: Sets
    index: Index
    key: Key


@frozen
class Filter:
    """The values that the sets have in common and for which a comparison holds."""

    values: Local
    sets: Sets
    variable: Variable
    test: Compare


# ── tests and values ─────────────────────────────────────────────────────────────────────────


@frozen
class Member:
    """A test that a set has a value."""

    term: Term
    values: Local | Range


@frozen
class Filled:
    """A test that a set has any value."""

    values: Local


@frozen
class Leads:
    """A test that a value is a key of an index."""

    variable: Variable
    index: Index


@frozen
class Same:
    """A test that two values are the same; NaN is the same as itself."""

    left: Operand
    right: Operand


@frozen
class Lookup:
    """The value of an aggregate, from those that are kept for each group."""

    target: Variable
    literal: Aggregate


@frozen
class Total:
    """The value of an aggregate, computed: for `one` group, or by a plan for `every` group.

    `turns` is how many groups may be computed one by one for the cost of computing all.  Of an
    aggregate over intervals of an order, `every` puts all facts in order.
    """

    target: Variable
    literal: Aggregate
    one: SetPlan
    every: SetPlan | None
    turns: int
    ordered: OrderedAggregate | None = None


@frozen
class Broken:
    """Fail if a value that was looked up is a failure."""

    value: Variable


@frozen
class Guarded:
    """Operations that may fail: then the rule fails, unless another condition excludes it."""

    operations: tuple[SetOperation, ...]


# ── the bottom ───────────────────────────────────────────────────────────────────────────────


@frozen
class Derive:
    """What becomes of a derivation.  `groups` and `target` are those of an aggregate.

    `factor` is a loop that is not run: the head has all its values, each with all of the sets.
    """

    action: Action
    head: Atom
    sets: Sets = Sets()
    groups: tuple[Variable, ...] = ()
    target: Term | None = None
    keyed: bool = False  # facts are sets of values, one for each key
    factor: Scan | Probe | Each | None = None


@frozen
class Gather:
    """The innermost loop, which has only tests and the action in it, as one expression."""

    loop: Loop
    tests: tuple[SetOperation, ...]
    derive: Derive


Loop: TypeAlias = Scan | Probe | Each | Keys
Test: TypeAlias = Exists | Member | Filled | Compare | Same
Setting: TypeAlias = Entry | Union | Numbers | Without | Filter
SetOperation: TypeAlias = (
    Loop | Row | Test | Setting | Leads | Let | Lookup | Total | Broken | Guarded | Derive | Gather
)
LOOPS = (Scan, Probe, Each, Keys)
TESTS = (Exists, Member, Filled, Compare, Same)


@frozen
class SetPlan:
    """One version of a rule; `delta` is the place of the atom that reads Δ, if one does."""

    rule: Rule
    delta: int | None
    operations: tuple[SetOperation, ...]
    use: Use
    given: tuple[Variable, ...] = ()  # those that have values before the plan begins
    set_variable: Variable | None = None
    temporaries: int = 0  # names that the plan has made
    cost: float = field(default=0.0, eq=False)  # estimated steps
    estimates: tuple[Estimate, ...] = field(default=(), eq=False)  # its atoms in order

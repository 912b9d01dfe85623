"""An incremental evaluation system, IES(L): what is stored, and what an update makes of it.

A system keeps the answer of a query beside the input, with auxiliary relations that help.  For an
insert and for a delete of one tuple it says, in the calculus, what the answer and each auxiliary
relation become; all of them are computed from the old state, and then take effect together.

Here stands what a system is.  `ies.validation` checks one (types, completeness) when it is made,
`ies.running` runs it, `ies.properties` computes what it is like; `.nrc` files are read by
`ies.files`.

Source: Libkin and Wong, Section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import field, frozen

from everlog.ies.nrc.terms import Definition, Pattern, Term
from everlog.ies.nrc.types import SetOf

Event: TypeAlias = Literal["insert", "delete"]
DEFAULT_LIMIT = 100_000  # values in auxiliary relations, past which a running system refuses to grow


@frozen
class _Placed:
    """What may stand in a text: `pos` and `end` are offsets there, -1 if not known, and no part of
    what it is.
    """

    pos: int = field(default=-1, eq=False, repr=False, kw_only=True)
    end: int = field(default=-1, eq=False, repr=False, kw_only=True)


@frozen
class Stored(_Placed):
    """A relation of a system: its name, its type, and what it holds in a few words."""

    name: str
    type: SetOf
    meaning: str = ""


@frozen
class Requirement:
    """What an update must fulfil to be permissible; otherwise it is refused, with this reason."""

    condition: Term
    otherwise: str


@frozen
class Becomes:
    """relation := term."""

    value: Term


@frozen
class Differs:
    """relation := (relation minus gone) union new, written `relation -= gone; relation += new`.

    Both are computed from the old state.  The same function as `Becomes` with that term; said this
    way, an update costs what changes.
    """

    gone: Term | None = None
    new: Term | None = None


Change: TypeAlias = Becomes | Differs


@frozen
class Update(_Placed):
    """The functions for one kind of update: of the answer and of each auxiliary relation.

    `tuple_` binds the parts of the updated tuple.  `bindings` are values that several functions
    share, each may use those before it.  A stored relation that `changes` does not name stays as it
    is.  An insert of a tuple that is there, or a delete of one that is not, is an update like any
    other, for which the functions must be right.  `effective` is short for functions that then
    change nothing (`on insert new`, `on delete present`).
    """

    event: Event
    relation: str
    tuple_: Pattern
    bindings: tuple[tuple[Pattern, Term], ...]
    requirements: tuple[Requirement, ...]
    changes: Mapping[str, Change]
    effective: bool = False


@frozen
class Example:
    """A worked example: updates as text, and what relations are after them."""

    steps: tuple[tuple[str, Mapping[str, Term]], ...]  # (`+edge(1, 2).`, {relation: expected value})


@frozen
class SriForm:
    """`sri element, so_far => step from start`, then `shows so_far => term`: Theorem 5 makes a
    system of it.

    Requirements are for an element that is about to come, where `so_far` stands for the whole
    input.
    """

    element: str
    so_far: str
    step: Term
    start: Term
    shows: tuple[str, Term] | None = None
    requirements: tuple[Requirement, ...] = ()


@frozen
class System:
    """One system.  `about` is prose; `growth` says how large the auxiliaries get; `instead` names
    what to use.
    """

    name: str
    title: str
    theorem: str
    inputs: tuple[Stored, ...]
    answer: Stored
    auxiliaries: tuple[Stored, ...]
    initial: Mapping[str, Term]
    updates: Mapping[tuple[Event, str], Update]
    definitions: tuple[Definition, ...] = ()
    about: str = ""
    growth: str = ""
    exponential: bool = False
    cost: str = ""
    query: str = ""  # the Datalog program that says what the answer is, for the oracle
    instead: str = ""
    examples: tuple[Example, ...] = field(default=())
    sri: SriForm | None = None  # where it is given, `ies.sri` makes auxiliaries and updates of it

    @property
    def stored(self) -> tuple[Stored, ...]:
        """Input, answer and auxiliary relations."""
        return (*self.inputs, self.answer, *self.auxiliaries)

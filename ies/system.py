"""The data of an incremental evaluation system, IES(L).

A system maintains the answer of a query beside the input, with the help of auxiliary relations. For
an insert and for a delete of one tuple it gives, in the calculus, the next value of the answer and
of each auxiliary relation.  All are computed from the old state and then take effect together.

`ies.validation` checks a system (types, completeness), `ies.running` runs it, `ies.properties`
computes its properties, and `ies.files` reads `.nrc` files.

Source: Libkin and Wong, Section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import field, frozen

from everlog.ies.nrc.terms import Definition, Pattern, Term
from everlog.ies.nrc.types import SetOf

Event: TypeAlias = Literal["insert", "delete"]
DEFAULT_LIMIT = 100_000  # values in auxiliary relations at which a running system stops growing


@frozen
class _Placed:
    """A node with an optional place in a text.

    `pos` and `end` are offsets, -1 if not known; equality ignores them.
    """

    pos: int = field(default=-1, eq=False, repr=False, kw_only=True)
    end: int = field(default=-1, eq=False, repr=False, kw_only=True)


@frozen
class Stored(_Placed):
    """A relation of a system: its name, its type, and its meaning in a few words."""

    name: str
    type: SetOf
    meaning: str = ""


@frozen
class Requirement:
    """A condition that an update must meet; if not, it is refused with this reason."""

    condition: Term
    otherwise: str


@frozen
class Becomes:
    """relation := term."""

    value: Term


@frozen
class Differs:
    """relation := (relation minus gone) union new.

    Written `relation -= gone; relation += new`; both are computed from the old state.  It is the
    same function as `Becomes` with that term, but an update costs only the change.
    """

    gone: Term | None = None
    new: Term | None = None


Change: TypeAlias = Becomes | Differs


@frozen
class Update(_Placed):
    """The functions of one kind of update: for the answer and each auxiliary.

    `tuple_` binds the parts of the updated tuple.  `bindings` are values that several functions
    share; each may use those before it.  A stored relation that `changes` does not name stays as it
    is.  An insert of a present tuple, or a delete of an absent one, is an update like any other,
    and the functions must be right for it.  `effective` marks functions that then change nothing
    (`on insert new`, `on delete present`).
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
    """A worked example: updates as text, with the expected relations after them."""

    steps: tuple[tuple[str, Mapping[str, Term]], ...]  # (`+edge(1, 2).`, {relation: expected value})


@frozen
class SriForm:
    """`sri element, so_far => step from start`, then `shows so_far => term`.

    Theorem 5 turns it into a system.  Requirements apply to an element before its insert; there
    `so_far` is the value for the whole input.
    """

    element: str
    so_far: str
    step: Term
    start: Term
    shows: tuple[str, Term] | None = None
    requirements: tuple[Requirement, ...] = ()


@frozen
class System:
    """One system.

    `about` is prose; `growth` says how large the auxiliaries get; `instead` names a system to use
    in its place.
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
    query: str = ""  # the Datalog program that defines the answer, for the oracle
    instead: str = ""
    examples: tuple[Example, ...] = field(default=())
    sri: SriForm | None = None  # if set, `ies.sri` makes auxiliaries and updates of it

    @property
    def stored(self) -> tuple[Stored, ...]:
        """Input, answer and auxiliary relations."""
        return (*self.inputs, self.answer, *self.auxiliaries)

"""What a plan is for: the action at its head, and how the code around it behaves.

| action | what becomes of a derivation |
|---|---|
| `ADD` | its fact is added to a set |
| `LEAST`, `GREATEST` | its head `(value, key…)` offers a value; the best one of each key is kept |
| `ROWS` | its head is added to a set of rows |
| `COUNT` | the derivations of its fact are counted |
| `EARLIER` | those of its fact are counted that use facts of lower ranks only |
| `YIELD` | its head is an answer of a generator |
| `COLLECT` | an aggregate takes in the value of its target |
| `PLACE` | an aggregate over intervals takes it in, with its place in the order |

The facts of a recursive unit have ranks (core.engine.keepers.recursive): a fact has a higher rank
than those of one of its derivations.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from attrs import frozen

from everlog.core.program import Atom, Rule
from everlog.core.program.bodies import may_fail

FEW = 16  # values of a key that are looked up one by one


class Action(StrEnum):
    ADD = "add"
    LEAST = "least"
    GREATEST = "greatest"
    ROWS = "row"
    COUNT = "count"
    EARLIER = "earlier"
    YIELD = "yield"
    COLLECT = "collect"
    PLACE = "place"


@frozen
class Meter:
    """How code counts its work, as `core.engine.stepping.work` explains.

    `counter` has the work, the matches, the rows of Δ, and a limit of the work; code that passes
    the limit raises `stop`.  `local` names the local that counts; `begin` and `end` are lines of
    each function, in which `{0}` is the counter.
    """

    counter: list[int]
    stop: type[Exception]
    local: str
    turn: int  # units of work for one turn of a loop
    begin: str = ""
    end: str = ""
    counts_rows: bool = False
    counts_matches: bool = False  # in `_m`
    counts_values: bool = False  # of a set in the head, before the action
    union: int = 0  # units of work for one key of a union
    look_up: int = 0  # units of work to look up a key in each turn of a loop


@frozen
class Use:
    """The action of a plan, and what holds for the whole of it."""

    action: Action = Action.ADD
    living: bool = False  # aggregates are looked up, and every variable of the body is kept
    known: bool = False  # facts are left out that the head's relation has
    lazy: bool = False  # indexes that are asked key by key need not be there as a whole
    guards: bool = True  # failures are told apart here, and not left to the caller
    row_given: bool = False  # Δ is one row, whose values have names
    row_by_row: bool = False  # Δ is gone through row by row, as single updates do
    ranked: frozenset[str] = frozenset()  # the relations whose facts have ranks
    failing: frozenset[str] = frozenset()  # groups whose value may be a failure
    meter: Meter | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether each binding of all variables counts; otherwise only the head's are needed."""
        return self.living or self.action in (Action.YIELD, Action.COLLECT)


FACTS = Use()  # which facts there are


def is_risky(rule: Rule, failing: Collection[str]) -> bool:
    """Whether a condition of a rule may fail, or reads a group of those that may."""
    return any(may_fail(x) or (isinstance(x, Atom) and x.relation in failing) for x in rule.body)

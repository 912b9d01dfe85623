"""What a plan is for: the action at its head, and how the code around it behaves.

| action | what becomes of a derivation |
|---|---|
| `ADD` | its fact is added to a set |
| `LEAST`, `GREATEST` | its head `(value, key…)` offers a value; the best one of each key is kept |
| `ROWS` | its head is added to a set of rows |
| `COUNT` | the derivations of its fact are counted |
| `WITNESS` | a fact that is not there yet gets it as its witness |
| `SUSPECT` | the fact whose witness it is becomes suspect |
| `SAVE` | its fact, whose witness is lost, gets it as another one |
| `RESTORE` | the same with suspects as Δ; a key is left when all its facts are saved |
| `YIELD` | its head is an answer of a generator |
| `COLLECT` | an aggregate takes in the value of its target |
| `PLACE` | an aggregate over intervals takes it in, with its place in the order |

A witness is `(number of the rule, values of the hidden variables)`.  Hidden are the variables of
the body that the head does not show, so head and witness name every fact that was used.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from attrs import frozen

from everlog.core import program as p
from everlog.core.program import Atom, Rule, Variable
from everlog.core.program.bodies import may_fail, variables_of_literal

FEW = 16  # values of a key that are looked up one by one


class Action(StrEnum):
    ADD = "add"
    LEAST = "least"
    GREATEST = "greatest"
    ROWS = "row"
    COUNT = "count"
    WITNESS = "witness"
    SUSPECT = "suspect"
    SAVE = "save"
    RESTORE = "restore"
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
    number: int = 0  # of the rule, in witnesses
    grouped: bool = False  # witnesses stand for sets of facts: see core.engine.keepers.recursive.proofs
    failing: frozenset[str] = frozenset()  # groups whose value may be a failure
    meter: Meter | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether each binding of all variables counts; otherwise only the head's are needed."""
        return self.living or self.action in (Action.YIELD, Action.COLLECT)

    @property
    def has_witness(self) -> bool:
        return self.action in (Action.WITNESS, Action.SUSPECT, Action.SAVE, Action.RESTORE)


FACTS = Use()  # which facts there are


def hidden_variables(rule: Rule) -> tuple[Variable, ...]:
    """The variables of a rule's body that its head does not show, sorted by name.

    Computed arguments are left out: they follow from the others.

    >>> x, y, z = map(Variable, "xyz")
    >>> body = Atom("path", (x, y)), Atom("edge", (y, z))
    >>> print(*hidden_variables(Rule(Atom("path", (x, z)), body)))
    y
    """
    found = dict.fromkeys(v for literal in rule.body for v in variables_of_literal(literal))
    computed = p.computed_arguments(rule.body)
    hidden = (v for v in found if v not in rule.head.args and v not in computed)
    return tuple(sorted(hidden, key=lambda v: v.name))


def is_risky(rule: Rule, failing: Collection[str]) -> bool:
    """Whether a condition of a rule may fail, or reads a group of those that may."""
    return any(may_fail(x) or (isinstance(x, Atom) and x.relation in failing) for x in rule.body)

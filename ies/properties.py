"""Properties of a system, computed rather than declared.

Space-free, flat, the arity of the auxiliaries, aggregates and height follow from its types and
terms.  A system is deterministic if answer and auxiliaries depend on the input only, not on its
history.  The calculus may be unable to express that dependency, so only experiments can test it.
They compare pairs of histories that end in the same input.  One pair with different relations
proves that the system is not deterministic.  No such pair is evidence, and the number of histories
says how much.  Experiments end after about half a second.

Source: Libkin and Wong, Section 3, and before Corollary 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from time import monotonic
from typing import TypeAlias

from attrs import frozen

from everlog.dsl.diagnostics import Report
from everlog.dsl.source import Source
from everlog.ies.calculus_system import Rowwise
from everlog.ies.nrc.check import check
from everlog.ies.nrc.terms import Arith, Call, Definition, Sum, SumOf, Term
from everlog.ies.nrc.types import Base, Product, SetOf, Type, Value, columns, height
from everlog.ies.nrc.walk import everywhere
from everlog.ies.practical.protocol import Described, Practical, Row
from everlog.ies.system import Event, System
from everlog.ies.validation import definitions_of, typed_terms

Step: TypeAlias = tuple[Event, str, Row]
Fact: TypeAlias = tuple[str, Row]
Runs: TypeAlias = Practical | Rowwise

HISTORIES = 40
SECONDS = 0.5


@frozen
class Determinism:
    """The result of the experiments.

    `differ` holds two histories of one input with different relations, if found.
    """

    histories: int
    differ: tuple[tuple[Step, ...], tuple[Step, ...]] | None = None

    @property
    def holds(self) -> bool:
        return self.differ is None

    def __str__(self) -> str:
        if not self.histories:
            return "not known: no two of the histories that were tried were permitted"
        if self.holds:
            return f"yes, as far as tried: {self.histories} histories"
        return f"no: two histories of the same input leave different relations (after {self.histories} histories)"


@frozen(kw_only=True)
class Storage:
    """Properties that need no terms.

    `arity` is that of the widest auxiliary relation: 0 if there is none, None if one is nested.
    """

    space_free: bool
    flat: bool
    arity: int | None
    deterministic: Determinism


@frozen(kw_only=True)
class Properties(Storage):
    """Properties of a system of the calculus."""

    aggregates: bool
    height: int  # of types and terms together

    @property
    def language(self) -> str:
        """The class of the paper that the system puts its query in.

        With aggregates, a space-free or flat system is in IES(SQL); without, its terms are those of
        NRC.
        """
        ambient = "NRC^aggr" if self.aggregates else "NRC"
        if self.space_free:
            return f"space-free IES({ambient})"
        if self.flat:
            return f"IES(SQL)_{self.arity}"
        return f"IES({ambient})"


def properties(system: System, histories: int = HISTORIES, seed: int = 0) -> Properties:
    """All properties of a checked system."""
    kept = storage(Rowwise(system), histories, seed)
    return Properties(
        space_free=kept.space_free,
        flat=kept.flat,
        arity=kept.arity,
        deterministic=kept.deterministic,
        aggregates=uses_aggregates(system),
        height=system_height(system),
    )


def storage(running: Runs, histories: int = HISTORIES, seed: int = 0) -> Storage:
    """The properties that any system has, also one in Python.

    >>> from everlog.ies.registry import running
    >>> storage(running("tc_witness")).arity
    3
    """
    types = [kept.type for kept in running.system.auxiliaries]
    flat = all(height(type_) == 1 for type_ in types)
    return Storage(
        space_free=not types,
        flat=flat,
        arity=max((len(columns(type_.element)) for type_ in types), default=0) if flat else None,
        deterministic=determinism(running, histories, seed),
    )


# ── from types and terms ─────────────────────────────────────────────────────────────────────────


def uses_aggregates(system: System) -> bool:
    """Whether a function uses Σ or arithmetic, itself or in a call."""
    definitions = definitions_of(system)
    terms = [term for term, _, _ in typed_terms(system, _report(system))]
    return any(isinstance(node, (Sum, SumOf, Arith)) for term in terms for node in _reached(term, definitions))


def system_height(system: System) -> int:
    """The height of its relations and of all terms, subterms included."""
    report = _report(system)
    definitions = definitions_of(system)
    heights = [height(stored.type) for stored in system.stored]
    for term, scope, want in typed_terms(system, report):
        checked = check(term, scope, definitions, report, want)
        assert checked is not None, report.text()
        heights.append(checked.height)
    return max(heights)


def _report(system: System) -> Report:
    return Report(Source("", system.name))


def _reached(term: Term, definitions: Mapping[str, Definition]) -> Iterator[Term]:
    met: set[str] = set()
    waiting = [term]
    while waiting:
        for node in everywhere(waiting.pop()):
            yield node
            if isinstance(node, Call) and node.function in definitions and node.function not in met:
                met.add(node.function)
                waiting.append(definitions[node.function].body)


# ── by trying ────────────────────────────────────────────────────────────────────────────────────


def determinism(
    system: System | Runs, histories: int = HISTORIES, seed: int = 0, seconds: float = SECONDS
) -> Determinism:
    """Whether histories of the same input leave the same answer and auxiliaries."""
    running = Rowwise(system) if isinstance(system, System) else system
    chance = Random(seed)
    universe = _universe(running.system)
    compared, stop = 0, monotonic() + seconds
    for _ in range(10 * histories):  # a pair is skipped if one of its updates is rejected
        goal = chance.sample(universe, min(len(universe), chance.randint(0, 5)))
        first = _ended(running, _history(goal, universe, chance), goal)
        second = first and _ended(running, _history(goal, universe, chance), goal)
        if first is not None and second is not None:
            compared += 2
            if first[0] != second[0]:
                return Determinism(compared, (first[1], second[1]))
        if compared >= histories or (compared and monotonic() > stop):  # compare at least one pair
            break
    return Determinism(compared)


def _ended(
    running: Runs, history: Sequence[Step], goal: Sequence[Fact]
) -> tuple[dict[str, frozenset[Row]], tuple[Step, ...]] | None:
    """The relations after a history, and its updates; None if it misses the goal."""
    trial = running.anew()
    taken: list[Step] = []
    for event, relation, row in history:
        try:
            (trial.insert if event == "insert" else trial.delete)(relation, row)
        except (ValueError, ArithmeticError):  # rejected, too large, or undefined
            continue
        taken.append((event, relation, row))
    system = trial.system
    held = {(stored.name, row) for stored in system.inputs for row in trial.view(stored.name)}
    if held != set(goal):
        return None
    kept = (system.answer, *system.auxiliaries)
    return {stored.name: frozenset(trial.view(stored.name)) for stored in kept}, tuple(taken)


def _history(goal: Sequence[Fact], universe: Sequence[Fact], chance: Random) -> list[Step]:
    """A random history that ends in the goal.

    It inserts the goal in some order, mixed with inserts and deletes of other rows, and repeats
    some inserts.
    """
    steps: list[Step] = [("insert", *row) for row in goal]
    chance.shuffle(steps)
    for row in chance.sample(universe, min(len(universe), 3)):
        start = chance.randint(0, len(steps))
        steps.insert(start, ("insert", *row))
        if row not in goal:
            steps.insert(chance.randint(start + 1, len(steps)), ("delete", *row))
    return steps


def _universe(system: System | Described) -> list[Fact]:
    """Every row of every input over a few constants."""
    return [
        (stored.name, value if isinstance(value, tuple) else (value,))
        for stored in system.inputs
        for value in few_values(stored.type.element)
    ]


def few_values(type_: Type, number: int = 4) -> list[Value]:
    """Values of a flat type over a few constants: numbers from 0, or texts."""
    match type_:
        case Base("bool"):
            return [False, True]
        case Base("num"):
            return list(range(number))
        case Base():
            return [f"{type_.name[0]}{n}" for n in range(number)]
        case Product(parts):
            return [tuple(values) for values in product(*(few_values(part, number) for part in parts))]
        case SetOf():
            raise AssertionError(f"{type_} is not the type of a flat tuple")

"""Rows that an order of joins tries and keeps, where the machine works on sets and counts neither.

For readers: a rule is joined once more, row by row, as the reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from everlog.core.evaluate.reference import NaiveEvaluation
from everlog.core.program import Atom, Literal, Negation, Program, Range, Row, Rule, Value, Wildcard, atoms_of
from everlog.core.program.bodies import is_ready, needs
from everlog.core.program.values import EvaluationError

MOST = 100_000  # rows that are tried, or read, before counting is given up

Rows = Callable[[str], Iterable[Row]]
Bindings = list[dict[str, Value]]


def counted(
    program: Program, rule: Rule, order: Sequence[int], rows: Rows, size: Callable[[str], int]
) -> list[tuple[int, int]] | None:
    """The rows tried and kept by each atom or range of a body, in this order.

    None if they are too many, or if a functor has no value.
    """
    names = {atom.relation for atom, _ in atoms_of(rule.body)}
    if sum(map(size, names)) > MOST:
        return None
    facts = NaiveEvaluation(program)
    facts.facts.update({name: list(rows(name)) for name in names})
    try:
        return _counted(facts, rule.body, order)
    except EvaluationError:
        return None


def _counted(
    facts: NaiveEvaluation, body: Sequence[Literal], order: Sequence[int]
) -> list[tuple[int, int]] | None:
    waiting: list[Literal] = []
    waiting += [literal for literal in body if not isinstance(literal, Atom | Range)]
    kept = _tested(facts, waiting, [{}])
    found: list[tuple[int, int]] = []
    for place in order:
        tried: Bindings = []
        for binding in kept:
            tried += facts.matches(body[place], binding)
            if len(tried) > MOST:
                return None
        looked_at = len(kept) if len(tried) <= len(kept) and _is_test(body[place], kept) else len(tried)
        kept = _tested(facts, waiting, tried)
        found.append((looked_at, len(kept)))
    return found


def _is_test(literal: Literal, bindings: Bindings) -> bool:
    """Whether all columns of an atom have values, so that a row is there or not."""
    if not isinstance(literal, Atom) or any(isinstance(arg, Wildcard) for arg in literal.args):
        return False
    return needs(Negation(literal)) <= (bindings[0].keys() if bindings else set())


def _tested(facts: NaiveEvaluation, waiting: list[Literal], bindings: Bindings) -> Bindings:
    """The bindings that pass the tests that are ready, which wait no longer."""
    while bindings:
        ready = next((literal for literal in waiting if is_ready(literal, bindings[0])), None)
        if ready is None:
            break
        waiting.remove(ready)
        bindings = [wider for binding in bindings for wider in facts.matches(ready, binding)]
    return bindings

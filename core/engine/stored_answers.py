"""Queries over stored rows, without an engine: look-ups nested in each other.

Each atom of a body is looked up by the values that its first columns have by then.  That reads a
few blocks for each partial answer, which is less than loading the database, until there are many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from everlog.core.engine.stored_rows import StoredRows
from everlog.core.evaluate.reference import NaiveEvaluation, same
from everlog.core.program import (
    PARAMETERS,
    Aggregate,
    Atom,
    Literal,
    Negation,
    Program,
    Row,
    Rule,
    Value,
    Variable,
    Wildcard,
)
from everlog.core.program.bodies import Binding, binds, is_ready, names, rule_may_fail

LOOKUP = 20  # rows that are loaded in the time of a look-up


class TooManyLookups(Exception):
    """An engine would have been loaded in less time."""


class StoredAnswers(NaiveEvaluation):
    """The answers of one query, read from stored rows."""

    def __init__(self, program: Program, rows: Mapping[str, StoredRows], left: int) -> None:
        """`left` is the number of rows that may be read."""
        super().__init__(program)
        self._rows, self._left = rows, left

    def of(self, rules: Sequence[Rule], parameters: Row) -> Iterator[Row] | None:
        """The answers, some of them repeated; None if they are not found by look-ups alone."""
        orders = []
        for rule in rules:
            start = _start(rule, parameters)
            order = self._order([x for x in rule.body if not _is_parameters(x)], start)
            if order is None or rule_may_fail(rule):
                return None
            orders.append((rule, start, order))
        return (
            self.row(rule.head.args, binding)
            for rule, start, order in orders
            for binding in self.extend(order, start)
        )

    def _order(self, body: Collection[Literal], start: Binding) -> list[Literal] | None:
        """The literals in an order in which rows are found by their first columns."""
        rest, known = list(body), set(start)
        order: list[Literal] = []
        while rest:
            ready = [x for x in rest if not isinstance(x, Atom) and is_ready(x, known)]
            found = [x for x in rest if isinstance(x, Atom) and self._is_found(x, known)]
            if not ready and not found:
                return None
            chosen = ready[0] if ready else min(found, key=lambda atom: len(self._rows[atom.relation]))
            if isinstance(chosen, Aggregate) or (
                isinstance(chosen, Negation) and not self._is_found(chosen.atom, known)
            ):
                return None
            rest.remove(chosen)
            order.append(chosen)
            known |= binds(chosen)
        return order

    def _is_found(self, atom: Atom, known: set[str]) -> bool:
        stored = self._rows.get(atom.relation)
        return stored is not None and stored.is_found_by(_known_columns(atom, known))

    def unified(self, atom: Atom, binding: Binding) -> Iterator[Binding]:
        columns = _known_columns(atom, binding.keys())
        values = {column: self.value(atom.args[column], binding) for column in columns}
        other = [(n, x) for n, x in enumerate(atom.args) if n not in values and not isinstance(x, Wildcard)]
        self._spend(LOOKUP)
        for row in self._rows[atom.relation].matching(values):
            self._spend(1)
            wider = {arg.name: row[n] for n, arg in other if isinstance(arg, Variable)} | binding
            if all(same(self.value(arg, wider), row[n]) for n, arg in other):
                yield wider

    def _spend(self, rows: int) -> None:
        self._left -= rows
        if self._left < 0:
            raise TooManyLookups


def _known_columns(atom: Atom, known: Collection[str]) -> list[int]:
    return [n for n, arg in enumerate(atom.args) if not isinstance(arg, Wildcard) and names([arg]) <= set(known)]


def _is_parameters(literal: Literal) -> bool:
    return isinstance(literal, Atom) and literal.relation == PARAMETERS


def _start(rule: Rule, parameters: Row) -> Binding:
    """The values of a query's parameters."""
    values: dict[str, Value] = {}
    for literal in filter(_is_parameters, rule.body):
        assert isinstance(literal, Atom)
        values.update(
            zip((arg.name for arg in literal.args if isinstance(arg, Variable)), parameters, strict=True)
        )
    return values

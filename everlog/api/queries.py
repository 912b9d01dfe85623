"""Queries as text: an index finds a single atom, any other body is compiled.

    path(1, x)                       the facts that match, whole rows; an index finds them
    path(1, x), x > 3, !blocked(x)   the values of x, as a rule's body would give them

Both may begin with `?-` and end with `.` or `?`.  A text is parsed once, and asked for rows or for
the values of its variables.  What was compiled is remembered until the program changes, by its text
and the types of the values that its parameters got; the values themselves come with each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from everlog.api.lifecycle import State
from everlog.api.parameters import NOTHING_GIVEN, Given, ParameterError
from everlog.api.results import Result
from everlog.api.rows import Pattern, Relations, pattern_of
from everlog.core.engine import Engine
from everlog.core.engine.compiled_query import CompiledQuery
from everlog.core.program import Row
from everlog.core.program.fact_rows import FactError
from everlog.dsl.checks.query_check import EMPTY, Scope, check_query, unfit_value
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.query_text import ParsedQuery, parse_query
from everlog.functors import require_functors

_Run: TypeAlias = Callable[[Given], Result]
_MOST = 1000  # queries that are remembered
_MOST_TEXT = 200_000  # and the characters of their texts


class QueryError(DatalogError, FactError):
    """A query has errors; `.report` lists them with their places in the text."""


class Queries:
    """The queries of one program that runs in an engine."""

    def __init__(
        self, engine: Engine, scope: Callable[[], Scope | None], relations: Relations, state: State
    ) -> None:
        """`scope` says what the program's text declares, if it has one."""
        self._engine, self._relations, self._state = engine, relations, state
        self._declared = scope
        self._scope: Scope | None = None
        self._known: dict[object, _Run] = {}
        self._characters = 0  # of the texts of those that are known

    def ask(self, query: str | ParsedQuery, given: Given = NOTHING_GIVEN, *, bindings: bool = False) -> Result:
        """The answers of a query, with these values for its parameters; QueryError if something is
        wrong.

        Of a single atom they are whole facts, or with `bindings` the values of its variables.
        """
        text = query if isinstance(query, str) else query.text
        key: object = text
        if given.values or bindings:
            key = (text, bindings, *((name, value.__class__) for name, value in given.values.items()))
        found = self._known.get(key)
        if found is None:
            parsed = parse_query(query) if isinstance(query, str) else query
            found = self._read(parsed, given, bindings)
            if len(self._known) >= _MOST or self._characters + len(text) > _MOST_TEXT:
                self._known.clear()
                self._characters = 0
            if len(text) <= _MOST_TEXT:
                self._known[key] = found
                self._characters += len(text)
        try:
            return found(given)
        except ParameterError as problem:
            raise QueryError(unfit_value(text, problem.name, problem.why).report) from None

    def _read(self, query: ParsedQuery, given: Given, bindings: bool) -> _Run:
        if bindings or query.atom is None:
            return self._conjunction(query, given, bindings)
        try:
            pattern = pattern_of(self._relations, query)
        except FactError:  # it computes, or something is wrong
            return self._conjunction(query, given)
        if given.values.keys() != set(pattern.parameters.values()):
            return self._conjunction(query, given)  # which says what is wrong
        if not pattern.parameters:
            return self._atom(pattern)
        return lambda given: self._atom(pattern.filled(given))(given)

    def _atom(self, pattern: Pattern) -> _Run:
        relation, bound, equal = pattern.relation, pattern.bound, pattern.equal
        engine, name = self._engine, relation.name

        def find() -> Iterator[Row]:
            rows = engine.lookup(name, bound) if bound else engine.stream(name)
            return filter(pattern.has_equals, rows) if equal else rows

        if bound or equal:
            return lambda _: Result(self._state, relation.columns, find)
        return lambda _: Result(
            self._state,
            relation.columns,
            find,
            find_sorted=lambda: engine.rows(name),
            size=lambda: engine.size(name),
        )

    def _conjunction(self, query: ParsedQuery, given: Given, bindings: bool = False) -> _Run:
        if self._scope is None:
            self._scope = (self._declared() or EMPTY).having(self._relations, self._engine.program.functors)
        try:
            checked = check_query(query, self._scope, given.kinds, bindings=bindings)
        except DatalogError as error:
            raise QueryError(error.report) from None
        require_functors(self._engine.program.functors, checked.rules)
        compiled = CompiledQuery(self._engine, checked.rules)
        parameters = checked.parameters.items()

        def ask(given: Given) -> Result:
            values = tuple([given.value(name, kind) for name, kind in parameters])
            return Result(self._state, checked.columns, lambda: compiled.answers(values))

        return ask

"""Queries as text: an index finds a single atom, any other body is compiled.

    path(1, x)                       the facts that match, whole rows; an index finds them
    path(1, x), x > 3, !blocked(x)   the values of x, as a rule's body would give them

Both may begin with `?-` and end with `.` or `?`.  Compiled queries are cached until the program
changes, by text and by the types of the parameters; the parameters' values come with each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from everlog.api.lifecycle import State
from everlog.api.parameters import NOTHING_GIVEN, Given, ParameterError
from everlog.api.results import Result
from everlog.api.rows import Pattern, Relations, pattern_of
from everlog.core.engine import Engine
from everlog.core.engine.compiled_query import Question
from everlog.core.program import Row
from everlog.core.program.fact_rows import FactError
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.query_check import EMPTY, Scope, check_query, unfit_value
from everlog.functors import require_functors

_Ask: TypeAlias = Callable[[Given], Result]
_MOST = 1000  # cached queries
_MOST_TEXT = 200_000  # characters of their texts


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
        self._known: dict[object, _Ask] = {}
        self._characters = 0  # of the cached texts

    def ask(self, text: str, given: Given = NOTHING_GIVEN) -> Result:
        """The result of a query with these parameters; QueryError lists its errors."""
        key: object = text
        if given.values:
            key = (text, *((name, value.__class__) for name, value in given.values.items()))
        found = self._known.get(key)
        if found is None:
            found = self._read(text, given)
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

    def _read(self, text: str, given: Given) -> _Ask:
        try:
            pattern = pattern_of(self._relations, _plain(text))
        except FactError:  # not a single atom of variables and constants, or a wrong one
            return self._conjunction(text, given)
        if given.values.keys() != set(pattern.parameters.values()):
            return self._conjunction(text, given)  # raises the error with its place
        if not pattern.parameters:
            return self._atom(pattern)
        return lambda given: self._atom(pattern.filled(given))(given)

    def _atom(self, pattern: Pattern) -> _Ask:
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

    def _conjunction(self, text: str, given: Given) -> _Ask:
        if self._scope is None:
            self._scope = (self._declared() or EMPTY).having(self._relations, self._engine.program.functors)
        try:
            query = check_query(text, self._scope, given.kinds)
        except DatalogError as error:
            raise QueryError(error.report) from None
        require_functors(self._engine.program.functors, query.rules)
        question = Question(self._engine, query.rules)
        parameters = query.parameters.items()

        def ask(given: Given) -> Result:
            values = tuple([given.value(name, kind) for name, kind in parameters])
            return Result(self._state, query.columns, lambda: question.answers(values))

        return ask


def _plain(text: str) -> str:
    """The text without `?-`, `.` and `?`.

    >>> _plain("?- edge(1, x)."), _plain("edge(1, x)?")
    ('edge(1, x)', 'edge(1, x)')
    """
    body = text.strip().removeprefix("?-").strip()
    return body[:-1] if body.endswith((".", "?")) else body

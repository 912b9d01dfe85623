"""Queries as text: a single atom is looked up, any other conjunction is checked and compiled.

    path(1, x)                       the facts that match, whole rows; an index finds them
    path(1, x), x > 3, !blocked(x)   the values of x, as a rule's body would give them

Both may begin with `?-` and end with `.` or `?`.  What was read is remembered by its text, until the program
changes.

Reads: dsl.queries, core.engine.asking, everlog.rows, everlog.results.  Read by: everlog.database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from everlog.core.engine import Engine
from everlog.core.engine.asking import Question
from everlog.core.fact_rows import FactError
from everlog.core.program import Row
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.queries import EMPTY, Scope, check_query
from everlog.functors import require_functors
from everlog.results import Result, State
from everlog.rows import Pattern, Relations, pattern_of

_Ask: TypeAlias = Callable[[], Result]
_MOST = 1000  # queries that are remembered


class QueryError(DatalogError, FactError):
    """A query with mistakes: `.report` has them one by one, with their places in the query's text."""


class Queries:
    """The queries of one program that runs in an engine."""

    def __init__(
        self, engine: Engine, scope: Callable[[], Scope | None], relations: Relations, state: State
    ) -> None:
        """`scope` says what the program's text declares, if it has one."""
        self._engine, self._relations, self._state = engine, relations, state
        self._declared = scope
        self._scope: Scope | None = None
        self._known: dict[str, _Ask] = {}

    def ask(self, text: str) -> Result:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[text] = self._read(text)
        return found()

    def _read(self, text: str) -> _Ask:
        try:
            pattern = pattern_of(self._relations, _plain(text))
        except FactError:  # no single atom of variables and constants, or not a right one
            return self._conjunction(text)
        return self._atom(pattern)

    def _atom(self, pattern: Pattern) -> _Ask:
        relation, bound, equal = pattern
        engine, name = self._engine, relation.name

        def find() -> Iterator[Row]:
            rows = engine.lookup(name, bound) if bound else engine.stream(name)
            if not equal:
                return rows
            return (row for row in rows if all(row[i] is row[j] or row[i] == row[j] for i, j in equal))

        if bound or equal:
            return lambda: Result(self._state, relation.columns, find)
        return lambda: Result(
            self._state,
            relation.columns,
            find,
            find_sorted=lambda: engine.rows(name),
            size=lambda: engine.size(name),
        )

    def _conjunction(self, text: str) -> _Ask:
        if self._scope is None:
            self._scope = (self._declared() or EMPTY).having(self._relations, self._engine.program.functors)
        try:
            query = check_query(text, self._scope)
        except DatalogError as error:
            raise QueryError(error.report) from None
        require_functors(self._engine.program.functors, query.rules)
        question = Question(self._engine, query.rules)
        return lambda: Result(self._state, query.columns, question.answers)


def _plain(text: str) -> str:
    """The text without the marks of a query.

    >>> _plain("?- edge(1, x)."), _plain("edge(1, x)?")
    ('edge(1, x)', 'edge(1, x)')
    """
    body = text.strip().removeprefix("?-").strip()
    return body[:-1] if body.endswith((".", "?")) else body

"""Queries as text: an index finds a single atom, any other body is compiled.

    path(1, x)                       the values of x; an index finds them
    path(1, x), x > 3, !blocked(x)   the values of x, as a rule's body would give them

Both may begin with `?-` and end with `.` or `?`.  A text is parsed once, and asked for the values
of its variables or, if it is one atom, for the whole facts that match.  What was compiled is
remembered until the program changes, by its text and the types of the values that its parameters
got; the values themselves come with each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

from everlog.api.facts.rows import Pattern, Relations, pattern_of
from everlog.api.lifecycle import State
from everlog.api.parameters import NOTHING_GIVEN, Given, ParameterError
from everlog.api.results import OrderedResult, Result
from everlog.core.engine import Engine
from everlog.core.engine.compiled_query import CompiledQuery
from everlog.core.program import Column, Row
from everlog.core.program.fact_rows import FactError
from everlog.core.program.order import rank
from everlog.core.program.shown import shown_body
from everlog.dsl import ast
from everlog.dsl.answer_order import NONE
from everlog.dsl.checks.query_check import EMPTY, Query, Scope, check_query, unfit_value
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.fact_text import cut
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

    def ask(self, query: str | ParsedQuery, given: Given = NOTHING_GIVEN, *, whole: bool = False) -> Result:
        """The answers of a query, with these values for its parameters; QueryError if something is
        wrong.

        They are the values of its variables, or with `whole` the facts that match its one atom.
        """
        text = query if isinstance(query, str) else query.text
        key: object = text
        if given.values or whole:
            key = (text, whole, *((name, value.__class__) for name, value in given.values.items()))
        found = self._known.get(key)
        if found is None:
            parsed = parse_query(query) if isinstance(query, str) else query
            found = self._ordered(parsed, self._read(parsed, given, whole))
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

    def explained(self, text: str) -> str:
        """How a query is answered: what it reads, and what it asks for."""
        checked = self._checked(parse_query(text), NOTHING_GIVEN, True)
        query = CompiledQuery(self._engine, checked.rules)
        lines = []
        for rule in checked.rules:
            lines.append(f"asked   {', '.join(map(str, shown_body(rule.body)))}")
        lines += [f"reads   {each}" for each in query.coverings()]
        lines += [f"asks    {part.name}, for the values of {asking}" for part, asking in query.demands()]
        if len(lines) == len(checked.rules):
            lines.append("reads   these relations: no other has the answers of a part of it")
        return "\n".join(lines)

    def _read(self, query: ParsedQuery, given: Given, whole: bool) -> _Run:
        variables = None if whole or query.atom is None else _variables(query.atom)
        if query.atom is None:
            if whole and query.clause is not None:
                raise FactError(f"`{cut(query.text)}` is not one atom; `query` answers any body of a rule")
            return self._conjunction(query, given, whole)
        try:
            pattern = pattern_of(self._relations, query)
        except FactError:  # it computes, or something is wrong
            return self._conjunction(query, given, whole)
        if given.values.keys() != set(pattern.parameters.values()):
            return self._conjunction(query, given, whole)  # which says what is wrong
        if not whole and variables is None:
            return self._projected(query, given, pattern)
        if not pattern.parameters:
            return self._atom(pattern, variables)
        return lambda given: self._atom(pattern.filled(given), variables)(given)

    def _projected(self, query: ParsedQuery, given: Given, pattern: Pattern) -> _Run:
        """Answers that several facts may give: compiled, or read where they are stored."""
        assert query.atom is not None
        compiled, shown = self._conjunction(query, given, False), _named(query.atom)

        def ask(given: Given) -> Result:
            if self._engine.is_asleep:
                return self._atom(pattern.filled(given), shown, is_distinct=False)(given)
            return compiled(given)

        return ask

    def _ordered(self, query: ParsedQuery, run: _Run) -> _Run:
        """Answers in the order, and up to the limit, that a query asks for."""
        ordering = query.ordering
        if ordering == NONE:
            return run

        def ask(given: Given) -> Result:
            found = run(given)
            columns = found._relation.columns
            return OrderedResult(self._state, columns, found._find, arrangement(query, columns))

        return ask

    def _atom(self, pattern: Pattern, variables: dict[str, int] | None, is_distinct: bool = True) -> _Run:
        """Answers from the index: the values of `variables` by column, or (None) whole facts.

        If they are not `is_distinct`, each is found once.
        """
        relation, bound, equal = pattern.relation, pattern.bound, pattern.equal
        engine, name = self._engine, relation.name
        columns, shown = relation.columns, None
        if variables is not None:
            columns = tuple(Column(each, columns[place].kind) for each, place in variables.items())
            places = tuple(variables.values())
            shown = None if places == tuple(range(relation.arity)) else _projection(places)

        def find() -> Iterator[Row]:
            rows = engine.lookup(name, bound) if bound else engine.stream(name)
            matching = filter(pattern.has_equals, rows) if equal else rows
            found = matching if shown is None else map(shown, matching)
            return found if is_distinct else _each_once(found)

        if bound or equal or shown is not None:
            return lambda _: Result(self._state, columns, find)
        return lambda _: Result(
            self._state,
            columns,
            find,
            find_sorted=lambda: engine.rows(name),
            size=lambda: engine.size(name),
            words=lambda: engine.words(name),
        )

    def _checked(self, query: ParsedQuery, given: Given, bindings: bool) -> Query:
        if self._scope is None:
            self._scope = (self._declared() or EMPTY).having(self._relations, self._engine.program.functors)
        try:
            checked = check_query(query, self._scope, given.kinds, bindings=bindings)
        except DatalogError as error:
            raise QueryError(error.report) from None
        require_functors(self._engine.program.functors, checked.rules)
        return checked

    def _conjunction(self, query: ParsedQuery, given: Given, whole: bool) -> _Run:
        checked = self._checked(query, given, not whole)
        compiled = CompiledQuery(self._engine, checked.rules)
        parameters = checked.parameters.items()

        def ask(given: Given) -> Result:
            values = tuple([given.value(name, kind) for name, kind in parameters])
            return Result(self._state, checked.columns, lambda: compiled.answers(values))

        return ask


def _variables(atom: ast.Atom) -> dict[str, int] | None:
    """The first column of each variable; None if facts that differ may give the same answer, or
    if nothing is left to show.
    """
    unnamed = [a for a in atom.args if isinstance(a, ast.Name | ast.Underscore) and not _is_named(a)]
    return None if unnamed else _named(atom) or None


def _named(atom: ast.Atom) -> dict[str, int]:
    """The first column of each variable that has a name."""
    places: dict[str, int] = {}
    for place, arg in enumerate(atom.args):
        if isinstance(arg, ast.Name) and _is_named(arg):
            places.setdefault(arg.name, place)
    return places


def _is_named(arg: ast.Name | ast.Underscore) -> bool:
    return isinstance(arg, ast.Name) and not arg.name.startswith("_")


def _each_once(rows: Iterator[Row]) -> Iterator[Row]:
    seen: set[Row] = set()
    for row in rows:
        if row not in seen:
            yield row
            if not row:
                return
            seen.add(row)


def _projection(places: tuple[int, ...]) -> Callable[[Row], Row]:
    if not places:
        return lambda row: ()
    if len(places) == 1:
        (place,) = places
        return lambda row: (row[place],)
    return itemgetter(*places)


def arrangement(query: ParsedQuery, columns: Sequence[Column]) -> Callable[[list[Row]], list[Row]]:
    """From sorted rows to those that a query's ordering asks for; QueryError if it has no such
    variable.
    """
    ordering, names = query.ordering, [column.name for column in columns]
    for key in ordering.keys:
        if key.name not in names:
            report = query.new_report()
            hint = f"there are {', '.join(f'`{name}`' for name in names)}" if names else ""
            message = f"`{key.name}` is no variable of the query"
            report.error("DL010", message, ast.Name(key.name, key.pos, key.end), hint=hint)
            raise QueryError(query.at_home(report))
    keys = [(names.index(key.name), key.descending) for key in reversed(ordering.keys)]

    def arrange(rows: list[Row]) -> list[Row]:
        for place, descending in keys:
            rows = sorted(rows, key=lambda row: rank(row[place]), reverse=descending)
        return rows[: ordering.limit]

    return arrange

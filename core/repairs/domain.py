"""Values for variables that nothing binds: those that facts, rules and goals have.

A fact that is inserted may need a value that no other literal determines.  Values of the same type
that occur somewhere are tried, those of the same column first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from everlog.core.program import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Kind,
    Literal,
    Program,
    Rule,
    Term,
    Value,
    atoms_of,
)
from everlog.core.program.executor import Changes, Update
from everlog.core.storage.tables import Table


class Domain:
    """The values of each type, before and after a step that is tried; read as they are needed."""

    def __init__(
        self, program: Program, tables: Mapping[str, Table], goals: Iterable[Update], told: Changes
    ) -> None:
        self._program, self._tables, self._goals, self._told = program, tables, list(goals), told
        self._known: dict[tuple[str, int], tuple[list[Value], Iterator[Value]]] = {}

    def values(self, relation: str, column: int) -> Iterator[Value]:
        """The values for a column, each once, those of the column itself first."""
        if (relation, column) not in self._known:
            self._known[relation, column] = [], _distinct(self._found(relation, column))
        known, rest = self._known[relation, column]
        place = 0
        while True:
            while place < len(known):
                yield known[place]
                place += 1
            for value in rest:
                known.append(value)
                break
            else:
                return

    def _found(self, relation: str, column: int) -> Iterator[Value]:
        program = self._program
        wanted = program.relations[relation].columns[column]
        derived = bool(program.rules_of(relation))  # then values of subtypes occur, too
        alike = {
            (name, n): None
            for name, other in program.relations.items()
            for n, its in enumerate(other.columns)
            if its.kind is wanted.kind and (derived or its.type_name == wanted.type_name)
        }
        for name, n in [(relation, column), *alike]:
            yield from (row[n] for row in self._tables[name].rows())
            yield from (row[n] for row in self._told.get(name, ()))
        for goal in self._goals:
            yield from (value for n, value in enumerate(goal.row) if (goal.relation, n) in alike)
        for rule in program.rules:
            yield from _constants((rule.head, *rule.body), wanted.kind, alike)


def computed_columns(program: Program) -> frozenset[tuple[str, int]]:
    """The columns that may have values which occur nowhere yet: computed by rules.

    >>> from everlog.dsl.check import compile_text
    >>> text = ".decl n(x:number)  .decl m(x:number, y:number)  m(x, x + 1) :- n(x)."
    >>> computed_columns(compile_text(text))
    frozenset({('m', 1)})
    """
    found: set[tuple[str, int]] = set()
    while True:
        more = {
            (rule.head.relation, n)
            for rule in program.rules
            for n, arg in enumerate(rule.head.args)
            if not isinstance(arg, Constant) and arg not in _plain_variables(rule, found)
        }
        if more <= found:
            return frozenset(found)
        found |= more


def _plain_variables(rule: Rule, computed: Collection[tuple[str, int]]) -> set[Term]:
    """The variables of a body whose values occur in a column that is not computed."""
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    return {arg for atom in atoms for n, arg in enumerate(atom.args) if (atom.relation, n) not in computed}


def _distinct(values: Iterable[Value]) -> Iterator[Value]:
    seen: set[Value] = set()
    for value in values:
        if value not in seen:
            seen.add(value)
            yield value


def _constants(body: Iterable[Literal], kind: Kind, places: Collection[tuple[str, int]]) -> Iterator[Value]:
    """The constants of a body that may be values of these columns."""
    literals = list(body)
    for atom, _ in atoms_of(tuple(literals)):
        for n, arg in enumerate(atom.args):
            if isinstance(arg, Constant) and (atom.relation, n) in places:
                yield arg.value
    for literal in literals:
        match literal:
            case Comparison(left=left, right=right):
                yield from _of_kind((left, right), kind)
            case Aggregate(body=inner):
                yield from _constants([x for x in inner if not isinstance(x, Atom)], kind, places)
            case _:
                pass


def _of_kind(terms: Iterable[Term], kind: Kind) -> Iterator[Value]:
    return (term.value for term in terms if isinstance(term, Constant) and term.kind is kind)

"""A program that is evaluated once: rows and tables in, rows and tables out.

Tables of relations that only the compiled machine reads become columns of words, and what it
derives becomes tables again, without a Python object for a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define

from everlog.api.facts.dataframes import Tabular
from everlog.api.facts.rows import is_table
from everlog.core.evaluate import seminaive
from everlog.core.evaluate.machines import read_as_words
from everlog.core.evaluate.reports.profile import RunProfile
from everlog.core.native.availability import why_not
from everlog.core.native.words import SortedWords, new_symbols
from everlog.core.program import Column, Program, Row
from everlog.core.program.fact_rows import declared
from everlog.core.runtime.guards import Limits, Progress


def evaluate(
    program: Program,
    inputs: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    limits: Limits | None = None,
    profile: RunProfile | None = None,
    jobs: int = 1,
) -> Evaluated:
    """Every relation of a program, from its own facts and `inputs`: rows or a table by relation.

    `progress` gets each round: the unit's relations, the round, the number of new facts.  Exceeding
    `limits` raises `LimitExceeded`.  `profile` records time and facts of units, rounds and rules.
    The compiled machine uses as many threads as `jobs` says.

    >>> from everlog import compile_text
    >>> program = compile_text('''
    ...   .decl edge(x:number, y:number)  .decl two(x:number, y:number)
    ...   two(x, z) :- edge(x, y), edge(y, z).''')
    >>> found = evaluate(program, {"edge": {"x": [1, 2], "y": [2, 3]}})
    >>> list(found.rows("two")), found["two"].to_dicts()
    ([(1, 3)], [{'x': 1, 'y': 3}])
    """
    facts = _facts(program, inputs or {})
    found = seminaive.evaluate(program, facts, progress, limits, profile, jobs)
    return Evaluated(found.program, found.relations)


def _facts(program: Program, inputs: Mapping[str, object]) -> dict[str, Iterable[Row]]:
    """Rows as they are, and tables as words or rows."""
    facts: dict[str, Iterable[Row]] = {}
    tables: dict[str, object] = {}
    for name, given in inputs.items():
        if isinstance(given, Iterable) and not is_table(given):
            facts[name] = given
        else:
            tables[declared(program.relations, name).name] = given
    return facts | _of_tables(program, tables) if tables else facts


def _of_tables(program: Program, tables: Mapping[str, object]) -> dict[str, Iterable[Row]]:
    from everlog.api.facts.tabular import rows_of_table, words_of_table  # not needed for rows

    read_natively = set() if why_not() else read_as_words(program) - set(program.facts)
    as_words = {name for name in tables if name in read_natively}
    symbols = new_symbols() if as_words else None
    relations = program.relations
    return {
        name: rows_of_table(relations[name], table)
        if symbols is None or name not in as_words
        else words_of_table(relations[name], table, symbols)
        for name, table in tables.items()
    }


@define
class Evaluated(seminaive.Evaluation):
    """The relations of a program after a run; `found["path"]` converts to tables."""

    def __getitem__(self, name: str) -> EvaluatedRelation:
        return EvaluatedRelation(self, declared(self.program.relations, name).name)


class EvaluatedRelation(Tabular):
    """A relation of a program that was evaluated once."""

    __slots__ = ("_found", "name")

    def __init__(self, found: Evaluated, name: str) -> None:
        self._found, self.name = found, name

    def rows(self) -> list[Row]:
        """All facts, sorted."""
        return list(self._found.rows(self.name))

    def __iter__(self) -> Iterator[Row]:
        return iter(self._found.rows(self.name))

    def __len__(self) -> int:
        return self._found.size(self.name)

    def _columns(self) -> Sequence[Column]:
        return self._found.program.relations[self.name].columns

    def _words(self) -> SortedWords | None:
        rows = self._found.rows(self.name)
        return rows if isinstance(rows, SortedWords) else None

"""Queries of a running engine: bodies compiled to generators over its tables and their indexes.

A query changes nothing but that the tables get the indexes it asks for.  The order of its joins is chosen
by the sizes that relations have, and again when they have others.  Its answers are those of the state in
which it is run: whoever goes through them must stop when the engine has made a step.

Reads: core.codegen.answers, core.engine.engine.  Read by: the front door.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from everlog.core.codegen import Access, Compiled, compile_rule
from everlog.core.codegen.answers import ASKED, AnswerWriter, may_repeat
from everlog.core.engine.engine import Engine
from everlog.core.engine.rented import Rented
from everlog.core.engine.store import Store, is_other_size
from everlog.core.program import Row, Rule, atoms_of
from everlog.core.seminaive import deep_calls
from everlog.core.tables import rough_size
from everlog.core.values import EvaluationError

_LARGE = 10_000  # facts of a table whose index takes long enough to build that one would notice


class Question:
    """The alternatives of a query, compiled at the first run and when sizes have changed.

    >>> from everlog.core.executor import Update
    >>> from everlog.core.program import Atom, Variable
    >>> from everlog.dsl.check import compile_text
    >>> engine = Engine(compile_text(".decl e(x:number, y:number)  e(1, 2).  e(2, 3).  e(2, 4)."))
    >>> x, y, z = map(Variable, "xyz")
    >>> question = Question(engine, [Rule(Atom("?-", (x, z)), (Atom("e", (x, y)), Atom("e", (y, z))))])
    >>> sorted(question.answers())
    [(1, 3), (1, 4)]
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule]) -> None:
        self._engine, self._rules = engine, rules
        self._distinct = len(rules) < 2 and not any(map(may_repeat, rules))
        self._reads = tuple(dict.fromkeys(atom.relation for rule in rules for atom, _ in atoms_of(rule.body)))
        self._code: list[Compiled] = []
        self._sizes: dict[str, int] = {}

    def answers(self) -> Iterator[Row]:
        """The answers, each once, in no order; the first as soon as it is found.

        Cost: that of the joins, as far as they are gone through; indexes that are not there yet are built on
        the way, when lookups have cost as much.
        """
        store = self._engine.store_for(self._reads)
        tables = {name: store.tables[name] for name in self._reads}
        sizes = {name: rough_size(table.shape, table.facts) for name, table in tables.items()}
        if not self._code or any(is_other_size(self._sizes[name], size) for name, size in sizes.items()):
            with deep_calls():
                functors = self._engine.program.functors
                compiled = [
                    compile_rule(rule, None, store.shapes, sizes, functors, AnswerWriter, sets=False)
                    for rule in self._rules
                ]
            self._code, self._sizes = compiled, sizes  # together: a limit may be met at any time
        runs: list[Any] = []
        for rule, code in zip(self._rules, self._code, strict=True):
            run = code.make(*[_index(store, access) for access in code.accesses])
            runs.append(_telling(rule, run(None, None)))  # a generator
        found = runs[0] if len(runs) == 1 else chain.from_iterable(runs)
        return found if self._distinct else _once(found)


def _index(store: Store, access: Access) -> Any:
    """The index that code asks for; of a large table, one that is built only if it is asked for much."""
    if not access.relation.startswith(ASKED):
        return store.index(access)
    table = store.tables[access.relation.removeprefix(ASKED)]
    if table.find(access.key, access.rest) is None and rough_size(table.shape, table.facts) > _LARGE:
        return Rented(table, access.key, access.rest)
    return table.index(access.key, access.rest)


def _telling(rule: Rule, found: Any) -> Iterator[Row]:
    """The answers; an error names the query."""
    try:
        yield from found
    except EvaluationError as error:
        raise error.with_rule(rule.written, str(rule.origin)) from error.__cause__


def _once(found: Iterable[Row]) -> Iterator[Row]:
    seen: set[Row] = set()
    add = seen.add
    for row in found:
        if row not in seen:
            add(row)
            yield row

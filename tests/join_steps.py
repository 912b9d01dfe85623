"""Counts the rows that an order of joins tries, one nested loop per atom, as the planner defines
it; and the tasks of the compiled machine, which count theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from everlog.core import program as p
from everlog.core.evaluate.native.rule_task import NativeTask
from everlog.core.program import Atom, Comparison, Constant, Literal, Negation, Variable
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.functors import COMPARISONS

Tables = Mapping[str, set[tuple[Any, ...]]]


class Steps:
    """Counts for one body over one set of tables; indexes are made once for all orders."""

    def __init__(self, body: Sequence[Literal], tables: Tables) -> None:
        self.body, self.tables = body, tables
        self.tests = [i for i, x in enumerate(body) if not isinstance(x, Atom)]
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[Any, list[tuple[Any, ...]]]] = {}

    def of(self, order: Sequence[int], limit: float = float("inf")) -> float:
        """The rows tried by an order; infinite where there are more than `limit`."""
        steps, done = 0.0, set[int]()
        bindings = self._tested([{}], done)
        for position in order:
            atom = self.body[position]
            assert isinstance(atom, Atom)
            bound = set(bindings[0]) if bindings else set()
            columns = tuple(
                c
                for c, a in enumerate(atom.args)
                if isinstance(a, Constant) or (isinstance(a, Variable) and a in bound)
            )
            index = self._index(atom.relation, columns)
            found = []
            for binding in bindings:
                key = tuple(self._value(atom.args[c], binding) for c in columns)
                rows = index.get(key, ())
                steps += 1 + len(rows)
                if steps > limit:
                    return float("inf")
                for row in rows:
                    extended = self._extended(atom, row, binding)
                    if extended is not None:
                        found.append(extended)
            bindings = self._tested(found, done)
            if not bindings:
                return steps
        return steps

    def _tested(self, bindings: list[dict[Variable, Any]], done: set[int]) -> list[dict[Variable, Any]]:
        """The bindings that pass the tests that are ready; equalities give values."""
        found = True
        while bindings and found:
            found = False
            for position in self.tests:
                if not bindings:
                    break
                literal = self.body[position]
                missing = [v for v in variables_of_literal(literal) if v not in bindings[0]]
                gives = len(missing) == 1 and isinstance(literal, Comparison) and literal.op == "="
                if position in done or (missing and not gives):
                    continue
                done.add(position)
                found = True
                if missing:
                    assert isinstance(literal, Comparison)
                    other = literal.right if literal.left == missing[0] else literal.left
                    bindings = [{**b, missing[0]: self._value(other, b)} for b in bindings]
                else:
                    bindings = [b for b in bindings if self._holds(literal, b)]
        return bindings

    def _index(self, relation: str, columns: tuple[int, ...]) -> dict[Any, list[tuple[Any, ...]]]:
        found = self._indexes.get((relation, columns))
        if found is None:
            found = defaultdict(list)
            for row in self.tables[relation]:
                found[tuple(row[c] for c in columns)].append(row)
            self._indexes[relation, columns] = found
        return found

    @staticmethod
    def _value(term: p.Term, binding: Mapping[Variable, Any]) -> Any:
        if isinstance(term, Constant):
            return term.value
        assert isinstance(term, Variable)
        return binding[term]

    @staticmethod
    def _extended(atom: Atom, row: tuple[Any, ...], binding: dict[Variable, Any]) -> dict[Variable, Any] | None:
        new = dict(binding)
        for argument, value in zip(atom.args, row, strict=True):
            if isinstance(argument, Variable) and new.setdefault(argument, value) != value:
                return None
        return new

    def _holds(self, literal: Literal, binding: Mapping[Variable, Any]) -> bool:
        if isinstance(literal, Comparison):
            return COMPARISONS[literal.op](self._value(literal.left, binding), self._value(literal.right, binding))
        assert isinstance(literal, Negation)
        return tuple(self._value(a, binding) for a in literal.atom.args) not in self.tables[literal.atom.relation]


@contextmanager
def tasks() -> Iterator[list[NativeTask]]:
    """The tasks that are made inside."""
    found: list[NativeTask] = []
    init = NativeTask.__init__

    def made(self: NativeTask, *args: Any) -> None:
        found.append(self)
        init(self, *args)

    with patch.object(NativeTask, "__init__", made):
        yield found

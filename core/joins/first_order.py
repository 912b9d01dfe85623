"""First-order delta: for each atom, the rest of the query with one of its rows fixed.

It keeps indexes on the atoms, and nothing else.  An update of R(a, b) in R(a, b), S(b, c), T(a, c)
evaluates S(b, ·) ∩ T(a, ·), so it costs up to the size of the database, however little it changes.

Source: Chirkova, Yang, "Materialized Views", 2012; `Delta` in Appendix A of Abo Khamis et al. 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import repeat

from everlog.core.ir.python_text import tuple_text
from everlog.core.joins.code import Code, local
from everlog.core.joins.generic_join import write_join
from everlog.core.joins.tries import Input
from everlog.core.joins.view import Asked, CountedView, Weighted
from everlog.core.program import Row

Enumerator = Callable[..., Iterator[Row]]


class FirstOrder(CountedView):
    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked
        self.inputs = [Input(atom.variables) for atom in asked.query.atoms]
        self._deltas: list[Enumerator] = []
        self._all: Enumerator
        self._write()

    def _write(self) -> None:
        asked = self.asked
        code = Code(_count=self._count)
        for number, fixed in enumerate([*self.inputs, None]):
            schema = fixed.schema if fixed is not None else ()
            code.define(f"delta{number}", ", ".join(map(local, schema)))
            bound = set(schema)
            others = [source for source in self.inputs if source is not fixed]
            if asked.counting:
                code.line("_count[0] += 1")
            write_join(code, others, bound, asked.ranges, asked.counting)
            code.line(f"yield {tuple_text(map(local, asked.kept))}")
        scope = code.compiled()
        *self._deltas, self._all = [scope[f"delta{n}"] for n in range(len(self.inputs) + 1)]

    def insert(self, atom: int, row: Row) -> bool:
        if row in self.inputs[atom].rows:
            return False
        self.inputs[atom].add(row, 1)
        self._count[0] += 1
        return True

    def delete(self, atom: int, row: Row) -> bool:
        if row not in self.inputs[atom].rows:
            return False
        self.inputs[atom].add(row, -1)
        self._count[0] += 1
        return True

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return zip(self._deltas[atom](*row), repeat(1))

    def answers(self) -> Iterator[Weighted]:
        return zip(self._all(), repeat(1))

    def rows(self, atom: int) -> Collection[Row]:
        return self.inputs[atom].rows

    def check(self) -> None:
        for source in self.inputs:
            source.check()

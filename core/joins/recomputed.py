"""Evaluate everything again: the baseline of all other strategies.

`Naïve` in Appendix A of Abo Khamis et al. 2024.  `delta` compares two evaluations,
with the row and without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from everlog.core.joins.first_order import FirstOrder
from everlog.core.joins.view import Weighted
from everlog.core.program import Row


class Recomputed(FirstOrder):
    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        after = Counter(kept for kept, _ in self.answers())
        self.inputs[atom].add(row, -1)
        after.subtract(Counter(kept for kept, _ in self.answers()))
        self.inputs[atom].add(row, 1)
        return ((kept, number) for kept, number in after.items() if number)

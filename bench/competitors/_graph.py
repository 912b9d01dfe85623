"""Shared by graph libraries: a graph is read from facts, an algorithm gives pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everlog.bench.harness.workload import Case, Row

Algorithm = Callable[[Any], set[Row]]


class GraphLibrary:
    """A graph library as a side.

    `algorithms` has for each query the answer and the function that computes it from the result of
    `build`.
    """

    def __init__(
        self, case: Case, algorithms: dict[str, tuple[str, Algorithm]], build: Callable[[Case], Any]
    ) -> None:
        self.case, self.build = case, build
        self.relation, self.algorithm = algorithms[case.query]

    def load(self) -> None:
        self.graph = self.build(self.case)

    def solve(self) -> None:
        self.found = self.algorithm(self.graph)

    def size(self, relation: str) -> int:
        return len(self.found)

    def answer(self, relation: str) -> Iterable[Row]:
        return self.found

    def close(self) -> None:
        pass

"""DuckDB: recursive CTEs; for mutually recursive rules, rounds over tables.

Its own reader loads the tab-separated files.  It chooses its number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everlog.bench.competitors._sql import ANSWERS, CTES, checked, rounds
from everlog.bench.harness.workload import Case, Row, Side, Static, installed_version

# needs the recursion's own table twice: USING KEY offers the rows so far as `recurring`
POINTS_TO = """CREATE TABLE points_to AS
WITH RECURSIVE points_to(c0, c1) USING KEY (c0, c1) AS (
  SELECT c0, c1 FROM address_of
  UNION
  (SELECT DISTINCT c0, c1 FROM (
    SELECT a.c0, n.c1 FROM points_to n JOIN assign a ON a.c1 = n.c0
    UNION ALL
    SELECT l.c0, r.c1 FROM points_to n JOIN load l ON l.c1 = n.c0 JOIN recurring.points_to r ON r.c0 = n.c1
    UNION ALL
    SELECT l.c0, n.c1 FROM points_to n JOIN recurring.points_to r ON r.c1 = n.c0 JOIN load l ON l.c1 = r.c0
    UNION ALL
    SELECT n.c1, r.c1 FROM points_to n JOIN store s ON s.c0 = n.c0 JOIN recurring.points_to r ON r.c0 = s.c1
    UNION ALL
    SELECT r.c1, n.c1 FROM points_to n JOIN store s ON s.c1 = n.c0 JOIN recurring.points_to r ON r.c0 = s.c0
  ) f WHERE NOT EXISTS (SELECT 1 FROM recurring.points_to o WHERE o.c0 = f.c0 AND o.c1 = f.c1))
)
SELECT c0, c1 FROM points_to"""


class DuckDB:
    def __init__(self, case: Case, cte: bool) -> None:
        import duckdb

        self.case, self.cte = case, cte
        self.program = checked(case.program)
        self.connection: Any = duckdb.connect(":memory:")

    def load(self) -> None:
        for relation, arity in self.case.base.items():
            columns = ", ".join(f"'c{n}': 'BIGINT'" for n in range(arity))
            self.connection.execute(
                f"CREATE TABLE {relation} AS SELECT * FROM read_csv('{self.case.facts(relation)}', delim = '\t',"
                f" header = false, auto_detect = false, columns = {{{columns}}})"
            )

    def solve(self) -> None:
        run = self.connection.execute
        query = self.case.query
        if query in ANSWERS:
            statements = [*ANSWERS[query]]
        elif self.cte:
            statements = [POINTS_TO] if query == "points_to" else [*CTES[query]]
        else:
            rounds(self.program, self.case.base, run, keyed=False)
            return
        for statement in statements:
            run(statement)

    def size(self, relation: str) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {relation}").fetchone()[0])

    def answer(self, relation: str) -> Iterable[Row]:
        rows: list[Row] = self.connection.execute(f"SELECT * FROM {relation}").fetchall()
        return rows

    def close(self) -> None:
        self.connection.close()


def _cte(case: Case) -> Static:
    return DuckDB(case, cte=True)


def _rounds(case: Case) -> Static:
    return DuckDB(case, cte=False)


def _no_cte(query: str, living: bool) -> str:
    known = query in CTES or query in ANSWERS or query == "points_to"
    return "" if known else "a recursive CTE cannot express mutually recursive rules"


def _no_rounds(query: str, living: bool) -> str:
    return "not recursive, or with aggregates" if query in ANSWERS or query == "components" else ""


_version: Callable[[], str] = installed_version("duckdb")

SIDES = [
    Side("duckdb", "DuckDB", _version, _cte, None, _no_cte, grows=True),
    Side("duckdb rounds", "DuckDB, rounds over temporary tables", _version, _rounds, None, _no_rounds),
]

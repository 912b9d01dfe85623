"""SQLite, in memory: recursive CTEs, or rounds; hand-written triggers for updates."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from everlog.bench.competitors._sql import ANSWERS, CTES, checked, rounds
from everlog.bench.competitors._sqlite_triggers import TRIGGERS
from everlog.bench.harness.workload import Case, Living, Row, Side, Static, Told, Update


class SQLite:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.program = checked(case.program)
        self.connection = sqlite3.connect(":memory:", isolation_level=None)

    def load(self) -> None:
        """Tables keyed by all columns, and an index that begins with the last one."""
        run = self.connection.execute
        for relation, arity in self.case.base.items():
            names = [f"c{n}" for n in range(arity)]
            columns = ", ".join(f"{name} INTEGER" for name in names)
            run(f"CREATE TABLE {relation} ({columns}, PRIMARY KEY ({', '.join(names)})) WITHOUT ROWID")
            run("BEGIN")
            marks = ", ".join("?" * arity)
            self.connection.executemany(f"INSERT INTO {relation} VALUES ({marks})", self.case.rows(relation))
            run("COMMIT")
            if arity > 1:
                run(f"CREATE INDEX {relation}_back ON {relation} ({', '.join(reversed(names))})")
        run("ANALYZE")

    def solve(self) -> None:
        query = self.case.query
        self.connection.execute("BEGIN")
        if query in ANSWERS or query in CTES:
            for statement in (ANSWERS | CTES)[query]:
                self.connection.execute(statement)
        else:
            rounds(self.program, self.case.base, self.connection.execute, keyed=True)
        self.connection.execute("COMMIT")

    def size(self, relation: str) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {relation}").fetchone()[0])

    def answer(self, relation: str) -> Iterable[Row]:
        columns = ", ".join(f"c{n}" for n in range(self.program.relations[relation].arity))
        return self.connection.execute(f"SELECT {columns} FROM {relation}")

    def close(self) -> None:
        self.connection.close()


class Triggered(SQLite):
    """Answers are tables that triggers maintain; a step is a transaction.

    The changes of a step are read from `told`.
    """

    def load(self) -> None:
        super().load()
        run = self.connection.execute
        self.width = max(self.program.relations[name].arity for name in self.case.answers)
        names = [f"c{n}" for n in range(self.width)]
        run(f"CREATE TABLE told (relation INTEGER, {', '.join(names)}, sign INTEGER)")
        run("BEGIN")
        for statement in TRIGGERS[self.case.query]:
            run(statement)
        run("DELETE FROM told")
        run("COMMIT")
        self.net = (
            f"SELECT relation, {', '.join(names)}, sum(sign) FROM told GROUP BY relation, {', '.join(names)}"
            " HAVING sum(sign) <> 0"
        )
        self.arity = [self.program.relations[name].arity for name in self.case.answers]
        self.insert = {
            name: f"INSERT INTO {name} VALUES ({', '.join('?' * arity)})" for name, arity in self.case.base.items()
        }
        self.delete = {
            name: f"DELETE FROM {name} WHERE {' AND '.join(f'c{n} = ?' for n in range(arity))}"
            for name, arity in self.case.base.items()
        }

    def step(self, updates: list[Update]) -> Told:
        run = self.connection.execute
        run("BEGIN")
        for relation, row, insert in updates:
            run((self.insert if insert else self.delete)[relation], row)
        told: dict[str, dict[Row, int]] = {}
        found: list[Any] = run(self.net).fetchall()
        for number, *values, sign in found:
            relation = self.case.answers[number]
            told.setdefault(relation, {})[tuple(values[: self.arity[number]])] = sign
        run("DELETE FROM told")
        run("COMMIT")
        return told


def _version() -> str:
    return sqlite3.sqlite_version


def _refuses(query: str, living: bool) -> str:
    if living and query not in TRIGGERS:
        return "triggers for this recursion are too complex to write by hand"
    return ""


def _static(case: Case) -> Static:
    return SQLite(case)


def _living(case: Case) -> Living:
    return Triggered(case)


SIDES = [Side("sqlite", "SQLite", _version, _static, _living, _refuses)]

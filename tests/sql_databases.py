"""Databases that maintain a system with the SQL of ies.sql, behind one interface."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from everlog.ies.sql import Script

Row = tuple[Any, ...]


class Refused(Exception):
    """A requirement was not met, or a value could not be computed."""


class Sqlite:
    def __init__(self, script: Script) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(script.text())

    def run(self, statement: str, row: Sequence[Any] = ()) -> list[Row]:
        try:
            return self.connection.execute(statement, row).fetchall()
        except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
            raise Refused(str(error)) from error

    def columns(self, relation: str) -> list[str]:
        return [told[0] for told in self.connection.execute(f'SELECT * FROM "{relation}"').description]

    def insert(self, relation: str, row: Row) -> None:
        self.run(f'INSERT OR IGNORE INTO "{relation}" VALUES ({", ".join("?" * len(row))})', row)

    def delete(self, relation: str, row: Row) -> None:
        same = " AND ".join(f'"{column}" = ?' for column in self.columns(relation))
        self.run(f'DELETE FROM "{relation}" WHERE {same}', row)

    def rows(self, relation: str) -> set[Row]:
        return set(self.run(f'SELECT * FROM "{relation}"'))


class Postgres:
    def __init__(self, target: str, script: Script) -> None:
        import psycopg

        self.error = psycopg.errors.RaiseException
        self.connection = psycopg.connect(target, autocommit=True)
        self.connection.execute("SET jit = off; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        self.connection.execute(script.text())

    def run(self, statement: str, row: Sequence[Any] = ()) -> None:
        try:
            self.connection.execute(statement, row)
        except self.error as error:
            raise Refused(str(error)) from error

    def columns(self, relation: str) -> list[str]:
        return [told.name for told in self.connection.execute(f'SELECT * FROM "{relation}"').description or ()]

    def insert(self, relation: str, row: Row) -> None:
        holes = ", ".join(["%s"] * len(row))
        self.run(f'INSERT INTO "{relation}" VALUES ({holes}) ON CONFLICT DO NOTHING', row)

    def delete(self, relation: str, row: Row) -> None:
        same = " AND ".join(f'"{column}" = %s' for column in self.columns(relation))
        self.run(f'DELETE FROM "{relation}" WHERE {same}', row)

    def rows(self, relation: str) -> set[Row]:
        return set(self.connection.execute(f'SELECT * FROM "{relation}"'))


class Duckdb:
    def __init__(self, script: Script) -> None:
        import duckdb

        self.error = duckdb.Error
        self.connection = duckdb.connect()
        self.script = script
        for statement in script.schema:
            self.connection.execute(statement)

    def _update(self, event: str, relation: str, row: Row) -> None:
        told = self.connection.execute(f'SELECT * FROM "{relation}"').description
        for column, value in zip(told, row, strict=True):
            self.connection.execute(f"SET VARIABLE {column[0]} = {value!r}")
        try:
            for statement in self.script.updates[event, relation]:  # type: ignore[index]  # an Event
                self.connection.execute(statement)
        except self.error as error:
            self.connection.execute("ROLLBACK")
            raise Refused(str(error)) from error

    def insert(self, relation: str, row: Row) -> None:
        self._update("insert", relation, row)

    def delete(self, relation: str, row: Row) -> None:
        self._update("delete", relation, row)

    def rows(self, relation: str) -> set[Row]:
        return set(self.connection.execute(f'SELECT * FROM "{relation}"').fetchall())

"""Counts and proofs from data that is there: a database in a file, or a running service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from attrs import define, field

from everlog.api.database import Database
from everlog.core.proofs import NotDerived
from everlog.service_client import ServiceClient, ServiceError
from everlog.store.errors import StoreError

SECONDS = 2.0  # that counts may be old
_WAIT = 2.0  # seconds for an answer of the service
_AFTER_FAILURE = 30.0  # seconds until a service that did not answer is asked for counts again


class LiveData(Protocol):
    """What an editor asks of data."""

    def count(self, relation: str) -> int | None:
        """The number of facts of a relation; None if it is not known."""

    def why(self, fact: str) -> str:
        """A proof, or what is missing for one, or what went wrong."""


class NoData:
    """An editor without a database."""

    def count(self, relation: str) -> int | None:
        return None

    def why(self, fact: str) -> str:
        return ""


@define(eq=False)
class FileData:
    """A database in a file, which another process may be writing."""

    path: Path
    _stamp: tuple[int, int] = (0, 0)
    _asked: float = 0.0
    _database: Database | None = None

    def count(self, relation: str) -> int | None:
        database = self._current()
        if database is None or relation not in database.relations:
            return None
        return len(database[relation])

    def why(self, fact: str) -> str:
        database = self._current()
        return f"error: cannot read {self.path}" if database is None else proof(database, fact)

    def _current(self) -> Database | None:
        """The database, read again when its file has changed."""
        if time.monotonic() - self._asked < SECONDS:
            return self._database
        self._asked = time.monotonic()
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp or self._database is None:
                self._database = Database.open(self.path, read_only=True)
                self._stamp = stamp
        except (OSError, StoreError, ValueError):
            self._database = None
        return self._database


@define(eq=False)
class ServiceData:
    """A service that `everlog serve` runs."""

    _client: ServiceClient
    _next: float = 0.0
    _counts: dict[str, int] = field(factory=dict)

    def count(self, relation: str) -> int | None:
        if time.monotonic() >= self._next:
            try:
                found = self._client.call("GET", "/relations", seconds=_WAIT)
                self._counts = {each["name"]: each["size"] for each in found["relations"]}
                self._next = time.monotonic() + SECONDS
            except ServiceError:
                self._counts = {}
                self._next = time.monotonic() + _AFTER_FAILURE
        return self._counts.get(relation)

    def why(self, fact: str) -> str:
        try:
            return self._text("/why", fact)
        except ServiceError as problem:
            try:
                return f"{fact} does not hold\n\n{self._text('/why-not', fact)}"
            except ServiceError:
                return f"error: {problem}"

    def _text(self, path: str, fact: str) -> str:
        return str(self._client.call("POST", path, {"fact": fact}, _WAIT)["text"])


def proof(database: Database, fact: str) -> str:
    """The proof of a fact, or what each rule lacks for it."""
    try:
        return database.why(fact).text()
    except NotDerived:
        return f"{fact} does not hold\n\n{database.why_not(fact).text()}"
    except ValueError as problem:
        return f"error: {problem}"

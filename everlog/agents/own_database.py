"""Answers of a database in this process.

Requests run in the main thread, one after another, within the time limit of the database.  A reader
of a file follows its writer: it looks for new steps before each answer.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection
from typing import Any

import anyio

from everlog.agents.answering import ROWS, Refused, refusal
from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.serve.errors import error_answer
from everlog.serve.jobs.reading import Call
from everlog.serve.requests.json_schema import quick_test
from everlog.serve.requests.performing import performed
from everlog.serve.requests.routes import operations
from everlog.serve.service import Bounds, Service
from everlog.serve.wire import ChangesWriter, TooLarge, counts_json, dumped, joined
from everlog.store.durable_database import DurableDatabase

_STEPS = 1000  # that are kept for agents which ask later
_ANSWER = 256 << 10  # bytes
_LOOK = 0.1  # seconds between looks for changes


class OwnDatabase:
    """A database that answers as the service would."""

    def __init__(self, database: Database, name: str = "", follows: bool = False) -> None:
        self._service = Service(database, Bounds(rows=ROWS, answer=_ANSWER), name)
        self._follows = database if follows and isinstance(database, DurableDatabase) else None
        self._operations = {operation.name: operation for operation in operations(self._service.bounds)}
        self._known_from = self._service.step
        self._steps: deque[tuple[int, Changes]] = deque()
        database.subscribe(None, self._hear)

    def _hear(self, changes: Changes) -> None:
        if len(self._steps) == _STEPS:
            self._known_from = self._steps.popleft()[0]
        self._steps.append((self._service.step, changes))

    async def ask(self, operation: str, body: object = None, **query: object) -> dict[str, Any]:
        found = self._operations[operation]
        call = Call({}, {each.name: each.shape.get("default") for each in found.parameters} | query)
        try:
            self._look()
            data = None if found.body is None else dumped(body)
            written = performed(found, self._service, call, data, quick_test(found.body or {}))
            assert isinstance(written, bytes)  # agents ask for no files
        except Exception as error:
            raise refusal(error_answer(error).body()["error"]) from None
        self._service.held.release(len(written))
        answer: dict[str, Any] = json.loads(written)
        return answer

    async def changes(self, relations: Collection[str], after: str | None, seconds: float) -> dict[str, Any]:
        self._look()
        for name in relations:
            self._known(name)
        start = self._service.step if after is None else self._service.number(after)
        if start is None or not self._known_from <= start <= self._service.step:
            return {"steps": [], "after": self._service.label(self._service.step), "missed": True}
        end = anyio.current_time() + seconds
        while True:
            self._look()
            steps = [
                {"step": step, "changes": told}
                for step, changes in self._steps
                if step > start and (told := _told(changes, relations))
            ]
            if steps or anyio.current_time() >= end:
                return {"steps": steps, "after": self._service.label(self._service.step), "missed": False}
            await anyio.sleep(_LOOK)

    def _known(self, relation: str) -> None:
        try:
            self._service.relation(relation)
        except Exception as error:
            raise Refused(error_answer(error).message) from None

    def _look(self) -> None:
        """Follow the writer of the file, if another process has it."""
        if self._follows is not None:
            self._follows.refresh()


def _told(changes: Changes, relations: Collection[str]) -> dict[str, Any]:
    """What a step changed in these relations; only the numbers where the list is long."""
    try:
        told = ChangesWriter(changes, _ANSWER).written(False, relations or None)
    except TooLarge:
        counts = counts_json(changes)
        return {name: counts[name] for name in counts if not relations or name in relations}
    found: dict[str, Any] = json.loads(joined(told))
    return found

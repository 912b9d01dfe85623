"""The jobs that write: each function is one step, all or nothing.

A step has its own time limit (`core.runtime.guards`): beyond it, the step is undone; once written,
it stays.  The work before it, such as parsing texts, has a time limit too.  After the step nothing
may fail: an answer that is too large, or does not fit into memory, is shortened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.api.facts.rows import step_updates
from everlog.api.live import LiveText
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import declared
from everlog.serve.errors import MOST_DIAGNOSTICS, ApiError, log_error
from everlog.serve.jobs.reading import Call, live_text, with_text
from everlog.serve.service import Service
from everlog.serve.wire import ChangesWriter, TooLarge, counts_json, row_in


def step(service: Service, call: Call) -> dict[str, Any]:
    """Apply deletes, inserts, and then the lines of a text, as one step."""
    body, database = call.body, service.database
    source, position = body.get("source"), body.get("position")
    only_counts = body.get("tell") == "counts"
    if (source is None) != (position is None):
        raise ApiError(400, "bad-request", "`source` and `position` go together")
    if source is not None and database.positions.get(source) == position:
        return {"step": service.step, "repeated": True, "changes": {}}
    with service.guard:
        updates = updates_in(database, body)
        adds = any(update.insert for update in updates)
    call.body.clear()
    with service.filling() if adds else nullcontext():
        changes = database.apply(updates, positions=None if source is None else {source: position})
    return _answer(service, call, changes, before={"repeated": False}, only_counts=only_counts)


def updates_in(database: Database, body: dict[str, Any]) -> list[Update]:
    """The updates of a body: deletes, inserts, and then the lines of a text."""
    updates: list[Update] = []
    for key, insert in (("delete", False), ("insert", True)):
        for name, rows in body.get(key, {}).items():
            relation = declared(database.relations, name)
            for row in rows:
                updates.append(Update(name, row_in(relation, row), insert))
    updates += step_updates(database.relations, body.get("text", ""))
    return updates


def add_rules(service: Service, call: Call) -> dict[str, Any]:
    database = service.database
    live = service.reading(lambda db: with_text(db, call.body["text"], call.body.get("replaces")))
    before = set(database.rules)
    with service.filling():
        changes = service.program_change(lambda db: db._switch_program(live, db._functors))

    def more() -> dict[str, Any]:
        made = [name for name in database.rules if name not in before]
        return {"rules": made, "warnings": database.warnings(added=True)[:MOST_DIAGNOSTICS]}

    return _answer(service, call, changes, after={"rules": [], "warnings": []}, more=more)


def drop_rule(service: Service, call: Call) -> dict[str, Any]:
    name = call.path["name"]
    if name not in service.database.rules:
        raise ApiError(404, "no-such-rule", f"no rule is named `{name}`")
    return _answer(service, call, _edited(service, lambda live: live.without_statement(name)))


def drop_statement(service: Service, call: Call) -> dict[str, Any]:
    text = call.body["text"]
    return _answer(service, call, _edited(service, lambda live: live.without_statement(text)))


def drop_relation(service: Service, call: Call) -> dict[str, Any]:
    name = service.relation(call.path["name"]).name
    return _answer(service, call, _edited(service, lambda live: live.without_relation(name)))


def checkpoint(service: Service, call: Call) -> dict[str, Any]:
    durable = service.in_file()
    durable.checkpoint(history=call.body.get("history"))
    service._pasts.clear()
    return {"step": durable.step, "oldest": durable.oldest}


def _edited(service: Service, edit: Callable[[LiveText], LiveText]) -> Changes:
    """Change the text of the program, and switch to it."""
    live = service.reading(lambda database: edit(live_text(database)))
    return service.program_change(lambda database: database._switch_program(live, database._functors))


def _answer(
    service: Service,
    call: Call,
    changes: Changes,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    more: Callable[[], dict[str, Any]] = dict,
    only_counts: bool = False,
) -> dict[str, Any]:
    """The answer to a step: its changes, or their numbers, or only that it is done."""
    done: dict[str, Any] = {"step": service.step, **(before or {}), "changes": {}, **(after or {})}
    try:
        done |= more()
        if only_counts:
            return {**done, "changes": counts_json(changes)}
        try:
            return {**done, "changes": ChangesWriter(changes, service.held.room).written(call.as_text)}
        except TooLarge:
            return {**done, "changes": counts_json(changes), "cut": True}
    except (Exception, KeyboardInterrupt) as problem:
        if not isinstance(problem, (MemoryError, KeyboardInterrupt)):
            log_error(problem)
        return {**done, "cut": True}

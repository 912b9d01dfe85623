"""What can be changed by a service: each function is one step, all of it or nothing.

A step keeps its own clock (`core.guards`): past the limit it leaves no trace, and once it is written it stands.
 So nothing here is under a clock of its own but the reading of texts.

Reads: everlog.serve.service, everlog.serve.wire.  Read by: everlog.serve.routes.
"""

from __future__ import annotations

from typing import Any

from everlog.changes import Changes
from everlog.core.executor import Update
from everlog.core.fact_rows import declared
from everlog.rows import step_updates
from everlog.serve.errors import ApiError
from everlog.serve.reading import Call, with_text
from everlog.serve.service import Service
from everlog.serve.wire import changes_json, counts_json, row_in


def step(service: Service, call: Call) -> dict[str, Any]:
    """Deletes, inserts, and then the lines of a text, as one step."""
    body, database = call.body, service.database
    source, position = body.get("source"), body.get("position")
    if (source is None) != (position is None):
        raise ApiError(400, "bad-request", "`source` and `position` go together")
    if source is not None and database.positions.get(source) == position:
        return {"step": service.step, "repeated": True, "changes": {}}
    updates: list[Update] = []
    for key, insert in (("delete", False), ("insert", True)):
        for name, rows in body.get(key, {}).items():
            relation = declared(database.relations, name)
            updates += [Update(name, row_in(relation, row), insert) for row in rows]
    updates += step_updates(database.relations, body.get("text", ""))
    changes = database.apply(updates, positions=None if source is None else {source: position})
    told = counts_json(changes) if body.get("tell") == "counts" else changes_json(changes, call.as_text)
    return {"step": service.step, "repeated": False, "changes": told}


def add_rules(service: Service, call: Call) -> dict[str, Any]:
    database = service.database
    live = service.reading(lambda db: with_text(db, call.body["text"]))
    before = set(database.rules)
    changes = service.program_change(lambda db: db._go_by(live, db._functors))
    made = [name for name in database.rules if name not in before]
    return {**_told(service, call, changes), "rules": made, "warnings": database.warnings(added=True)}


def drop_rule(service: Service, call: Call) -> dict[str, Any]:
    name = call.path["name"]
    if name not in service.database.rules:
        raise ApiError(404, "no-such-rule", f"no rule is named `{name}`")
    return _told(service, call, service.program_change(lambda db: db.drop_rule(name)))


def drop_statement(service: Service, call: Call) -> dict[str, Any]:
    return _told(service, call, service.program_change(lambda db: db.drop_rule(call.body["text"])))


def drop_relation(service: Service, call: Call) -> dict[str, Any]:
    name = service.relation(call.path["name"]).name
    return _told(service, call, service.program_change(lambda db: db.drop_relation(name)))


def checkpoint(service: Service, call: Call) -> dict[str, Any]:
    durable = service.in_file()
    durable.checkpoint(history=call.body.get("history"))
    service._pasts.clear()
    return {"step": durable.step, "oldest": durable.oldest}


def _told(service: Service, call: Call, changes: Changes) -> dict[str, Any]:
    return {"step": service.step, "changes": changes_json(changes, call.as_text)}

"""The jobs that try steps without making them.

A trial takes the time limit of a step, and other requests wait no longer than for a step.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from everlog.serve.jobs.reading import Call
from everlog.serve.jobs.writing import updates_in
from everlog.serve.service import Service
from everlog.serve.wire import ChangesWriter, TooLarge, counts_json, plain


def what_if(service: Service, call: Call) -> dict[str, Any]:
    """The changes that a step would cause; with `as_of`, in a past state."""
    body, as_of = call.body, call.body.get("as_of")
    database = service.database if as_of is None else service.past(as_of)
    only_counts = body.get("tell") == "counts"
    with service.guard:
        updates = updates_in(database, body)
    with service.filling() if any(update.insert for update in updates) else nullcontext():
        changes = database.what_if(updates)
    done = {"step": service.step if as_of is None else as_of}
    if only_counts:
        return {**done, "changes": counts_json(changes)}
    try:
        return {**done, "changes": ChangesWriter(changes, service.held.room).written(call.as_text)}
    except TooLarge:
        return {**done, "changes": counts_json(changes), "cut": True}


def how(service: Service, call: Call) -> dict[str, Any]:
    """The least steps that make facts come or go, within the time limit of a request."""
    body, as_of = call.body, call.body.get("as_of")
    conditions = {key: body[key] for key in ("change", "keep", "most", "answers", "trials") if key in body}
    found = service.reading(lambda database: database.how(body["goal"], **conditions), as_of)
    return {"step": service.step if as_of is None else as_of, **plain(found.to_json()), "text": found.text()}

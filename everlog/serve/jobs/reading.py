"""The jobs that read: each function answers one request from one state."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from time import monotonic
from typing import Any

import attrs
from attrs import frozen

from everlog._version import __version__
from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.api.facts.rows import fact
from everlog.api.live import LiveText, RuleError, with_functors
from everlog.api.results import OrderedResult
from everlog.core.engine.planning.costs import rule_costs
from everlog.core.engine.planning.plan import make_plan
from everlog.core.program import Kind, Relation, Row
from everlog.core.proofs import NotDerived
from everlog.core.runtime.guards import memory_in_use
from everlog.dsl.diagnostics import DatalogError
from everlog.functors import FunctorError
from everlog.serve.errors import MOST_DIAGNOSTICS, ApiError, diagnostics, error_answer
from everlog.serve.ordering import in_order, merged, runs_of
from everlog.serve.service import Service
from everlog.serve.untrusted import refuse_places
from everlog.serve.wire import (
    ChangesWriter,
    TooLarge,
    columns_json,
    counts_json,
    dumped,
    page_json,
    parameters_in,
    plain,
    row_in,
    too_large,
)


@frozen
class Call:
    """A validated request."""

    path: dict[str, str]
    query: dict[str, Any]
    body: Any = None

    @property
    def as_text(self) -> bool:
        return bool(self.query.get("numbers") == "text")

    @property
    def as_of(self) -> int | None:
        step: int | None = self.query.get("as_of")
        return step


def relations(service: Service, call: Call) -> dict[str, Any]:
    def found(database: Database) -> list[dict[str, Any]]:
        program = database.program
        inputs = {directive.relation for directive in program.inputs}
        outputs = {directive.relation for directive in program.outputs}
        rules: dict[str, int] = {}
        for rule in program.rules:
            rules[rule.head.relation] = rules.get(rule.head.relation, 0) + 1
        return [
            {
                "name": name,
                "columns": columns_json(relation.columns),
                "size": database.kept(name),
                "rules": rules.get(name, 0),
                "input": name in inputs,
                "output": name in outputs,
                "insert_only": relation.insert_only,
                "strategy": database.strategy_of(name),
            }
            for name, relation in database.relations.items()
        ]

    return {"step": _step(service, call), "relations": service.reading(found, call.as_of)}


def facts(service: Service, call: Call) -> dict[str, Any]:
    name, given = call.path["name"], call.query["given"]

    def found(database: Database) -> dict[str, Any]:
        relation = service.relation(name, database)
        if given:
            facts = database._read(lambda: database._engine.given(name))
            return page_of(service, call, relation, in_order(relation, facts), len(facts), call.query)
        rows = sorted_facts(database, relation)
        return page_of(service, call, relation, rows, database.size(name), call.query)

    return {"step": _step(service, call), "relation": name, **service.reading(found, call.as_of)}


def query(service: Service, call: Call) -> dict[str, Any]:
    body = {"limit": min(1000, service.bounds.rows), "offset": 0, "ordered": True, **call.body}
    as_of = body.get("as_of")

    def found(database: Database) -> dict[str, Any]:
        result = database._queries.ask(body["query"], parameters_in(body.get("params")))
        relation = result._relation
        if isinstance(result, OrderedResult):
            return page_of(service, call, relation, result, len(result), body)
        if not body["ordered"]:
            return page_of(service, call, relation, result, None, body)
        runs = runs_of(result)
        return page_of(service, call, relation, merged(relation, runs), sum(map(len, runs)), body)

    return {"step": service.step if as_of is None else as_of, **service.reading(found, as_of)}


def sorted_facts(database: Database, relation: Relation) -> Iterable[Row]:
    """The facts of a relation in order, lazily."""
    if relation.arity == 2 and not any(column.kind is Kind.FLOAT for column in relation.columns):
        return database.rows(relation.name)  # sorted by key, lazily
    return database._read(lambda: in_order(relation, database._engine.stream(relation.name)))


def page_of(
    service: Service, call: Call, relation: Relation, rows: Iterable[Row], total: int | None, asked: Any
) -> dict[str, Any]:
    """The rows that fit into an answer; one more row shows whether there are others."""
    start, limit, room = asked["offset"], asked["limit"], service.held.room
    found = list(islice(rows, start, start + limit + 1))
    columns = columns_json(relation.columns)
    busy = "" if room == service.held.most else "other clients have not read their large answers: try again later"
    room = max(room - len(dumped(columns)), 0)
    written, _, all_fit = page_json(relation.columns, found[:limit], room, call.as_text, busy)
    return {
        "columns": columns,
        "rows": written,
        "offset": start,
        "more": not all_fit or len(found) > limit,
        "total": total,
    }


def why(service: Service, call: Call) -> Any:
    return _reasons(service, call, "why")


def why_not(service: Service, call: Call) -> Any:
    return _reasons(service, call, "why_not")


def _reasons(service: Service, call: Call, method: str) -> dict[str, Any]:
    body, as_of = call.body, call.body.get("as_of")

    def found(database: Database) -> dict[str, Any]:
        row = row_in(service.relation(body["fact"], database), body["row"]) if "row" in body else None
        asked = fact(database.relations, body["fact"], row, parameters_in(body.get("params")))
        try:
            reason = getattr(database, method)(*asked)
        except NotDerived as problem:
            raise NotDerived(problem.fact, "/why-not") from None
        key = "proof" if method == "why" else "why_not"
        return {key: plain(reason.to_json()), "text": reason.text()}

    return {"step": service.step if as_of is None else as_of, **service.reading(found, as_of)}


# ── rules ────────────────────────────────────────────────────────────────────────────────────


def rules(service: Service, call: Call) -> dict[str, Any]:
    def found(database: Database) -> dict[str, Any]:
        written = database.rules
        listed = [
            {**_badges(rule), "text": written.get(rule["name"], rule["rule"])}
            for rule in explanation(service, database)["rules"]
        ]
        return {"rules": listed, "statements": database.statements(), "warnings": database.warnings()}

    return {"step": service.step, **service.reading(found)}


def _badges(rule: dict[str, Any]) -> dict[str, Any]:
    """The columns of a rule in a list."""
    out = {key: rule[key] for key in ("name", "file", "line", "class", "reason", "w", "w_hat")}
    return out | {
        "relation": rule["head"],
        "strategy": rule["in_use"]["strategy"],
        "cost": rule["in_use"]["update_cost"],
    }


def check(service: Service, call: Call) -> dict[str, Any]:
    """The errors of a text that may be added, or the rules that it defines."""

    def found(database: Database) -> dict[str, Any]:
        try:
            live = with_text(database, call.body["text"], call.body.get("replaces"))
            program = with_functors(live.program, database._functors)
        except DatalogError as error:
            return {"ok": False, "diagnostics": diagnostics(error), "rules": []}
        except (ApiError, FunctorError, RuleError) as error:
            code = error.code if isinstance(error, ApiError) else error_answer(error).code
            problem = {"code": code, "severity": "error", "message": str(error)}
            return {"ok": False, "diagnostics": [{**problem, "labels": [], "rule": "", "hint": ""}], "rules": []}
        file = f"<added {live.added}>"
        remarks = [remark for remark in live.report.as_json() if remark.get("file") == file][:MOST_DIAGNOSTICS]
        known = database.rules
        new = [cost.to_json() for cost in rule_costs(make_plan(program, database._strategies))]
        made = [{**_badges(r), "text": r["rule"]} for r in new if r["name"] not in known]
        return {"ok": True, "diagnostics": remarks, "rules": made}

    return {"step": service.step, **service.reading(found)}


def with_text(database: Database, text: str, replaces: str | None = None) -> LiveText:
    """The program with untrusted statements, which must not name files or databases.

    They come in place of the rule or statement `replaces`, if there is one.
    """
    before = live_text(database)
    if replaces is None:
        live = before.with_statements(text, files=False)
    else:
        live = before.with_replaced(replaces, text, files=False)
    refuse_places(live)
    return live


def live_text(database: Database) -> LiveText:
    """The text of the program; RuleError if it has none."""
    if database._live is None:
        raise RuleError("this database has no text to change")
    return database._live


def explain(service: Service, call: Call) -> Any:
    name = call.query.get("name")

    def found(database: Database) -> dict[str, Any]:
        return {"text": database.explain(name), **explanation(service, database)}

    return {"step": service.step, "program": service.name, **service.reading(found)}


def explanation(service: Service, database: Database) -> dict[str, Any]:
    """The explanation of the program, computed once for each."""
    program, known = service.explained
    if program is not database.program:
        known = plain(database.explanation())
        service.explained = (database.program, known)
    explanation: dict[str, Any] = known
    return explanation


# ── the service itself ───────────────────────────────────────────────────────────────────────


def stats(service: Service, call: Call) -> Any:
    found = service.reading(lambda database: database.stats())
    return {
        "program": service.name,
        "database": None if service.durable is None else service.durable.path.name,
        "step": service.step,
        "version": __version__,
        "seconds": round(monotonic() - service.started, 3),
        "memory": memory_in_use(),
        "subscribers": len(service.hub.followers),
        "behind": max((follower.waiting_bytes for follower in list(service.hub.followers)), default=0),
        "lagged": service.hub.lagged,
        "relations": [plain(attrs.asdict(each)) for each in found.relations],
        "rules": [plain(attrs.asdict(each)) for each in found.rules],
    }


# ── the past ─────────────────────────────────────────────────────────────────────────────────


def positions(service: Service, call: Call) -> Any:
    return {"step": service.step, "positions": dict(service.database.positions)}


def diff(service: Service, call: Call) -> Any:
    durable, asked = service.in_file(), call.query
    before, after = asked["before"], durable.step if asked.get("after") is None else asked["after"]
    with durable._engine.guard:
        changes = durable.diff(before, after, asked.get("relation"))
    if asked["tell"] == "counts":
        return {"before": before, "after": after, "changes": counts_json(changes)}
    _bounded(service, [changes])
    return {"before": before, "after": after, "changes": _changes(service, call, [changes])[0]}


def history(service: Service, call: Call) -> Any:
    durable, name = service.in_file(), call.query["relation"]
    with durable._engine.guard:
        found = durable.history(name)
    found = found[-call.query["limit"] :]
    _bounded(service, [past.changes for past in found])
    changed = _changes(service, call, [past.changes for past in found])
    steps = [
        {"step": past.step, "time": past.time.isoformat(), "changes": changes}
        for past, changes in zip(found, changed, strict=True)
    ]
    return {"step": durable.step, "oldest": durable.oldest, "relation": name, "steps": steps}


def steps(service: Service, call: Call) -> Any:
    """The latest steps up to one, the last one first, with the numbers of changed base facts."""
    durable, asked = service.in_file(), call.query
    upto = durable.step if asked.get("upto") is None else min(asked["upto"], durable.step)
    with durable._engine.guard:
        found = durable.logged(max(durable.oldest, upto - asked["limit"]), max(upto, durable.oldest))
    listed = [
        {
            "step": each.step,
            "time": each.time.isoformat(),
            "program": each.program,
            "given": {name: {"deleted": gone, "inserted": came} for name, (gone, came) in each.given.items()},
        }
        for each in reversed(found)
    ]
    return {"step": durable.step, "oldest": durable.oldest, "steps": listed}


def _bounded(service: Service, changed: list[Changes]) -> None:
    """Raise ApiError if an answer has too many rows."""
    rows = sum(len(changes[name]) for changes in changed for name in changes)
    if rows > service.bounds.rows:
        message = (
            f"the answer would have {rows} rows, more than {service.bounds.rows}: ask for fewer steps, or for one"
        )
        raise ApiError(422, "limit-exceeded", f"{message} relation")


def _changes(service: Service, call: Call, changed: list[Changes]) -> list[Any]:
    """Changes as JSON; ApiError if they do not fit into an answer."""
    out, room = [], service.held.room
    for changes in changed:
        try:
            out.append(ChangesWriter(changes, room).written(call.as_text))
        except TooLarge:
            raise too_large(service.held.room) from None
        room -= sum(len(side) for sides in out[-1].values() for side in sides.values())
    return out


def _step(service: Service, call: Call) -> int:
    return service.step if call.as_of is None else call.as_of

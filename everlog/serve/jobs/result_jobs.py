"""The jobs of kept results: find them, read a page, write a file."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any

from attrs import evolve, frozen

from everlog.api.database import Database
from everlog.core.program import Relation, Row
from everlog.extras import MissingPackage
from everlog.files.connect import write_facts
from everlog.files.text_values import FactsError
from everlog.serve.errors import ApiError
from everlog.serve.jobs.kept_results import KeptResult
from everlog.serve.jobs.reading import Call, page_of
from everlog.serve.ordering import all_sorted, row_key
from everlog.serve.service import Service
from everlog.serve.wire import columns_json, parameters_in

_FILES: dict[str, tuple[str, str]] = {
    "csv": ("rows.csv", "text/csv; charset=utf-8"),
    "json": ("rows.json", "application/json"),
    "parquet": ("rows.parquet", "application/vnd.apache.parquet"),
}
FORMATS = tuple(_FILES)
MEDIA = tuple(media for _, media in _FILES.values())


def keep(service: Service, call: Call) -> dict[str, Any]:
    """Find and sort all rows of a query, or of a relation, and keep them."""
    body, as_of = call.body, call.body.get("as_of")
    if ("query" in body) == ("relation" in body):
        raise ApiError(400, "bad-request", "the body has either `query` or `relation`")

    def found(database: Database) -> tuple[Relation, list[Row]]:
        if "relation" in body:
            relation = service.relation(body["relation"], database)
            rows: Iterable[Row] = database._read(lambda: database._engine.stream(relation.name))
        else:
            result = database._queries.ask(body["query"], parameters_in(body.get("params")))
            relation, rows = result._relation, result
        most = service.kept.most
        taken = list(islice(iter(rows), most + 1))
        if len(taken) > most:
            message = f"the result has more than the {most} rows that are kept: add a condition to the query"
            raise ApiError(422, "limit-exceeded", message)
        return relation, all_sorted(taken, row_key(relation, taken))

    relation, rows = service.reading(found, as_of)
    step = service.step if as_of is None else as_of
    kept = KeptResult(secrets.token_urlsafe(12), relation, step, rows)
    service.kept.add(kept)
    return {"result": kept.name, "step": step, "columns": columns_json(relation.columns), "total": len(rows)}


def rows(service: Service, call: Call) -> dict[str, Any]:
    """A page of a kept result."""
    result, asked = service.kept.find(call.path["name"]), call.query
    found = result.arranged(asked["sort"], asked["contains"], service.guard)
    service.kept.make_room()
    start = asked["offset"]
    page = page_of(
        service,
        call,
        result.relation,
        found[start : start + asked["limit"] + 1],
        len(found),
        {**asked, "offset": 0},
    )
    return {**page, "offset": start, "step": result.step}


def drop(service: Service, call: Call) -> dict[str, Any]:
    service.kept.drop(call.path["name"])
    return {"step": service.step}


@frozen
class FileAnswer:
    """An open file without a name: it goes when it is closed."""

    file: IO[bytes]
    size: int
    media: str
    name: str


def file(service: Service, call: Call) -> FileAnswer:
    """A kept result as a file, its rows sorted as in every file that everlog writes."""
    result, asked = service.kept.find(call.path["name"]), call.query
    found = result.arranged(asked["sort"], asked["contains"], service.guard)
    name, media = _FILES[asked["format"]]
    folder = Path(mkdtemp(prefix="everlog-"))
    try:
        path = folder / name
        parameters = {"IO": "jsonfile", "format": "object"} if asked["format"] == "json" else {}
        try:
            write_facts(evolve(result.relation, name="rows"), found, path, **parameters)
        except (FactsError, MissingPackage) as problem:
            raise ApiError(422, "bad-request", str(problem).replace(f"{folder}/", "")) from None
        return FileAnswer(path.open("rb"), path.stat().st_size, media, name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

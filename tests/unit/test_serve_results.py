"""Kept results, files, replaced rules, the rule graph and the list of steps, over HTTP."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import PATHS, Served, refused, served

from everlog.serve.jobs.kept_results import KeptResult, KeptResults
from everlog.serve.ordering import all_sorted

PROGRAM = (
    PATHS
    + """
.decl item(name:symbol, price:float, n:number)
item("Ärmel", 2.5, 3). item("b,\\"c\\"", -1.0, 9223372036854775807). item("<b>", 0.0, 1).
"""
)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("results"), "--db", "results.db", program=PROGRAM) as service:
        yield service


def kept(one: Served, **body: Any) -> str:
    return str(one.post("/results", body)["result"])


def names(one: Served, result: str, **asked: Any) -> list[str]:
    return [row[0] for row in one.get(f"/results/{result}", **asked)["rows"]]


def test_a_kept_result_is_sorted_filtered_and_paged(one: Served) -> None:
    told = one.post("/results", {"query": "item(name, price, n)"})
    assert (told["total"], [column["name"] for column in told["columns"]]) == (3, ["name", "price", "n"])
    result = told["result"]
    assert names(one, result) == ["<b>", 'b,"c"', "Ärmel"]
    assert names(one, result, sort=2) == ['b,"c"', "<b>", "Ärmel"]
    assert names(one, result, sort=-3) == ['b,"c"', "Ärmel", "<b>"]
    assert names(one, result, sort=-3, offset=1, limit=1) == ["Ärmel"]
    assert names(one, result, contains="äRM") == ["Ärmel"]
    page = one.get(f"/results/{result}", contains="b", sort=1, limit=1)
    assert (page["total"], page["more"], page["offset"]) == (2, True, 0)
    assert one.get(f"/results/{kept(one, relation='edge')}")["rows"] == [[1, 2], [2, 3]]


def test_a_kept_result_does_not_follow_later_steps(one: Served) -> None:
    result = kept(one, query="edge(x, y)")
    step = one.get(f"/results/{result}")["step"]
    one.insert("edge", (8, 9))
    page = one.get(f"/results/{result}")
    assert (page["rows"], page["step"]) == ([[1, 2], [2, 3]], step)
    assert one.get(f"/results/{kept(one, query='edge(x, y)', as_of=step)}")["rows"] == [[1, 2], [2, 3]]
    one.post("/steps", {"delete": {"edge": [[8, 9]]}})


def test_wrong_requests_say_what_is_wrong(one: Served) -> None:
    result = kept(one, query="edge(x, y)")
    refused(one.client.get(f"/results/{result}", params={"sort": 3}), 400, "bad-parameter")
    refused(one.client.get("/results/nothing"), 404, "no-such-result")
    refused(one.client.post("/results", json={}), 400, "bad-request")
    refused(one.client.post("/results", json={"query": "edge(x"}), 422, "mistakes")
    one.client.delete(f"/results/{result}")
    refused(one.client.get(f"/results/{result}"), 404, "no-such-result")


def test_a_result_comes_as_a_file(one: Served) -> None:
    result = kept(one, query="item(name, price, n)")
    found = one.client.get(f"/results/{result}/file", params={"format": "csv"})
    assert found.headers["content-disposition"] == 'attachment; filename="rows.csv"'
    rows = list(csv.reader(io.StringIO(found.text)))
    assert rows[0] == ["name", "price", "n"]
    assert ['b,"c"', "-1.0", "9223372036854775807"] in [[a, str(float(b)), c] for a, b, c in rows[1:]]
    found = one.client.get(f"/results/{result}/file", params={"format": "json", "contains": "ärm"})
    assert json.loads(found.content) == [{"name": "Ärmel", "price": 2.5, "n": 3}]
    found = one.client.get(f"/results/{result}/file", params={"format": "parquet"})
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(found.content))
    assert sorted(table.column("name").to_pylist()) == ["<b>", 'b,"c"', "Ärmel"]


def test_old_results_give_way_and_one_that_is_too_large_is_refused() -> None:
    from everlog.core.program import Column, Kind, Relation

    shape = Relation("", (Column("x", Kind.NUMBER),))
    results = KeptResults(5)
    for name in "abc":
        results.add(KeptResult(name, shape, 0, [(1,), (2,)]))
    with pytest.raises(Exception, match="not kept"):
        results.find("a")
    results.find("b")
    results.add(KeptResult("d", shape, 0, [(1,), (2,), (3,)]))
    assert results.find("b").size == 2
    with pytest.raises(Exception, match="not kept"):
        results.find("c")


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())), st.integers(0, 1), st.booleans())
def test_an_order_is_that_of_python(rows: list[tuple[int, ...]], column: int, reverse: bool) -> None:
    from everlog.serve import ordering

    before, ordering._RUN = ordering._RUN, 3
    try:
        found = all_sorted(rows, lambda row: row[column], reverse=reverse)
    finally:
        ordering._RUN = before
    assert found == sorted(rows, key=lambda row: row[column], reverse=reverse)


def test_a_rule_is_replaced_in_one_step(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        before = one.get("/relations")["step"]
        body = {"text": "path(x, z) :- edge(x, y), edge(y, z).", "replaces": "path#2"}
        assert one.post("/rules/check", body)["rules"][0]["relation"] == "path"
        told = one.post("/rules", body)
        assert told["step"] == before + 1
        assert told["rules"] == ["path#3"]
        assert [rule["name"] for rule in one.get("/rules")["rules"]] == ["path#1", "path#3"]
        wrong = {"text": "path(x, z) :- edgy(x, z).", "replaces": "path#1"}
        assert not one.post("/rules/check", wrong)["ok"]
        refused(one.client.post("/rules", json=wrong), 422, "mistakes")
        refused(one.client.post("/rules", json={**body, "replaces": "path#9"}), 422, "bad-rule")
        assert one.post("/rules/check", {**body, "replaces": "path#9"})["diagnostics"][0]["code"] == "bad-rule"
        # a declaration goes and comes back in one step, though rules use it meanwhile
        one.post(
            "/rules", {"text": ".decl edge(a:number, b:number)", "replaces": ".decl edge(x:number, y:number)"}
        )
        relations = {each["name"]: each for each in one.get("/relations")["relations"]}
        assert [column["name"] for column in relations["edge"]["columns"]] == ["a", "b"]
        assert one.query("path(1, x)") == [(2,), (3,)]


def test_the_rule_graph_has_every_relation_and_arrow(one: Served) -> None:
    found = one.get("/graph")
    boxes = {box["name"]: box for box in found["boxes"]}
    assert boxes.keys() == {"edge", "path", "item"}
    assert boxes["path"]["recursive"]
    (arrow,) = found["arrows"]
    assert (arrow["from"], arrow["to"]) == ("edge", "path")
    assert boxes["edge"]["x"] + boxes["edge"]["width"] <= boxes["path"]["x"]
    assert all(box["x"] + box["width"] <= found["width"] for box in found["boxes"])


def test_the_steps_of_the_past_are_listed(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "steps.db") as one:
        one.insert("edge", (3, 4), (4, 5))
        one.post("/rules", {"text": ".decl more(x:number)"})
        one.post("/steps", {"text": "-edge(3, 4).\n+more(1)."})
        found = one.get("/steps")
        assert [step["step"] for step in found["steps"]] == [3, 2, 1]
        assert found["steps"][0]["given"] == {
            "edge": {"deleted": 1, "inserted": 0},
            "more": {"deleted": 0, "inserted": 1},
        }
        assert [step["program"] for step in found["steps"]] == [False, True, False]
        assert [step["step"] for step in one.get("/steps", upto=2, limit=1)["steps"]] == [2]
        counts = one.get("/diff", before=2, after=3, tell="counts")["changes"]
        assert counts["edge"] == {"deleted": 1, "inserted": 0}
        assert counts["path"]["deleted"] == 6
        one.post("/checkpoint", {"history": 1})
        assert [step["step"] for step in one.get("/steps")["steps"]] == [3]


def test_a_service_in_memory_has_no_steps_of_the_past(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        refused(one.client.get("/steps"), 409, "not-durable")


@pytest.mark.deep
def test_a_million_rows_are_kept_sorted_and_paged(tmp_path: Path) -> None:
    program = ".decl n(x:number, y:number)\nn(x, y) :- x = range(0, 1000000), y = (x * 7919) % 1000003."
    with served(tmp_path, "--max-seconds", "60", program=program) as one:
        one.client.timeout = httpx.Timeout(120)
        result = kept(one, relation="n")
        found = one.get(f"/results/{result}", sort=2, offset=999_990, limit=10)
        assert found["total"] == 1_000_000
        assert [row[1] for row in found["rows"]] == sorted(row[1] for row in found["rows"])
        assert len(one.client.get(f"/results/{result}/file").text.splitlines()) == 1_000_001

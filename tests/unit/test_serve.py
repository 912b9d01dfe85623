"""`everlog serve`: the API of a real process, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from serving import API, PATHS, Served, refused, right, served, until

from everlog import Database
from everlog.serve.http.connections import Connection
from everlog.serve.http.server import listening

KINDS = """
.decl wide(n:number, u:unsigned, f:float, s:symbol)
.decl twice(n:number, u:unsigned, f:float, s:symbol)
twice(n, u, f, s) :- wide(n, u, f, s).
.decl nothing()
"""
SLOW = """
.decl n(x:number)
n(x) :- x = range(0, 400).
.decl seed(x:number)
.decl many(x:number, y:number, z:number)
many(x, y, z) :- seed(_), n(x), n(y), n(z), x * y * z = -1.
"""
TOKEN = "a-secret-of-sufficient-length"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for tests that only read, or change what no other test uses."""
    folder = tmp_path_factory.mktemp("served")
    with served(folder, "--db", "paths.db", program=PATHS + KINDS) as one:
        yield one


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_values_for_parameters_are_sent_beside_the_text(service: Served) -> None:
    def rows(text: str, **values: Any) -> Any:
        return service.post("/query", {"query": text, "params": values})["rows"]

    assert (
        rows("path($x, y)", x=1)
        == rows("path($x, y)", x="1")
        == service.post("/query", {"query": "path(1, y)"})["rows"]
    )
    assert rows("path($x, y), y > $z", x="1", z=2) == [[3]]
    assert rows("x = $v", v='a", "$\n\u0000😀') == [['a", "$\n\u0000😀']]
    assert rows("x = $v", v="7") == [["7"]]
    for wrong in ({}, {"x": "one"}, {"x": 1, "y": 2}, {"x": 1.5}):
        answer = service.client.post("/query", json={"query": "path($x, y)", "params": wrong})
        refused(answer, 422, "mistakes")
        assert answer.json()["error"]["diagnostics"][0]["code"] == "DL120"
    refused(service.client.post("/query", json={"query": "path($x, y)", "params": {"x": [1]}}), 400, "bad-request")
    refused(service.client.post("/why", json={"fact": "path($x, 3)", "params": {"x": "a"}}), 422, "bad-fact")


def test_relations_say_their_columns_sizes_and_roles(service: Served) -> None:
    found = {relation["name"]: relation for relation in service.get("/relations")["relations"]}
    assert list(found) == ["edge", "path", "wide", "twice", "nothing"]
    assert found["edge"]["input"]
    assert not found["path"]["input"]
    assert found["path"]["output"]
    assert found["path"]["rules"] == 2
    assert found["wide"]["columns"][1] == {"name": "u", "kind": "unsigned", "type": "unsigned"}


def test_facts_come_in_pages(service: Served) -> None:
    whole = service.get("/relations/path/facts")
    assert whole["rows"] == [[1, 2], [1, 3], [2, 3]]
    assert (whole["total"], whole["more"]) == (3, False)
    page = service.get("/relations/path/facts", offset=1, limit=1)
    assert (page["rows"], page["more"], page["offset"]) == ([[1, 3]], True, 1)
    assert service.get("/relations/path/facts", given="true")["rows"] == []
    assert service.get("/relations/edge/facts", given="true")["total"] == 2


def test_queries_answer_in_order_and_say_their_columns(service: Served) -> None:
    found = service.post("/query", {"query": "path(x, y), x < y, !edge(x, y)"})
    assert [column["name"] for column in found["columns"]] == ["x", "y"]
    assert found["rows"] == [[1, 3]]
    first = service.post("/query", {"query": "path(x, y)", "limit": 2})
    assert (first["rows"], first["more"], first["total"]) == ([[1, 2], [1, 3]], True, 3)
    unordered = service.post("/query", {"query": "path(x, y)", "limit": 2, "ordered": False})
    assert (len(unordered["rows"]), unordered["more"], unordered["total"]) == (2, True, None)


def test_mistakes_of_a_query_have_their_places(service: Served) -> None:
    response = service.client.post("/query", json={"query": "path(x, y),\n  pth(x, y)"})
    refused(response, 422, "mistakes")
    (mistake,) = response.json()["error"]["diagnostics"]
    assert (mistake["code"], mistake["line"], mistake["column"]) == ("DL050", 2, 3)


def test_reasons(service: Served) -> None:
    proof = service.post("/why", {"fact": "path(1, 3)"})
    assert proof["proof"]["nodes"][0]["rule"]["name"] == "path#2"
    assert proof["text"].startswith("path(1, 3)")
    assert service.post("/why", {"fact": "path", "row": [1, "3"]})["proof"] == proof["proof"]
    assert service.post("/why", {"fact": "path($x, 3)", "params": {"x": 1}})["proof"] == proof["proof"]
    missing = service.post("/why-not", {"fact": "path(3, 1)"})
    assert missing["why_not"]["attempts"][0]["stop"] == "no fact edge(3, 1)"
    refused(service.client.post("/why", json={"fact": "path(3, 1)"}), 404, "not-derived")
    refused(service.client.post("/why", json={"fact": "path(3"}), 422, "bad-fact")


def test_what_a_step_would_change(service: Served) -> None:
    step, facts = service.get("/stats")["step"], service.get("/relations")
    found = service.post("/what-if", {"delete": {"edge": [[1, 2]]}, "text": "+edge(3, 4)."})
    assert found["changes"]["edge"] == {"deleted": [[1, 2]], "inserted": [[3, 4]]}
    assert found["changes"]["path"] == {"deleted": [[1, 2], [1, 3]], "inserted": [[2, 4], [3, 4]]}
    counts = service.post("/what-if", {"delete": {"edge": [[1, 2]]}, "tell": "counts"})
    assert counts["changes"]["path"] == {"deleted": 2, "inserted": 0}
    assert (service.get("/stats")["step"], service.get("/relations")) == (step, facts)
    refused(service.client.post("/what-if", json={"text": "+nope(1)."}), 422, "bad-fact")


def test_how_to_make_a_fact_come_or_go(service: Served) -> None:
    step = service.get("/stats")["step"]
    found = service.post("/how", {"goal": "-path(1, 3)", "change": ["edge"], "keep": ["path(2, x)"], "most": 1})
    assert found["complete"]
    assert found["answers"] == [
        {"step": "-edge(1, 2).", "effects": {"path": {"deleted": [[1, 2]], "inserted": []}}}
    ]
    assert service.get("/stats")["step"] == step
    changed = service.post("/steps", {"text": found["answers"][0]["step"]})
    assert changed["changes"]["path"]["deleted"] == [[1, 2], [1, 3]]
    refused(service.client.post("/how", json={"goal": "-nope(1)"}), 422, "bad-fact")
    refused(service.client.post("/how", json={"goal": "-path(1, 3)", "keep": ["path("]}), 422, "bad-fact")


def test_explanations_and_statistics(service: Served) -> None:
    told = service.get("/explain")
    assert {rule["class"] for rule in told["rules"]} == {"recursive", "hierarchical"}
    assert service.get("/explain", name="path#2")["text"].startswith("path#2")
    refused(service.client.get("/explain", params={"name": "nope"}), 404, "no-such-rule")
    stats = service.get("/stats")
    assert {relation["name"] for relation in stats["relations"]} >= {"edge", "path"}
    assert stats["memory"] > 0


# ── values ───────────────────────────────────────────────────────────────────────────────────


def test_numbers_keep_all_of_their_bits(service: Served) -> None:
    row = [-(2**63), 2**64 - 1, 0.1, "Zürich \U0001f600"]
    told = service.insert("wide", row)
    assert told["changes"]["twice"]["inserted"] == [row]
    assert service.query("twice(n, u, f, s), u > 1") == [tuple(row)]
    as_text = service.post("/query", {"query": "wide(n, u, f, s), u > 1"}, numbers="text")
    assert as_text["rows"] == [["-9223372036854775808", "18446744073709551615", "0.1", "Zürich \U0001f600"]]
    back = {"delete": {"wide": as_text["rows"]}}
    assert service.post("/steps", back)["changes"]["twice"]["deleted"] == [row]


def test_what_json_has_no_number_for_is_a_string(service: Served) -> None:
    rows = [[0, 0, value, "odd"] for value in ("-Infinity", "Infinity", "NaN")]
    told = service.insert("wide", *rows)
    assert sorted(row[2] for row in told["changes"]["wide"]["inserted"]) == ["-Infinity", "Infinity", "NaN"]
    assert service.post("/steps", {"delete": {"wide": rows}})["changes"]["twice"]["inserted"] == []
    plain = {"Content-Type": "application/json"}
    for constant in ("NaN", "Infinity"):
        body = '{"insert": {"wide": [[1, 1, %s, ""]]}}' % constant
        assert "as a string" in refused(
            service.client.post("/steps", content=body, headers=plain), 400, "bad-json"
        )


def test_bytes_that_are_no_text_come_back_as_they_were(service: Served) -> None:
    body = '{"insert": {"wide": [[1, 1, 1, "\\udc80 \\u0000"]]}}'
    told = service.client.post("/steps", content=body, headers={"Content-Type": "application/json"})
    assert right(told)["changes"]["wide"]["inserted"][0][3] == "\udc80 \x00"
    gone = service.client.post("/steps", content=body.replace("insert", "delete"), headers=told.request.headers)
    assert right(gone)["changes"]["wide"]["deleted"][0][3] == "\udc80 \x00"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({"insert": {"edg": [[1, 2]]}}, "did you mean `edge`"),
        ({"insert": {"edge": [[1]]}}, "2 column(s), 1 given"),
        ({"insert": {"edge": [[1, "x"]]}}, "column 2 (`y`:number): 'x' is not a number"),
        ({"insert": {"edge": [[1, 2.5]]}}, "is not a number"),
        ({"insert": {"edge": [[1, 2**63]]}}, "out of range"),
        ({"insert": {"edge": [[1, str(2**63)]]}}, "out of range"),
        ({"insert": {"edge": [{"x": 1}]}}, "has no `y`"),
        ({"insert": {"edge": [{"x": 1, "y": 2, "z": 3}]}}, "not a column"),
        ({"insert": {"wide": [[1, -1, 1.0, ""]]}}, "out of range"),
        ({"insert": {"wide": [[1, 1, 1.0, 7]]}}, "7 is not a symbol"),
        ({"text": "+edge(1, 2"}, "expected"),
    ],
)
def test_a_step_with_a_fact_that_does_not_fit_changes_nothing(service: Served, body: Any, what: str) -> None:
    before = service.get("/relations")
    body = {"text": "+edge(77, 78).", **body} if "text" not in body else body
    assert what in refused(service.client.post("/steps", json=body), 422, "bad-fact")
    assert service.get("/relations") == before


# ── steps, rules, the past ───────────────────────────────────────────────────────────────────


def test_a_step_reports_exactly_what_it_changed(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        told = one.post(
            "/steps", {"delete": {"edge": [[1, 2]]}, "insert": {"edge": [[3, 4]]}, "text": "+edge(4, 5)."}
        )
        mirror = Database.from_text(PATHS)
        expected = mirror.apply("-edge(1, 2).\n+edge(3, 4).\n+edge(4, 5).")
        for name in expected:
            assert told["changes"][name]["inserted"] == [list(row) for row in expected.inserted(name)]
            assert told["changes"][name]["deleted"] == [list(row) for row in expected.deleted(name)]
        assert set(told["changes"]) == set(expected)
        assert one.insert("edge", (3, 4))["changes"] == {}
        counted = one.post("/steps", {"insert": {"edge": [[5, 6]]}, "tell": "counts"})
        mirror.insert("edge", (5, 6))
        assert one.query("path(x, y)") == mirror.view("path")
        assert counted["changes"]["path"] == {"deleted": 0, "inserted": 4}


def test_rules_come_and_go(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        text = ".decl ring(a:number)\nring(a) :- edge(a, b), edge(b, c), edge(c, a)."
        checked = one.post("/rules/check", {"text": text})
        assert checked["ok"]
        assert [(rule["name"], rule["class"]) for rule in checked["rules"]] == [("ring#1", "cyclic")]
        assert "ring#1" not in {rule["name"] for rule in one.get("/rules")["rules"]}, "nothing was added"
        one.insert("edge", (3, 1))
        added = one.post("/rules", {"text": text})
        assert added["rules"] == ["ring#1"]
        assert added["changes"]["ring"]["inserted"] == [[1], [2], [3]]
        refused(one.client.request("DELETE", "/relations/edge"), 422, "bad-rule")
        dropped = right(one.client.delete("/rules/ring%231"))
        assert dropped["changes"]["ring"]["deleted"] == [[1], [2], [3]]
        refused(one.client.delete("/rules/ring%231"), 404, "no-such-rule")
        right(one.client.delete("/relations/ring"))
        refused(one.client.get("/relations/ring/facts"), 404, "no-such-relation")
        right(one.client.post("/rules/drop", json={"text": "path(x, z) :- path(x, y), edge(y, z)."}))
        assert one.query("path(1, x)") == [(2,)]


def test_rules_that_were_added_are_there_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "rules.db") as one:
        one.post("/rules", {"text": ".decl back(x:number, y:number)  back(y, x) :- edge(x, y)."})
        right(one.client.delete("/rules/path%232"))
        assert one.stop() == 0
    with served(tmp_path, "--db", "rules.db") as one:
        assert [rule["name"] for rule in one.get("/rules")["rules"]] == ["path#1", "back#1"]
        assert one.query("back(x, y)") == [(2, 1), (3, 2)]


def test_mistakes_of_rules_are_reported_with_their_places_and_nothing_changes(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        text = "path(x) :- edge(x, _).\n\npath(x, y) :- nope(x, y)."
        checked = one.post("/rules/check", {"text": text})
        assert not checked["ok"]
        assert [(d["code"], d["line"], d["column"]) for d in checked["diagnostics"]] == [
            ("DL051", 1, 1),
            ("DL050", 3, 15),
        ]
        before = one.get("/rules")
        response = one.client.post("/rules", json={"text": text})
        refused(response, 422, "mistakes")
        assert len(response.json()["error"]["diagnostics"]) == 2
        assert one.get("/rules") == before


def test_a_text_from_outside_reads_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.dl"
    secret.write_text("the_secret(1).")
    with served(tmp_path) as one:
        for line in (f'#include "{secret}"', f'.include "{secret}"', '#define W "secret.dl"\n#include W'):
            response = one.client.post("/rules", json={"text": f"{line}\n"})
            refused(response, 422, "mistakes")
            assert "the_secret" not in response.text
        right(one.client.post("/rules", json={"text": ".input path"}))
        assert one.query("edge(x, y)") == [(1, 2), (2, 3)], "directives of a running program read nothing"


def test_the_past_of_a_database_in_a_file(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "past.db") as one:
        assert one.insert("edge", (3, 4))["step"] == 1
        assert one.post("/steps", {"delete": {"edge": [[1, 2]]}})["step"] == 2
        assert one.query("path(1, x)") == []
        assert one.query("path(1, x)", as_of=1) == [(2,), (3,), (4,)]
        assert one.get("/relations/path/facts", as_of=0)["total"] == 3
        assert one.get("/relations", as_of=0)["step"] == 0
        assert one.post("/why", {"fact": "path(1, 4)", "as_of": 1})["step"] == 1
        assert one.get("/diff", before=0, after=1)["changes"]["edge"] == {"deleted": [], "inserted": [[3, 4]]}
        assert one.get("/diff", before=2, after=1)["changes"]["edge"]["inserted"] == [[1, 2]]
        steps = one.get("/history", relation="edge")["steps"]
        assert [(step["step"], step["changes"]["edge"]["inserted"]) for step in steps] == [(1, [[3, 4]]), (2, [])]
        refused(one.client.post("/query", json={"query": "edge(x, y)", "as_of": 9}), 404, "no-such-step")
        assert one.post("/checkpoint", {"history": 1})["oldest"] == 1
        refused(one.client.get("/diff", params={"before": 0}), 404, "no-such-step")
        assert one.stop() == 0
    with Database.open(tmp_path / "past.db") as db:
        assert (db.step, db.view("edge")) == (2, [(2, 3), (3, 4)])


def test_a_database_in_memory_has_no_past(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        message = refused(one.client.get("/diff", params={"before": 0}), 409, "not-durable")
        assert "--db" in message
        assert one.insert("edge", (7, 8))["step"] == 1


def test_a_step_that_is_sent_again_with_its_position_is_not_applied_again(tmp_path: Path) -> None:
    for flags in ((), ("--db", "once.db")):
        with served(tmp_path, *flags) as one:
            body = {"insert": {"edge": [[3, 4]]}, "source": "orders", "position": "17"}
            assert not one.post("/steps", body)["repeated"]
            one.post("/steps", {"delete": {"edge": [[3, 4]]}})
            again = one.post("/steps", body)
            assert again["repeated"]
            assert again["changes"] == {}
            assert (3, 4) not in one.query("edge(x, y)")
            assert one.get("/positions")["positions"] == {"orders": "17"}
            refused(one.client.post("/steps", json={"source": "orders"}), 400, "bad-request")
    with served(tmp_path, "--db", "once.db") as one:
        assert one.post("/steps", body)["repeated"], "the position was kept in the file"


# ── limits ───────────────────────────────────────────────────────────────────────────────────


def test_queries_and_steps_that_take_too_long_are_stopped_and_leave_no_trace(tmp_path: Path) -> None:
    with served(tmp_path, "--max-seconds", "0.3", program=SLOW) as one:
        heavy = {"query": "n(x), n(y), n(z), x * y * z = -1"}
        assert "0.3 s" in refused(one.client.post("/query", json=heavy), 422, "limit-exceeded")
        assert "0.3 s" in refused(
            one.client.post("/steps", json={"insert": {"seed": [[1]]}}), 422, "limit-exceeded"
        )
        assert one.query("seed(x)") == []
        assert one.query("n(x), x < 2") == [(0,), (1,)]
        text = "\n".join([".decl all(x:number)", "all(x) :- n(x), n(y), n(z), x * y * z = -1."])
        refused(one.client.post("/rules", json={"text": text}), 422, "limit-exceeded")
        assert len(one.get("/rules")["rules"]) == 2
        refused(one.client.get("/relations/all/facts"), 404, "no-such-relation")


def test_large_requests_and_answers_are_bounded(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "rows.db", "--max-body", "1000", "--max-rows", "2") as one:
        rows = [[n, n] for n in range(500)]
        refused(one.client.post("/steps", json={"insert": {"edge": rows}}), 413, "body-too-large")
        assert one.query("edge(x, y)") == [(1, 2), (2, 3)]
        found = one.post("/query", {"query": "path(x, y)"})
        assert (len(found["rows"]), found["more"]) == (2, True)
        refused(one.client.post("/query", json={"query": "path(x, y)", "limit": 3}), 400, "bad-request")
        refused(one.client.get("/relations/path/facts", params={"limit": 3}), 400, "bad-parameter")
        one.insert("edge", (3, 4))
        message = refused(one.client.get("/diff", params={"before": 0}), 422, "limit-exceeded")
        assert "4 rows" in message
        assert one.get("/diff", before=0, relation="edge")["changes"]["edge"]["inserted"] == [[3, 4]]
        refused(one.client.get("/history", params={"relation": "path"}), 422, "limit-exceeded")

        host, port = one.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as raw:
            head = "POST /api/v1/steps HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            raw.sendall(f"{head}Content-Length: 1000000000\r\n\r\n".encode() + b" " * 2000)
            assert raw.recv(100).startswith(b"HTTP/1.1 413"), "without waiting for the rest"


def test_bodies_of_requests_that_do_not_end_have_a_bound_together(tmp_path: Path) -> None:
    """Nine clients send most of a body and stop; the ninth is refused until others go."""
    with served(tmp_path, "--max-body", "1M") as one, contextlib.ExitStack() as open_ones:
        host, port = one.url.removeprefix("http://").split(":")
        head = "POST /api/v1/steps HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        raws = [open_ones.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(9)]
        for raw in raws:
            raw.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode() + b" " * 999_000)
        answered, _, _ = select.select(raws, [], [], 30)
        assert [raw.recv(12) for raw in answered] == [b"HTTP/1.1 503"]
        open_ones.close()
        assert until(
            lambda: one.client.post("/steps", json={"insert": {"edge": [[5, 6]]}}).status_code == 200, "room"
        )


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    ],
)
def test_a_connection_without_a_request_is_closed(sent: bytes) -> None:
    """Connections with nothing, an endless head, or data after the answer are closed."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    class Hurried(Connection):
        patience = 0.5

    with listening("127.0.0.1", 0, 60) as listener, contextlib.ExitStack() as closing:
        config = uvicorn.Config(answer, http=Hurried, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        closing.callback(thread.join)
        closing.callback(setattr, server, "should_exit", True)
        with socket.create_connection(listener.getsockname()[:2], timeout=0.1) as raw:
            raw.sendall(sent)
            with contextlib.suppress(ConnectionError):  # it is closed, maybe while we send
                until(lambda: _is_closed(raw, b"X" if sent else b""), "it is let go")


def _is_closed(raw: socket.socket, more: bytes) -> bool:
    """Whether the other end is closed; else it gets some more."""
    try:
        return not raw.recv(1000)
    except TimeoutError:
        raw.sendall(more)
        return False


@pytest.mark.parametrize(
    ("body", "code", "status"),
    [
        (b"", "bad-json", 400),
        (b"{", "bad-json", 400),
        (b"[]", "bad-request", 400),
        (b'{"query": 7}', "bad-request", 400),
        (b'{"queri": "path(x, y)"}', "bad-request", 400),
        (b'{"query": "path(x, y)", "limit": -1}', "bad-request", 400),
        (b'{"query": "path(x, y)", "limit": true}', "bad-request", 400),
        (b"[" * 100_000, "bad-json", 400),
        (b'{"query": ' + b"9" * 10_000 + b"}", "bad-json", 400),
        (b'{"query": "\xff"}', "mistakes", 422),
    ],
)
def test_bodies_that_are_none(service: Served, body: bytes, code: str, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    refused(service.client.post("/query", content=body, headers=headers), status, code)


def test_parameters_and_methods_that_are_none(service: Served) -> None:
    for parameters in ({"limit": "x"}, {"limit": "-1"}, {"offset": "1e3"}, {"given": "yes"}, {"lmit": "1"}):
        refused(service.client.get("/relations/path/facts", params=parameters), 400, "bad-parameter")
    refused(service.client.get("/relations/path/facts?limit=1&limit=2"), 400, "bad-parameter")
    refused(service.client.get("/diff"), 400, "bad-parameter")
    refused(service.client.put("/query", json={}), 405, "method")
    refused(service.client.get("/nowhere"), 404, "not-found")
    refused(
        service.client.post("/query", content=b"{}", headers={"Content-Type": "text/plain"}), 415, "media-type"
    )


# ── who may ask ──────────────────────────────────────────────────────────────────────────────


def test_other_hosts_and_other_origins_are_refused(service: Served) -> None:
    refused(service.client.get("/relations", headers={"Host": "evil.example"}), 421, "host")
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "Cross-Site"},
        {"Sec-Fetch-Site": "SAME-SITE"},
        {"Sec-Fetch-Site": "same-origin, cross-site"},
    ):
        refused(service.client.get("/relations", headers=headers), 403, "forbidden")
    right(service.client.get("/relations", headers={"Origin": service.url, "Sec-Fetch-Site": "same-origin"}))
    preflight = service.client.options("/steps", headers={"Origin": "http://evil.example"})
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_token_must_be_sent_where_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with served(tmp_path, "--host", "0.0.0.0", "--token-file", str(file), token=TOKEN) as one:
        address = one.url.replace("0.0.0.0", "127.0.0.1")
        one.client.base_url = address + API  # type: ignore[assignment]
        assert one.query("path(1, x)")
        for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ü"):
            headers = {"Authorization": wrong.encode()}
            response = httpx.get(f"{address}{API}/relations", headers=headers)  # type: ignore[arg-type]
            refused(response, 401, "token")
            assert response.headers["www-authenticate"].startswith("Bearer")
        refused(httpx.get(f"{address}{API}/changes"), 401, "token")
        assert httpx.get(f"{address}{API}/health").status_code == 200
        assert httpx.get(f"{address}/").status_code == 200, "the console asks for the token itself"
        assert TOKEN not in one.log.read_text()
    with served(tmp_path, token=TOKEN, EVERLOG_TOKEN=TOKEN) as one:
        assert one.query("path(1, x)")
        refused(httpx.get(f"{one.url}{API}/relations"), 401, "token")


def test_every_answer_has_safe_headers(service: Served) -> None:
    for path in ("/", f"{API}/relations", f"{API}/nowhere"):
        headers = httpx.get(service.url + path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


# ── the beginning and the end ────────────────────────────────────────────────────────────────


def started(folder: Path, *flags: str) -> tuple[int, str]:
    """Exit status and errors of a service that cannot be."""
    command = [sys.executable, "-P", "-m", "everlog", "serve", *flags]
    environment = {name: value for name, value in os.environ.items() if name != "EVERLOG_TOKEN"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, env=environment)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_a_service_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "prog.dl").write_text(PATHS)
    (tmp_path / "wrong.dl").write_text("path(x) :- edge(x).")
    (tmp_path / "short").write_text("abc")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, told = started(tmp_path, "prog.dl", "--port", str(taken.getsockname()[1]))
    assert status == 1
    assert "in use" in told
    assert "--port" in told
    for flags, what in (
        (("prog.dl", "--host", "0.0.0.0"), "--token-file"),
        (("prog.dl", "--token-file", "short"), "token_urlsafe"),
        (("prog.dl", "--token-file", "nowhere"), "cannot read"),
        (("wrong.dl",), "DL050"),
        (("nowhere.dl",), "cannot read"),
        (("-",), "in a file"),
        (("prog.dl", "-F", "no_such_folder"), "no_such_folder"),
        (("prog.dl", "--db", "prog.dl"), "prog.dl"),
    ):
        status, told = started(tmp_path, *flags)
        assert status == 1, flags
        assert what in told, flags


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "prog.dl").write_text(PATHS)
    code = "import sys; sys.modules['uvicorn'] = None; from everlog.cli import main; sys.exit(main(['serve', 'prog.dl']))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "pip install 'everlog[serve]'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_finishes_the_step_under_way(tmp_path: Path, number: int) -> None:
    """A step of a second is running when the signal comes: it is reported and stored."""
    slow = SLOW.replace("n(x) :- x = range(0, 400).", "n(x) :- x = range(0, 120).")
    answers: list[Any] = []
    with served(tmp_path, "--db", "stop.db", "--max-seconds", "300", program=slow) as one:
        with one.events() as events:
            assert next(events)[0] == "ready"
            thread = threading.Thread(target=lambda: answers.append(one.insert("seed", (1,))))
            thread.start()
            until(lambda: httpx.get(f"{one.url}{API}/health").json()["busy"] > 0.05, "the step is under way")
            one.process.send_signal(number)
            kinds = [kind for kind, _, _ in events]
            thread.join()
        assert kinds == ["change", "end"]
        assert one.process.wait(20) == 0
        assert one.log.read_text() == ""
    assert answers[0]["step"] == 1
    with Database.open(tmp_path / "stop.db") as db:
        assert db.view("seed") == [(1,)]


def test_a_second_signal_gives_the_step_up(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "stop.db", "--max-seconds", "300", program=SLOW) as one:
        answers: list[httpx.Response] = []
        body = {"insert": {"seed": [[1]]}}
        thread = threading.Thread(target=lambda: answers.append(one.client.post("/steps", json=body)))
        thread.start()
        until(lambda: httpx.get(f"{one.url}{API}/health").json()["busy"] > 0.05, "the step is under way")
        one.process.terminate()
        until(lambda: httpx.get(f"{one.url}{API}/health").json()["status"] == "stopping", "it heard that")
        one.process.terminate()
        thread.join()
        assert one.process.wait(20) == 0
        refused(answers[0], 503, "stopping")
    with Database.open(tmp_path / "stop.db") as db:
        assert (db.step, db.view("seed")) == (0, [])


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no limits on the files of others")
def test_a_step_that_cannot_be_written_is_undone_and_not_published(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "full.db") as one:
        before = one.get("/relations")
        with one.events() as events:
            assert next(events)[0] == "ready"
            resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            for path, body in [("/steps", {"insert": {"edge": [[7, 8]]}}), ("/rules", {"text": "edge(8, 9)."})]:
                assert "full.db cannot be written" in refused(one.client.post(path, json=body), 507, "not-written")
                assert one.get("/relations") == before
            resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            assert one.insert("edge", (9, 9))["step"] == 1, "as soon as there is room, it goes on"
            kind, data, _ = next(events)
            assert (kind, data["changes"]["edge"]["inserted"]) == ("change", [[9, 9]])
        assert one.stop() == 0
    with Database.open(tmp_path / "full.db") as database:
        assert database.step == 1
        assert database.holds("edge", (9, 9))
        assert not database.holds("edge", (7, 8))


def test_a_service_that_was_killed_goes_on_with_all_that_was_reported(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "kill.db") as one:
        steps = [one.insert("edge", (n, n + 1))["step"] for n in range(10, 20)]
        one.process.kill()
        one.process.wait()
    with served(tmp_path, "--db", "kill.db") as one:
        assert one.get("/relations")["step"] == steps[-1] == 10
        assert (20,) in one.query("path(10, x)")


def test_the_description_names_every_route_once(service: Served) -> None:
    described = service.get("/openapi.json")
    assert described["openapi"].startswith("3.1")
    names = [o["operationId"] for path in described["paths"].values() for o in path.values()]
    assert len(names) == len(set(names)) > 15
    assert json.dumps(described)

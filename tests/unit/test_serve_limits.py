"""What no request may do to a service: each test was an attack that worked."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from everlog import Database
from everlog.core.runtime.guards import Limits
from everlog.files.text_values import FactsError, sorted_rows
from everlog.serve import wire
from everlog.serve.errors import ApiError
from everlog.serve.events import Follower, Hub, Interest
from everlog.serve.http import connections
from everlog.serve.jobs.reading import Call
from everlog.serve.jobs.writing import add_rules
from everlog.serve.jobs.writing import step as make_step
from everlog.serve.ordering import in_order
from everlog.serve.requests.json_schema import misfit, quick_test
from everlog.serve.service import Bounds, Service
from everlog.serve.wire import ChangesWriter, TooLarge
from everlog.streams import grouping
from everlog.streams.debezium import Marker
from everlog.streams.grouping import Grouper
from tests.serving import API, PATHS, Served, refused, right, served, until

WIDE = """
.decl n(x:number)
.input n
.decl s(x:symbol)
.input s
"""


# ── answers ──────────────────────────────────────────────────────────────────────────────────


def test_an_answer_has_a_limit_in_bytes_and_pages_go_on_behind_it(tmp_path: Path) -> None:
    """A product of a long symbol and many numbers comes in pages of limited bytes."""
    with served(tmp_path, "--max-answer", "100K", program=WIDE) as one:
        one.insert("s", ("é" * 10_000,))
        one.insert("n", *((x,) for x in range(20)))
        found: list[int] = []
        while True:
            body = {"query": "s(x), n(y)", "limit": 10_000, "offset": len(found)}
            response = one.client.post("/query", json=body)
            page = right(response)
            assert page["total"] == 20
            assert len(response.content) <= 100 << 10
            assert page["rows"]
            found += [row[1] for row in page["rows"]]
            if not page["more"]:
                break
        assert found == list(range(20))
        unordered = one.post("/query", {"query": "s(x), n(y)", "ordered": False})
        assert unordered["more"]
        facts = one.get("/relations/n/facts", limit=20)
        assert (len(facts["rows"]), facts["more"]) == (20, False)


def test_a_row_that_fits_into_no_answer_is_refused_with_a_reason(tmp_path: Path) -> None:
    with served(tmp_path, "--max-answer", "64K", program=WIDE) as one:
        one.insert("s", ("\0" * 20_000,))  # each is six bytes in JSON
        assert "a single row" in refused(one.client.get("/relations/s/facts"), 422, "limit-exceeded")
        assert "bytes" in refused(
            one.client.post("/why", json={"fact": "s", "row": ["\0" * 20_000]}), 422, "limit-exceeded"
        )


def test_a_step_whose_changes_are_too_large_is_answered_as_done(tmp_path: Path) -> None:
    with served(tmp_path, "--max-answer", "64K", program=WIDE) as one:
        told = one.insert("n", *((x,) for x in range(50_000)))
        assert told == {
            "step": 1,
            "repeated": False,
            "changes": {"n": {"deleted": 0, "inserted": 50_000}},
            "cut": True,
        }
        told = one.post("/rules", {"text": ".decl m(x:number)\nm(x) :- n(x)."})
        assert (told["changes"], told["cut"], told["rules"]) == (
            {"m": {"deleted": 0, "inserted": 50_000}},
            True,
            ["m#1"],
        )


def test_rows_are_written_in_pieces_that_make_one_array() -> None:
    database = Database.from_text(".decl r(x:number, y:symbol)")
    columns = database.relations["r"].columns
    rows = [(x, "é" * (x % 50_000)) for x in range(0, 300_000, 777)]
    written, count, all_fit = wire.page_json(columns, rows, 1 << 30)
    assert (written, count, all_fit) == (wire.dumped(rows), len(rows), True)
    for room in (2, 10, 1000, 100_000):
        try:
            written, count, all_fit = wire.page_json(columns, rows, room)
        except ApiError:
            assert room < len(wire.dumped(rows[:1])) + 1
            continue
        assert written == wire.dumped(rows[:count])
        assert not all_fit
        assert len(written) <= room < len(wire.dumped(rows[: count + 1])) + 1


def test_rows_sorted_in_runs_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlog.serve.ordering._RUN", 7)
    database = Database.from_text(".decl r(x:float, y:symbol)")
    relation, nan = database.relations["r"], float("nan")
    rows = [((x * 7919) % 101 / 3, str(x)) for x in range(100)]
    assert list(in_order(relation, rows)) == sorted_rows(relation, rows)
    mixed = [*rows, (nan, "a")]
    assert repr(list(in_order(relation, mixed))) == repr(sorted_rows(relation, mixed))
    assert list(in_order(relation, [])) == []


# ── bodies ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"insert":' * 1000 + "1" + "}" * 1000,
        '{"query":"n(x)","params":' + '{"a":' * 900 + "1" + "}" * 901,
    ],
)
def test_a_deep_body_is_refused(tmp_path: Path, body: str) -> None:
    with served(tmp_path, program=WIDE) as one:
        for path in ("/steps", "/query", "/rules/check"):
            response = one.client.post(path, content=body, headers={"content-type": "application/json"})
            assert response.status_code == 400


def test_a_quick_test_and_the_one_that_explains_agree() -> None:
    from everlog.serve.requests.schemas import CHECKPOINT_BODY, FACT_BODY, STEP_BODY, query_body

    values: list[object] = [None, True, 1, 1.5, "x", [], {}, [[]], [[1, "x"]], [[True]], [{"x": 1}], {"r": [[1]]}]
    values += [{"r": [{"x": None}]}, {"r": 1}, -1, 10**30, "all", ""]
    for schema in (STEP_BODY, query_body(10), FACT_BODY, CHECKPOINT_BODY):
        test = quick_test(schema)
        bodies = [{key: value} for key in schema["properties"] for value in values]
        bodies += [{"query": "n(x)", **each} for each in bodies] + [{"fact": "n(1)", **each} for each in bodies]
        for value in [*values, *bodies]:
            assert test(value) is (misfit(schema, value) is None), (schema, value)


def test_a_clock_runs_while_a_body_is_compared(tmp_path: Path) -> None:
    """The time limit stops millions of empty rows; the event loop stays fast."""
    body = '{"insert":{"n":[' + ",".join(["{}"] * 2_700_000) + "]}}"
    with served(tmp_path, "--max-seconds", "0.2", program=WIDE) as one:
        response = one.client.post("/steps", content=body, headers={"content-type": "application/json"})
        refused(response, 422, "limit-exceeded")
        assert one.query("n(x)") == []


# ── steps that stand ─────────────────────────────────────────────────────────────────────────


def service_of(text: str, **bounds: int) -> Service:
    return Service(Database.from_text(text), Bounds(**bounds))


def test_a_step_is_done_even_if_its_answer_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory for answer and events the step is still done, and followers lag."""

    def fails(*_: object) -> None:
        raise MemoryError

    service = service_of(WIDE)
    loop = asyncio.new_event_loop()
    follower, _ = service.follow(Interest(), False, None, loop)
    monkeypatch.setattr(ChangesWriter, "written", fails)
    done = make_step(service, Call({}, {}, {"insert": {"n": [[1]]}}))
    assert done == {"step": 1, "repeated": False, "changes": {}, "cut": True}
    assert follower.lagged
    done = add_rules(service, Call({}, {}, {"text": ".decl m(x:number)\nm(x) :- n(x)."}))
    assert (done["step"], done["cut"]) == (2, True)
    assert service.database.query("m(x)").rows() == [(1,)]
    loop.close()


def test_each_follower_gets_a_step_or_lags_on_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """One interest cannot be encoded; followers with another one still get the step."""
    database = Database.from_text(WIDE)
    changes = database.insert("n", [(1,)])
    loop = asyncio.new_event_loop()
    hub = Hub(str)
    good, bad = Interest(frozenset({"n"})), Interest(frozenset({"n"}), as_text=True)
    followers = [Follower(interest, 1 << 20, loop) for interest in (bad, good, bad, good)]
    for follower in followers:
        hub.add(follower)
    written = Hub.written

    def fails_for_bad(
        self: Hub, step: int, writer: ChangesWriter, interest: Interest, program: bool = False
    ) -> bytes:
        if interest == bad:
            raise MemoryError
        return written(self, step, writer, interest, program)

    monkeypatch.setattr(Hub, "written", fails_for_bad)
    hub.publish(1, changes)
    assert [follower.lagged for follower in followers] == [True, False, True, False]
    assert [bool(follower.take(1 << 20)) for follower in followers] == [False, True, False, True]
    loop.close()


def test_an_event_that_is_larger_than_a_queue_ends_its_follower(tmp_path: Path) -> None:
    with served(tmp_path, "--max-behind", "64K", "--db", "x.db", program=WIDE) as one:
        with one.events() as stream:
            assert next(stream)[0] == "ready"
            one.insert("n", *((x,) for x in range(50_000)))
            assert next(stream)[0] == "lagged"
        one.insert("n", (-1,))
        with one.events({"Last-Event-ID": "1"}) as stream:
            assert [next(stream)[0] for _ in range(2)] == ["change", "ready"]


def test_changes_are_too_large_before_any_row_is_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database.from_text(WIDE)
    changes = database.insert("n", [(x,) for x in range(10_000)])
    monkeypatch.setattr(wire, "in_order", None)
    with pytest.raises(TooLarge):
        ChangesWriter(changes, 30_000).written(False)


def test_a_program_in_memory_that_was_changed_stays_changed_when_time_is_up() -> None:
    """Time runs out between the change and the end of the call: that is not a failure."""
    database = Database.from_text(WIDE)
    database.limits = Limits(seconds=0.2)
    prepare = database._prepare

    def slowly() -> None:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        prepare()

    database._prepare = slowly  # type: ignore[method-assign]
    database.add_rule(".decl m(x:number)\nm(x) :- n(x).")
    database.insert("n", [(1,)])
    assert database.query("m(x)").rows() == [(1,)]


# ── memory ───────────────────────────────────────────────────────────────────────────────────


def test_a_request_that_is_refused_for_its_memory_leaves_room_for_the_next(tmp_path: Path) -> None:
    with served(tmp_path, "--max-memory", "300M", "--max-seconds", "20", program=WIDE) as one:
        one.insert("n", *((x,) for x in range(5000)))
        for _ in range(3):
            response = one.client.post("/query", json={"query": "n(x), n(y), n(z)"})
            refused(response, 422, "limit-exceeded")
            assert one.query("n(x), x < 3") == [(0,), (1,), (2,)]


def test_facts_that_fill_the_memory_can_be_asked_and_deleted(tmp_path: Path) -> None:
    """Steps fill four fifths of the memory, and no more: then there is room to delete."""
    with served(tmp_path, "--max-memory", "150M", "--max-body", "32M", program=WIDE) as one:
        sent = 0
        while True:
            rows = [["x" * 4_000_000 + str(sent)]]
            response = one.client.post("/steps", json={"insert": {"s": rows}, "tell": "counts"})
            if response.status_code != 200:
                refused(response, 422, "limit-exceeded")
                break
            sent += 1
        assert one.query("s(x), strlen(x) < 5") == []
        for n in range(sent):
            one.post("/steps", {"delete": {"s": [["x" * 4_000_000 + str(n)]]}, "tell": "counts"})
        until(
            lambda: one.client.post("/steps", json={"insert": {"s": [["y"]]}}).status_code == 200,
            "there is room again",
        )


# ── files ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "directive",
    [
        '.output r(filename="/any/path")',
        '.output r(filename="here.csv")',
        '.output r(name="../r")',
        ".output r(IO=sqlite)",
        '.output r(IO=file, dbname="x.db")',
        '.output r(IO="postgres", url="postgresql://host/db")',
        '.output r(IO="jdbc", url="jdbc:x")',
        '.output r(IO="duckdb")',
        '.input r(IO="stdin")',
        '.input r(rejects="bad.jsonl")',
        '.comp C {{ .decl q(x:number) .output q(filename="/any/path") }}',
        '#define WHERE "/any/path"\n.output r(filename=WHERE)',
    ],
)
def test_a_text_over_http_names_no_files_and_no_databases(tmp_path: Path, directive: str) -> None:
    text = ".decl r(x:number)\n" + directive.replace("{{", "{").replace("}}", "}")
    with served(tmp_path) as one:
        refused(one.client.post("/rules", json={"text": text}), 422, "file-parameter")
        told = one.post("/rules/check", {"text": text})
        assert (told["ok"], told["diagnostics"][0]["code"]) == (False, "file-parameter")
        assert "r" not in {relation["name"] for relation in one.get("/relations")["relations"]}


def test_a_text_over_http_may_say_how_facts_are_written(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.post("/rules", {"text": '.decl r(x:number)\n.output r(IO=file, delimiter=",", headers=true)'})


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "everlog", "run", *arguments]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=60, check=False)


def test_a_stored_output_stays_within_the_folder_of_outputs(tmp_path: Path) -> None:
    """A database file is not trusted; the program on the command line is."""
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    (out / "link").symlink_to(other)
    program = tmp_path / "prog.dl"
    program.write_text(PATHS)
    for number, (name, is_within) in enumerate(
        [("inside.csv", True), ("../other/x.csv", False), (f"{other}/x.csv", False), ("link/x.csv", False)]
    ):
        file = str(tmp_path / f"{number}.db")
        with Database.open(file, file=program) as database:
            database.add_rule(f'.output edge(filename="{name}")')
        ran = run(tmp_path, "prog.dl", "--db", file, "-D", "out")
        assert (ran.returncode == 0) is is_within, ran.stderr
        assert is_within or "not within" in ran.stderr
    assert (out / "inside.csv").exists()
    assert not list(other.iterdir())
    (tmp_path / "edge.facts").touch()
    program.write_text(PATHS + f'.output edge(filename="{other}/mine.csv")')
    assert run(tmp_path, "prog.dl", "--db", str(tmp_path / "own.db"), "-D", "out").returncode == 0
    assert (other / "mine.csv").exists()


def test_a_stored_output_goes_to_no_database(tmp_path: Path) -> None:
    (tmp_path / "prog.dl").write_text(PATHS)
    with Database.open(tmp_path / "x.db", file=tmp_path / "prog.dl") as database:
        database.add_rule(".output edge(IO=sqlite)")
    ran = run(tmp_path, "prog.dl", "--db", "x.db")
    assert (ran.returncode, "sqlite" in ran.stderr) == (1, True)


# ── connections, texts, transactions ─────────────────────────────────────────────────────────


def silent(one: Served, data: bytes) -> socket.socket:
    host, port = one.url.removeprefix("http://").split(":")
    found = socket.create_connection((host, int(port)), timeout=30)
    found.sendall(data)
    return found


def test_connections_that_send_half_a_request_lock_no_one_out(tmp_path: Path) -> None:
    head = f"POST {API}/steps HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    halves = (b"", b"GET / HT", f"{head}Content-Length: 100\r\n\r\n{{".encode())
    with served(tmp_path) as one, ExitStack() as stack:
        for number in range(1100):
            stack.enter_context(silent(one, halves[number % 3]))
            if number % 200 == 0:
                assert one.get("/health")["status"] == "ok"
        assert one.get("/health")["status"] == "ok"
        assert one.query("edge(x, y)") == [(1, 2), (2, 3)]
        files = Path(f"/proc/{one.process.pid}/fd")
        until(lambda: len(list(files.iterdir())) < connections.MOST_SENDING + 50, "most of them were closed")
        assert one.get("/health")["status"] == "ok"


@pytest.mark.parametrize(
    "text",
    [
        ".decl z(x:number)\n.limitsize z(n=" + "9" * 5000 + ")",
        ".decl z(x:number)\nz(" + "-" * 20_000 + "1).",
        ".decl z(x:number)\nz(" + "max(1," * 20_000 + "1" + ")" * 20_000 + ").",
        ".decl z(x:symbol)\nz(" + 'cat("a",' * 20_000 + '"b"' + ")" * 20_000 + ").",
        ".decl z(x:number)\nz(" + "1^" * 20_000 + "1).",
        "^" * 400_000,
        "edge(" + "-" * 900 + "1, 2).",
        "edge(" + "1^" * 9000 + "1, 2).",
    ],
    ids=("limitsize", "minus", "max", "cat", "power", "carets", "deep fact", "deep power"),
)
def test_a_text_that_is_too_deep_or_too_long_is_a_mistake(tmp_path: Path, text: str) -> None:
    with served(tmp_path) as one:
        for path in ("/rules", "/rules/check", "/rules/drop"):
            response = one.client.post(path, json={"text": text})
            assert response.status_code in (200, 422), response.text[:500]
            assert len(response.content) < 10_000
            assert response.status_code == 422 or not response.json()["ok"]
        assert one.query("edge(x, y)") == [(1, 2), (2, 3)]


def test_a_text_has_a_bounded_number_of_diagnostics(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        response = one.client.post("/rules", json={"text": "nowhere(1).\n" * 5000})
        refused(response, 422, "mistakes")
        assert len(response.json()["error"]["diagnostics"]) == 100


def test_open_transactions_are_gone_through_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry looks at its own transaction, and at none of those that are open."""
    looked = 0

    class Counted(grouping._Open):
        def __getattribute__(self, name: str) -> object:
            nonlocal looked
            looked += 1
            return super().__getattribute__(name)

    monkeypatch.setattr(grouping, "_Open", Counted)
    monkeypatch.setattr(grouping, "MOST_OPEN", 2000)
    counts = []
    for number in (1000, 2000):
        looked = 0
        grouper = Grouper(lambda _: True)
        for n in range(number):
            assert not list(grouper.add(Marker(str(n), True), n, n + 1, n + 1))
        counts.append(looked)
    assert counts[1] == 2 * counts[0]
    with pytest.raises(FactsError, match="2000 transactions have begun and not ended"):
        list(grouper.add(Marker("one more", True), 2000, 2001, 2001))
    assert len(list(grouper.add(Marker("7", False), 2000, 2001, 2001))) == 1
    assert not list(grouper.add(Marker("one more", True), 2001, 2002, 2002))


def test_rules_that_come_and_go_leave_no_text_behind() -> None:
    database = Database.from_text(PATHS + "edge(3, 4). // last")
    assert database._live is not None
    before = len(database._live.source.text)
    for _ in range(3):
        database.add_rule(".decl a(x:number)\na(x) :-\n  edge(x, _),\n  x > 1. a(7).\n")
        database.add_rule("\n.decl b(x:number) // about b\nb(x) :- a(x).")
        database.drop_relation("b")
        assert database.query("a(x)").rows() == [(2,), (3,), (7,)]
        database.drop_relation("a")
    assert database._live is not None
    assert len(database._live.source.text) < before + 200
    database.add_rule("edge(8, 9).\nedge(9, 10).")
    database.drop_rule("edge(8, 9).")
    assert (9, 10) in database.query("edge(x, y)").rows()

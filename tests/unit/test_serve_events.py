"""Following a service: a consistent start, no step missed, bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from following import closure
from serving import API, PATHS, Served, read_events, refused, served, until
from starlette.types import Message

from everlog import Database
from everlog.serve.errors import ApiError
from everlog.serve.events import Follower, Hub, Interest, event
from everlog.serve.http.streaming import EventStream
from everlog.serve.service import Bounds, Service
from everlog.serve.snapshots import Snapshots

WIDE = ".decl word(n:number, text:symbol)\n"


def applied(rows: set[tuple[Any, ...]], change: Any) -> None:
    """One relation's part of a `change`; what comes was not there, and what goes was."""
    gone, come = ({tuple(row) for row in change[key]} for key in ("deleted", "inserted"))
    assert gone <= rows
    assert not come & rows
    rows -= gone
    rows |= come


def test_a_snapshot_and_the_changes_after_it_are_the_state_at_every_step(tmp_path: Path) -> None:
    """Others write meanwhile; at every step, `path` is the closure of `edge`."""
    with served(tmp_path, "--db", "one.db") as one:
        stop = threading.Event()

        def write() -> None:
            with httpx.Client(base_url=one.url + API, timeout=30) as client:
                n = 0
                while not stop.is_set():
                    n += 1
                    edge = [n % 7, n * 3 % 7]
                    kind = "delete" if n % 3 == 0 else "insert"
                    client.post("/steps", json={kind: {"edge": [edge]}})

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                rows: dict[str, set[tuple[Any, ...]]] = {"edge": set(), "path": set()}
                seen: list[int] = []
                with one.events(snapshot="true") as events:
                    for kind, data, last in events:
                        if kind == "snapshot":
                            rows[data["relation"]] |= {tuple(row) for row in data["rows"]}
                            continue
                        for name, change in data.get("changes", {}).items():
                            applied(rows[name], change)
                        assert last == str(data["step"])
                        assert rows["path"] == closure(rows["edge"])  # type: ignore[arg-type]
                        seen.append(data["step"])
                        if len(seen) > 25:
                            break
                assert seen == sorted(set(seen))
        finally:
            stop.set()
            writer.join()


def test_who_comes_back_hears_what_was_missed(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "back.db") as one:
        with one.events(relation="path") as events:
            assert next(events)[:2] == ("ready", {"step": 0})
            one.insert("edge", (3, 4))
            kind, data, last = next(events)
            assert (kind, last) == ("change", "1")
            assert data == {"step": 1, "changes": {"path": {"deleted": [], "inserted": [[1, 4], [2, 4], [3, 4]]}}}
        one.insert("edge", (4, 5))
        one.post("/rules", {"text": ".decl back(x:number, y:number)  back(y, x) :- edge(x, y)."})
        one.post("/steps", {"delete": {"edge": [[1, 2]]}})
        with one.events({"Last-Event-ID": last}, relation="path") as events:
            missed = [next(events) for _ in range(3)]
        assert [(kind, number) for kind, _, number in missed] == [("change", "2"), ("change", "4"), ("ready", "4")]
        assert missed[0][1]["changes"]["path"]["inserted"] == [[1, 5], [2, 5], [3, 5], [4, 5]]
        assert missed[1][1]["changes"]["path"]["deleted"] == [[1, 2], [1, 3], [1, 4], [1, 5]]
        assert one.stop() == 0
    with served(tmp_path, "--db", "back.db") as one, one.events({"Last-Event-ID": "3"}) as events:
        assert [number for _, _, number in (next(events), next(events))] == ["4", "4"], "also after a restart"


def test_who_asks_for_some_facts_hears_of_these_alone(tmp_path: Path) -> None:
    """Of relations on demand, only these are computed, and only as long as somebody follows."""
    program = PATHS.replace(".output path", "")
    with served(tmp_path, "--db", "some.db", "--demand", "path", program=program) as one:
        with one.events(relation="path(1, x)", snapshot="true") as events:
            kind, data, _ = next(events)
            assert (kind, data["relation"], data["rows"]) == ("snapshot", "path", [[1, 2], [1, 3]])
            assert next(events)[0] == "ready"
            one.insert("edge", (7, 8))
            one.insert("edge", (3, 4))
            kind, data, _ = next(events)
            assert data["changes"] == {"path": {"deleted": [], "inserted": [[1, 4]]}}
            assert [r["size"] for r in one.get("/relations")["relations"] if r["name"] == "path"] == [3]
        with one.events(relation="edge(x, 5)") as events:
            assert next(events)[0] == "ready"
            one.insert("edge", (4, 5))
            assert next(events)[1]["changes"] == {"edge": {"deleted": [], "inserted": [[4, 5]]}}
        assert one.post("/query", {"query": "path(3, x)"})["rows"] == [[4], [5]]
        refused(one.client.get("/changes", params={"relation": "pth(1, x)"}), 422, "bad-fact")
        refused(one.client.get("/changes", params={"relation": "path(1"}), 422, "bad-fact")


def test_who_cannot_go_on_begins_anew(tmp_path: Path) -> None:
    with served(tmp_path, "--db", "anew.db") as one:
        one.insert("edge", (3, 4))
        one.post("/checkpoint", {"history": 0})
        for last in ("0", "999", "nonsense", "-1", "1" * 40, ""):
            with one.events({"Last-Event-ID": last}, relation="edge") as events:
                parts = [next(events) for _ in range(3)]
            assert [kind for kind, _, _ in parts] == ["reset", "snapshot", "ready"], last
            assert parts[1][1]["rows"] == [[1, 2], [2, 3], [3, 4]]
        assert one.client.head("/changes").status_code == 200, "which is no stream"


def test_in_memory_an_id_is_of_one_run(tmp_path: Path) -> None:
    with served(tmp_path) as one, one.events() as events:
        _, _, last = next(events)
    with served(tmp_path) as one:
        for foreign in (last, "0"):
            with one.events({"Last-Event-ID": foreign}) as events:
                assert next(events)[0] == "reset"
        with one.events() as events:
            _, _, now = next(events)
        with one.events({"Last-Event-ID": now}) as events:
            assert next(events)[0] == "ready", "nothing was missed"


def test_relations_and_numbers_as_one_wishes(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        refused(one.client.get("/changes", params={"relation": "pth"}), 404, "no-such-relation")
        with one.events(relation=["edge", "path"], numbers="text", snapshot="true") as events:
            first = [next(events) for _ in range(3)]
            assert first[0][1]["rows"] == [["1", "2"], ["2", "3"]]
            one.post("/rules", {"text": ".decl n(x:number)"})
            assert next(events)[0] == "program", "whoever shows rules must look again"
            one.insert("n", (1,))
            one.insert("edge", (2**62, 1))
            kind, data, _ = next(events)
            assert kind == "change", "of a relation that was not asked for nothing is told"
            assert data["changes"]["edge"]["inserted"] == [[str(2**62), "1"]]


def test_large_snapshots_come_in_parts(tmp_path: Path) -> None:
    facts = "".join(f'word({n}, "w").\n' for n in range(1234))
    with served(tmp_path, program=WIDE + facts) as one, one.events(snapshot="true") as events:
        parts = [next(events) for _ in range(3)]
        assert [len(data["rows"]) for _, data, _ in parts] == [500, 500, 234]
        assert [data["more"] for _, data, _ in parts] == [True, True, False]
        assert {number for _, _, number in parts} == {""}, "half a snapshot is nothing to go on from"
        assert next(events)[0] == "ready"


def test_snapshots_of_one_step_are_shared_and_all_of_them_have_a_bound() -> None:
    database = Database.from_text(WIDE)
    rows = [(n, "w") for n in range(600)]
    database.insert("word", rows)
    snapshots = Snapshots(most=1000)
    first, second = (snapshots.events(database, 1, Interest()) for _ in range(2))
    assert next(first) == next(second)
    assert snapshots.held == 600, "who comes at the same step reads the same copy"
    database.insert("word", (600, "w"))
    third = snapshots.events(database, 2, Interest())
    assert snapshots.held == 600 + 601, "two copies of everything are always allowed"
    database.insert("word", (601, "w"))
    with pytest.raises(ApiError, match="try again later"):
        snapshots.events(database, 3, Interest())
    for one in (first, second):
        list(one)
    assert snapshots.held == 601, "what was read is let go"
    fourth = snapshots.events(database, 3, Interest())
    assert [len(json.loads(part.partition(b"data: ")[2])["rows"]) for part in fourth] == [500, 102]
    del third
    assert snapshots.held == 0, "so is what nobody will read"


def test_no_more_may_follow_than_allowed(tmp_path: Path) -> None:
    with served(tmp_path, "--max-subscribers", "1") as one:
        with one.events() as events:
            next(events)
            refused(one.client.get("/changes"), 503, "too-many-subscribers")
        until(lambda: one.get("/stats")["subscribers"] == 0, "the place is free again")
        with one.events() as events:
            assert next(events)[0] == "ready"


# ── who does not read ────────────────────────────────────────────────────────────────────────


def lazy(one: Served) -> socket.socket:
    """A client that asks for changes and does not read them."""
    host, port = one.url.removeprefix("http://").split(":")
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(60)
    raw.connect((host, int(port)))
    raw.sendall(f"GET {API}/changes HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return raw


def test_a_client_that_does_not_read_costs_a_bounded_queue_and_is_let_go(tmp_path: Path) -> None:
    """40 MB of changes pass; the queue and the process stay below their bounds."""
    with served(tmp_path, "--db", "slow.db", "--max-behind", "1M", program=WIDE) as one:
        with contextlib.closing(lazy(one)) as raw:
            until(lambda: one.get("/stats")["subscribers"] == 1, "it follows")
            text = "x" * 200_000
            most, memory = 0, one.get("/stats")["memory"]
            for n in range(100):
                body = {"delete": {"word": [[n - 1, text]]}, "insert": {"word": [[n, text]]}, "tell": "counts"}
                one.post("/steps", body)
                most = max(most, one.get("/stats")["behind"])
            assert 0 < most <= 1 << 20
            assert one.get("/stats")["memory"] - memory < 30 << 20

            lines = raw.makefile("r", encoding="utf-8", newline="\n")
            assert lines.readline().startswith("HTTP/1.1 200")
            found = list(read_events(line.rstrip("\r\n") for line in lines))
        kinds = [kind for kind, _, _ in found]
        assert kinds[0] == "ready"
        assert kinds[-1] == "lagged"
        assert set(kinds[1:-1]) == {"change"}
        steps = [data["step"] for _, data, _ in found[1:-1]]
        assert steps == list(range(1, len(steps) + 1)), "up to there nothing is missing"
        assert len(steps) < 100
        stats = until(lambda: (now := one.get("/stats"))["subscribers"] == 0 and now, "it was let go")
        assert stats["lagged"] == 1
        rest = []
        with one.events({"Last-Event-ID": str(95)}) as events:
            for kind, data, _ in events:
                rest.append(data["step"])
                if kind == "ready":
                    break
        assert rest == [96, 97, 98, 99, 100, 100]


def test_a_client_that_does_not_read_holds_up_no_stop(tmp_path: Path) -> None:
    with served(tmp_path, program=WIDE) as one, contextlib.closing(lazy(one)):
        until(lambda: one.get("/stats")["subscribers"] == 1, "it follows")
        for n in range(30):
            one.post("/steps", {"insert": {"word": [[n, "x" * 300_000]]}, "tell": "counts"})
        assert one.stop() == 0


def test_a_queue_never_holds_more_than_its_bound() -> None:
    async def main() -> None:
        follower = Follower(Interest(), 1000, asyncio.get_running_loop())
        written = event("change", {"text": "x" * 100})
        for _ in range(1000):
            follower.offer(written)
            assert follower.waiting_bytes <= 1000
        assert follower.lagged
        assert follower.waiting_bytes == 0
        assert follower.take(1 << 20) == b""

    asyncio.run(main())


def test_a_client_that_reads_nothing_is_disconnected() -> None:
    """Sending never ends, as with a client whose window stays closed."""
    hub = Hub(str)

    async def main() -> list[Message]:
        follower = Follower(Interest(), 1000, asyncio.get_running_loop())
        hub.add(follower)
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        stream = EventStream(hub, follower, iter(()), Bounds(stalled=0.05))
        await asyncio.wait_for(stream({}, receive, send), 30)
        return sent

    sent = asyncio.run(main())
    assert not hub.followers
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_heartbeats_say_how_far_it_is() -> None:
    """A step without interesting changes still advances the id."""
    service = Service(Database.from_text(PATHS), Bounds(heartbeat=0.01))

    async def main() -> bytes:
        follower, first = service.follow(Interest(frozenset({"path"})), False, None, asyncio.get_running_loop())
        sent: list[bytes] = []

        async def send(message: Message) -> None:
            sent.append(message.get("body", b""))
            if len(sent) == 4:
                service.database.apply("+edge(1, 2).\n+edge(9, 9).")
            if len(sent) == 12:
                follower.end("enough")

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        await EventStream(service.hub, follower, first, service.bounds)({}, receive, send)
        return b"".join(sent)

    text = asyncio.run(main()).decode()
    assert f": all is well\nid: {service.label(0)}\n\n" in text
    assert f": all is well\nid: {service.label(1)}\n\n" in text
    assert text.index("event: change") < text.index(f": all is well\nid: {service.label(1)}")
    assert text.endswith('event: end\ndata: {"message":"enough"}\n\n')

"""A service under load: many clients at once, and no answer that mixes two states.

Money moves between accounts.  Each step takes an amount from one account and gives it to another,
in two copies of the books, `left` and `right`; so in every state the copies agree and the total is
constant.  A query that saw half of a step would find copies that differ or another total. Every
client checks every answer: writers, that exactly their transfer changed and that they read their
own writes; readers, copies, totals, derived relations and proofs; followers, that every step leads
from one correct state to another and that none is missing.  At the end the service stops and its
file is compared with the reported changes.

    python -P bench/serve_load.py [--seconds 60] [--clients 50] [--pause 0] [--memory] [--small]

It prints latencies by kind of request (milliseconds), and fails if anything was wrong.  `--torn`
tests the checks themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

PROGRAM = """
.decl left(account:number, amount:number)
.decl right(account:number, amount:number)
.decl torn(account:number)
torn(a) :- left(a, v), !right(a, v).
torn(a) :- right(a, v), !left(a, v).
.decl total(copy:symbol, amount:number)
total("left", n) :- n = sum v : { left(_, v) }.
total("right", n) :- n = sum v : { right(_, v) }.
.decl rich(account:number)
rich(a) :- left(a, v), v > 1000.
.decl also_rich(account:number)
also_rich(a) :- right(a, v), v > 1000.
"""
EACH, START = 20, 1000  # accounts of a writer, and the amount on each


class Connection:
    """One persistent connection: a minimal HTTP client for a well-behaved service."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: Any = None
        self._writer: Any = None

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self._ask(method, path, body)
        if status != 200:
            raise Wrong(f"{method} {path}: {status} {answer}")
        return answer

    async def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        headers = await self.send(method, path, body)
        data = await self._reader.readexactly(int(headers["content-length"]))
        return int(headers["status"]), json.loads(data)

    async def send(self, method: str, path: str, body: Any = None) -> dict[str, str]:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 26)
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        first = (await self._reader.readline()).split()
        if len(first) < 2:
            raise Wrong("the service has closed the connection")
        headers = {"status": first[1].decode()}
        while (line := await self._reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return headers

    async def events(self, path: str) -> AsyncIterator[tuple[str, Any]]:
        """The events of a stream, which arrives in chunks."""
        await self.send("GET", path)
        rest, kind = b"", ""
        while size := int(await self._reader.readline(), 16):
            rest += (await self._reader.readexactly(size + 2))[:-2]
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if line.startswith(b"event: "):
                    kind = line[7:].decode()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class Wrong(Exception):
    """A wrong answer."""


def must(right: bool, what: str) -> None:
    if not right:
        raise Wrong(what)


class Load:
    """Shared by all clients: the clock, the latencies, and the errors."""

    def __init__(self, port: int, seconds: float, pause: float, writers: int) -> None:
        self.port, self.pause, self.writers = port, pause, writers
        self.end = time.monotonic() + seconds
        self.total = writers * EACH * START
        self.took: dict[str, list[float]] = {}
        self.wrong: list[str] = []
        self.events = 0
        self.books: dict[int, int] = {}  # the reported final state of the writers' accounts
        self.told = 0  # steps
        self.seen: dict[int, int] = {}  # the last step that each follower received
        self.torn = False  # whether money moves in two steps

    @property
    def over(self) -> bool:
        return time.monotonic() > self.end

    async def timed(self, kind: str, asked: Awaitable[Any]) -> Any:
        begin = time.perf_counter()
        answer = await asked
        self.took.setdefault(kind, []).append(time.perf_counter() - begin)
        if self.pause:
            await asyncio.sleep(self.pause * random.uniform(0.5, 1.5))
        return answer

    async def client(self, work: Callable[[Load, Connection, int], Awaitable[None]], number: int) -> None:
        connection = Connection(self.port)
        try:
            await work(self, connection, number)
        except Exception as error:
            self.wrong.append(f"{work.__name__} {number}: {type(error).__name__}: {error}"[:300])
        finally:
            connection.close()


# ── clients ──────────────────────────────────────────────────────────────────────────────────


async def write(load: Load, connection: Connection, number: int) -> None:
    """Transfers between the writer's own accounts."""
    mine = {number * EACH + n: START for n in range(EACH)}
    chance, last = random.Random(number), 0
    while not load.over:
        a, b = chance.sample(list(mine), 2)
        amount = chance.randrange(1, 50)
        gone = [[a, mine[a]], [b, mine[b]]]
        mine[a] -= amount
        mine[b] += amount
        come = [[a, mine[a]], [b, mine[b]]]
        if load.torn:
            await connection.ask("POST", "/steps", {"delete": {"left": gone}, "insert": {"left": come}})
        body = {"delete": {"left": gone, "right": gone}, "insert": {"left": come, "right": come}}
        told = await load.timed("step", connection.ask("POST", "/steps", body))
        for copy in ("left", "right"):
            must(
                told["changes"][copy] == {"deleted": sorted(gone), "inserted": sorted(come)},
                f"{copy} changed else",
            )
        must("torn" not in told["changes"], "the copies differ")
        must(told["step"] > last, "steps go back")
        last = told["step"]
        load.told += 1
        if chance.random() < 0.2:
            query = {"query": f"left({a}, x), right({a}, x)"}
            found = await load.timed("query (own write)", connection.ask("POST", "/query", query))
            must(found["rows"] == [[mine[a]]], f"account {a} has not what was written")
            must(found["step"] >= last, "an answer of a state before one's own step")
    load.books.update(mine)


async def read(load: Load, connection: Connection, number: int) -> None:
    """Queries that would show a torn state, of base and of derived relations."""
    chance, last = random.Random(1000 + number), 0
    queries = (
        ("left(a, v), !right(a, v)", []),
        ("torn(a)", []),
        ("n = sum v : { left(_, v) }, m = sum w : { right(_, w) }", [[load.total, load.total]]),
        ("total(c, n), left(0, _)", [["left", load.total], ["right", load.total]]),
        ("rich(a), !also_rich(a)", []),
        ("left(a, v), rich(a), v <= 1000", []),
    )
    while not load.over:
        text, expected = chance.choice(queries)
        found = await load.timed("query", connection.ask("POST", "/query", {"query": text}))
        must(found["rows"] == expected, f"`{text}` is {found['rows'][:5]} after step {found['step']}")
        must(found["step"] >= last, "the state goes back")
        last = found["step"]


async def look(load: Load, connection: Connection, number: int) -> None:
    """Requests of a console: facts, relations, proofs."""
    chance = random.Random(2000 + number)
    while not load.over:
        path = f"/relations/{chance.choice(('left', 'right'))}/facts?limit=10000"
        facts = await load.timed("facts", connection.ask("GET", path))
        must(sum(row[1] for row in facts["rows"]) == load.total, "another total in all facts")
        must(len(facts["rows"]) == facts["total"] == load.writers * EACH, "an account is missing or twice")
        relations = await load.timed("relations", connection.ask("GET", "/relations"))
        sizes = {relation["name"]: relation["size"] for relation in relations["relations"]}
        must(sizes["left"] == sizes["right"] and sizes["rich"] == sizes["also_rich"], f"sizes {sizes}")
        why = await load.timed("why", connection.ask("POST", "/why", {"fact": f'total("left", {load.total})'}))
        must(why["proof"]["nodes"][0]["relation"] == "total", "a proof of something else")


async def follow(load: Load, connection: Connection, number: int) -> None:
    """Follow all steps from a snapshot on."""
    books: dict[str, dict[int, int]] = {"left": {}, "right": {}}
    last = 0
    async for kind, data in connection.events("/changes?relation=left&relation=right&snapshot=true"):
        must(kind in ("snapshot", "ready", "change"), f"{kind}: {data}")
        if kind == "snapshot":
            books[data["relation"]].update(data["rows"])
            continue
        for name, change in data.get("changes", {}).items():
            for account, amount in change["deleted"]:
                must(books[name].pop(account) == amount, "another fact goes than was there")
            books[name].update(change["inserted"])
        must(books["left"] == books["right"], f"the copies differ after step {data['step']}")
        must(sum(books["left"].values()) == load.total, f"another total after step {data['step']}")
        must(kind == "ready" or not last or data["step"] == last + 1, f"after step {last} came {data['step']}")
        last = load.seen[number] = data["step"]
        load.events += kind == "change"


# ── the whole ────────────────────────────────────────────────────────────────────────────────


async def all_clients(load: Load, clients: int) -> None:
    books = [[account, START] for account in range(load.writers * EACH)]
    first = Connection(load.port)
    await first.ask("POST", "/steps", {"insert": {"left": books, "right": books}, "tell": "counts"})
    first.close()
    followers, lookers = max(1, clients // 5), max(1, clients // 10)
    kinds = [write] * load.writers + [follow] * followers + [look] * lookers
    kinds += [read] * (clients - len(kinds))
    tasks = [(kind, asyncio.create_task(load.client(kind, number))) for number, kind in enumerate(kinds)]
    others = [task for kind, task in tasks if kind is not follow]
    await asyncio.wait(others, timeout=load.end - time.monotonic() + 60)
    late = time.monotonic() + 30  # followers receive the last step, too
    while time.monotonic() < late and not load.wrong and any(step <= load.told for step in load.seen.values()):
        await asyncio.sleep(0.05)
    if not load.wrong and (len(load.seen) < followers or any(step <= load.told for step in load.seen.values())):
        load.wrong.append(f"{load.told + 1} steps were reported, followers received {sorted(load.seen.values())}")
    for kind, task in tasks:
        if kind is not follow and not task.done():
            load.wrong.append(f"{kind.__name__} did not end")
        task.cancel()
    await asyncio.gather(*(task for _, task in tasks), return_exceptions=True)
    names = {kind.__name__: kinds.count(kind) for kind in (write, read, look, follow)}
    print(f"{len(kinds)} clients: " + ", ".join(f"{number} {name}" for name, number in names.items()))


def served(folder: Path, memory: bool) -> tuple[subprocess.Popen[str], int]:
    """A service as a process of its own, and its port."""
    (folder / "books.dl").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "everlog", "serve", "books.dl", "--port", "0"]
    command += [] if memory else ["--db", "books.db"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = process.stdout.readline()
    if "everlog serves" not in told:
        sys.exit(f"the service does not start: {told}")
    return process, int(told.split("127.0.0.1:")[1].split("/")[0])


def compare_file(folder: Path, load: Load) -> None:
    """Check that the file holds what was reported."""
    from everlog import Database

    with Database.open(folder / "books.db") as database:
        for copy in ("left", "right"):
            if dict(database.view(copy)) != load.books:
                load.wrong.append(f"{copy} in the file is not what was reported")
        if database.step != load.told + 1:
            load.wrong.append(f"{load.told + 1} steps were reported, the file is at step {database.step}")
        load.wrong += [f"{name} differs from an evaluation from scratch" for name in database.check()]


def report(load: Load, seconds: float) -> None:
    print(f"{'request':<20}{'number':>9}{'per s':>9}{'p50':>9}{'p90':>9}{'p99':>9}{'max':>9}")
    everything: list[float] = []
    for kind in sorted(load.took):
        everything += load.took[kind]
        print(line(kind, load.took[kind], seconds))
    print(line("all", everything, seconds))
    print(f"{load.events} events to followers, {load.events / seconds:.0f} per s; {load.told} steps")
    for what in load.wrong[:20]:
        print(f"WRONG: {what}")
    print(
        f"errors and torn reads: {len(load.wrong)}".ljust(92)
        + ("bar: none               holds" if not load.wrong else "MISSED")
    )


def line(kind: str, times: list[float], seconds: float) -> str:
    ordered = sorted(times)
    at = [1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.9, 0.99, 1.0)]
    return f"{kind:<20}{len(times):>9}{len(times) / seconds:>9.1f}" + "".join(f"{value:>9.1f}" for value in at)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0, help="seconds that a client waits between two requests")
    parser.add_argument("--memory", action="store_true", help="without a file")
    parser.add_argument("--small", action="store_true", help="a few seconds, a few clients")
    parser.add_argument("--torn", action="store_true", help="move money in two steps, to test the checks")
    asked = parser.parse_args()
    if asked.small:
        asked.seconds, asked.clients = 3, 15
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process, port = served(folder, asked.memory)
        try:
            load = Load(port, asked.seconds, asked.pause, writers=max(1, asked.clients // 5))
            load.torn = asked.torn
            asyncio.run(all_clients(load, asked.clients))
        finally:
            process.terminate()
            status = process.wait(60)
        if status != 0:
            load.wrong.append(f"the service ended with status {status}")
        if not asked.memory and not load.wrong:
            compare_file(folder, load)
    report(load, asked.seconds)
    return 1 if load.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

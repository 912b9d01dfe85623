"""A hostile client: bad bodies, slow and half-open connections, followers.

    python -P tests/hostile_client.py http://127.0.0.1:8765 --seconds 20 --seed 1

It runs attacks in several threads, at random but from a seed, and prints as JSON how many answers
of each status it got.  It keeps to relations `n`, `s` and those that it declares itself, and leaves
them as they were.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

API = "/api/v1"
NUMBERS = 10_000  # facts n(0), …, that the program begins with
LONG = "x" * 7_000_000
_PART = 50_000  # rows that are deleted in one step, in good time
_JSON = {"Content-Type": "application/json"}


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def texts() -> list[str]:
    """Texts that are deep, long, or mean too much."""
    head = ".decl evil(x:number)\nevil("
    product = ",".join(["(n(1);n(2))"] * 40)
    return [
        head + "-" * 20_000 + "1).",
        head + "max(1," * 20_000 + "1" + ")" * 20_000 + ").",
        ".decl evil(x:symbol)\nevil(" + 'cat("a",' * 20_000 + '"b"' + ")" * 20_000 + ").",
        head + "1^" * 20_000 + "1).",
        head + "(" * 150 + "1" + ")" * 150 + ").",
        "^" * 400_000,
        "evil(" + "(" * 300_000,
        ".decl evil(x:number)\n.limitsize evil(n=" + "9" * 5000 + ")",
        head + "9" * 5000 + ").",
        f".decl evil(x:number)\nevil(1) :- {product}.",
        ".decl evil(x:number)\nevil(1) :- " + ",".join(["n(1)"] * 20_000) + ".",
        ".comp A {" * 3000 + "}" * 3000,
        "#define A " + "x" * 100 + "\n" + "".join(f"#define A{i} {'A ' * 9}\n" for i in range(9)) + "A8\n",
        '.decl evil(x:number)\n.output evil(filename="/tmp/evil/evil.csv")',
        '.decl evil(x:number)\n.input evil(IO=sqlite, dbname="/etc/passwd")',
        '#include "/etc/passwd"\n',
    ]


class Hostile:
    """The attacks, and what came of them."""

    def __init__(self, url: str, seed: int) -> None:
        found = urlsplit(url)
        assert found.hostname is not None
        assert found.port is not None
        self.place = found.hostname, found.port
        self.seed = seed
        self.answers: Counter[str] = Counter()
        self.sockets: list[tuple[float, socket.socket]] = []
        self._lock = threading.Lock()
        self._texts = texts()
        self._wide = b'{"insert":{"n":[' + b",".join([b"[]"] * 2_700_000) + b"]}}"
        self.attacks: list[Callable[[random.Random], None]] = [
            self.deep_body,
            self.wide_body,
            self.huge_body,
            self.nonsense,
            self.bad_text,
            self.bad_text,
            self.bad_query,
            self.slow_query,
            self.slow_query,
            self.large_answer,
            self.large_step,
            self.large_view,
            self.half_open,
            self.half_open,
            self.half_body,
            self.unread_answer,
            self.unread_changes,
        ]

    # ── tools ────────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, path: str, data: bytes | None = None, headers: dict[str, str] = _JSON) -> int:
        """The status of an answer, which is read; 0 if there is none."""
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        try:
            connection.request(method, API + path, data, headers)
            response = connection.getresponse()
            found = response.read()
            status, name = response.status, str(response.status)
            if status >= 400:
                with suppress(ValueError, KeyError, TypeError):
                    name += " " + json.loads(found)["error"]["code"]
        except (OSError, http.client.HTTPException):
            status, name = 0, "cut off"
        finally:
            connection.close()
        with self._lock:
            self.answers[name] += 1
        return status

    def post(self, path: str, value: object) -> int:
        return self.ask("POST", path, body(value))

    def keep(self, data: bytes, seconds: float) -> None:
        """Send something, read nothing, and stay."""
        try:
            one = socket.create_connection(self.place, timeout=10)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(data)
        except OSError:
            return
        with self._lock:
            self.sockets.append((time.monotonic() + seconds, one))

    def close_old(self, now: float) -> None:
        with self._lock:
            old = [one for end, one in self.sockets if end <= now]
            self.sockets = [entry for entry in self.sockets if entry[0] > now]
        for one in old:
            one.close()

    def head(self, method: str, path: str, more: str = "") -> bytes:
        return f"{method} {API}{path} HTTP/1.1\r\nHost: {self.place[0]}\r\n{more}".encode()

    # ── attacks ──────────────────────────────────────────────────────────────────────────────

    def deep_body(self, rng: random.Random) -> None:
        depth = rng.choice((100, 900, 1000, 5000, 1_000_000))
        before, after = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"params":', b"}")))
        inside = before * depth + b"1" + after * depth
        path = rng.choice(("/steps", "/query", "/rules", "/rules/check"))
        self.ask("POST", path, rng.choice((inside, b'{"query":"n(x)","params":' + inside + b"}")))

    def wide_body(self, rng: random.Random) -> None:
        self.ask("POST", "/steps", self._wide)

    def huge_body(self, rng: random.Random) -> None:
        self.ask("POST", "/steps", b"[" + b" " * (9 << 20) + b"]")

    def nonsense(self, rng: random.Random) -> None:
        data = rng.randbytes(rng.choice((10, 1000, 100_000)))
        kind = rng.choice(("application/json", "text/plain", "application/json; charset=utf-16"))
        self.ask("POST", rng.choice(("/steps", "/query", "/rules/check")), data, {"Content-Type": kind})
        self.keep(data, 1)
        self.keep(self.head("GET", "/health", "\r\n") * 50 + data, 1)

    def bad_text(self, rng: random.Random) -> None:
        text = rng.choice(self._texts)
        path = rng.choice(("/rules", "/rules/check", "/rules/check", "/rules/drop"))
        if self.post(path, {"text": text}) == 200 and path == "/rules":
            self.ask("DELETE", "/relations/evil")

    def bad_query(self, rng: random.Random) -> None:
        text = rng.choice(
            ("n(x), x=" + "-" * 20_000 + "1", "n(" + "9" * 5000 + ")", "(" * 40_000 + "n(x)", "n(x" * 9000)
        )
        self.post(rng.choice(("/query", "/why", "/why-not")), {rng.choice(("query", "fact")): text})

    def slow_query(self, rng: random.Random) -> None:
        query = rng.choice(
            ("n(x), n(y)", "n(x), n(y), n(z)", "n(x), n(y), x + y = 100000", "c = sum x * y : {n(x), n(y)}")
        )
        self.post("/query", {"query": query, "limit": 10_000, "ordered": rng.random() < 0.5})

    def large_answer(self, rng: random.Random) -> None:
        self.post("/steps", {"insert": {"s": [[LONG]]}, "tell": "counts"})
        self.post("/query", {"query": "s(x), n(y)", "limit": 10_000, "ordered": rng.random() < 0.5})
        self.ask("GET", "/relations/s/facts?limit=10000")
        self.post("/steps", {"delete": {"s": [[LONG]]}})

    def large_step(self, rng: random.Random) -> None:
        rows = [b"[%d]" % x for x in range(NUMBERS, NUMBERS + rng.choice((1000, 100_000, 700_000)))]
        if self.ask("POST", "/steps", b'{"insert":{"n":[' + b",".join(rows) + b"]}}") != 200:
            return
        for start in range(0, len(rows), _PART):
            part = b",".join(rows[start : start + _PART])
            while self.ask("POST", "/steps", b'{"tell":"counts","delete":{"n":[' + part + b"]}}") in (422, 503):
                time.sleep(0.5)

    def large_view(self, rng: random.Random) -> None:
        name = f"evil{rng.randrange(10**9)}"
        rule = rng.choice(("n(x), n(y), x < 200, y < 2000", "n(x), n(y)", "n(x), s(z), y = x"))
        columns, head = ("x:number, y:number", "x, y") if "s(z)" not in rule else ("x:number, z:symbol", "x, z")
        self.post("/rules", {"text": f".decl {name}({columns})\n{name}({head}) :- {rule}."})
        while self.ask("DELETE", f"/relations/{name}") in (422, 503):
            time.sleep(0.5)

    def half_open(self, rng: random.Random) -> None:
        for _ in range(rng.choice((1, 50, 400))):
            self.keep(rng.choice((b"", b"GET / HT", self.head("GET", "/health"))), rng.uniform(0.1, 5))

    def half_body(self, rng: random.Random) -> None:
        for _ in range(rng.choice((1, 20, 100))):
            more = "Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n"
            self.keep(self.head("POST", "/steps", more) + b"[" * rng.choice((1, 10_000)), rng.uniform(0.1, 5))

    def unread_answer(self, rng: random.Random) -> None:
        for _ in range(rng.choice((1, 20))):
            self.keep(self.head("GET", "/relations/n/facts?limit=10000", "\r\n"), rng.uniform(0.1, 10))

    def unread_changes(self, rng: random.Random) -> None:
        for _ in range(rng.choice((1, 10, 60))):
            path = rng.choice(("/changes", "/changes?snapshot=true", "/changes?relation=n&numbers=text"))
            more = rng.choice(("", "Last-Event-ID: 1\r\n", "Last-Event-ID: " + "9" * 5000 + "\r\n")) + "\r\n"
            self.keep(self.head("GET", path, more), rng.uniform(0.1, 10))

    # ── all of it ────────────────────────────────────────────────────────────────────────────

    def run(self, seconds: float, threads: int) -> None:
        end = time.monotonic() + seconds
        workers = [threading.Thread(target=self._attack, args=(n, end)) for n in range(threads)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            self.close_old(time.monotonic())
            time.sleep(0.05)
        self.close_old(float("inf"))

    def _attack(self, number: int, end: float) -> None:
        rng = random.Random(self.seed * 1000 + number)
        while time.monotonic() < end:
            rng.choice(self.attacks)(rng)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=6)
    arguments = parser.parse_args()
    one = Hostile(arguments.url, arguments.seed)
    one.run(arguments.seconds, arguments.threads)
    json.dump(dict(sorted(one.answers.items())), sys.stdout)


if __name__ == "__main__":
    main()

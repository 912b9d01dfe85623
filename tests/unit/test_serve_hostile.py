"""A hostile client against a real service, which stays alive, fast and small.

No step is lost.  The default run takes ten seconds; `-m deep` takes five minutes, and holds
`/health` to one second.
EVERLOG_HOSTILE_SEED and EVERLOG_HOSTILE_SECONDS choose another run.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.hostile_client import NUMBERS
from tests.serving import API, Served, read_events, running, until

PROGRAM = """
.decl n(x:number)
.input n
.decl s(x:symbol)
.input s
.decl told(x:number)
.input told
.decl twice(x:number, y:number)
twice(x, x + x) :- told(x).
"""
CLIENT = Path(__file__).parents[1] / "hostile_client.py"
ALL_BUT_CONNECTION = (httpx.HTTPError, OSError)


class Prober(threading.Thread):
    """Asks for `/health`, over a new connection each time."""

    def __init__(self, one: Served) -> None:
        super().__init__(daemon=True)
        found = urlsplit(one.url)
        self._place = found.hostname or "", found.port
        self.over = threading.Event()
        self.times: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        while not self.over.wait(0.03):
            start = time.monotonic()
            try:
                connection = http.client.HTTPConnection(*self._place, timeout=60)
                connection.request("GET", API + "/health")
                status = connection.getresponse().status
                connection.close()
                if status != 200:
                    self.failures.append(str(status))
            except (OSError, http.client.HTTPException) as problem:
                self.failures.append(repr(problem))
            self.times.append(time.monotonic() - start)


class Writer(threading.Thread):
    """Inserts numbers, one a step, and notes what became of each."""

    def __init__(self, one: Served) -> None:
        super().__init__(daemon=True)
        self._client = httpx.Client(base_url=one.url + API, timeout=60)
        self.over = threading.Event()
        self.steps: dict[int, int] = {}  # number → the step that inserted it
        self.refused: set[int] = set()
        self.unknown: set[int] = set()

    def run(self) -> None:
        number = 0
        while not self.over.wait(0.05):
            number += 1
            try:
                response = self._client.post("/steps", json={"insert": {"told": [[number]]}})
            except ALL_BUT_CONNECTION:
                self.unknown.add(number)
                continue
            if response.status_code == 200:
                self.steps[number] = response.json()["step"]
            else:
                assert response.status_code in (422, 503), response.text
                self.refused.add(number)


class Reader(threading.Thread):
    """Follows `told` (or all), reconnects when it lags, and checks completeness."""

    def __init__(self, one: Served, everything: bool) -> None:
        super().__init__(daemon=True)
        self._client = httpx.Client(base_url=one.url + API, timeout=httpx.Timeout(60, read=60))
        self._everything = everything
        self.over = threading.Event()
        self.state: set[int] = set()
        self.spans: list[tuple[int, int, frozenset[int]]] = []  # per stream: from, to, what it received
        self.ends: list[str] = []
        self.seen = 0  # the last step

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self._follow()
            except ALL_BUT_CONNECTION as problem:
                self.ends.append(type(problem).__name__)
            time.sleep(0.1)

    def _follow(self) -> None:
        parameters = {} if self._everything else {"relation": "told"}
        with self._client.stream("GET", "/changes", params={**parameters, "snapshot": "true"}) as response:
            if response.status_code != 200:
                self.ends.append(str(response.status_code))
                return
            first, told, snapshot = -1, set(), set()
            try:
                for kind, data, _ in read_events(response.iter_lines()):
                    self.seen = max(self.seen, data.get("step", 0))
                    if kind == "snapshot" and data["relation"] == "told":
                        snapshot |= {row[0] for row in data["rows"]}
                    elif kind == "ready":
                        first, self.state = data["step"], snapshot
                    elif kind == "change" and "told" in data["changes"]:
                        new = {row[0] for row in data["changes"]["told"]["inserted"]}
                        told |= new
                        self.state |= new
                    elif kind in ("lagged", "end"):
                        self.ends.append(kind)
                        return
            finally:
                if first >= 0 and told:
                    self.spans.append((first, max(told), frozenset(told)))


def memory_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def attacked(folder: Path, seconds: float, seed: int) -> dict[str, object]:
    """Run the hostile client against a service, check all invariants; the figures."""
    (folder / "prog.dl").write_text(PROGRAM, encoding="utf-8")
    (folder / "n.facts").write_text("".join(f"{x}\n" for x in range(NUMBERS)))
    flags = ("--db", "hostile.db", "--max-memory", "600M", "--max-seconds", "3")
    with running(folder, "prog.dl", *flags) as one:
        pid = one.process.pid
        one.insert("told", (0,))
        before = memory_of(pid)
        prober, writer = Prober(one), Writer(one)
        readers = [Reader(one, everything) for everything in (False, False, True)]
        for thread in (prober, writer, *readers):
            thread.start()
        command = [sys.executable, "-P", str(CLIENT), one.url, "--seconds", str(seconds), "--seed", str(seed)]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        highest = 0
        while client.poll() is None:
            assert one.process.poll() is None, one.log.read_text()
            highest = max(highest, memory_of(pid))
            time.sleep(0.1)
        assert client.stdout is not None
        answers = json.load(client.stdout)
        client.stdout.close()
        assert client.returncode == 0
        prober.over.set()
        writer.over.set()
        prober.join(70)
        writer.join(70)

        facts = {row[0] for row in one.query("told(x)", limit=10_000)}
        assert writer.steps.keys() <= facts, "what was answered with 200 is there"
        assert not writer.refused & facts, "what was refused is not"
        last = max(writer.steps.values())
        for reader in readers:
            try:
                until(lambda of=reader: of.state == facts, "all who follow have heard of all steps")
            except AssertionError:
                missing, more = sorted(facts - reader.state), sorted(reader.state - facts)
                steps = [writer.steps.get(number) for number in missing]
                how = f"{reader.ends[-5:]}, {reader.seen}, {reader.spans[-3:]}, {one.get('/stats')['subscribers']}"
                raise AssertionError(f"untold: {missing} in {steps}, {more}; {how}") from None
        for reader in readers:
            reader.over.set()
            for first, to, told in reader.spans:
                due = {x for x, step in writer.steps.items() if first < step <= writer.steps.get(to, step)}
                assert due <= told, "a stream leaves out no step between its first and its last one"
        one.post("/steps", {"delete": {"told": [[x] for x in facts]}, "tell": "counts"})
        assert one.query("n(x)", limit=0) == []
        assert one.get("/relations/n/facts", limit=0)["total"] == NUMBERS
        until(lambda: memory_of(pid) < before + (100 << 20), f"of {memory_of(pid) >> 20} MB much is given back")
        after = memory_of(pid)
        log = one.log.read_text()
        assert one.stop() == 0
    assert "error in the service" not in log, log[-4000:]
    assert not [status for status in answers if status.startswith("500")]
    assert not prober.failures, prober.failures[:5]
    return {
        "answers": answers,
        "health requests": len(prober.times),
        "longest health": round(max(prober.times), 3),
        "memory before, highest, after (MB)": [before >> 20, highest >> 20, after >> 20],
        "steps committed, refused, unknown": [len(writer.steps), len(writer.refused), len(writer.unknown)],
        "last step": last,
        "streams": [len(reader.spans) for reader in readers],
        "ends of streams": [sorted(set(reader.ends)) for reader in readers],
    }


SEED = int(os.environ.get("EVERLOG_HOSTILE_SEED", "1"))


def test_a_hostile_client_neither_ends_nor_wedges_the_service(tmp_path: Path) -> None:
    figures = attacked(tmp_path, float(os.environ.get("EVERLOG_HOSTILE_SECONDS", "10")), SEED)
    print(json.dumps(figures, indent=1))
    assert isinstance(figures["longest health"], float)
    assert figures["longest health"] < 5


@pytest.mark.deep
def test_five_minutes_of_a_hostile_client(tmp_path: Path) -> None:
    figures = attacked(tmp_path, float(os.environ.get("EVERLOG_HOSTILE_SECONDS", "300")), SEED)
    print(json.dumps(figures, indent=1))
    assert isinstance(figures["longest health"], float)
    assert figures["longest health"] < 1

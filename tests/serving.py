"""Helpers for tests of `everlog serve`: a real process, a reader of events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

PATHS = """
.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2).
edge(2, 3).
"""
API = "/api/v1"


class Served:
    """A process that serves, and a client of it."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path, token: str | None = None) -> None:
        self.process, self.url, self.log = process, url, log
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=url + API, headers=headers, timeout=30)

    def get(self, path: str, **parameters: Any) -> Any:
        return right(self.client.get(path, params=parameters))

    def post(self, path: str, body: Any = None, **parameters: Any) -> Any:
        return right(self.client.post(path, json=body, params=parameters))

    def insert(self, relation: str, *rows: Any) -> Any:
        return self.post("/steps", {"insert": {relation: [list(row) for row in rows]}})

    def query(self, text: str, **more: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.post("/query", {"query": text, **more})["rows"]]

    def events(self, headers: dict[str, str] | None = None, **parameters: Any) -> Any:
        """`with served.events(relation="path") as events:` yields (kind, data, id)."""
        return followed(self.client, headers or {}, parameters)

    def stop(self, number: int = 15) -> int:
        """Its exit status after a signal."""
        self.client.close()
        self.process.send_signal(number)
        return self.process.wait(30)


def right(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: httpx.Response, status: int, code: str) -> str:
    """The message of an error, which has this status and this code."""
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    message: str = response.json()["error"]["message"]
    assert "Traceback" not in message
    return message


@contextmanager
def followed(
    client: httpx.Client, headers: dict[str, str], parameters: Any
) -> Iterator[Iterator[tuple[str, Any, str]]]:
    with client.stream("GET", "/changes", params=parameters, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield read_events(response.iter_lines())


def read_events(lines: Iterator[str]) -> Iterator[tuple[str, Any, str]]:
    """Events as a browser understands them: kind, data, and the last id so far."""
    kind, data, last = "message", "", ""
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield kind, json.loads(data), last
            kind, data = "message", ""
        elif field == "event":
            kind = value
        elif field == "data":
            data += value
        elif field == "id":
            last = value


@contextmanager
def served(
    folder: Path, *flags: str, program: str = PATHS, token: str | None = None, **environment: str
) -> Iterator[Served]:
    """A process that serves a program, on a free port; its end is that of the block."""
    (folder / "prog.dl").write_text(program, encoding="utf-8")
    with running(folder, "prog.dl", *flags, token=token, **environment) as one:
        yield one


@contextmanager
def running(folder: Path, *arguments: str, token: str | None = None, **environment: str) -> Iterator[Served]:
    """The same, of a program that is there."""
    log = folder / "serve.log"
    port = [] if "--port" in arguments else ["--port", "0"]
    command = [sys.executable, "-P", "-m", "everlog", "serve", *arguments, *port]
    inherited = {name: value for name, value in os.environ.items() if name != "EVERLOG_TOKEN"}
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder, env=inherited | environment
        )
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert "everlog serves" in told, f"{told}{log.read_text()}"
        url = told.split(" at ")[1].split()[0].rstrip("/,")
        one = Served(process, url, log, token)
        try:
            yield one
        finally:
            one.client.close()
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()


def until(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Wait for what must come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"in vain: {what}")

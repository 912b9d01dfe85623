"""Helpers for tests of streams: events as text, a following process, waiting."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def closure(edges: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """What `path` must be: computed in another way than by rules."""
    after: dict[int, set[int]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    found = set()
    for start in after:
        reached: set[int] = set()
        waiting = list(after[start])
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += after.get(node, ())
        found |= {(start, node) for node in reached}
    return found


def event(
    op: str, before: Any = None, after: Any = None, table: str = "edge", tx: str | None = None, **source: Any
) -> str:
    """A change event of a table with the columns x, y, … as a line."""

    def row(values: Any) -> Any:
        return dict(zip("xyzuvw", values, strict=False)) if isinstance(values, tuple | list) else values

    value: dict[str, Any] = {
        "before": row(before),
        "after": row(after),
        "source": {"table": table, **source},
        "op": op,
    }
    if tx is not None:
        value["transaction"] = {"id": tx}
    return json.dumps(value) + "\n"


def begin(tx: str) -> str:
    return json.dumps({"status": "BEGIN", "id": tx}) + "\n"


def end(tx: str, **counts: int) -> str:
    collections = [{"data_collection": table, "event_count": count} for table, count in counts.items()]
    value = {"status": "END", "id": tx, "event_count": sum(counts.values()), "data_collections": collections}
    return json.dumps(value if counts else {"status": "END", "id": tx}) + "\n"


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


def events(text: str) -> list[tuple[str, Any, Any]]:
    """The operations of a stream that everlog has written, with the rows as tuples."""

    def row(values: dict[str, Any] | None) -> Any:
        return None if values is None else tuple(values.values())

    return [(e["op"], row(e["before"]), row(e["after"])) for e in entries(text) if "op" in e]


def added_up(text: str) -> set[Any]:
    """The rows after all changes of a stream, each of which must be valid."""
    rows: set[Any] = set()
    for op, before, after in events(text):
        if op == "t":
            rows.clear()
        if before is not None:
            assert before in rows, f"{before} goes twice"
            rows.remove(before)
        if after is not None:
            assert after not in rows, f"{after} comes twice"
            rows.add(after)
    return rows


@contextmanager
def following(
    folder: Path, *arguments: str, program: str = PATHS, **popen: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process `everlog follow` of a program; ended at the end, if it has not."""
    (folder / "program.dl").write_text(program)
    command = [sys.executable, "-P", "-m", "everlog", "follow", str(folder / "program.dl"), *arguments]
    process = subprocess.Popen(command, cwd=folder, **{"stderr": subprocess.PIPE, **popen})
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=30)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def wait_until(
    true: Callable[[], Any], process: subprocess.Popen[bytes] | None = None, seconds: float = 60
) -> Any:
    """Wait until something holds; it must, before long."""
    limit = time.monotonic() + seconds
    while not (found := true()):
        if process is not None and process.poll() is not None and not (found := true()):
            told = process.stderr.read().decode() if process.stderr is not None else ""
            raise AssertionError(f"the process has ended with {process.returncode}: {told}")
        if time.monotonic() > limit:
            raise AssertionError("it did not come")
        time.sleep(0.02)
    return found

"""A disk that fails: `tests/disk.c`, preloaded, and processes that use it.

`run(scenario, path)` starts this file as a process whose writes and syncs to the database file go
through that library; it plays one of the scenarios below, and prints the steps that were reported.
SQLite, Python's module for it and everlog are the real ones: only system calls fail.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from attrs import frozen
from durable_load import Load, opened

from everlog.store.durable_database import DurableDatabase
from everlog.store.errors import NotWritten

WRITE, SYNC, TRUNCATE = 1, 2, 4
FAIL, SHORT, DIE = 0, 1, 2
WAYS = [
    (WRITE, FAIL, errno.EIO),
    (WRITE, FAIL, errno.ENOSPC),
    (WRITE, FAIL, errno.EROFS),
    (WRITE, SHORT, 0),
    (SYNC, FAIL, errno.EIO),
    (SYNC, FAIL, errno.ENOSPC),
    (WRITE | SYNC | TRUNCATE, FAIL, errno.EIO),
]
ALL = -1


@cache
def library() -> Path | None:
    """The library, compiled once; None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        return None
    made = Path(mkdtemp(prefix="everlog-disk-")) / "disk.so"
    source = Path(__file__).with_name("disk.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"], check=True)
    return made


def run(scenario: str, path: Path, *arguments: object, preload: bool = True) -> subprocess.CompletedProcess[str]:
    """Play a scenario in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "DISK_FILES": str(path)}
    if preload:
        environment["LD_PRELOAD"] = str(library())
    command = [sys.executable, "-P", __file__, scenario, str(path), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


# ── in the process ───────────────────────────────────────────────────────────────────────────


def plan(operations: int = 0, way: int = FAIL, error: int = 0, after: int = 0, times: int = 0) -> None:
    ctypes.CDLL(None).disk_plan(operations, way, error, after, times)


def failures() -> int:
    return int(ctypes.CDLL(None).disk_failures())


def every_operation(path: Path, seed: str) -> None:
    """Fail each write, sync and truncation of some steps and checkpoints, in each way.

    Each operation fails alone, and together with all later ones.
    """
    db, load = opened(path), Load(int(seed))
    load.next().apply(db)
    refused = 0
    for operations, way, error in WAYS:
        for times in (1, ALL):
            after = 0
            while True:  # until the step has no more operations that could fail
                before = Load(int(seed), load.step)
                move = load.next()
                plan(operations, way, error, after, times)
                seen = failures()
                try:
                    move.apply(db)
                except NotWritten:
                    refused += 1
                    before.assert_shown_by(db)
                    db._engine.check()
                    plan()
                    move.apply(db)
                plan()
                load.assert_shown_by(db)
                if failures() == seen or after > 40:
                    break
                after += 1 if after < 6 else 5
            refused += checkpoints(db, load, operations, way, error, times)
    assert refused > 30, refused
    db.close()
    print(f"step {load.step}")


def checkpoints(db: DurableDatabase, load: Load, operations: int, way: int, error: int, times: int) -> int:
    refused = 0
    for after in (0, 1, 2, 5, 9, 14):
        plan(operations, way, error, after, times)
        try:
            db.checkpoint(history=5, state=True)
        except NotWritten:
            refused += 1
        plan()
        load.assert_shown_by(db)
    return refused


def deaths(folder: Path, *cases: str) -> None:
    """Run `fail_and_die` for each case, in a forked process."""
    opened(folder / "warm.db").close()
    for number, case in enumerate(cases):
        child = os.fork()
        if not child:
            os.dup2(os.open(folder / f"case-{number}.out", os.O_WRONLY | os.O_CREAT), 1)
            fail_and_die(folder / f"case-{number}.db", *map(int, case.split()))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -9, case


def fail_and_die(path: Path, seed: int, way: int, after: int, times: int) -> None:
    """Fail a step and kill the process; DIE kills it during a write or before a sync."""
    db, load = opened(path), Load(seed)
    for _ in range(1 + seed % 7):
        load.next().apply(db)
    os.write(1, f"step {load.step}\n".encode())
    operations, how, error = [*WAYS, (WRITE, DIE, 0), (SYNC, DIE, 0)][way]
    plan(operations, how, error, after, times)
    try:
        if seed % 3 == 0:
            db.checkpoint(state=True)
        else:
            load.next().apply(db)
            os.write(1, f"step {load.step}\n".encode())
    except NotWritten:
        os.write(1, b"refused\n")
    os.kill(os.getpid(), 9)


def traced(path: Path, seed: str, steps: str, trace: str) -> None:
    """Record all writes of some steps, with a mark after each reported step."""
    db, load = opened(path), Load(int(seed))
    load.next().apply(db)
    shutil.copy(path, f"{path}.begin")  # (closing it drops SQLite's locks, which are not needed here)
    shutil.copy(f"{path}-wal", f"{path}.begin-wal")
    disk = ctypes.CDLL(None)
    disk.disk_trace(os.open(trace, os.O_WRONLY | os.O_CREAT))
    disk.disk_mark(load.step)
    for _ in range(int(steps)):
        load.next().apply(db)
        disk.disk_mark(load.step)
        if load.step % 9 == 0:
            db.checkpoint(history=10, state=load.step % 2 == 0)
    os.kill(os.getpid(), 9)


def short_of_room(path: Path, seed: str) -> None:
    """Limit the size of files: a write is cut short there, and the next one fails.

    This needs no library.
    """
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    db, load = opened(path), Load(int(seed))
    refused = 0
    for extra in range(0, 30000, 1237):
        for _ in range(3):
            load.next().apply(db)
        size = max(os.path.getsize(path), os.path.getsize(f"{path}-wal"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + extra, resource.RLIM_INFINITY))
        while True:
            before = Load(int(seed), load.step)
            move = load.next()
            try:
                move.apply(db)
            except NotWritten:
                break
        refused += 1
        before.assert_shown_by(db)
        try:
            db.checkpoint(history=3)
        except NotWritten:
            refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        move.apply(db)
        load.assert_shown_by(db)
        db.checkpoint(history=3)
    print(f"step {load.step} refused {refused}")
    db.close()


# ── what a power failure leaves ──────────────────────────────────────────────────────────────


@frozen
class Operation:
    """One entry of a trace: `w`rite, `s`ync, `t`runcation, or a numbered `m`ark."""

    kind: str
    name: str
    offset: int
    data: bytes


def operations(trace: bytes) -> Iterator[Operation]:
    place = 0
    while place < len(trace):
        kind, named, offset, length = struct.unpack_from("<4q", trace, place)
        place += 32
        name = trace[place : place + named].decode()
        place += named
        data = trace[place : place + length] if kind == ord("w") else b""
        place += len(data)
        yield Operation(chr(kind), name, offset, data)


if __name__ == "__main__":
    scenario, path, *rest = sys.argv[1:]
    {f.__name__: f for f in (every_operation, deaths, traced, short_of_room)}[scenario](Path(path), *rest)

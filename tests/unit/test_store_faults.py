"""Disks that fail: an unwritten step is undone, and reported steps stay.

What is covered, and how (see tests/disk.py):

- the calls to the operating system fail (I/O error, full, read-only, cut short), one at a time and
  all from one on, for every write, sync and truncation of a step and of a checkpoint:
  `tests/disk.c`, preloaded;
- the process is killed right after a failure, in the middle of a write (torn pages), and before a
  sync: the same;
- the power fails: of what was written since the last sync of its file, any part reaches the disk,
  any other does not, in sectors; made up from a trace of all writes and syncs;
- a limit on the size of files, from the operating system itself, which needs no compiler;
- SQLite's own limit on pages: test_store.py.
"""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import disk
import pytest
from disk import ALL, WAYS, Operation, operations, run
from durable_load import Load

from everlog import Database

needs_compiler = pytest.mark.skipif(disk.library() is None, reason="no C compiler for the disk that fails")
SECTOR = 512


def last_told(told: str) -> int:
    return int([line for line in told.splitlines() if line.startswith("step")][-1].split()[1])


def assert_right(path: Path, seed: int, step: int | None = None) -> int:
    """The database shows what the model says, and goes on; its step."""
    with Database.open(path) as db:
        load = Load(seed, db.step)
        assert step is None or db.step == step
        load.assert_shown_by(db)
        db._engine.check()
        for _ in range(3):
            load.next().apply(db)
        load.assert_shown_by(db)
        return load.step - 3


@needs_compiler
def test_every_single_operation_fails(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    found = run("every_operation", path, 1)
    assert found.returncode == 0, found.stderr
    assert_right(path, 1, last_told(found.stdout))


def deaths(tmp_path: Path, cases: list[tuple[int, int, int, int]]) -> None:
    found = run("deaths", tmp_path, *(" ".join(map(str, case)) for case in cases))
    assert found.returncode == 0, found.stderr
    for number, (seed, way, _, times) in enumerate(cases):
        told = (tmp_path / f"case-{number}.out").read_text()
        last = last_told(told)
        step = assert_right(tmp_path / f"case-{number}.db", seed)
        # after a sync that failed once, what was refused is written over at once
        in_doubt = way >= len(WAYS) or (WAYS[way][0] & disk.SYNC and times == ALL)
        if "refused" in told and not in_doubt:
            assert step == last  # what was refused is not there
        assert last <= step <= last + 1  # killed before its report; or the sync failed, with unknown effect


CASES = [(way, after, times) for way in range(len(WAYS) + 2) for after in (0, 1, 2, 3) for times in (1, ALL)]


@needs_compiler
def test_processes_die_with_their_disks(tmp_path: Path) -> None:
    deaths(tmp_path, [(seed, *case) for seed, case in enumerate(random.Random(1).sample(CASES, 24))])


@needs_compiler
@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_processes_die_with_their_disks(tmp_path: Path, seed: int) -> None:
    deaths(tmp_path, [(seed, *case) for case in CASES])


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limits on files")
def test_files_may_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    found = run("short_of_room", path, 2, preload=False)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout.split()[-1]) >= 25
    assert_right(path, 2, last_told(found.stdout))


# ── power failures ───────────────────────────────────────────────────────────────────────────


class Disk:
    """Files on a disk: what was synced, and what may or may not be there yet."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.safe = {name: bytearray(data) for name, data in files.items()}
        self.loose: dict[str, list[Operation]] = {}

    def do(self, operation: Operation) -> None:
        if operation.kind == "s":
            for done in self.loose.pop(operation.name, []):
                change(self.safe.setdefault(operation.name, bytearray()), done, len(done.data))
        else:
            self.loose.setdefault(operation.name, []).append(operation)

    def after_a_failure(self, chance: random.Random) -> dict[str, bytes]:
        """Of what was not synced, any sectors in any order."""
        files = {name: bytearray(data) for name, data in self.safe.items()}
        keep = chance.choice([0.0, 0.5, 0.9, 1.0])
        for name, done in self.loose.items():
            for operation in done:
                file = files.setdefault(name, bytearray())
                if operation.kind == "t":
                    if chance.random() < keep:
                        change(file, operation, 0)
                    continue
                for start in range(0, len(operation.data), SECTOR):
                    if chance.random() < keep:
                        part = operation.data[start : start + SECTOR]
                        change(file, Operation("w", name, operation.offset + start, part), len(part))
        return {name: bytes(data) for name, data in files.items()}


def change(file: bytearray, operation: Operation, length: int) -> None:
    if operation.kind == "t":
        del file[operation.offset :]
        file.extend(bytes(operation.offset - len(file)))
        return
    if len(file) < operation.offset:
        file.extend(bytes(operation.offset - len(file)))
    file[operation.offset : operation.offset + length] = operation.data[:length]


def power_failures(tmp_path: Path, seed: int, steps: int, number: int) -> None:
    path, trace = tmp_path / "data.db", tmp_path / "trace"
    found = run("traced", path, seed, steps, trace)
    assert found.returncode == -9, found.stderr
    done = list(operations(trace.read_bytes()))
    assert sum(operation.kind == "s" for operation in done) > steps
    chance = random.Random(seed)
    moments = sorted(chance.sample(range(1, len(done)), number))
    disk_now = Disk(
        {str(path): Path(f"{path}.begin").read_bytes(), f"{path}-wal": Path(f"{path}.begin-wal").read_bytes()}
    )
    told = 0
    seen = tmp_path / "after" / "data.db"
    for place, operation in enumerate(done):
        if operation.kind == "m":
            told = operation.offset
        else:
            disk_now.do(operation)
        if place in moments:
            shutil.rmtree(seen.parent, ignore_errors=True)
            seen.parent.mkdir()
            for name, data in disk_now.after_a_failure(chance).items():
                seen.with_name(Path(name).name).write_bytes(data)
            assert told <= assert_right(seen, seed) <= told + 1


@needs_compiler
def test_the_power_fails(tmp_path: Path) -> None:
    power_failures(tmp_path, 1, 30, 40)


@needs_compiler
@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 12))
def test_the_power_fails_often(tmp_path: Path, seed: int) -> None:
    power_failures(tmp_path, seed, 120, 300)

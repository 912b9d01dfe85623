"""A process under load is killed (-9) at any instant: reported steps stay."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import durable_load
import pytest
from durable_load import Load, opened

from everlog import Database
from everlog.store.errors import NoSuchDatabase


@contextmanager
def process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that forks those that are killed."""
    command = [sys.executable, "-P", str(Path(durable_load.__file__)), str(folder / "warm.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        try:
            yield parent
        finally:
            assert parent.stdin is not None
            parent.stdin.close()


def killed(parent: subprocess.Popen[str], seed: int, path: Path, chance: random.Random) -> tuple[int | None, int]:
    """Let a child work on the database and kill it; its first and last reported steps.

    It is killed some time after its start, perhaps while it opens the database, or some time after
    it has reported a step: so even on a slow machine work is cut off.
    """
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(f"{seed} {path}\n")
    parent.stdin.flush()
    began, told, child = None, -1, 0
    wanted = chance.choice([0, 0, 3, 10, 30])  # lines that the child must have printed
    words = [""]
    while not child or wanted > 0:
        words = parent.stdout.readline().split()
        if words[0] == "child":
            child = int(words[1])
        else:
            began, told = (int(words[1]) if words[0] == "open" else began), int(words[1])
            wanted -= 1
    time.sleep(chance.choice([0.0, 0.002, 0.02, 0.1]) * chance.random())
    os.kill(child, signal.SIGKILL)
    while (words := parent.stdout.readline().split())[0] != "gone":
        began, told = (int(words[1]) if words[0] == "open" else began), int(words[1])
    return began, told


def crashes(tmp_path: Path, number: int, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "data.db"
    last = 0
    steps = 0
    with process(tmp_path) as parent:
        for _ in range(number):
            began, told = killed(parent, seed, path, chance)
            if began is not None:
                assert began == last
                steps += told - began
            told = max(told, last)
            seen = path
            if chance.random() < 0.5:  # a copy leaves it to the next child to recover
                seen = tmp_path / "copy" / "data.db"
                shutil.rmtree(seen.parent, ignore_errors=True)
                seen.parent.mkdir()
                for suffix in ("", "-wal"):
                    if path.with_name(path.name + suffix).exists():
                        shutil.copy(path.with_name(path.name + suffix), seen.with_name(seen.name + suffix))
            try:
                db = Database.open(seen)
            except NoSuchDatabase:
                assert told <= 0
                continue
            with db:
                assert told <= db.step <= told + 1
                last = db.step
                Load(seed, last).assert_shown_by(db)
                db._engine.check()
                for back in {max(db.oldest, last - 3), chance.randint(db.oldest, last)}:
                    old = db.as_of(back)
                    assert {name: set(old.view(name)) for name in old.relations} == Load(seed, back).views()
    assert steps > number
    with opened(path) as db:
        load = Load(seed, db.step)
        for _ in range(10):
            load.next().apply(db)
        load.assert_shown_by(db)


def test_twenty_processes_are_killed(tmp_path: Path) -> None:
    crashes(tmp_path, 20, 1)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 6))
def test_three_hundred_processes_are_killed(tmp_path: Path, seed: int) -> None:
    crashes(tmp_path, 100, seed)

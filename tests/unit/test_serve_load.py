"""The load test of a service, short: no errors, and torn reads are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent.parent / "bench" / "serve_load.py"


def load(*flags: str) -> tuple[int, str]:
    command = [sys.executable, "-P", str(SCRIPT), "--seconds", "3", "--clients", "20", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_many_clients_at_once_see_whole_states_only() -> None:
    status, told = load()
    assert status == 0, told
    assert "errors and torn reads: 0" in told
    for kind in ("step", "query", "query (own write)", "facts", "relations", "why"):
        assert f"\n{kind} " in told


def test_the_load_test_notices_states_that_are_torn() -> None:
    status, told = load("--torn", "--memory")
    assert status == 1, told
    assert "WRONG" in told

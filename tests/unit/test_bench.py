"""The benchmarks run at small sizes, as users call them; figures are not asserted."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["costs", "durable", "ies", "replay"])
def test_a_benchmark_runs_at_its_small_size(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "bench", name, "--small"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"── {name} ──" in done.stdout


def test_unknown_benchmarks_are_reported() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "bench", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no benchmark nonsense; there are " in done.stderr

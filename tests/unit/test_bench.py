"""The benchmarks run at small sizes, as users call them; figures are not asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["costs", "durable", "ies", "replay"])
def test_a_benchmark_runs_at_its_small_size(name: str) -> None:
    words = [sys.executable, "-P", "-m", "everlog", "bench", name, "--small"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"── {name} ──" in done.stdout
    figures = [line for line in done.stdout.splitlines() if " bar: at " in line]
    assert all(line.endswith("small size)") for line in figures), "it ran at its full size"


def test_the_bench_of_promises_prints_what_is_printed_and_what_happens() -> None:
    script = Path(__file__).parents[2] / "bench" / "promise.py"
    words = [sys.executable, "-P", str(script), "--small", "--only", "star, head"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "star, head shows a branch" in done.stdout
    assert "1 of 1 streams hold" in done.stdout


def test_the_bench_of_promises_compares_with_another_everlog_and_another_strategy() -> None:
    script = Path(__file__).parents[2] / "bench" / "promise.py"
    for other in (sys.executable, "delta"):
        words = [sys.executable, "-P", str(script), "--against", other, "--only", "star, head", "--above", "1e9"]
        words += ["--least", "8", "--most", "9", "--by", "1", "--seconds", "0.02"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "benign: star, head shows a branch" in done.stdout
        assert "2 of 2 streams take at most" in done.stdout


def test_the_bench_of_the_machine_compares_both_machines() -> None:
    script = Path(__file__).parents[2] / "bench" / "native.py"
    words = [sys.executable, "-P", str(script), "--small", "--only", "el", "--sides", "native,threads,python"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[:3]] == [
        ["el", side] for side in words[-1].split(",")
    ]


def test_the_bench_of_plans_compares_rules_with_those_written_by_hand() -> None:
    script = Path(__file__).parents[2] / "bench" / "plans.py"
    words = [sys.executable, "-P", str(script), "--small", "--only", "countries"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("by hand") == 3


def test_flags_go_to_a_benchmark_that_has_them_and_are_an_error_elsewhere() -> None:
    bench = [sys.executable, "-P", "-m", "everlog", "bench"]
    words = [*bench, "plans", "--small", "--only", "mutual", "edges"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line[:12] for line in done.stdout.splitlines()[1:4]] == ["mutual edges"] * 3
    assert "mutual follows" not in done.stdout
    for flags, message in (
        (["costs", "--only", "x"], "costs has no --only"),
        (["plans", "--json", "x", "--rounds", "3"], "--json, --rounds cannot be used with a NAME"),
    ):
        done = subprocess.run([*bench, *flags], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr


def test_unknown_benchmarks_are_reported() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "bench", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no benchmark nonsense; there are " in done.stderr

"""The compiled machine built so that it checks every access and every overflow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOAD = """
import importlib.util, os, sys
import everlog.core.native
spec = importlib.util.spec_from_file_location("everlog.core.native._machine", os.environ["EVERLOG_MACHINE"])
machine = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = everlog.core.native._machine = machine
spec.loader.exec_module(machine)
"""
TESTS = """
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not deep", *sys.argv[1:]]))
"""
SCRIPT = "import runpy\nrunpy.run_path(sys.argv[1], run_name='__main__')\n"
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc has the sanitizers")


def built(folder: Path, flags: str) -> Path:
    """The machine, built with these flags."""
    where = ("--build-lib", str(folder), "--build-temp", str(folder))
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", *where],
        cwd=ROOT,
        env={**os.environ, "CFLAGS": flags, "EVERLOG_PURE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    machines = list(folder.rglob("_machine*.so"))
    assert len(machines) == 1, done.stderr
    return machines[0]


def run(code: str, machine: Path, *arguments: str) -> None:
    """Run Python on a sanitized machine; it must end well."""
    named = ["gcc", "-print-file-name=libasan.so"]
    library = subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no libasan.so")
    environment = {
        **os.environ,
        "EVERLOG_MACHINE": str(machine),
        "EVERLOG_PURE": "",
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps memory until the end
        "LD_PRELOAD": library,
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD + code, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.deep
@needs_gcc
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(tmp_path: Path) -> None:
    """AddressSanitizer and UndefinedBehaviorSanitizer, with threads, limits and failures."""
    machine = built(tmp_path, SANITIZED)
    tests = [
        str(ROOT / "tests/unit" / name) for name in ("test_native.py", "test_ranked.py", "test_best_values.py")
    ]
    run(TESTS, machine, *tests, "-k", "not leave_nothing")  # which counts the sanitizer's memory
    living = "(every_relation or dense) and ranks or ranked or both_machines"
    run(TESTS, machine, str(ROOT / "tests/laws/test_living.py"), "-k", living)
    run(TESTS, machine, str(ROOT / "tests/laws/test_best_values.py"), "-k", "whole_evaluation or textbook")


@pytest.mark.deep
@needs_gcc
def test_an_allocation_that_fails_leaves_nothing_half_made(tmp_path: Path) -> None:
    machine = built(tmp_path, f"{SANITIZED} -include {ROOT / 'tests/unit/failing_allocations.h'}")
    run(SCRIPT, machine, str(ROOT / "tests/unit/failing_allocations.py"))

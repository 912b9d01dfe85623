"""The tests of the compiled machine on a build that checks every access and every overflow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import importlib.util, os, sys
import everlog.core.native
spec = importlib.util.spec_from_file_location("everlog.core.native._machine", os.environ["EVERLOG_MACHINE"])
machine = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = everlog.core.native._machine = machine
spec.loader.exec_module(machine)
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not deep", *sys.argv[1:]]))
"""


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc has the sanitizers")
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(tmp_path: Path) -> None:
    """AddressSanitizer and UndefinedBehaviorSanitizer, with threads, limits and failures."""
    library = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no libasan.so")
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
    built = subprocess.run(
        [
            sys.executable,
            "setup.py",
            "-q",
            "build_ext",
            "--build-lib",
            str(tmp_path),
            "--build-temp",
            str(tmp_path),
        ],
        cwd=ROOT,
        env={**os.environ, "CFLAGS": flags, "EVERLOG_PURE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    machines = list(tmp_path.rglob("_machine*.so"))
    assert len(machines) == 1, built.stderr
    environment = {
        **os.environ,
        "EVERLOG_MACHINE": str(machines[0]),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps memory until the end
        "LD_PRELOAD": library,
    }
    tests = str(ROOT / "tests/unit/test_native.py")
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN, tests, "-k", "not leave_nothing"],  # which counts the sanitizer's memory
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

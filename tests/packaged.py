"""The package as users get it: an sdist and a wheel, installed in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_NOT_SOURCES = (
    ".*",
    "__pycache__",
    "*.so",
    "*.pyd",
    "build",
    "dist",
    "site",
    "*.egg-info",
    "_machine.c",
    "node_modules",
)


def run(*command: str | Path, folder: Path | None = None, **environment: str) -> str:
    """What a command prints; the test fails with all of it if the command fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clean_environment() -> dict[str, str]:
    """The variables of this process, without those that lead Python to other packages."""
    import os

    unwanted = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "EVERLOG_PURE")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


@cache
def sources() -> Path:
    """A copy of the sources without anything built."""
    copy = Path(tempfile.mkdtemp(prefix="everlog-sources-")) / "everlog"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_NOT_SOURCES))
    shutil.copy(ROOT / ".dockerignore", copy)
    return copy


@cache
def distributions() -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it, by `python -m build`."""
    if find_spec("build") is None:
        pytest.skip("`build` is not installed (extra `dev`)")
    target = Path(tempfile.mkdtemp(prefix="everlog-dist-"))
    run(sys.executable, "-P", "-m", "build", "--outdir", target, sources(), folder=target)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return sdist, wheel


@cache
def installed(extras: str = "") -> Path:
    """The `bin` of an environment that has the wheel, what it needs, and nothing else."""
    _, wheel = distributions()
    home = Path(tempfile.mkdtemp(prefix="everlog-installed-"))
    run(sys.executable, "-m", "venv", home)
    bin_ = home / "bin"
    run(bin_ / "python", "-m", "pip", "install", "--quiet", f"{wheel}{extras}", folder=home)
    return bin_

"""The picture of the prompt in README matches a real session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_picture_of_the_prompt_is_of_today() -> None:
    script = ROOT / "docs" / "make_repl_picture.py"
    done = subprocess.run([sys.executable, "-P", str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    """No font from a server, no script."""
    svg = (ROOT / "docs" / "repl.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert "url(http" not in svg
    assert "@font-face" not in svg
    assert "<script" not in svg

"""Every specification file holds, on every executor."""

from __future__ import annotations

from pathlib import Path

import pytest
from dlt import ROOT, run_file

FILES = sorted((ROOT / "tests" / "spec").rglob("*.dlt")) + sorted((ROOT / "programs").rglob("*.dlt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_specification(path: Path, request: pytest.FixtureRequest) -> None:
    run_file(path, rewrite=request.config.getoption("--rewrite"))

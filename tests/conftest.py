"""What all tests share: the `--rewrite` flag and how hard hypothesis tries."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, str(Path(__file__).parent))  # tests/dlt.py, tests/generators.py

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("default", max_examples=60, **_common)
settings.register_profile(
    "unshrunk", max_examples=60, phases=list(Phase)[:3], **_common
)  # the first failure, at once
settings.register_profile("deep", max_examples=3000, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; some tests send Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the answers of .dlt files anew")

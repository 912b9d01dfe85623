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
_unshrunk = [Phase.explicit, Phase.reuse, Phase.generate]  # the first failure, at once
settings.register_profile("default", max_examples=60, phases=[*_unshrunk, Phase.target, Phase.shrink], **_common)
settings.register_profile("unshrunk", max_examples=60, phases=_unshrunk, **_common)
settings.register_profile("deep", max_examples=3000, **_common)
# In CI many failures must not take longer than CI has: there nothing is shrunk.
_default = "unshrunk" if os.environ.get("CI") else "default"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _default))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; some tests send Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the answers of .dlt files anew")

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
settings.register_profile("default", max_examples=40, phases=[*_unshrunk, Phase.target, Phase.shrink], **_common)
settings.register_profile("unshrunk", max_examples=40, phases=_unshrunk, **_common)
settings.register_profile("deep", max_examples=3000, **_common)
# In CI many failures must not take longer than CI has: there nothing is shrunk.
_default = "unshrunk" if os.environ.get("CI") else "default"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _default))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; some tests send Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the answers of .dlt files anew")


# Workers take whole files, in this order: the long ones first, so that none is left to run alone.
# The interruption law comes last, for its tracer leaves objects behind that every later collection
# of garbage walks over.
_FIRST = """spark/test_cluster spark/test_batches spark/test_loads unit/test_out_of_memory laws/test_names
 unit/test_guards unit/test_serve_limits unit/test_serve unit/test_streams_postgres spark/test_specifications
 spark/test_expressions laws/test_mutated_texts unit/test_serve_hostile unit/test_serve_fuzz laws/test_living""".split()
_LAST = "laws/test_interruptions"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent

    def turn(item: pytest.Item) -> int:
        name = item.path.relative_to(tests).with_suffix("").as_posix() if item.path.is_relative_to(tests) else ""
        if name == _LAST:
            return len(_FIRST) + 1
        return _FIRST.index(name) if name in _FIRST else len(_FIRST)

    items.sort(key=turn)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
    """A law that is skipped fails: it would look as if it held."""
    report = pytest.TestReport.from_item_and_call(item, call)
    if report.skipped and "laws" in item.path.parts:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a law may not be skipped ({call.excinfo and call.excinfo.value})"
    return report

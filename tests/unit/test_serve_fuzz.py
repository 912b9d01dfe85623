"""The service against its own description: every answer fits it, for any request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from serving import API, PATHS, Served, served

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

PROGRAM = (
    PATHS
    + """
.decl wide(n:number, u:unsigned, f:float, s:symbol)
.decl flag()
.decl twice(n:number, u:unsigned, f:float, s:symbol)
twice(n, u, f, s) :- wide(n, u, f, s), flag().
"""
)


@pytest.fixture(scope="module", params=["memory", "file"])
def one(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    flags = ("--db", "fuzzed.db") if request.param == "file" else ()
    with served(
        tmp_path_factory.mktemp("fuzzed"), *flags, "--max-seconds", "2", "--max-body", "64M", program=PROGRAM
    ) as service:
        yield service


def fuzz(one: Served, examples: int, seed: int) -> int:
    """Send fitting and unfitting data to every finite operation; the number of cases."""
    from hypothesis import seed as seeded
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    wanted = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
    ]
    schema = schemathesis.openapi.from_url(f"{one.url}{API}/openapi.json")
    done = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/changes"):
            continue  # a stream without end: test_serve_events
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and not (
                operation.body or operation.query or operation.path_parameters
            ):
                continue
            strategy = operation.as_strategy(generation_mode=mode)

            def send(case: Any) -> None:
                nonlocal done
                done += 1
                case.call_and_validate(checks=wanted, timeout=20)

            from hypothesis import given

            limits = settings(
                max_examples=examples,
                phases=[Phase.generate],
                derandomize=False,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            seeded(seed)(limits(given(case=strategy)(send)))()
    return done


def test_a_short_fuzz_finds_nothing(one: Served) -> None:
    assert fuzz(one, examples=8, seed=1) > 100
    assert one.process.poll() is None
    assert "Traceback" not in one.log.read_text()
    assert one.get("/relations")["relations"], "it is still there"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(5))
def test_a_long_fuzz_finds_nothing(one: Served, seed: int) -> None:
    fuzz(one, examples=300, seed=seed)
    assert "Traceback" not in one.log.read_text()

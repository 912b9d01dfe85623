"""Shared by the closures of all graphs."""

from __future__ import annotations

from everlog.bench._common import CLOSURE
from everlog.bench.harness.workload import Promise

PROGRAM = CLOSURE
QUERY = "closure"
ANSWERS = ("path",)
FOLLOWS = "follows the facts whose proof breaks"


def quadratic(why: str) -> Promise:
    return Promise(2, why)

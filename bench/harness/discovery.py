"""All workloads and all sides, from the files of their folders.

To add a workload or a competitor, add a file to `bench/workloads` or `bench/competitors`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from everlog.bench.harness.workload import NotInstalled, Side, Workload

_FIRST = "everlog"  # in tables


def _modules(package: str) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(import_module(package).__path__):
        if not found.name.startswith("_"):
            yield import_module(f"{package}.{found.name}")


@cache
def workloads() -> dict[str, Workload]:
    """The workloads by name, in order."""
    found = [module.WORKLOAD for module in _modules("everlog.bench.workloads")]
    return {workload.name: workload for workload in found}


@cache
def sides() -> dict[str, Side]:
    """The sides by name, ours first."""
    found = [side for module in _modules("everlog.bench.competitors") for side in module.SIDES]
    found.sort(key=lambda side: (side.name != _FIRST, not side.own))
    return {side.name: side for side in found}


@cache
def installed() -> tuple[dict[str, str], dict[str, str]]:
    """Versions of the installed sides, and why the others are left out."""
    here: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name, side in sides().items():
        try:
            here[name] = side.version()
        except NotInstalled as reason:
            left_out[name] = str(reason)
    return here, left_out

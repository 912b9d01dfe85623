"""Every example in a docstring of the installed package is true."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

PACKAGES = [
    "everlog",
    "everlog.api",
    "everlog.explain",
    "everlog.spark",
    "everlog.core",
    "everlog.core.classify",
    "everlog.core.codegen",
    "everlog.core.dbsp",
    "everlog.core.engine",
    "everlog.core.engine.keepers",
    "everlog.core.engine.keepers.flow",
    "everlog.core.engine.keepers.recursive",
    "everlog.core.engine.planning",
    "everlog.core.engine.stepping",
    "everlog.core.evaluate",
    "everlog.core.ir",
    "everlog.core.joins",
    "everlog.core.program",
    "everlog.core.proofs",
    "everlog.core.runtime",
    "everlog.core.storage",
    "everlog.dsl",
    "everlog.dsl.checks",
    "everlog.files",
    "everlog.store",
    "everlog.ies",
    "everlog.ies.encodings",
    "everlog.ies.nrc",
    "everlog.ies.practical",
    "everlog.ies.sql",
    "everlog.streams",
    "everlog.serve",
    "everlog.commands",
    "everlog.repl",
    "everlog.repl.commands",
    "everlog.programs",
    "everlog.bench.competitors",
    "everlog.bench.harness",
    "everlog.bench.workloads",
]
MODULES = sorted(
    {
        module.name
        for package in PACKAGES
        for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
        if not module.ispkg and "__main__" not in module.name
    }
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0

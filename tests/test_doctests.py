"""Every example in a docstring of the installed package is true."""

from __future__ import annotations

import doctest
import pkgutil
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SCRIPTS = "everlog.bench"  # they import each other from their folder
PACKAGES = [name for name in SETTINGS["tool"]["setuptools"]["packages"] if name != SCRIPTS]
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

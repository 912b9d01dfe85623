"""Every example in a docstring of the installed package is true."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import everlog

MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(everlog.__path__, "everlog.")
    if "__main__" not in m.name and ".programs." not in m.name
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0

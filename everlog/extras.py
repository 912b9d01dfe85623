"""Optional packages, imported when needed; the error names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingPackage(ImportError):
    """A package is not installed; the message names the extra that has it."""


def optional(package: str, extra: str, what: str) -> Any:
    """Import a package; raise MissingPackage if it is not installed.

    >>> optional("no_such_package", "frames", "to_frame()")
    Traceback (most recent call last):
    everlog.extras.MissingPackage: to_frame() needs no_such_package: pip install 'everlog[frames]'
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        raise MissingPackage(f"{what} needs {package}: pip install 'everlog[{extra}]'", name=package) from None

"""Packages that not everybody has: imported when they are needed, missed with a message that helps."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingPackage(ImportError):
    """A package of an extra is not installed; the message says which, and how to get it."""


def optional(package: str, extra: str, what: str) -> Any:
    """The package, or MissingPackage.

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

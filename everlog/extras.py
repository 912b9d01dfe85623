"""Optional packages, imported when needed; the error names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingPackage(ImportError):
    """A package is not installed; the message names the extra that has it."""


def optional(package: str, extra: str, what: str) -> Any:
    """Import a package; raise MissingPackage if it is not installed.

    >>> optional("no_such_package", "frames", "to_frame()")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    everlog.extras.MissingPackage: to_frame() needs no_such_package: pip install ...
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        raise MissingPackage(f"{what} needs {package}: {how_to_install(extra)}", name=package) from None


def how_to_install(extra: str) -> str:
    """The commands that install an extra.

    >>> how_to_install("serve")
    "pip install 'everlog[serve]' (in a checkout: pip install '.[serve]')"
    """
    return f"pip install 'everlog[{extra}]' (in a checkout: pip install '.[{extra}]')"

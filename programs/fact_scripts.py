"""Shared by the scripts that make facts: command line, seed, and output files.

A `make.py` calls `main` with its own generator.  The same seed gives the same files on every
machine, so that the shipped facts can be made again.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Value = str | int
Facts = Mapping[str, Iterable[tuple[Value, ...]]]


def write_facts(folder: Path, facts: Facts) -> None:
    """Write each relation to its file, sorted, without duplicates; print the counts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for relation, rows in facts.items():
            lines = ["\t".join(map(str, row)) + "\n" for row in sorted(set(rows))]
            (folder / f"{relation}.facts").write_text("".join(lines), encoding="utf-8")
            print(f"{relation}: {len(lines)}")
    except OSError as error:
        raise SystemExit(f"error: cannot write `{error.filename}`: {error.strerror}") from None


def main(
    what: str, size: str, default: int, make: Callable[[random.Random, int], Facts], smallest: int = 1
) -> None:
    """The command line of a generator: `make.py FOLDER [--size N] [--seed N]`."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the .facts files go")
    parser.add_argument("--size", type=int, default=default, metavar="N", help=f"{size} (default {default})")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, other facts (default 1)")
    arguments = parser.parse_args()
    if arguments.size < smallest:
        parser.error(f"--size is at least {smallest}")
    write_facts(arguments.folder, make(random.Random(arguments.seed), arguments.size))

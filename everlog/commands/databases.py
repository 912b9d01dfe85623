"""The database that a command works on: in memory, or with `--db` in a file, where it goes on.

Reads: everlog.database, everlog.store.  Read by: everlog.commands.run, everlog.commands.follow.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everlog.commands.common import macros_of
from everlog.core.program import Program, Row
from everlog.files import FactsError

if TYPE_CHECKING:
    from everlog.database import Database


def add_database_argument(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--db", metavar="FILE", help=f"keep {what} in this file, and go on where it is")


@contextmanager
def database_of(
    program: Program, arguments: argparse.Namespace, facts: Callable[[], Mapping[str, list[Row]]], **how: Any
) -> Iterator[Database]:
    """The database of a program; `facts` reads those that it begins with, unless it is in a file and goes on."""
    from everlog.database import Database  # here: a program that runs once does without it

    if arguments.db is None:
        yield Database(program, facts=facts(), **how)
        return
    if arguments.program == "-" or arguments.no_preprocessor:
        raise FactsError("--db needs a program in a file, with the preprocessor")
    functions = {name: f.function for name, f in program.functors.items() if f.function is not None}
    how |= {"functors": functions, "macros": macros_of(arguments.macro)}
    with Database.open(
        arguments.db,
        file=arguments.program,
        facts=None if Path(arguments.db).exists() else facts(),
        include_dirs=[Path(folder) for folder in arguments.include_dir],
        **how,
    ) as database:
        yield database

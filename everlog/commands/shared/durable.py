"""The database of a command: in memory, or in the file of `--db FILE`.

A new file gets the program of the command line, and the facts of its `.input` directives.  An
existing file continues where it was: its `.input` files are not read again, and if the program has
changed, it replaces the one in the file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.commands.shared.common import load_live, load_program
from everlog.commands.shared.limits import limits_of
from everlog.commands.shared.strategy_option import strategies_of
from everlog.core.program import Program, Row
from everlog.core.runtime.guards import Progress
from everlog.functors import bind_functors, load_functions

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.store.program_text import Written


def add_database_argument(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--db", metavar="FILE", help=f"keep {what} in this file, and continue from its state")


def load_written(arguments: argparse.Namespace, untold: Collection[str] = ()) -> Written | None:
    """The checked program, with its text if `--db` needs it; None if it has errors."""
    return load_program(arguments, untold) if arguments.db is None else load_live(arguments)


def program_in(written: Written) -> Program:
    return written if isinstance(written, Program) else written.program


def with_functions(written: Written, arguments: argparse.Namespace) -> Written:
    """Bind the functors that the command line names."""
    bound = bind_functors(program_in(written), arguments.program, arguments.library, arguments.library_dir)
    return bound if isinstance(written, Program) else evolve(written, program=bound)


def goes_on(arguments: argparse.Namespace) -> bool:
    """Whether the database file exists, so that no initial facts are read."""
    return arguments.db is not None and os.path.lexists(arguments.db)


@contextmanager
def database_of(
    written: Written,
    arguments: argparse.Namespace,
    facts: Callable[[], Mapping[str, list[Row]]],
    progress: Progress | None = None,
) -> Iterator[Database]:
    """The database of a program; `facts` reads the initial facts of a new one."""
    from everlog.api.database import Database  # here: a program that runs once does not need it

    limits, strategies = limits_of(arguments), strategies_of(arguments)
    if isinstance(written, Program):
        yield Database(written, facts=facts(), limits=limits, strategies=strategies, progress=progress)
        return
    from everlog.store.opening import opened

    functions = {name: f.function for name, f in written.program.functors.items() if f.function is not None}
    is_new = not goes_on(arguments)
    if not is_new:  # it may have later rules with functors of their own
        functions |= load_functions(arguments.program, arguments.library, arguments.library_dir)
    with opened(
        arguments.db,
        written=written,
        functors=functions,
        strategies=strategies,
        limits=limits,
        progress=progress,
        facts=facts() if is_new else None,
        history=None,
        read_only=False,
    ) as database:
        yield database

"""`--db FILE`: the database of a command is kept in a file.

The program of the command line goes into a file that is new, with the facts that its `.input` directives name.  A
file that is there goes on where it was: its `.input` files are not read again, and a program that has changed
since takes the place of the one before.

Reads: everlog.store, everlog.commands.common.  Read by: everlog.commands.run.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.commands.limits import limits_of
from everlog.commands.strategies import strategies_of
from everlog.core.guards import Progress
from everlog.functors import load_functions
from everlog.inputs import read_inputs
from everlog.progress import Meter

if TYPE_CHECKING:
    from everlog.live import LiveText
    from everlog.store.database import DurableDatabase


def add_database_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", metavar="FILE", help="keep program, facts and every step in this file")


def opened_database(
    arguments: argparse.Namespace, live: LiveText, progress: Progress, meter: Meter
) -> DurableDatabase:
    """The database of `--db`, with the program of the command line."""
    from everlog.store.opening import opened

    facts = None
    if not os.path.lexists(arguments.db):
        facts = read_inputs(live.program, Path(arguments.fact_dir), arguments.no_warn, reading=meter.reading)
    functors = {}
    if live.program.functors or arguments.library:
        functors = load_functions(arguments.program, arguments.library, arguments.library_dir)
    return opened(
        arguments.db,
        written=live,
        functors=functors,
        strategies=strategies_of(arguments),
        limits=limits_of(arguments),
        progress=progress,
        facts=facts,
        history=None,
        read_only=False,
    )

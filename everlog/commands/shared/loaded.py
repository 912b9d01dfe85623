"""A program with its facts as a `Database`, for commands that ask it something."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.commands.shared.common import add_functor_arguments, add_program_arguments, load_program, tell_note
from everlog.commands.shared.limits import add_limit_arguments, limits_of
from everlog.functors import bind_functors
from everlog.initial_facts import read_inputs
from everlog.progress import meter_for

if TYPE_CHECKING:
    from everlog.api.database import Database

_SIGNED_FACT = re.compile(r"[+-]\s*[?A-Za-z_][?\w.]*\s*\(")


def add_database_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that `database_of` reads."""
    add_program_arguments(parser)
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    add_functor_arguments(parser)
    add_limit_arguments(parser)


def database_of(arguments: argparse.Namespace, strategies: Mapping[str, str] | None = None) -> Database | None:
    """The program with the facts of its files; None if it has errors, which are printed."""
    program = load_program(arguments, untold=("DL060",))
    if program is None:
        return None
    program = bind_functors(program, arguments.program, arguments.library, arguments.library_dir)
    from everlog.api.database import Database

    with meter_for(sys.stderr) as meter:
        folder, tell = Path(arguments.fact_dir), partial(tell_note, meter=meter)
        given = read_inputs(program, folder, arguments.no_warn, tell, meter.reading)
        limits, progress = limits_of(arguments), meter.deriving
        return Database(program, facts=given, limits=limits, progress=progress, strategies=strategies)


def facts_last(words: Sequence[str]) -> list[str]:
    """Move facts such as `-edge(2,3)` to the end of a command line: there they are no flags.

    >>> facts_last(["prog.dl", "-edge(2,3).", "-F", "facts"])
    ['prog.dl', '-F', 'facts', '--', '-edge(2,3).']
    """
    facts = [word for word in words if _SIGNED_FACT.match(word)]
    if not facts:
        return list(words)
    return [*(word for word in words if word not in facts and word != "--"), "--", *facts]

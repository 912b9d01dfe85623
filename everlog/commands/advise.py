"""`everlog advise`: which relations are worth their memory."""

from __future__ import annotations

import argparse
import sys
from io import StringIO
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from everlog.commands.shared.loaded import add_database_arguments, database_of
from everlog.commands.shared.strategy_option import add_strategy_argument, strategies_of
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import FactsError
from everlog.functors import FunctorError

if TYPE_CHECKING:
    from everlog.api.database import Database

EXAMPLES = """
  everlog advise prog.dl -F facts                          what a look at rules and sizes tells
  everlog advise prog.dl -F facts --log day.txt            the queries and updates of a day, measured
  everlog advise prog.dl -F facts --log day.txt --demand path   the same, with one piece of advice
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_database_arguments(parser)
    parser.add_argument("--log", metavar="FILE", help="queries and updates, as typed at the prompt, to measure")
    parser.add_argument("--brief", action="store_true", help="a line for each piece of advice, without figures")
    add_strategy_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        database = database_of(arguments, strategies_of(arguments))
        if database is None:
            return 1
        if arguments.log is not None and not _replayed(database, Path(arguments.log), arguments.brief):
            return 1
        from everlog.repl.reports import advice_lines

        if arguments.brief:
            print(*(f"{each.name}: {each.action}, {each.why}" for each in database.advise()), sep="\n")
            return 0
        print(*advice_lines(database, _measure(arguments)), sep="\n")
        return 0
    except (EvaluationError, FactsError, FunctorError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
    return 1


def _measure(arguments: argparse.Namespace) -> str:
    """The command that was called, with a place for one more flag."""
    folder = "" if arguments.fact_dir == "." else f" -F {arguments.fact_dir}"
    log = "" if arguments.log is None else f" --log {arguments.log}"
    return f"everlog advise {arguments.program}{folder}{log}{{}}"


def _replayed(database: Database, log: Path, silent: bool) -> bool:
    """Run the queries and updates of a log; errors are printed, with their lines."""
    from everlog.repl.loop import run_script
    from everlog.repl.session import Session

    out = StringIO()
    session = Session(out=out)
    session.db = database
    session.settings.bail = True
    start = process_time()
    with log.open(encoding="utf-8") as lines:
        well = run_script(session, lines, str(log))
    if not well:
        told = out.getvalue()
        print(told[told.rfind("\n", 0, told.rfind("error")) + 1 :], file=sys.stderr, end="")
    elif not silent:
        print(f"{log}: {process_time() - start:.3f} s")
    return well

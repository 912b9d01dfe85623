"""`everlog open`: the prompt with tables of files as relations, their columns inferred."""

from __future__ import annotations

import argparse
import shlex
import sys

from everlog.commands import repl

EXAMPLES = """
  everlog open people.csv                      a relation `people`, with the columns of the file
  everlog open sales.parquet shop.sqlite       one relation per table
  everlog open people.csv -c 'people(x, _)?'   answer a query, and exit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = ".csv, .tsv, .jsonl, .parquet, .sqlite, .duckdb, …"
    parser.add_argument("files", nargs="+", metavar="FILE", help=kinds)
    parser.add_argument(
        "-c", "--command", action="append", default=[], metavar="TEXT", help="run this and exit; may be repeated"
    )
    parser.add_argument("--mode", metavar="MODE", help="output format of rows: table, csv, json or dl")


prepared = repl.prepared


def run(arguments: argparse.Namespace) -> int:
    from everlog.repl import loop
    from everlog.repl.session import Session
    from everlog.repl.table import CommandError

    session = Session(terminal=loop.on_terminal() and not arguments.command, colour=loop.wants_colour())
    try:
        if arguments.mode is not None:
            session.settings.change("mode", arguments.mode)
    except CommandError as problem:
        print(f"everlog open: {problem}", file=sys.stderr)
        return 2
    if not session.run(shlex.join([".open", *arguments.files])) and not session.screen.terminal:
        return 1
    if arguments.command:
        return loop.end_of_script(session, loop.run_all(session, arguments.command))
    if loop.on_terminal():
        return loop.converse(session)
    return loop.run_input(session, sys.stdin)

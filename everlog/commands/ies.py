"""`everlog ies`: incremental evaluation systems: list, show, run, or print as SQL."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from everlog.dsl.diagnostics import DatalogError
from everlog.files.text_values import FactsError
from everlog.ies import registry
from everlog.ies.registry import NoSuchSystem
from everlog.ies.system import DEFAULT_LIMIT

_NAME = "a name from the list, flatten(NAME), binarize(NAME), or a file of your own that ends in .nrc"

EXAMPLES = """
  everlog ies list                      every system, with the growth of its auxiliary relations
  everlog ies show tc_witness           its functions, properties and cost
  everlog ies run tc_witness --updates updates.txt
  everlog ies sql tc_counts --dialect postgres
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list the systems with their auxiliary relations and their growth")
    listing.add_argument("--json", action="store_true", help="as JSON")
    show = actions.add_parser("show", help="show a system: its functions, properties and cost")
    run_ = actions.add_parser("run", help="apply updates; print the changes of answer and auxiliary relations")
    sql = actions.add_parser("sql", help="print a flat system as tables and triggers of a database")
    for action in (show, run_, sql):
        action.add_argument("name", metavar="NAME", help=_NAME)
    run_.add_argument(
        "--updates", required=True, metavar="FILE", help="lines +edge(1, 2). and -edge(1, 2).; - is standard input"
    )
    run_.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"limit of the values in auxiliary relations, for systems in the calculus (default {DEFAULT_LIMIT})",
    )
    run_.add_argument("--answer-only", action="store_true", help="leave out changes of auxiliary relations")
    sql.add_argument("--dialect", default="sqlite", metavar="D", help="sqlite, postgres, duckdb or spark")
    sql.add_argument(
        "--node-type", default="integer", metavar="T", help="type of nodes: integer (default) or text"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        match arguments.action:
            case "list":
                from everlog.systems_shown import list_json, list_text

                print(list_json() if arguments.json else list_text())
            case "show":
                from everlog.systems_shown import system_page

                page = system_page(arguments.name)
                _warn_of_examples(arguments.name)
                print(page)
            case "sql":
                from everlog.ies.sql import sql_text

                print(sql_text(arguments.name, arguments.dialect, node_type=arguments.node_type), end="")
            case "run":
                return _run(arguments)
    except ArithmeticError as error:  # an initial value divides by zero
        print(f"error: {arguments.name}: {error}", file=sys.stderr)
        return 1
    except (DatalogError, NoSuchSystem, FactsError, ValueError) as error:
        print(str(error) if isinstance(error, DatalogError) else f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has closed it: see `everlog.cli`
        raise
    except OSError as error:
        print(f"error: cannot read `{error.filename}`: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _run(arguments: argparse.Namespace) -> int:
    """Apply each update by itself, as systems require; skip blank lines and comments."""
    from everlog.ies.files import parse_step
    from everlog.stream import steps, stream_lines
    from everlog.systems_shown import change_lines

    if arguments.limit is not None and arguments.limit < 0:
        raise ValueError("--limit must be a number of values, 0 or more")
    running = registry.running(arguments.name, DEFAULT_LIMIT if arguments.limit is None else arguments.limit)
    if arguments.limit is not None and registry.entry(arguments.name).practical:
        note = f"note: --limit has no effect on {arguments.name}, which is written in Python"
        print(f"{note}; its growth: {registry.entry(arguments.name).growth}", file=sys.stderr, flush=True)
    _warn_of_examples(arguments.name)
    if not arguments.answer_only:
        running.track()
    name = "<stdin>" if arguments.updates == "-" else arguments.updates
    status = 0
    with stream_lines(arguments.updates, sys.stdin) as lines:
        for number, line in _updates(steps(lines)):
            try:
                event, relation, row = parse_step(line)
                changes = (running.insert if event == "insert" else running.delete)(relation, row)
            except (ValueError, ArithmeticError, DatalogError) as error:
                print(f"error: {name}:{number}: {error}", file=sys.stderr, flush=True)
                status = 1
                continue
            print(line)
            for text in change_lines(running.system, changes, arguments.answer_only):
                print(f"  {text}")
            sys.stdout.flush()
    for remark in running.remarks():
        print(f"-- {remark}")
    return status


def _warn_of_examples(name: str) -> None:
    from everlog.systems_shown import example_warnings

    for text in example_warnings(name):
        print(f"warning: {text}", file=sys.stderr, flush=True)


def _updates(steps: Iterator[list[tuple[int, str]]]) -> Iterator[tuple[int, str]]:
    for step in steps:
        yield from step

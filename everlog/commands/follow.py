"""`everlog follow`: read changes, and write the changes that follow from them."""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from everlog.commands.shared.common import add_functor_arguments, add_program_arguments, tell_note
from everlog.commands.shared.durable import (
    add_database_argument,
    database_of,
    load_written,
    program_in,
    with_functions,
)
from everlog.commands.shared.limits import add_limit_arguments
from everlog.commands.shared.strategy_option import add_strategy_argument
from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.files import FactsError
from everlog.functors import FunctorError
from everlog.initial_facts import read_inputs
from everlog.store.errors import StoreError

if TYPE_CHECKING:
    from everlog.store.program_text import Written

EXAMPLES = """
  everlog follow p.dl --from in.jsonl --to out.jsonl    change events in, resulting changes out
  everlog follow p.dl --from in.jsonl --live --db p.db  continue as the file grows, and after a restart
  everlog follow p.dl --from postgresql:///shop --to postgresql:///shop --live   tables that follow
  everlog follow p.dl --from tcp-listen://127.0.0.1:9000 --live   from any client; changes to standard output
"""


class _Terminated(Exception):
    """The process received SIGTERM."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="SOURCE",
        help="source of changes: a file, a pipe, -, tcp://, unix://, tcp-listen://, unix-listen://,"
        " postgresql:// (default: -); may be repeated",
    )
    parser.add_argument(
        "--to",
        dest="sinks",
        action="append",
        default=[],
        metavar="SINK",
        help="target of the changes of derived relations, like --from (default: -); may be repeated",
    )
    add_database_argument(parser, "facts, steps and positions")
    parser.add_argument("--live", action="store_true", help="wait for more at the end of the input")
    _add_row_arguments(parser)
    _add_postgres_arguments(parser)
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    add_functor_arguments(parser)
    add_strategy_argument(parser)
    add_limit_arguments(parser)


def _add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """How relations and tables, rows and facts correspond."""
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="RELATION=TABLE",
        help="the table of a relation, if it has another name; may be repeated",
    )
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="RELATION=COLUMN,…",
        help="the key columns: no two rows agree in them; may be repeated",
    )
    parser.add_argument(
        "--null",
        action="append",
        default=[],
        metavar="RELATION.COLUMN=VALUE",
        help="the value for NULL, in a column or (RELATION=VALUE) in all that can hold it; may be repeated",
    )
    parser.add_argument(
        "--tell",
        action="append",
        metavar="RELATION",
        help="a relation whose changes are written (default: all .output relations); may be repeated",
    )
    parser.add_argument("--rejects", metavar="FILE", help="append changes that are not facts to this file")
    parser.add_argument("--no-snapshot", action="store_true", help="write only changes to pipes and sockets")


def _add_postgres_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slot", metavar="NAME", help="PostgreSQL: keep changes under this name between runs")
    parser.add_argument(
        "--via",
        choices=("auto", "replication", "triggers"),
        default="auto",
        help="PostgreSQL: how changes are captured (default: replication if the server can, else triggers)",
    )
    parser.add_argument(
        "--forget", action="store_true", help="remove the slots, triggers and tables left in PostgreSQL, and exit"
    )


def run(arguments: argparse.Namespace) -> int:
    # changes may fill relations that are empty in the program
    written = load_written(arguments, untold=("DL060",))
    if written is None:
        return 1
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        if arguments.forget:
            return _forget(arguments)
        _follow(written, arguments)
    except (EvaluationError, FactError, FactsError, FunctorError, NoSuchStrategy, StoreError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return 1
    except _Terminated:
        return 0
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0


def _terminate(number: int, frame: object) -> NoReturn:
    raise _Terminated


def _follow(written: Written, arguments: argparse.Namespace) -> None:
    from everlog.streams import follow

    if "-" in (arguments.sources or ["-"]) and arguments.program == "-":
        raise FactsError("standard input cannot hold both the changes and the program")
    written = with_functions(written, arguments)
    program, folder = program_in(written), Path(arguments.fact_dir)
    facts = partial(read_inputs, program, folder, missing_ok=arguments.no_warn, tell=tell_note)
    with database_of(written, arguments, facts) as database:
        follow(database, arguments.sources or ["-"], arguments.sinks or ["-"], **_options(arguments))


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    keys = {name: columns.split(",") for name, columns in _pairs(arguments.key, "--key RELATION=COLUMN,…").items()}
    return {
        "live": arguments.live,
        "tables": _pairs(arguments.table, "--table RELATION=TABLE"),
        "keys": keys,
        "nulls": _pairs(arguments.null, "--null RELATION.COLUMN=VALUE", may_be_empty=True),
        "relations": arguments.tell,
        "rejects": None if arguments.rejects is None else Path(arguments.rejects),
        "snapshot": not arguments.no_snapshot,
        "slot": arguments.slot,
        "via": arguments.via,
        "tell": None if arguments.no_warn else tell_note,
    }


def _pairs(texts: list[str], usage: str, may_be_empty: bool = False) -> dict[str, str]:
    """The pairs of options such as `--table RELATION=TABLE`.

    >>> _pairs(["order=shop.orders"], "")
    {'order': 'shop.orders'}
    """
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not (value or may_be_empty):
            raise FactsError(f"`{text}`: write {usage}")
        pairs[name] = value
    return pairs


def _forget(arguments: argparse.Namespace) -> int:
    from everlog.streams.postgres_source import forget_source

    for url in arguments.sources:
        if url.startswith(("postgresql:", "postgres:")):
            forget_source(url, arguments.slot)
    return 0

"""`everlog mcp`: tools for agents, on standard input and output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.api.live import LiveText
from everlog.commands.shared.common import tell_note
from everlog.commands.shared.limits import add_limit_arguments, limits_of
from everlog.core.program import Row
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Limits
from everlog.dsl.diagnostics import DatalogError
from everlog.extras import MissingPackage, optional
from everlog.files import FactsError
from everlog.functors import FunctorError
from everlog.initial_facts import read_inputs
from everlog.store.errors import StoreError

if TYPE_CHECKING:
    from everlog.agents.answering import Answering
    from everlog.api.database import Database

EXAMPLES = """
  everlog mcp people.csv shop.sqlite         tables to ask about, in memory
  everlog mcp prog.dl                        a program with its facts
  everlog mcp --db shop.db                   a database in a file, also while another process writes
  everlog mcp --db shop.db --write           with tools that change it
  everlog mcp --service http://127.0.0.1:8765   a running service; its token is in $EVERLOG_TOKEN
"""
_SECONDS = 10.0


class WrongArguments(Exception):
    """The arguments do not go together; the message says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="a program, or tables as for `everlog open`")
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--db", metavar="FILE", help="a database in a file; with a program, it is created")
    data.add_argument("--service", metavar="URL", help="a running service; $EVERLOG_TOKEN is its token")
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    parser.add_argument("--write", action="store_true", help="also offer tools that change facts and rules")
    add_limit_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        optional("mcp", "mcp", "`everlog mcp`")
        import anyio

        from everlog.agents.tools import make_server

        with _source(arguments) as source:
            anyio.run(make_server(source, arguments.write).run_stdio_async)
    except (MissingPackage, WrongArguments) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except DatalogError as problem:
        print(problem.report.text(), file=sys.stderr)
        return 1
    except (EvaluationError, FactError, FactsError, FunctorError, StoreError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _source(arguments: argparse.Namespace) -> Iterator[Answering]:
    from everlog.agents.answering import Refused

    if arguments.service is not None:
        from everlog.agents.remote import connected

        if arguments.files:
            raise WrongArguments("--service has its own data: leave out the files")
        try:
            yield connected(arguments.service, os.environ.get("EVERLOG_TOKEN", ""))
        except Refused as problem:
            raise WrongArguments(str(problem)) from None
        return
    from everlog.agents.own_database import OwnDatabase

    with _database(arguments) as database:
        limits = limits_of(arguments) or Limits()
        database.limits = limits if limits.seconds is not None else evolve(limits, seconds=_SECONDS)
        name = arguments.db or " ".join(arguments.files)
        yield OwnDatabase(database, name, follows=arguments.db is not None and not arguments.write)


@contextmanager
def _database(arguments: argparse.Namespace) -> Iterator[Database]:
    from everlog.api.database import Database

    programs = [name for name in arguments.files if name.endswith(".dl")]
    tables = [Path(name) for name in arguments.files if name not in programs]
    if len(programs) > 1 or (programs and tables):
        raise WrongArguments("give one program, or tables; a program reads its own tables with `.input`")
    program = programs[0] if programs else None
    if arguments.db is None:
        yield _of_tables(tables) if program is None else _of_program(program, arguments)
        return
    if tables:
        raise WrongArguments("--db keeps its own facts: leave out the tables")
    if program is not None and not arguments.write:
        raise WrongArguments("a program changes the database: add --write, or leave the program out")
    is_new = program is not None and not os.path.lexists(arguments.db)
    facts = _facts_of(LiveText.from_file(program, (), {}), arguments) if program is not None and is_new else None
    with Database.open(arguments.db, file=program, facts=facts, read_only=not arguments.write) as durable:
        yield durable


def _of_tables(tables: list[Path]) -> Database:
    from everlog.api.database import Database
    from everlog.tables.own_files import add_tables

    database = Database.from_text("")
    for found in add_tables(database, tables) if tables else ():
        for note in found.notes:
            tell_note(note)
    return database


def _of_program(path: str, arguments: argparse.Namespace) -> Database:
    from everlog.api.database import Database

    return Database.from_file(path, facts=_facts_of(LiveText.from_file(path, (), {}), arguments))


def _facts_of(live: LiveText, arguments: argparse.Namespace) -> dict[str, list[Row]]:
    return read_inputs(live.program, Path(arguments.fact_dir), missing_ok=True, tell=tell_note)

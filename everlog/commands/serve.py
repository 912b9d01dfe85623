"""`everlog serve`: run a program as a service."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.commands.shared.common import (
    add_functor_arguments,
    add_program_arguments,
    load_live,
    macros_of,
    tell_note,
)
from everlog.commands.shared.durable import add_database_argument, database_of, program_in, with_functions
from everlog.commands.shared.limits import add_limit_arguments, count, limits_of, size
from everlog.commands.shared.strategy_option import add_strategy_argument, strategies_of
from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.program import Row
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Broken, Limits
from everlog.extras import MissingPackage, optional
from everlog.files import FactsError
from everlog.functors import FunctorError
from everlog.initial_facts import read_inputs
from everlog.store.errors import StoreError

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.api.live import LiveText

EXAMPLES = """
  everlog serve prog.dl                                 console and API at http://127.0.0.1:8765/, in memory
  everlog serve prog.dl --db shop.db -F facts           keep facts and steps in a file
  everlog serve prog.dl --host 0.0.0.0 --token-file t   for other machines, with a token
"""
_SECONDS = 10.0
_SHORTEST = 16  # characters of a token


class ServeError(Exception):
    """A service cannot start; the message says what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    add_database_argument(parser, "facts and steps")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, for this machine only)"
    )
    parser.add_argument(
        "--port", type=port, default=8765, metavar="N", help="port; 0 takes a free one (default: 8765)"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="requests need the token in this file (or in EVERLOG_TOKEN); required beyond loopback",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another allowed value of the Host header, such as a proxy's name; may be repeated",
    )
    parser.add_argument("--max-rows", type=count, default=10_000, metavar="N", help="limit of rows in one answer")
    parser.add_argument(
        "--max-answer",
        type=size,
        default=8 << 20,
        metavar="SIZE",
        help="limit of one answer: 8M, …; the other rows follow on the next page",
    )
    parser.add_argument("--max-body", type=size, default=8 << 20, metavar="SIZE", help="limit of a request: 8M, …")
    parser.add_argument(
        "--max-subscribers", type=count, default=100, metavar="N", help="limit of clients that follow changes"
    )
    parser.add_argument(
        "--max-behind",
        type=size,
        default=1 << 20,
        metavar="SIZE",
        help="limit of unsent events for a slow subscriber: 1M, …",
    )
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    add_functor_arguments(parser)
    add_strategy_argument(parser)
    add_limit_arguments(parser)


def port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise ValueError(text)
    return number


def run(arguments: argparse.Namespace) -> int:
    try:
        optional("starlette", "serve", "everlog serve")
        optional("uvicorn", "serve", "everlog serve")
        from everlog.serve.jobs.memory import use_allocator_of_libc

        use_allocator_of_libc()
        if arguments.program == "-" or arguments.no_preprocessor:
            raise ServeError("a service needs a program in a file, with the preprocessor")
        if not Path(arguments.fact_dir).is_dir():
            raise ServeError(f"there is no folder `{arguments.fact_dir}` to read facts from")
        token = token_of(arguments)
        written = load_live(arguments, untold=("DL060",))  # requests may insert facts later
        if written is None:
            return 1
        _serve(written, arguments, token)
    except (ServeError, MissingPackage) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (EvaluationError, FactError, FactsError, FunctorError, NoSuchStrategy, StoreError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return 1
    except Broken as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def token_of(arguments: argparse.Namespace) -> str | None:
    """The token that requests need, or None; ServeError if it must not be missing."""
    from everlog.serve.http.access import is_loopback

    token = os.environ.get("EVERLOG_TOKEN", "").strip() or None
    where = "EVERLOG_TOKEN"
    if arguments.token_file is not None:
        where = arguments.token_file
        try:
            token = Path(where).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise ServeError(f"cannot read the token in {where}: {problem}") from None
    if token is None:
        if is_loopback(arguments.host):
            return None
        raise ServeError(
            f"other machines can reach {arguments.host}, without a token: provide one with"
            " `--token-file FILE` or in EVERLOG_TOKEN, or listen on 127.0.0.1"
        )
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ServeError(
            f"the token in {where} must have at least {_SHORTEST} letters, digits or signs; make one with"
            " `python -c 'import secrets; print(secrets.token_urlsafe())'`"
        )
    return token


def _serve(written: LiveText, arguments: argparse.Namespace, token: str | None) -> None:
    from everlog.serve.http.access import AccessRules
    from everlog.serve.http.server import CannotListen, address_of, listening, serve
    from everlog.serve.service import Bounds, Service

    bounds = Bounds(
        rows=arguments.max_rows,
        answer=arguments.max_answer,
        body=arguments.max_body,
        followers=arguments.max_subscribers,
        room=arguments.max_behind,
    )
    try:
        listener = listening(arguments.host, arguments.port, bounds.stalled)
    except CannotListen as error:
        raise ServeError(str(error)) from None
    with listener, _database(written, arguments) as database:
        service = Service(database, bounds, name=arguments.program)
        access = AccessRules.of(arguments.host, token, arguments.allow_host)
        kept = f", kept in {arguments.db}, at step {service.step}" if arguments.db else ", in memory"
        line = f"everlog serves {arguments.program} at {address_of(listener)}{kept}"
        serve(service, listener, access, ready=partial(print, line, flush=True))


@contextmanager
def _database(written: LiveText, arguments: argparse.Namespace) -> Iterator[Database]:
    """The database to serve; with its text, so that rules can change."""
    from everlog.api.database import Database

    limits = limits_of(arguments) or Limits()
    if limits.seconds is None:
        limits = evolve(limits, seconds=_SECONDS)
    bound = with_functions(written, arguments)
    program = program_in(bound)
    facts: Callable[[], Mapping[str, list[Row]]] = partial(
        read_inputs, program, Path(arguments.fact_dir), missing_ok=True, tell=tell_note
    )
    if arguments.db is not None:
        with database_of(bound, arguments, facts) as durable:
            durable.limits = limits  # for requests only: initial facts may take longer
            yield durable
        return
    functors = {name: f.function for name, f in program.functors.items() if f.function is not None}
    database = Database.from_file(
        arguments.program,
        functors=functors,
        facts=facts(),
        include_dirs=[Path(folder) for folder in arguments.include_dir],
        macros=macros_of(arguments.macro),
        strategies=strategies_of(arguments),
    )
    database.limits = limits
    yield database

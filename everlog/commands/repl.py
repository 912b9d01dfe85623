"""`everlog` and `everlog repl`: the prompt, on a terminal or for a script."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.commands.shared.limits import add_limit_arguments, limits_of
from everlog.commands.shared.strategy_option import add_strategy_argument, strategies_of

if TYPE_CHECKING:
    from everlog.repl.session import Session

EXAMPLES = """
  everlog repl                                 an empty prompt; type .help for its commands
  everlog repl prog.dl -F facts                start with a program and its facts
  everlog repl prog.dl -c 'path(1, x)?'        answer a query, and exit
  everlog repl --db roads.db                   continue with a database in a file
  everlog repl --db roads.db --read-only       read it while another process writes
  cat script.txt | everlog repl                run lines as if they were typed
"""


_GOES = re.compile(r"-\s*[?\w.]+[(#].*", re.DOTALL)


def prepared(words: Sequence[str]) -> list[str]:
    """Join `-c` with a text that begins with `-`, such as a deletion.

    >>> prepared(["-c", "-edge(1,2).", "-c", "-path#2.", "-c", "--bail"])
    ['--command=-edge(1,2).', '--command=-path#2.', '-c', '--bail']
    """
    out: list[str] = []
    for word in words:
        if out[-1:] in (["-c"], ["--command"]) and _GOES.fullmatch(word):
            out[-1] = f"--command={word}"
        else:
            out.append(word)
    return out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs="?", metavar="FILE", help="a program (.dl) to start with")
    parser.add_argument("--db", metavar="FILE", help="keep everything in this file")
    parser.add_argument(
        "--read-only", action="store_true", help="read the database of --db while another process may write"
    )
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    parser.add_argument(
        "-c",
        "--command",
        action="append",
        default=[],
        metavar="TEXT",
        help="run this and exit; may be repeated",
    )
    parser.add_argument("--mode", metavar="MODE", help="output format of rows: table, csv, json or dl")
    parser.add_argument("--bail", action="store_true", help="stop a script at its first error")
    parser.add_argument(
        "-I", "--include-dir", action="append", default=[], metavar="DIR", help="folder of included files"
    )
    parser.add_argument("-M", "--macro", action="append", default=[], metavar='"A=1 B=2"', help="define macros")
    parser.add_argument(
        "-l", "--library", action="append", default=[], metavar="NAME", help="Python file with functors"
    )
    parser.add_argument(
        "-L", "--library-dir", action="append", default=[], metavar="DIR", help="folder of such files"
    )
    add_strategy_argument(parser)
    add_limit_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from everlog.repl import loop
    from everlog.repl.table import CommandError

    if arguments.read_only and (arguments.db is None or arguments.program is not None):
        print("everlog repl: --read-only needs --db FILE, and no program", file=sys.stderr)
        return 2
    if arguments.db is not None and arguments.db.lower().endswith(".dl"):
        hint = f"`everlog repl {arguments.db}` starts with it"
        print(f"everlog repl: {arguments.db} is a program, not a database: {hint}", file=sys.stderr)
        return 2
    session = _session(arguments)
    try:
        if arguments.mode is not None:
            session.settings.change("mode", arguments.mode)
    except CommandError as problem:
        print(f"everlog repl: {problem}", file=sys.stderr)
        return 2
    session.settings.bail = arguments.bail
    if not _begun(arguments, session):
        return 1
    if arguments.command:
        return loop.end_of_script(session, loop.run_all(session, arguments.command))
    if loop.on_terminal():
        return loop.converse(session)
    return loop.run_input(session, sys.stdin)


def _session(arguments: argparse.Namespace) -> Session:
    from everlog.repl import loop
    from everlog.repl.session import Places, Session

    macros = {}
    if arguments.macro:
        from everlog.commands.shared.common import macros_of  # here: it imports the checker

        macros = macros_of(arguments.macro)
    places = Places(
        facts=Path(arguments.fact_dir),
        include_dirs=[Path(folder) for folder in arguments.include_dir],
        macros=macros,
        libraries=arguments.library,
        library_dirs=arguments.library_dir,
    )
    return Session(
        places,
        terminal=loop.on_terminal() and not arguments.command,
        colour=loop.wants_colour(),
        limits=limits_of(arguments),
        strategies=strategies_of(arguments),
    )


def _begun(arguments: argparse.Namespace, session: Session) -> bool:
    """Open the database and load the program of the command line.

    On a terminal, the session goes on if the program fails to load.
    """
    if arguments.db is not None:
        more = ["read-only"] if arguments.read_only else [arguments.program] if arguments.program else []
        return session.run(shlex.join([".open", arguments.db, *more]))
    if arguments.program is None:
        return True
    return session.run(f".load {shlex.quote(arguments.program)}") or session.screen.terminal

"""`everlog lsp`: the language server, on standard input and output or on a port."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.commands.shared.common import macros_of
from everlog.extras import MissingPackage, optional

if TYPE_CHECKING:
    from everlog.editor.live_data import LiveData

EXAMPLES = """
  everlog lsp                           what an editor starts; see editors/ for VS Code and Neovim
  everlog lsp -I lib -M "N=3"           with folders of includes, and macros
  everlog lsp --db shop.db              with the number of facts beside each declaration
  everlog lsp --service http://127.0.0.1:8765   the same from a running service
  everlog lsp --tcp 9257                for one editor, on a port of this machine
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-I", "--include-dir", action="append", default=[], metavar="DIR", help="folder of included files"
    )
    parser.add_argument("-M", "--macro", action="append", default=[], metavar='"A=1 B=2"', help="define macros")
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--db", metavar="FILE", help="show counts and proofs from this database")
    data.add_argument(
        "--service", metavar="URL", help="show them from a running service; $EVERLOG_TOKEN is its token"
    )
    parser.add_argument("--tcp", type=int, metavar="PORT", help="listen on a port of 127.0.0.1")
    parser.add_argument("--stdio", action="store_true", help="standard input and output: the default")


def run(arguments: argparse.Namespace) -> int:
    try:
        optional("pygls", "editor", "`everlog lsp`")
    except MissingPackage as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    from everlog.editor.analysis import Settings
    from everlog.editor.language_server import make_server

    dirs = tuple(Path(each).resolve() for each in arguments.include_dir)
    server = make_server(Settings(dirs, macros_of(arguments.macro)), _live(arguments))
    if arguments.tcp is not None:
        server.start_tcp("127.0.0.1", arguments.tcp)
    else:
        server.start_io()
    return 0


def _live(arguments: argparse.Namespace) -> LiveData | None:
    from everlog.editor.live_data import FileData, ServiceData
    from everlog.service_client import ServiceClient

    if arguments.db is not None:
        return FileData(Path(arguments.db))
    if arguments.service is not None:
        return ServiceData(ServiceClient(arguments.service, os.environ.get("EVERLOG_TOKEN", "")))
    return None

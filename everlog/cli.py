"""The command line: `everlog COMMAND …`.

Each command is a module of `everlog.commands`, imported when it is called.  It has two functions,
`add_arguments(parser)` and `run(arguments) -> exit status`, and a text `EXAMPLES` for its `--help`.
A command that rewrites its arguments before they are parsed also has `prepared(words) -> words`.

Exit status: 0 success; 1 an error in the program, its data or its evaluation; 2 wrong usage;
130 Ctrl-C.
"""

from __future__ import annotations

import sys
from importlib import import_module

from everlog._version import __version__

TYPE_CHECKING = False  # a fast stand-in: importing `typing` takes most of the time of `--version`
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence
    from types import ModuleType

COMMANDS: dict[str, str] = {
    "repl": "start the prompt: rules, facts, queries and commands (also what `everlog` alone does)",
    "open": "start the prompt with your own files: CSV, Parquet, SQLite, DuckDB and others as relations",
    "run": "evaluate a program: facts in, relations out",
    "follow": "read changes of tables from elsewhere, and send changes to tables elsewhere",
    "serve": "run a program as a service: HTTP and JSON, events, a console in the browser",
    "check": "report every error in a program",
    "why": "prove a fact, down to the base facts",
    "why-not": "show what each rule lacks to derive a fact",
    "query": "answer a query from fact files, and compute only what it needs",
    "what-if": "show what a step would change, without making it",
    "how": "find the least changes that make a fact come or go",
    "fmt": "format a program in the house style",
    "lsp": "run the language server, for editors",
    "mcp": "offer a database or a service to agents, as tools of the Model Context Protocol",
    "advise": "say which relations are worth their memory, from what was measured",
    "explain": "show how a program will be run, and what an update can cost",
    "ies": "systems of auxiliary relations that maintain a recursive view: list, show, run, SQL",
    "programs": "the programs that ship with everlog: list, show, run, copy, make facts",
    "submit": "send a program to a Spark cluster",
    "bench": "measure everlog side by side with other systems",
    "doctor": "say which optional parts are installed, and how to get the rest",
    "completion": "print a script that makes your shell complete commands, flags and files",
}

_EPILOG = """examples:
  everlog                                 the prompt; type .help for its commands
  everlog open people.csv shop.sqlite     the prompt, with your tables as relations
  everlog run prog.dl -F facts -D out     read facts/*.facts, write out/*.csv
  everlog run prog.dl -D-                 write every .output relation to the screen
  everlog run prog.dl -F facts --watch    keep running, and follow the fact files as they change
  everlog follow prog.dl --from in.jsonl --to out.jsonl
                                          change events in, change events out
  everlog why prog.dl 'path(1, 3)'        prove a fact
  everlog serve prog.dl --db shop.db      a service, with a console at http://127.0.0.1:8765/
  everlog check prog.dl --json            diagnostics for an editor
  everlog fmt prog.dl                     print the program, formatted

`everlog COMMAND --help` says more.  Exit status: 0 success, 1 an error, 2 wrong usage, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        from everlog.core.native.availability import in_use  # here: no other command needs it so early

        print(f"everlog {__version__} ({in_use()})")
        return 0
    if not arguments:
        arguments = ["repl"]
    name = arguments[0]
    if name not in COMMANDS:
        return _usage(name)
    try:
        command = command_of(name)
        words = getattr(command, "prepared", list)(arguments[1:])
        status: int = command.run(parser_of(name).parse_args(words))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has closed it
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def command_of(name: str) -> ModuleType:
    """Import the module of a command."""
    return import_module(f"everlog.commands.{name.replace('-', '_')}")


def parser_of(name: str) -> ArgumentParser:
    """The parser of a command's arguments."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    command = command_of(name)
    examples = getattr(command, "EXAMPLES", "").strip("\n")
    parser = ArgumentParser(
        prog=f"everlog {name}",
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    return parser


def _usage(name: str) -> int:
    lines = ["usage: everlog COMMAND …", "       everlog --version", "", "Datalog that stays current.", ""]
    lines += ["commands:", *(f"  {command:<11} {what}" for command, what in COMMANDS.items())]
    text = "\n".join([*lines, "", _EPILOG])
    if name in ("-h", "--help", "help"):
        print(text)
        return 0
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean `{close[0]}`?" if close else f"the commands are {', '.join(COMMANDS)}"
    if "." in name:
        hint = f"did you mean `everlog {'run' if name.endswith('.dl') else 'open'} {name}`?"
    print(f"everlog: no command `{name}`; {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

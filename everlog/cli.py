"""The command line: `everlog COMMAND …`.

Each command is a module of `everlog.commands`, imported when it is called, with two functions:
`add_arguments(parser)` and `run(arguments) -> exit status`.

Exit status: 0 all well; 1 the program, its data or its evaluation has an error; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from everlog._version import __version__

COMMANDS: dict[str, str] = {
    "run": "evaluate a program: facts in, relations out",
    "check": "tell everything that is wrong with a program",
    "fmt": "write a program in the house style",
    "explain": "show how a program will be run, and what an update of it can cost",
    "ies": "systems of auxiliary relations that keep a recursive view: list, show, run, SQL",
    "submit": "send a program to a Spark cluster",
    "bench": "measure everlog side by side with other systems",
}

_EPILOG = """examples:
  everlog run prog.dl -F facts -D out     read facts/*.facts, write out/*.csv
  everlog run prog.dl -D-                 write every .output relation to the screen
  everlog check prog.dl --json            diagnostics for an editor
  everlog fmt prog.dl                     print the program, formatted

`everlog COMMAND --help` tells more.  Exit status: 0 all well, 1 an error, 2 wrong usage."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--version"]:
        print(f"everlog {__version__}")
        return 0
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        return _usage(name)
    command = import_module(f"everlog.commands.{name}")
    parser = argparse.ArgumentParser(
        prog=f"everlog {name}", description=COMMANDS[name], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_arguments(parser)
    try:
        status: int = command.run(parser.parse_args(arguments[1:]))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has gone: nothing more to say
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _usage(name: str) -> int:
    lines = ["usage: everlog COMMAND …", "", "Datalog that stays current.", "", "commands:"]
    lines += [f"  {command:<9} {what}" for command, what in COMMANDS.items()]
    text = "\n".join([*lines, "", _EPILOG])
    if name in ("", "-h", "--help", "help"):
        print(text)
        return 0
    print(f"everlog: no command `{name}`; known are {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

"""The command line: `everlog COMMAND …`.

Each command is a module of `everlog.commands`, imported when it is called, with two functions,
`add_arguments(parser)` and `run(arguments) -> exit status`, and a text `EXAMPLES` for its `--help`.
One whose arguments need a look before they are parsed has `prepared(words) -> words`, too.

Exit status: 0 all well; 1 the program, its data or its evaluation has an error; 2 wrong usage; 130
Ctrl-C.
"""

from __future__ import annotations

import sys
from importlib import import_module

from everlog._version import __version__

TYPE_CHECKING = False  # `typing` takes longer to import than all that is needed to tell the version
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence
    from types import ModuleType

COMMANDS: dict[str, str] = {
    "repl": "the prompt: rules, facts, queries and commands; also what `everlog` alone starts",
    "run": "evaluate a program: facts in, relations out",
    "follow": "follow changes of tables elsewhere, and have tables elsewhere follow",
    "serve": "a program as a service: HTTP and JSON, events, a console in the browser",
    "check": "tell everything that is wrong with a program",
    "why": "prove a fact, down to the facts that were given",
    "why-not": "tell what each rule lacks for a fact",
    "fmt": "write a program in the house style",
    "explain": "show how a program will be run, and what an update of it can cost",
    "ies": "systems of auxiliary relations that keep a recursive view: list, show, run, SQL",
    "programs": "programs that do something real: list, show, run, copy, make facts",
    "submit": "send a program to a Spark cluster",
    "bench": "measure everlog side by side with other systems",
    "completion": "a script that has your shell complete commands, flags and files",
}

_EPILOG = """examples:
  everlog                                 the prompt; .help tells what can be typed
  everlog run prog.dl -F facts -D out     read facts/*.facts, write out/*.csv
  everlog run prog.dl -D-                 write every .output relation to the screen
  everlog run prog.dl -F facts --watch    stay, and follow the fact files as they change
  everlog follow prog.dl --from in.jsonl --to out.jsonl
                                          change events in, change events out
  everlog why prog.dl 'path(1, 3)'        prove a fact
  everlog serve prog.dl --db shop.db      a service, with a console at http://127.0.0.1:8765/
  everlog check prog.dl --json            diagnostics for an editor
  everlog fmt prog.dl                     print the program, formatted

`everlog COMMAND --help` tells more.  Exit status: 0 all well, 1 an error, 2 wrong usage, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"everlog {__version__}")
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
    except BrokenPipeError:  # the reader of our output has gone: nothing more to say
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def command_of(name: str) -> ModuleType:
    """The module of a command."""
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
    hint = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(COMMANDS)}"
    print(f"everlog: no command `{name}`; {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

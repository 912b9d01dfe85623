"""`everlog check`: every error in a program, as text or as JSON."""

from __future__ import annotations

import argparse
import json

from everlog.commands.common import add_program_arguments, diagnosed

EXAMPLES = """
  everlog check prog.dl                 all errors and warnings, each with its code and place
  everlog check prog.dl -w              errors only
  everlog check prog.dl --json          for an editor
  cat prog.dl | everlog check -         from standard input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print diagnostics as a JSON list, for editors")


def run(arguments: argparse.Namespace) -> int:
    program, report = diagnosed(arguments)
    if report is None:
        return 1
    if arguments.json:
        print(json.dumps(report.as_json(), indent=2))
        return 0 if program is not None else 1
    text = report.text(warnings=not arguments.no_warn)
    if text:
        print(text)
    if program is None:
        return 1
    relations, rules = len(program.relations), len(program.rules)
    print(f"{arguments.program}: {relations} relations, {rules} rules, no errors")
    return 0

"""`everlog check`: every error in a program and in its fact files, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from everlog.commands.common import add_program_arguments, diagnosed, tell_note
from everlog.core.program import Program
from everlog.files import FactsError, read_facts

EXAMPLES = """
  everlog check prog.dl                 all errors and warnings, each with its code and place
  everlog check prog.dl -w              errors only
  everlog check prog.dl -F facts        also every fact file, needed by an output or not
  everlog check prog.dl --json          for an editor
  cat prog.dl | everlog check -         from standard input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("-F", "--fact-dir", metavar="DIR", help="also read every .input from this folder")
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
    if arguments.fact_dir is not None and not _facts_are_fine(program, arguments):
        return 1
    relations, rules = len(program.relations), len(program.rules)
    print(f"{arguments.program}: {relations} relations, {rules} rules, no errors")
    return 0


def _facts_are_fine(program: Program, arguments: argparse.Namespace) -> bool:
    """Read every `.input`, and print the first error of each."""
    folder, missing_ok, fine = Path(arguments.fact_dir), arguments.no_warn, True
    for directive in program.inputs:
        relation = program.relations[directive.relation]
        try:
            read_facts(relation, directive.params, folder, missing_ok, sys.stdin, tell_note)
        except FactsError as error:
            print(f"error: {error}")
            fine = False
    return fine

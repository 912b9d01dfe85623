"""`everlog explain`: how a program will be run.

Reads: core.dependencies, core.seminaive.
"""

from __future__ import annotations

import argparse

from everlog.commands.common import add_program_arguments, load_program
from everlog.core.dependencies import units
from everlog.core.seminaive import explain_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("--code", action="store_true", help="the Python that each rule becomes")


def run(arguments: argparse.Namespace) -> int:
    program = load_program(arguments)
    if program is None:
        return 1
    if arguments.code:
        print(explain_code(program))
        return 0
    for number, unit in enumerate(units(program), 1):
        kind = "recursive" if unit.recursive else "rules" if unit.rules else "facts"
        print(f"unit {number} ({kind}): {', '.join(unit.relations)}")
        for rule in unit.rules:
            print(f"  {rule.name}  {rule}")
    return 0

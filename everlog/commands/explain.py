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
    ordered = units(program)
    bare = [name for unit in ordered if not unit.rules and not unit.recursive for name in unit.relations]
    if bare:
        print(f"facts: {', '.join(bare)}")
    computed = [unit for unit in ordered if unit.rules or unit.recursive]
    for number, unit in enumerate(computed, 1):
        print(f"unit {number} ({'recursive' if unit.recursive else 'not recursive'}): {', '.join(unit.relations)}")
        for rule in unit.rules:
            print(f"  {rule.name}  {rule}")
    return 0

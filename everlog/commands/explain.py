"""`everlog explain`: how a program will be run.

Reads: core.engine.explain, core.seminaive.
"""

from __future__ import annotations

import argparse

from everlog.commands.common import add_program_arguments, load_program
from everlog.core.engine.explain import explain_delta_code, explain_plan
from everlog.core.seminaive import explain_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("--code", action="store_true", help="the Python that each rule becomes")
    parser.add_argument("--deltas", action="store_true", help="what each rule does when a relation changes")


def run(arguments: argparse.Namespace) -> int:
    program = load_program(arguments)
    if program is None:
        return 1
    if not arguments.code:
        print(explain_plan(program, deltas=arguments.deltas))
    elif arguments.deltas:
        print(explain_delta_code(program))
    else:
        print(explain_code(program))
    return 0

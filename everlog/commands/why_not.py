"""`everlog why-not`: the same as `everlog why --not`."""

from __future__ import annotations

import argparse

from everlog.commands import why

EXAMPLES = """
  everlog why-not prog.dl -F facts 'path(3, 1)'       for each rule, the first literal that fails
  everlog why-not prog.dl -F facts 'path(3, 1)' --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    why.add_question_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    arguments.why_not = True
    return why.run(arguments)

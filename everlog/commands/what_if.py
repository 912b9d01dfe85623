"""`everlog what-if`: the changes that a step would cause."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from everlog.commands.shared.loaded import add_database_arguments, database_of, facts_last
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import FactsError
from everlog.functors import FunctorError

EXAMPLES = """
  everlog what-if prog.dl -F facts '-edge(2, 3)'                 what a delete would change
  everlog what-if prog.dl -F facts '-edge(2, 3)' '+edge(1, 3)'   of both, as one step
  everlog what-if prog.dl -F facts --json '-edge(2, 3)'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_database_arguments(parser)
    parser.add_argument("step", nargs="+", metavar="±FACT", help="an insert such as '+p(1)', a delete '-p(1)'")
    parser.add_argument("--json", action="store_true", help="as JSON: deleted and inserted rows by relation")


def prepared(words: Sequence[str]) -> list[str]:
    return facts_last(words)


def run(arguments: argparse.Namespace) -> int:
    try:
        database = database_of(arguments)
        if database is None:
            return 1
        changes = database.what_if(arguments.step)
    except (EvaluationError, FactsError, FunctorError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    from everlog.api.how import changes_json

    print(json.dumps(changes_json(changes), ensure_ascii=False, indent=2) if arguments.json else changes)
    return 0

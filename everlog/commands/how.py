"""`everlog how`: the least steps that make a fact come or go."""

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
  everlog how prog.dl -F facts '-path(1, 3)'                      what must go so that it goes
  everlog how prog.dl -F facts '+path(3, 1)' --most 1             single changes that make it come
  everlog how prog.dl -F facts '-path(1, 3)' --change edge --keep 'path(1, 2)'
  everlog how prog.dl -F facts '-path(1, 3)' --step 1 > step.txt  the first answer, for --updates
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_database_arguments(parser)
    parser.add_argument("goal", nargs="+", metavar="±FACT", help="a fact to make '+p(1)', to remove '-p(1)'")
    parser.add_argument(
        "--change", action="append", metavar="REL", help="only base facts of this relation may change; repeatable"
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="ATOM",
        help="facts like this stay: 'path(1, x)'; repeatable",
    )
    parser.add_argument("--most", type=int, metavar="N", help="at most N changes in an answer")
    parser.add_argument("--answers", type=int, default=20, metavar="N", help="stop after N answers (default: 20)")
    parser.add_argument(
        "--trials", type=int, default=1000, metavar="N", help="try at most N steps (default: 1000)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--step", type=int, metavar="N", help="print only the step of answer N")
    form.add_argument("--json", action="store_true", help="as JSON")


def prepared(words: Sequence[str]) -> list[str]:
    return facts_last(words)


def run(arguments: argparse.Namespace) -> int:
    """Print the answers; status 1 if there is none."""
    try:
        database = database_of(arguments)
        if database is None:
            return 1
        bounds = {"most": arguments.most, "answers": arguments.answers, "trials": arguments.trials}
        found = database.how(arguments.goal, change=arguments.change, keep=arguments.keep, **bounds)
    except (EvaluationError, FactsError, FunctorError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.step is not None:
        if not 1 <= arguments.step <= len(found):
            print(f"error: there is no answer {arguments.step}, only {len(found)}", file=sys.stderr)
            return 1
        print(found[arguments.step - 1])
    elif arguments.json:
        print(json.dumps(found.to_json(), ensure_ascii=False, indent=2))
    else:
        print(found)
    return 0 if found else 1

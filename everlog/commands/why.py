"""`everlog why`: proofs of facts; with `--not`, what each rule lacks.

The program runs as a `Database`, whose derivations lead to the proof.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from everlog.commands.shared.loaded import add_database_arguments, database_of
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import FactsError
from everlog.functors import FunctorError

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.core.proofs import Proof, WhyNot

EXAMPLES = """
  everlog why prog.dl -F facts 'path(1, 3)'           a proof as a tree
  everlog why prog.dl -F facts 'path(1, 3)' --dot     as a graph: … | dot -Tsvg > proof.svg
  everlog why prog.dl -F facts --not 'path(3, 1)'     what each rule lacks; the same as `everlog why-not`
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_question_arguments(parser)
    parser.add_argument("--not", dest="why_not", action="store_true", help="show what each rule lacks for it")


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    add_database_arguments(parser)
    parser.add_argument("facts", nargs="+", metavar="FACT", help="a fact such as 'path(1, 3)'")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as JSON: an object, or for several facts a list")
    how.add_argument("--dot", action="store_true", help="as a graph, for Graphviz")


def run(arguments: argparse.Namespace) -> int:
    try:
        database = database_of(arguments)
        if database is None:
            return 1
        return _answer(database, arguments)
    except (EvaluationError, FactsError, FunctorError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _proof(database: Database, fact: str) -> Proof:
    from everlog.core.proofs import NotDerived

    try:
        return database.why(fact)
    except NotDerived as problem:
        raise NotDerived(problem.fact, "everlog why-not") from None


def _answer(database: Database, arguments: argparse.Namespace) -> int:
    """Answer the questions; status 1 if one has no answer."""
    status, answers = 0, list[dict[str, Any]]()
    for fact in arguments.facts:
        found: Proof | WhyNot
        try:
            found = database.why_not(fact) if arguments.why_not else _proof(database, fact)
        except ValueError as problem:  # not a fact of the program, or nothing to prove
            sys.stdout.flush()
            print(f"error: {problem}", file=sys.stderr)
            status = 1
            continue
        if arguments.json:
            answers.append(found.to_json())
        else:
            print(found.to_dot() if arguments.dot else found.text())
    if arguments.json:
        several = len(arguments.facts) > 1
        print(json.dumps(answers if several else answers[0] if answers else None, ensure_ascii=False, indent=2))
    return status

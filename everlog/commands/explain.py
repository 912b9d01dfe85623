"""`everlog explain`: how a program will be run, and what an update can cost."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from everlog.commands.shared.common import add_program_arguments, load_program
from everlog.commands.shared.strategy_option import add_strategy_argument, strategies_of
from everlog.core.engine.explain import NotInProgram, explain_delta_code, explain_plan, explanation
from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.evaluate.reports.listed_plans import explain_ir
from everlog.core.evaluate.seminaive import explain_code
from everlog.core.program import Program
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import FactsError
from everlog.spark_backend.errors import SparkError

EXAMPLES = """
  everlog explain prog.dl               units, strategies, and the cost of updates for each rule
  everlog explain prog.dl path#2        one rule
  everlog explain prog.dl --html page.html
  everlog explain prog.dl --deltas --code
  everlog explain prog.dl -F facts      the plan of each rule on these facts, with its rows
  everlog explain prog.dl --ir          the machine of each unit, and each rule as loops
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this relation or rule (`q`, `q#2`)")
    parser.add_argument("--json", action="store_true", help="classes, widths, strategies and costs as JSON")
    parser.add_argument("--html", metavar="FILE", help="write one page with drawings; - is standard output")
    parser.add_argument("--code", action="store_true", help="show the Python code of each rule")
    parser.add_argument(
        "--ir", action="store_true", help="show the machine of each unit of `run`, and each rule as loops"
    )
    parser.add_argument(
        "-F",
        "--fact-dir",
        metavar="DIR",
        help="run the program on the .facts files of a folder, and show each plan with what it expected and found",
    )
    parser.add_argument(
        "--deltas",
        action="store_true",
        help="show the delta rules as they run, with names of the planner",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "in-process", "spark"),
        default="local",
        help="spark: show how each unit of the program would run there",
    )
    add_strategy_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    program = load_program(arguments, untold=("DL060",))
    if program is None:
        return 1
    try:
        text = _explained(program, arguments)
    except (NoSuchStrategy, NotInProgram, SparkError, EvaluationError, FactError, FactsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.html is None or arguments.html == "-":
        print(text)
        return 0
    try:
        Path(arguments.html).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"error: cannot write `{arguments.html}`: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _explained(program: Program, arguments: argparse.Namespace) -> str:
    if arguments.engine == "spark":
        return _on_spark(program)
    asked = strategies_of(arguments)
    if arguments.fact_dir is not None:
        return _with_facts(program, arguments)
    if arguments.html is not None:
        from everlog.explain.page import page  # only --html needs it

        name = "standard input" if arguments.program == "-" else Path(arguments.program).name
        return page({"program": name, **explanation(program, asked)}, name)
    if arguments.json:
        found = explanation(program, asked)
        if arguments.name is not None:
            found["rules"] = [r for r in found["rules"] if arguments.name in (r["name"], r["head"])]
            if not found["rules"]:
                raise NotInProgram(f"the program has no rule `{arguments.name}`, and no rules for such a relation")
        return json.dumps(found, ensure_ascii=False, indent=2)
    if arguments.ir:
        if arguments.name is not None:
            explain_plan(program, asked=asked, only=arguments.name)  # reports a name that does not exist
        if arguments.deltas:
            return explain_delta_code(program, asked, arguments.name, ir=True)
        return explain_ir(program, arguments.name)
    if not arguments.code:
        return explain_plan(program, deltas=arguments.deltas, asked=asked, only=arguments.name)
    if arguments.name is not None:
        explain_plan(program, asked=asked, only=arguments.name)  # reports a name that does not exist
    if arguments.deltas:
        return explain_delta_code(program, asked, arguments.name)
    return explain_code(program, arguments.name)


def _with_facts(program: Program, arguments: argparse.Namespace) -> str:
    """The plan of each rule as a run on the facts of a folder used it."""
    from everlog.core.evaluate.reports.profile import RunProfile
    from everlog.core.evaluate.seminaive import evaluate
    from everlog.initial_facts import read_for_run

    if arguments.name is not None:
        explain_plan(program, only=arguments.name)  # reports a name that does not exist
    profile = RunProfile()
    evaluate(program, read_for_run(program, Path(arguments.fact_dir), arguments.no_warn), profile=profile)
    return "\n".join(profile.plan_lines(arguments.name))


def _on_spark(program: Program) -> str:
    from everlog.spark_backend.frames.expressions import NotOnSpark
    from everlog.spark_backend.plan import explain

    try:
        return explain(program)
    except NotOnSpark as problem:
        raise SparkError(str(problem)) from None

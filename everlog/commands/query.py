"""`everlog query`: answers from fact files, computed on demand."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.commands.shared.common import add_functor_arguments, add_program_arguments, load_live, tell_note
from everlog.commands.shared.limits import add_limit_arguments, limits_of
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import FactsError, sorted_rows
from everlog.functors import FunctorError, bind_functors, require_functors
from everlog.initial_facts import read_inputs
from everlog.progress import meter_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlog.core.program import Program, Relation, Row
    from everlog.dsl.checks.query_check import Query

EXAMPLES = """
  everlog query prog.dl -F facts 'path(1, x)'             what 1 reaches, and nothing else
  everlog query prog.dl -F facts 'path(1, x), x > 9' --json
  everlog query prog.dl 'path(1, x)' --explain            how it would be computed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("query", metavar="QUERY", help="an atom, or any body of a rule: 'path(1, x), x > 9'")
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON: an object per row")
    form.add_argument("--explain", action="store_true", help="print adornments and rules instead of answers")
    add_functor_arguments(parser)
    add_limit_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from everlog.api.queries import arrangement
    from everlog.dsl.checks.query_check import check_query
    from everlog.dsl.diagnostics import DatalogError
    from everlog.dsl.query_text import parse_query

    live = load_live(arguments, untold=("DL060",))
    if live is None:
        return 1
    try:
        program = bind_functors(live.program, arguments.program, arguments.library, arguments.library_dir)
        scope = live.scope.having(program.relations, program.functors)
        parsed = parse_query(arguments.query)
        query = check_query(parsed, scope, bindings=True)
        require_functors(program.functors, query.rules)
        return _answer(program, query, arrangement(parsed, query.columns), arguments)
    except DatalogError as error:
        print(error.report.text(), file=sys.stderr)
    except (EvaluationError, FactsError, FunctorError) as error:
        print(f"error: {error}", file=sys.stderr)
    return 1


def _answer(
    program: Program, query: Query, arrange: Callable[[list[Row]], list[Row]], arguments: argparse.Namespace
) -> int:
    from everlog.core.evaluate.on_demand import answers, demand_of
    from everlog.core.program import Relation
    from everlog.core.program.demand import base_names

    demand = demand_of(program, query.rules, query.columns)
    if arguments.explain:
        print(demand.text())
        return 0
    names = base_names(demand, program)
    read = evolve(program, inputs=tuple(d for d in program.inputs if d.relation in names))
    with meter_for(sys.stderr) as meter:
        tell = partial(tell_note, meter=meter)
        given = read_inputs(read, Path(arguments.fact_dir), arguments.no_warn, tell, meter.reading)
        found = answers(program, demand, given, meter.deriving, limits_of(arguments))
    relation = Relation(demand.goal, query.columns)
    _print(relation, arrange(sorted_rows(relation, found.relation(demand.goal))), arguments.json)
    return 0


def _print(relation: Relation, rows: list[Row], as_json: bool) -> None:
    from everlog.core.proofs.render import json_value

    names = [column.name for column in relation.columns]
    if as_json:
        listed = [{n: json_value(value) for n, value in zip(names, row, strict=True)} for row in rows]
        print(json.dumps(listed, ensure_ascii=False))
    elif not names:
        print("yes" if rows else "no")
    else:
        for row in rows:
            print("\t".join(map(str, row)))

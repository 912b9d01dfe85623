"""`everlog check`: every error in a program and in its fact files, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from everlog.commands.shared.common import add_functor_arguments, add_program_arguments, diagnosed, tell_note
from everlog.core.program import Program, Value
from everlog.files import FactsError, read_facts

_TRIED, _TOLD = 40, 10  # values of a lattice that are tried, broken laws that are printed

EXAMPLES = """
  everlog check prog.dl                 all errors and warnings, each with its code and place
  everlog check prog.dl -w              errors only
  everlog check prog.dl -F facts        also every fact file, needed by an output or not
  everlog check prog.dl --try           also the laws of lattices and aggregates, on the data
  everlog check prog.dl --json          for an editor
  cat prog.dl | everlog check -         from standard input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("-F", "--fact-dir", metavar="DIR", help="also read every .input from this folder")
    parser.add_argument("--json", action="store_true", help="print diagnostics as a JSON list, for editors")
    parser.add_argument("--try", action="store_true", dest="tried", help="evaluate, and try laws on the values")
    add_functor_arguments(parser)


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
    if arguments.tried and not _laws_hold(program, arguments):
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


def _laws_hold(program: Program, arguments: argparse.Namespace) -> bool:
    """Evaluate the program, and try the laws of its lattices and aggregates on its values."""
    from everlog.core.evaluate.seminaive import evaluate
    from everlog.core.program.aggregates.folded import broken_folds, noting_targets
    from everlog.core.program.aggregates.lattice_laws import broken_functors, broken_laws
    from everlog.core.program.order import rank
    from everlog.core.program.values import EvaluationError
    from everlog.functors import FunctorError, bind_functors

    folder = Path(arguments.fact_dir or ".")
    try:
        program = bind_functors(program, arguments.program, arguments.library, arguments.library_dir)
        given = {
            d.relation: read_facts(
                program.relations[d.relation], d.params, folder, arguments.no_warn, sys.stdin, tell_note
            )
            for d in program.inputs
        }
        noting, targets = noting_targets(program, _TRIED)
        found = evaluate(noting, given)
        lattices = {each.name: each for relation in program.relations.values() for _, each in relation.lattices}
        values: dict[str, set[Value]] = {name: set() for name in lattices}
        for name, relation in program.relations.items():
            for column, lattice in relation.lattices:
                values[lattice.name].update(row[column] for row in found.rows(name))
            for n, column_ in enumerate(relation.columns):
                if column_.type_name in values:
                    values[column_.type_name].update(row[n] for row in found.rows(name))
        tried = {name: sorted(some, key=rank)[:_TRIED] for name, some in values.items()}
        broken = list(broken_functors(program, tried))
        for name, lattice in lattices.items():
            own = list(broken_laws(lattice, program.functors, tried[name]))
            broken += own
            said = f"{len(own)} laws broken" if own else "no law broken"
            print(f"lattice {name}: {len(tried[name])} values, {said}")
        for name, own in broken_folds(program, targets):
            broken += own
            said = f"{len(own)} laws broken" if own else "no law broken"
            print(f"aggregate @@{name}: {len(targets[name])} values, {said}")
    except (EvaluationError, FactsError, FunctorError) as error:
        print(f"error: {error}")
        return False
    for one in broken[:_TOLD]:
        print(f"error: {one}")
    return not broken

"""`everlog run`: facts in, relations out, with Soufflé's flags and files.

Reads: dsl.check, core.seminaive, everlog.files, everlog.functors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attrs import evolve

from everlog._version import __version__
from everlog.commands.common import add_program_arguments, load_program
from everlog.core.program import Directive, Program, Row
from everlog.core.seminaive import Evaluation, Progress, evaluate
from everlog.core.values import EvaluationError
from everlog.files import FactsError, read_facts, write_facts, write_size
from everlog.functors import FunctorError, bind_functors

# Flags of Soufflé that mean nothing here: (flag, takes a value, why).
_IGNORED: list[tuple[tuple[str, ...], bool, str]] = [
    (("-j", "--jobs"), True, "evaluation is single-threaded"),
    (("-m", "--magic-transform"), True, "magic sets are not needed: queries use indexes"),
    (("--magic-transform-exclude", "--inline-exclude"), True, ""),
    (("-p", "--profile"), True, "no profile is written yet"),
    (("--profile-use", "--profile-frequency", "--live-profile"), False, ""),
    (("-t", "--provenance"), True, "proofs are not written by `run`"),
    (("-r", "--debug-report"), True, "no debug report is written"),
    (("-o", "--dl-program"), True, "nothing is compiled"),
    (("-g", "--generate"), True, "nothing is compiled"),
    (("-G", "--generate-many"), True, "nothing is compiled"),
    (("-s", "--swig"), True, "nothing is compiled"),
    (("-c", "--compile"), False, "nothing is compiled"),
    (("-C", "--compile-many"), False, "nothing is compiled"),
    (("-z", "--disable-transformers"), True, ""),
    (("-d", "--debug"), True, ""),
    (("-e", "--engine-stats", "--emit-statistics"), False, ""),
    (("--parse-errors", "--wno", "--preprocessor"), True, ""),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument(
        "-F", "--fact-dir", default=".", metavar="DIR", help="where .facts files are (default: here)"
    )
    parser.add_argument(
        "-D",
        "--output-dir",
        default=".",
        metavar="DIR",
        help="where .csv files go (default: here); - is the screen",
    )
    parser.add_argument("-P", "--pragma", action="append", default=[], metavar="KEY:VALUE", help="as .pragma")
    parser.add_argument(
        "-l",
        "--library",
        "--libraries",
        action="append",
        default=[],
        metavar="NAME",
        help="Python file of functors",
    )
    parser.add_argument(
        "-L", "--library-dir", action="append", default=[], metavar="DIR", help="where such files are"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="tell progress on the way")
    parser.add_argument("--show", metavar="WHAT", help="show a stage (initial-ast, …) instead of running")
    parser.add_argument("--legacy", action="store_true", help="accepted for Soufflé's sake")
    parser.add_argument("--version", action="version", version=f"everlog {__version__}")
    for flags, value, why in _IGNORED:
        help_text = f"accepted, ignored{': ' + why if why else ''}"
        if value:
            parser.add_argument(*flags, dest=f"ignored{flags[0]}", metavar="X", help=help_text)
        else:
            parser.add_argument(*flags, dest=f"ignored{flags[0]}", action="store_true", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    for flags, _, why in _IGNORED:
        if getattr(arguments, f"ignored{flags[0]}", None) and why and not arguments.no_warn:
            print(f"note: {flags[0]} is ignored: {why}", file=sys.stderr)
    program = load_program(arguments)
    if program is None:
        return 1
    if arguments.show is not None:
        for rule in program.rules:
            print(rule)
        return 0
    try:
        program = bind_functors(program, arguments.program, arguments.library, arguments.library_dir)
        _check_places(program, arguments)
        result = evaluate(program, _inputs(program, arguments), _teller(arguments))
        _write(result, arguments)
    except (EvaluationError, FactsError, FunctorError) as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return 1
    return 0


def _check_places(program: Program, arguments: argparse.Namespace) -> None:
    """What can be known to fail is told before anything runs."""
    output = Path(arguments.output_dir)
    if arguments.output_dir != "-" and program.outputs and not output.is_dir():
        raise FactsError(f"output directory `{output}` does not exist")
    if not Path(arguments.fact_dir).is_dir() and program.inputs and not arguments.no_warn:
        raise FactsError(f"fact directory `{arguments.fact_dir}` does not exist")


def _inputs(program: Program, arguments: argparse.Namespace) -> dict[str, list[Row]]:
    directory = Path(arguments.fact_dir)
    rows: dict[str, list[Row]] = {}
    for directive in program.inputs:
        relation = program.relations[directive.relation]
        found = read_facts(relation, directive.params, directory, missing_ok=arguments.no_warn, stdin=sys.stdin)
        rows.setdefault(directive.relation, []).extend(found)
    return rows


def _write(result: Evaluation, arguments: argparse.Namespace) -> None:
    program = result.program
    for directive in sorted(program.printsizes, key=lambda d: d.relation):
        write_size(program.relations[directive.relation], result.size(directive.relation), sys.stdout)
    for directive in program.outputs:
        placed = _to_screen(directive) if arguments.output_dir == "-" else directive
        relation = program.relations[directive.relation]
        directory = Path("." if arguments.output_dir == "-" else arguments.output_dir)
        write_facts(relation, result.rows(directive.relation), placed.params, directory, sys.stdout)


def _to_screen(directive: Directive) -> Directive:
    """`-D-`: to the screen, with the names of the columns, unless the directive says otherwise."""
    if directive.params.get("IO", "file") != "file":
        return directive
    kept = {k: v for k, v in directive.params.items() if k not in ("IO", "filename", "compress")}
    return evolve(directive, params={"headers": "true", **kept, "IO": "stdout"})


def _teller(arguments: argparse.Namespace) -> Progress | None:
    if not arguments.verbose:
        return None

    def tell(unit: str, number: int, new: int) -> None:
        print(f"{unit}: round {number}, {new} new", file=sys.stderr)

    return tell

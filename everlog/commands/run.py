"""`everlog run`: facts in, relations out, with Soufflé's flags and files.

A program runs once, by semi-naive evaluation; with `--updates` it stays alive and follows the
stream; with `--watch` it follows its fact files; with `--db` it lives in a file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias

from attrs import evolve

from everlog._version import __version__
from everlog.commands.shared.common import add_functor_arguments, add_program_arguments, tell_note
from everlog.commands.shared.durable import (
    add_database_argument,
    database_of,
    goes_on,
    load_written,
    program_in,
    with_functions,
)
from everlog.commands.shared.limits import add_limit_arguments, limits_of, seconds
from everlog.commands.shared.on_spark import (
    add_spark_arguments,
    job_of,
    refuse_spark_arguments,
    run_job,
    spark_options_of,
)
from everlog.commands.shared.strategy_option import add_strategy_argument, strategies_of
from everlog.core.evaluate.seminaive import evaluate
from everlog.core.native.availability import why_not
from everlog.core.native.words import save_memory
from everlog.core.program import Directive, Program, Relation, Row
from everlog.core.program.dependencies import needed_part
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Progress
from everlog.files import FactsError, write_facts, write_size
from everlog.files.dispatch import check_directives
from everlog.files.formats import format_of
from everlog.files.location import require_output_folders, write_stream
from everlog.files.within import require_within
from everlog.functors import FunctorError
from everlog.initial_facts import read_for_run, read_inputs
from everlog.profile.recording import Recording, require_writable
from everlog.progress import Meter, meter_for
from everlog.spark_backend.errors import SparkError
from everlog.store.errors import StoreError

if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.api.database import Database
    from everlog.store.program_text import Written

Facts: TypeAlias = Callable[[], dict[str, list[Row]]]  # reads the initial facts

# Flags of Soufflé without a meaning here: (flag, takes a value, why).
_IGNORED: list[tuple[tuple[str, ...], bool, str]] = [
    (("-m", "--magic-transform"), True, "name relations with --demand instead"),
    (("--magic-transform-exclude", "--inline-exclude"), True, ""),
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

EXAMPLES = """
  everlog run prog.dl -F facts -D out                read facts/*.facts, write out/*.csv
  everlog run prog.dl -D-                            write every .output relation to the screen
  everlog run prog.dl -F facts --updates news.txt    then apply +fact. and -fact. lines, and print the changes
  tail -f news.txt | everlog run prog.dl --updates - the same from a live pipe
  everlog run prog.dl -F facts -D out --watch        keep running, and follow facts/*.facts as they change
  everlog run prog.dl --db roads.db --updates -      the same, in a file, which the next run continues
  everlog run prog.dl -F facts -p profile.html       where the time went, by unit, rule and step
  everlog run prog.dl --max-seconds 60 --max-memory 2G
  everlog run prog.dl --engine spark --master 'local[4]'
"""


class Result(Protocol):
    """The relations after a run."""

    def size(self, relation: str) -> int: ...

    def rows(self, relation: str) -> Iterable[Row]: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("-F", "--fact-dir", default=".", metavar="DIR", help="folder of .facts files (default: .)")
    parser.add_argument(
        "-D",
        "--output-dir",
        default=".",
        metavar="DIR",
        help="folder of .csv files (default: .); - is standard output",
    )
    parser.add_argument(
        "--updates",
        metavar="FILE",
        help="apply a stream of +fact. and -fact. lines; steps are separated by blank lines; - is standard input",
    )
    parser.add_argument("--watch", action="store_true", help="keep running, and follow changes of the fact files")
    parser.add_argument(
        "--poll", type=seconds, default=0.5, metavar="S", help="seconds between looks at the files (default: 0.5)"
    )
    add_database_argument(parser, "the program, its facts and every step")
    add_strategy_argument(parser)
    add_limit_arguments(parser)
    add_spark_arguments(parser)
    parser.add_argument(
        "-p",
        "--profile",
        metavar="FILE",
        help="write where the time went: a page, or JSON if the name ends in .json",
    )
    parser.add_argument("-P", "--pragma", action="append", default=[], metavar="KEY:VALUE", help="as .pragma")
    add_functor_arguments(parser)
    parser.add_argument(
        "-j",
        "--jobs",
        type=jobs,
        default=1,
        metavar="N",
        help="threads of the compiled machine; auto: one for each processor (default: 1)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="report progress")
    parser.add_argument("--show", metavar="WHAT", help="show a stage (initial-ast, …) instead of running")
    parser.add_argument("--version", action="version", version=f"everlog {__version__}")
    names = " ".join(["--legacy", *(flags[0] for flags, _, _ in _IGNORED)])
    ignored = parser.add_argument_group("flags of Soufflé that are accepted and ignored", names)
    ignored.add_argument("--legacy", action="store_true", help=argparse.SUPPRESS)
    for flags, value, _ in _IGNORED:
        name = f"ignored{flags[0]}"
        if value:
            ignored.add_argument(*flags, dest=name, metavar="X", help=argparse.SUPPRESS)
        else:
            ignored.add_argument(*flags, dest=name, action="store_true", help=argparse.SUPPRESS)


def jobs(text: str) -> int:
    """The number of threads that `-j` asks for."""
    if text == "auto":
        return os.cpu_count() or 1
    if text.isdecimal() and 1 <= int(text) <= 1024:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number of threads nor `auto`")


def run(arguments: argparse.Namespace) -> int:
    for flags, _, why in _IGNORED:
        if getattr(arguments, f"ignored{flags[0]}", None) and why and not arguments.no_warn:
            tell_note(f"{flags[0]} is ignored: {why}")
    excluded = _excluded(arguments)
    if excluded:
        print(f"error: {excluded[0]} and {excluded[1]} cannot be combined", file=sys.stderr)
        return 2
    # the stream, or later files, may fill relations that are empty in the program
    follows = arguments.watch or arguments.updates is not None
    written = load_written(arguments, untold=("DL060",) if follows else ())
    if written is None:
        return 1
    if arguments.show is not None:
        for rule in program_in(written).rules:
            print(rule)
        return 0
    try:
        _check_strategies(program_in(written), arguments)
        written = with_functions(written, arguments)
        program = program_in(written)
        if not (program.outputs or program.printsizes or _lives_on(arguments) or arguments.no_warn):
            tell_note("nothing to run: the program has no .output and no .printsize")
        if arguments.engine == "spark":
            run_job(job_of(program, arguments), spark_options_of(arguments))
            return 0
        refuse_spark_arguments(arguments)
        _check_places(program, arguments)
        with meter_for(sys.stderr, wanted=not arguments.verbose) as meter, _recorded(arguments) as recording:
            if arguments.watch:
                _watch(program, arguments, meter)
            if _lives_on(arguments):
                return _live(written, program, arguments, meter, recording)
            program = needed_part(program)
            result = _evaluated(program, arguments, meter, recording)
            with recording.phase("writing"):
                _write(program, result, arguments, meter)
    except (EvaluationError, FactError, FactsError, FunctorError, SparkError, StoreError) as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _recorded(arguments: argparse.Namespace) -> Iterator[Recording]:
    """The recording of a run, written at its end where `-p` asks for it, also after an error."""
    recording = Recording("standard input" if arguments.program == "-" else Path(arguments.program).name)
    if arguments.profile is None:
        yield recording
        return
    require_writable(arguments.profile)
    try:
        yield recording
    finally:
        recording.write(arguments.profile)


def _live(
    written: Written, program: Program, arguments: argparse.Namespace, meter: Meter, recording: Recording
) -> int:
    """Keep the program alive, in memory or in a file; the exit status."""
    folder, tell = Path(arguments.fact_dir), partial(tell_note, meter=meter)

    def facts() -> dict[str, list[Row]]:
        with recording.phase("reading"):
            return read_inputs(program, folder, arguments.no_warn, tell, meter.reading)

    if arguments.updates is not None:
        return _follow(written, facts, arguments, meter, recording)
    with _living(written, facts, arguments, meter, recording) as database:
        _write(database.program, database, arguments, meter)
    return 0


def _excluded(arguments: argparse.Namespace) -> tuple[str, str] | None:
    """Two flags that cannot be combined, or None."""
    on_spark = arguments.engine == "spark"
    for flag, wanted, others in (
        ("--watch", arguments.watch, {"--updates": arguments.updates is not None, "--engine spark": on_spark}),
        ("--db", arguments.db is not None, {"--watch": arguments.watch, "--engine spark": on_spark}),
        ("-p", arguments.profile is not None, {"--watch": arguments.watch, "--engine spark": on_spark}),
    ):
        for other, is_there in others.items():
            if wanted and is_there:
                return flag, other
    return None


def _lives_on(arguments: argparse.Namespace) -> bool:
    """Whether relations are kept, so that any of them may be changed or asked for."""
    return arguments.watch or arguments.updates is not None or arguments.db is not None


def _evaluated(program: Program, arguments: argparse.Namespace, meter: Meter, recording: Recording) -> Result:
    progress, limits = _progress_printer(arguments, "new"), limits_of(arguments)
    folder, tell = Path(arguments.fact_dir), partial(tell_note, meter=meter)
    if any(relation.auxiliary_of for relation in program.relations.values()):
        from everlog.api.database import Database  # here: only auxiliary relations need it

        given = read_inputs(program, folder, arguments.no_warn, tell, meter.reading)
        return Database(program, facts=given, limits=limits, progress=progress or meter.deriving)
    if not why_not():
        save_memory()
    with recording.phase("reading"):
        rows = read_for_run(program, folder, arguments.no_warn, tell, meter.reading)
    if arguments.demand or any(relation.on_demand for relation in program.relations.values()):
        from everlog.core.engine.planning.demand_parts import DEMAND, only_asked_for  # few programs need it

        demanded = [name for name in arguments.demand if name in program.relations]
        program, asked = only_asked_for(program, dict.fromkeys(demanded, DEMAND))
        rows = {**rows, **asked}
    profile = None if arguments.profile is None else recording.run
    with recording.phase("evaluating"):
        result = evaluate(program, rows, progress or meter.finding, limits, profile, arguments.jobs)
    recording.size = result.size
    return result


@contextmanager
def _living(
    written: Written, facts: Facts, arguments: argparse.Namespace, meter: Meter, recording: Recording
) -> Iterator[Database]:
    """The program as a living database."""
    progress = _progress_printer(arguments, "so far")
    with ExitStack() as stack:
        with recording.phase("loading"):
            database = stack.enter_context(database_of(written, arguments, facts, progress or meter.deriving))
        trusted = program_in(written).outputs  # a database file may hold others, from an untrusted source
        folder = "." if arguments.output_dir == "-" else arguments.output_dir
        require_within(database.program.outputs, trusted, folder, "output", "-D")
        database.progress = progress  # single updates are faster without a callback
        meter.clear()
        yield database


def _check_strategies(program: Program, arguments: argparse.Namespace) -> None:
    if arguments.strategy or arguments.demand:
        from everlog.core.engine import NoSuchStrategy, make_plan  # here: only these options need it

        try:
            make_plan(program, strategies_of(arguments))
        except NoSuchStrategy as error:
            raise FactsError(str(error)) from None
        if arguments.strategy and not _lives_on(arguments) and not arguments.no_warn:
            tell_note("--strategy needs --updates or --watch; a single run evaluates whole relations")


def _check_places(program: Program, arguments: argparse.Namespace) -> None:
    """Report errors in the locations of files before anything runs."""
    check_directives(program.inputs, program.outputs)
    if arguments.output_dir != "-":
        require_output_folders(arguments.output_dir, program.outputs)
    inputs = program.inputs if _lives_on(arguments) else needed_part(program).inputs
    reads_facts = not goes_on(arguments)
    if reads_facts and not Path(arguments.fact_dir).is_dir() and inputs and not arguments.no_warn:
        raise FactsError(f"fact directory `{arguments.fact_dir}` does not exist")
    piped = [
        d.relation
        for d in inputs
        if reads_facts and d.params.get("IO") in ("stdin", "json") and "filename" not in d.params
    ]
    if arguments.updates == "-" and (piped or arguments.program == "-"):
        other = f"the facts of `{piped[0]}`" if piped else "the program"
        raise FactsError(f"standard input cannot hold both the updates and {other}")


def _follow(
    written: Written, facts: Facts, arguments: argparse.Namespace, meter: Meter, recording: Recording
) -> int:
    """Apply the stream; at the end, also after an error, write the outputs.

    They hold the relations after the last complete step.
    """
    from everlog.stream import follow, stream_lines

    name = "<stdin>" if arguments.updates == "-" else arguments.updates
    with (
        stream_lines(arguments.updates, sys.stdin) as lines,
        _living(written, facts, arguments, meter, recording) as database,
    ):
        around = recording.following(database) if arguments.profile is not None else nullcontext
        if arguments.updates != "-" and not sys.stdout.isatty():  # visible answers need no progress bar
            lines = meter.lines(lines, Path(arguments.updates).stat().st_size)
        try:
            all_well = follow(database, name, lines, sys.stdout, meter.beside(sys.stderr), around)
            _write(database.program, database, arguments, meter)
        except (KeyboardInterrupt, BrokenPipeError, StoreError):
            meter.clear()
            _write_outputs(database.program, database, arguments)
            raise
    return 0 if all_well else 1


def _watch(program: Program, arguments: argparse.Namespace, meter: Meter) -> NoReturn:
    """Follow the fact files until Ctrl-C; print each change, and write the outputs."""
    from everlog.file_watch import FactFiles, follow_files
    from everlog.stream import relations_of_interest

    files = FactFiles(
        program,
        Path(arguments.fact_dir),
        missing_ok=arguments.no_warn,
        pause=arguments.poll,
        tell=partial(tell_note, meter=meter),
    )
    shown = relations_of_interest(program)

    def tell(changes: Changes) -> None:
        write_stream(sys.stdout, changes.text(shown) + "\n")
        sys.stdout.flush()
        if arguments.output_dir != "-":
            changed = tuple(d for d in program.outputs if d.relation in changes)
            _write_outputs(evolve(program, outputs=changed), database, arguments)

    begin = partial(files.begin, meter.reading)
    with _living(program, begin, arguments, meter, Recording(arguments.program)) as database:
        _write(program, database, arguments, meter)
        sys.stdout.flush()
        follow_files(files, database, tell, sys.stderr)


def _write(program: Program, result: Result, arguments: argparse.Namespace, meter: Meter) -> None:
    meter.clear()
    for directive in sorted(program.printsizes, key=lambda d: d.relation):
        write_size(program.relations[directive.relation], result.size(directive.relation), sys.stdout)
    _write_outputs(program, result, arguments, meter)


def _write_outputs(
    program: Program, result: Result, arguments: argparse.Namespace, meter: Meter | None = None
) -> None:
    for number, directive in enumerate(program.outputs):
        if meter is not None and arguments.output_dir != "-":
            meter.writing(directive.relation, number, len(program.outputs))
        placed = to_screen(directive) if arguments.output_dir == "-" else directive
        relation = program.relations[directive.relation]
        if placed is not directive and sys.stdout.isatty() and directive.params.keys() <= {"IO"}:
            _show_table(relation, result.rows(directive.relation))
            continue
        directory = Path("." if arguments.output_dir == "-" else arguments.output_dir)
        write_facts(relation, result.rows(directive.relation), placed.params, directory, sys.stdout)


def _show_table(relation: Relation, rows: Iterable[Row]) -> None:
    """Print a relation on a terminal, as the prompt does: all of its rows."""
    from everlog.repl.loop import wants_colour
    from everlog.repl.modes import show_rows
    from everlog.repl.screen import Screen
    from everlog.repl.settings import Settings

    settings = Settings(terminal=True, colour=wants_colour())
    settings.maxrows, settings.pager = None, False
    screen = Screen(settings, terminal=True)
    screen.line(relation.name, "head")
    show_rows(screen, relation, rows, ordered=True)


def to_screen(directive: Directive) -> Directive:
    """The directive for `-D-`: to standard output, by default with column names."""
    if format_of(directive.params) != "file":
        return directive
    kept = {k: v for k, v in directive.params.items() if k not in ("IO", "filename", "compress")}
    return evolve(directive, params={"headers": "true", **kept, "IO": "stdout"})


def _progress_printer(arguments: argparse.Namespace, what: str) -> Progress | None:
    if not arguments.verbose:
        return None

    def tell(unit: str, number: int, facts: int) -> None:
        print(f"{unit}: round {number}, {facts} {what}", file=sys.stderr)

    return tell

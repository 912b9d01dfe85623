"""`everlog run --engine spark`: the same program, files and flags, on Spark.

Errors that can be found without Spark are reported before it starts.  Each stratum and each round
of a recursion is reported on the terminal.  An error on a worker becomes one sentence.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core.program import Program
from everlog.core.program.dependencies import needed_part
from everlog.files.dispatch import write_size
from everlog.files.location import require_output_folders
from everlog.files.text_values import FactsError
from everlog.spark_backend.errors import SparkError

if TYPE_CHECKING:
    from everlog.spark_backend.plan import SparkPlan
    from everlog.spark_backend.spark_types import SparkSession

Progress = Callable[[str, int, int], None]


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("on Spark")
    group.add_argument(
        "--engine",
        choices=("local", "in-process", "spark"),
        default="local",
        help="where the program runs (default: in this process)",
    )
    group.add_argument(
        "--master",
        metavar="URL",
        help="of Spark: local[N], spark://HOST:PORT, yarn, k8s://…, sc://HOST:PORT (default: local[*])",
    )
    group.add_argument("--memory", metavar="SIZE", help="of each executor, or of the one local process: 4g")
    group.add_argument(
        "--checkpoint", metavar="DIR", help="for recursion on a cluster: a folder that all machines see"
    )
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark, before ours"
    )


def spark_options_of(arguments: argparse.Namespace) -> SparkOptions:
    """The Spark options of the command line; FactsError if one is wrong."""
    conf: dict[str, str] = {}
    for text in arguments.conf:
        key, found, value = text.partition("=")
        if not found or not key.startswith("spark."):
            raise FactsError(f"--conf {text}: write it as spark.KEY=VALUE")
        conf[key] = value
    if arguments.checkpoint is not None:
        conf["spark.checkpoint.dir"] = arguments.checkpoint
    return SparkOptions(arguments.master or "local[*]", arguments.memory, conf)


@frozen
class SparkOptions:
    master: str
    memory: str | None
    conf: dict[str, str]


@frozen
class Job:
    """A planned program with the locations of its facts: all that a driver needs to run it."""

    planned: SparkPlan
    fact_dir: str
    output_dir: str
    missing_ok: bool
    verbose: bool


def refuse_arguments(arguments: argparse.Namespace) -> None:
    """Refuse flags of `run` that Spark does not support."""
    for flag, value in (
        ("--updates", arguments.updates),
        ("--strategy", arguments.strategy or None),
        ("--max-iterations", arguments.max_iterations),
        ("--max-facts", arguments.max_facts),
        ("--max-memory", arguments.max_memory),
        ("--max-seconds", arguments.max_seconds),
    ):
        if value is not None:
            raise FactsError(f"{flag} is for the in-process engine; leave it out with --engine spark")


def refuse_spark_arguments(arguments: argparse.Namespace) -> None:
    """Refuse Spark's flags without `--engine spark`."""
    for flag in ("master", "memory", "checkpoint", "conf"):
        if getattr(arguments, flag, None):
            raise FactsError(f"--{flag} is a flag of Spark: add `--engine spark`")


def job_of(program: Program, arguments: argparse.Namespace) -> Job:
    """The job of a command line, checked as far as possible without Spark."""
    from everlog.spark.facts_in import check_inputs, has_scheme
    from everlog.spark.outputs import check_outputs
    from everlog.spark_backend.frames.expressions import NotOnSpark
    from everlog.spark_backend.plan import plan

    refuse_arguments(arguments)
    check_inputs(program)
    check_outputs(program)
    program = needed_part(program)
    try:
        planned = plan(program)
    except NotOnSpark as problem:
        raise SparkError(str(problem)) from None
    facts, outputs = arguments.fact_dir, arguments.output_dir
    if outputs != "-" and not has_scheme(outputs):
        require_output_folders(outputs, program.outputs)
    if program.inputs and not has_scheme(facts) and not Path(facts).is_dir() and not arguments.no_warn:
        raise FactsError(f"fact directory `{facts}` does not exist")
    verbose = bool(arguments.verbose) or sys.stderr.isatty()
    return Job(planned, facts, outputs, bool(arguments.no_warn), verbose)


def run_job(job: Job, options: SparkOptions) -> None:
    """Start Spark, run the job, stop Spark."""
    from everlog.spark_backend.errors import clear_errors
    from everlog.spark_backend.spark_session import spark_session, stop

    tell = teller(job.verbose)
    tell(f"starting Spark at {options.master}")
    spark = spark_session(options.master, app="everlog run", memory=options.memory, conf=options.conf)
    try:
        with clear_errors():
            evaluate_job(spark, job, tell)
    finally:
        stop(spark)


def evaluate_job(spark: SparkSession, job: Job, tell: Callable[[str], None]) -> None:
    """Load, evaluate, write."""
    from everlog.commands.run import to_screen
    from everlog.spark.facts_in import dear_inputs, load_inputs
    from everlog.spark.outputs import store_facts
    from everlog.spark_backend.evaluate import evaluate_plan, telling

    program = job.planned.program
    wanted = [directive.relation for directive in (*program.outputs, *program.printsizes)]
    inputs = load_inputs(spark, program, job.fact_dir, job.missing_ok)

    def progress(unit: str, number: int, facts: int) -> None:
        tell(
            f"{unit}: finished in process, {facts} facts"
            if number == 0
            else f"{unit}: round {number}, {facts} new"
        )

    dear = dear_inputs(program)
    result = evaluate_plan(spark, job.planned, inputs, progress=progress, wanted=wanted, dear=dear)
    for name, way in result.ways.items():
        if way != "given":
            tell(f"{name}: {way}")
    with telling(program):
        for directive in sorted(program.printsizes, key=lambda d: d.relation):
            relation = program.relations[directive.relation]
            write_size(relation, result.size(relation.name), sys.stdout)
        for directive in program.outputs:
            relation = program.relations[directive.relation]
            placed = to_screen(directive) if job.output_dir == "-" else directive
            folder = "." if job.output_dir == "-" else job.output_dir
            frame, rows = partial(result.__getitem__, relation.name), result.rows_here(relation.name)
            store_facts(spark, relation, frame, placed.params, folder, sys.stdout, rows)
            tell(f"{relation.name}: written")


def teller(verbose: bool) -> Callable[[str], None]:
    """A function that prints progress with the seconds since the start."""
    start = time.monotonic()

    def tell(text: str) -> None:
        if verbose:
            print(f"[{time.monotonic() - start:6.1f} s] {text}", file=sys.stderr, flush=True)

    return tell

"""`everlog submit`: send a program to a cluster with `spark-submit`.

The program is read, checked and bound to its functors here.  Then it travels as one archive: the
checked program, this package, and the pure Python packages that it needs.  So the cluster needs
only Python with pyspark, pyarrow and pandas.  With `--deploy-mode cluster` the driver runs there
too, and facts and outputs must be at locations that it can reach (`-F hdfs://… -D s3a://…`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from everlog.commands import run as run_command
from everlog.commands.shared.common import load_program
from everlog.commands.shared.on_spark import Job, SparkOptions, evaluate_job, job_of, spark_options_of, teller
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import FactsError
from everlog.functors import FunctorError, bind_functors
from everlog.spark_backend.errors import SparkError, clear_errors
from everlog.spark_backend.shipping import archive_with, shipped, spark_submit

_MAIN = "import sys\nfrom everlog.commands.submit import submitted\nsys.exit(submitted())\n"

EXAMPLES = """
  everlog submit prog.dl --master spark://host:7077 -F facts -D out
  everlog submit prog.dl --master yarn --deploy-mode cluster -F hdfs:///facts -D hdfs:///out
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_command.add_arguments(parser)
    parser.add_argument(
        "--deploy-mode",
        choices=("client", "cluster"),
        default="client",
        help="where the driver runs: here (default), or on the cluster",
    )
    parser.add_argument(
        "--submit-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option for spark-submit itself, such as --submit-option=--queue=nightly",
    )


def run(arguments: argparse.Namespace) -> int:
    program = load_program(arguments)
    if program is None:
        return 1
    try:
        program = bind_functors(program, arguments.program, arguments.library, arguments.library_dir)
        options = spark_options_of(arguments)
        _check_mode(arguments, options)
        job = job_of(program, arguments)
        return _submit(job, options, arguments)
    except (FactsError, FunctorError, SparkError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _check_mode(arguments: argparse.Namespace, options: SparkOptions) -> None:
    if arguments.deploy_mode == "cluster" and options.master.startswith(("spark://", "local")):
        raise FactsError(
            f"Spark cannot run the driver of a Python program on {options.master}: --deploy-mode cluster is"
            " for yarn and k8s://…"
        )
    if arguments.master is None:
        raise FactsError("submit needs --master: where to run the program")
    if options.master.startswith("sc://"):
        raise FactsError(
            "Spark Connect does not take spark-submit: use `everlog run --engine spark --master sc://…`"
        )


def _submit(job: Job, options: SparkOptions, arguments: argparse.Namespace) -> int:
    from everlog.spark_backend.spark_session import check_master, prepare_environment, settings_of

    check_master(options.master, options.memory)
    prepare_environment(options.master)
    folder = Path(tempfile.mkdtemp(prefix="everlog-submit-"))
    try:
        main = folder / "everlog_main.py"
        main.write_text(_MAIN)
        archive = archive_with(job, folder)
        command = [str(spark_submit())]
        command += ["--master", options.master, "--deploy-mode", arguments.deploy_mode, "--name", "everlog"]
        for key, value in settings_of(options.master, options.memory, options.conf).items():
            command += ["--conf", f"{key}={value}"]
        command += [*arguments.submit_option, "--py-files", str(archive), str(main)]
        return subprocess.run(command, check=False, env=dict(os.environ)).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def submitted() -> int:
    """Run the job of the archive, in the driver that spark-submit has started."""
    from everlog.spark_backend.spark_session import spark_session, stop

    job: Job = shipped()
    try:
        spark = spark_session(app="everlog")
        try:
            with clear_errors():
                evaluate_job(spark, job, teller(job.verbose))
        finally:
            stop(spark)
    except (EvaluationError, FactsError, SparkError) as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0

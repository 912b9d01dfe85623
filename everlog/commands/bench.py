"""`everlog bench`: measure everlog and other systems side by side.

A NAME selects one of the older benchmarks of single parts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FLAGS = {"source": "from"}  # by the name of the value
EXAMPLES = """
  everlog bench --small                             check that everything runs
  everlog bench --only bars                         the performance goals
  everlog bench --only join_count --against sqlite  one workload, one competitor
  everlog bench figure4 --plot plots                Figure 4 of the MVIVM paper, with its plot
  everlog bench plans --only countries              one case of a benchmark of single parts
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from everlog.bench.harness.main import arguments

    parser.add_argument("name", nargs="*", metavar="NAME", help="an older benchmark: figure4, costs, …")
    arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.name:
        from everlog.bench.harness.main import run as side_by_side

        return side_by_side(arguments)
    from everlog.bench.harness.main import arguments as flags

    defaults = argparse.ArgumentParser(add_help=False)
    flags(defaults)
    given = [name for name, value in vars(defaults.parse_args([])).items() if getattr(arguments, name) != value]
    useless = [f"--{FLAGS.get(name, name)}" for name in given if name not in ("small", "plot", "only")]
    if useless:
        print(f"error: {', '.join(useless)} cannot be used with a NAME", file=sys.stderr)
        return 2
    words = [*arguments.name, *(["--small"] if arguments.small else [])]
    if arguments.plot is not None:
        words += ["--plot", str(Path(arguments.plot).resolve())]
    if arguments.only:
        words += ["--only", " ".join(arguments.only)]
    return subprocess.run([sys.executable, "-P", "-m", "everlog.bench", *words], check=False).returncode

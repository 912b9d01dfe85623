"""`everlog bench`: the benchmarks, each a process of its own, with the bars that they are held to.

Reads: the folder `bench`, which is installed as `everlog.bench`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

EXAMPLES = """
  everlog bench                         all of them, which takes a while
  everlog bench costs first_use         some
  everlog bench figure4 --plot plots    Figure 4 of the MVIVM paper, with its plot
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="*", metavar="NAME", help="which ones: figure4, costs, …; default is all")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that they run")
    parser.add_argument("--plot", metavar="FOLDER", help="of figure4: write its plot and its data there")


def run(arguments: argparse.Namespace) -> int:
    folder = Path(__file__).parent.parent / "bench"
    if not folder.is_dir():
        print("error: the benchmarks are not installed here", file=sys.stderr)
        return 1
    words = [*arguments.name, *(["--small"] if arguments.small else [])]
    if arguments.plot is not None:
        words += ["--plot", str(Path(arguments.plot).resolve())]
    return subprocess.run([sys.executable, "-P", str(folder / "__main__.py"), *words], check=False).returncode

"""Whole programs on the compiled machine, in Python, and in Soufflé, interpreted and compiled.

Each program derives its relations once, from generated fact files, as a command of its own.  CPU
time, wall time and peak memory are those of the whole command, with files read and written.  The
relations that the sides write are compared.  Soufflé takes part if a `souffle` is on the path; what
its compiler takes is not counted.

    python -P bench/native.py [--small] [--only NAME] [--seed 7] [--sides native,…] [--rounds 3]

The sides are native, threads (native on two threads), python, souffle and compiled.  The first is
what others are compared with, in CPU time, memory and wall time.  With `--rounds`, the sides take
turns, and of each the least time counts.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ANALYSES = Path(__file__).with_name("_analyses.py")
CACHE = tempfile.TemporaryDirectory()


class Run(NamedTuple):
    seconds: float  # CPU
    elapsed: float
    megabytes: float
    digest: str


def command_of(side: str, program: Path, out: Path) -> tuple[list[str], dict[str, str]]:
    """The command that a side runs, and its environment."""
    folders = ["-F", str(program.parent), "-D", str(out)]
    match side:
        case "souffle":
            return ["souffle", "-w", "-j1", str(program), *folders], {}
        case "compiled":
            binary = program.with_suffix("")
            if not binary.exists():
                subprocess.run(["souffle", "-w", "-o", str(binary), str(program)], check=True)
            return [str(binary), "-j1", *folders], {}
        case _:
            threads = ["-j2"] if side == "threads" else []
            command = [sys.executable, "-P", "-m", "everlog", "run", str(program), *folders, *threads]
            return command, {"EVERLOG_PURE": "1" if side == "python" else ""}


def run(side: str, program: Path, out: Path) -> Run:
    """One command.  This process stays small: a child's peak begins with its parent's memory.

    Modules are compiled before, as they are in an installed package.
    """
    command, environment = command_of(side, program, out)
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": CACHE.name}
    out.mkdir()
    start = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    digest = analyses("digest", str(out))
    shutil.rmtree(out)
    return Run(used.ru_utime + used.ru_stime, elapsed, used.ru_maxrss / 1024, digest)


def analyses(*words: str) -> str:
    made = subprocess.run(
        [sys.executable, "-P", str(ANALYSES), *words], check=True, capture_output=True, text=True
    )
    return made.stdout


def line(name: str, side: str, one: Run, first: Run) -> str:
    same = "" if one.digest == first.digest else "   OTHER RELATIONS"
    ratios = " ".join(f"{a / b:5.2f} x" for a, b in zip(one[:3], first[:3], strict=True))
    return (
        f"{name:<12} {side:<8} {one.seconds:7.2f} s {one.elapsed:7.2f} s {one.megabytes:7.0f} MB   {ratios}{same}"
    )


def least(one: Run, other: Run) -> Run:
    """The less of two runs of one side, of which each has its own digest."""
    if one.digest != other.digest:
        sys.exit("two runs of one command have written different relations")
    return Run(*map(min, one[:3], other[:3]), one.digest)  # type: ignore[arg-type]


def means(found: Sequence[dict[str, Run]]) -> list[str]:
    """For each side but the first, the geometric means of its ratios."""
    first, *others = found[0]
    lines = []
    for side in others:
        ratios = [[a / b for a, b in zip(one[side][:3], one[first][:3], strict=True)] for one in found]
        means = [math.prod(column) ** (1 / len(found)) for column in zip(*ratios, strict=True)]
        lines.append(f"{'mean':<12} {side:<8} {'':>32} " + " ".join(f"{mean:5.2f} x" for mean in means))
    return lines


def main() -> None:
    names = analyses("names").split()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="sizes at which everything ends in a moment")
    parser.add_argument("--only", metavar="NAME", choices=names, help="one program")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sides", default="native,python,souffle", help="which sides take part")
    parser.add_argument("--rounds", type=int, default=1, help="how often each side has its turn")
    asked = parser.parse_args()
    sides = [s for s in asked.sides.split(",") if s not in ("souffle", "compiled") or shutil.which("souffle")]
    with tempfile.TemporaryDirectory() as folder:  # modules that a run imports are compiled now
        analyses("write", "el", "small", "1", folder)
        for side in {"native", "python"}.intersection(sides):
            run(side, Path(folder) / "el.dl", Path(folder) / "out")
    all_found: list[dict[str, Run]] = []
    for name in names if asked.only is None else [asked.only]:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / f"{name}.dl"
            analyses("write", name, "small" if asked.small else "size", str(asked.seed), folder)
            found: dict[str, Run] = {}
            for side in sides * asked.rounds:
                one = run(side, program, Path(folder) / "out")
                found[side] = least(one, found.get(side, one))
            for side in sides:
                print(line(name, side, found[side], found[sides[0]]), flush=True)
        all_found.append(found)
    print("\n".join(means(all_found)))


if __name__ == "__main__":
    main()

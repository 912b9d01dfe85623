"""Soufflé, if it is on the PATH: its interpreter and its compiler; one thread.

Soufflé is a command, so a run is a process: it reads the facts, computes, and prints the sizes of
the answers (`.printsize`), which is also what the other sides are timed for.  Another run, not
timed, writes the answers for comparison.  Compilation needs a C++ compiler; its time is printed
beside the run and is not part of it.

    souffle PROGRAM -F FACTS -D ANSWERS            interprets
    souffle -o BINARY PROGRAM                      compiles;   BINARY -F FACTS -D ANSWERS
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from everlog.bench.harness.machine import in_megabytes
from everlog.bench.harness.workload import Case, NotInstalled, Row, Side, Static

_OUTPUT = re.compile(r"^\.output\s+(.*)$", re.MULTILINE)


class Souffle:
    """Soufflé as a side.

    `peak` is that of Soufflé's own process; `more` has the time of compilation.
    """

    def __init__(self, case: Case, compiled: bool) -> None:
        self.case, self.compiled = case, compiled
        self.peak = 0.0
        self.more: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self.counting = self._prepared("printsize")
        self.answers = case.folder / ("souffle-compiled" if compiled else "souffle-interpreted")
        self.answers.mkdir(exist_ok=True)
        self.written = False

    def _prepared(self, directive: str) -> list[str]:
        """The command of the program with this output directive, compiled if asked."""
        souffle = command()
        path = self.case.folder / f"souffle-{directive}.dl"
        rules = _OUTPUT.sub("", self.case.program)
        path.write_text(f"{rules}\n.{directive} {', '.join(self.case.answers)}\n", encoding="utf-8")
        if not self.compiled:
            return [souffle, str(path)]
        binary = path.with_suffix("")
        if not binary.exists():  # an earlier round may have made it
            start = time.perf_counter()
            _run([souffle, "-o", str(binary), str(path)])
            self.more[f"compile {directive}"] = time.perf_counter() - start
        return [str(binary)]

    def _folders(self) -> list[str]:
        return ["-F", str(self.case.folder), "-D", str(self.answers)]

    def load(self) -> None:
        """Do nothing: loading is part of the run."""

    def solve(self) -> None:
        out, self.peak = _run([*self.counting, *self._folders()])
        for line in out.splitlines():
            name, _, size = line.rpartition("\t")
            self.sizes[name] = int(size)

    def size(self, relation: str) -> int:
        return self.sizes[relation]

    def answer(self, relation: str) -> Iterable[Row]:
        if not self.written:
            _run([*self._prepared("output"), *self._folders()])
            self.written = True
        with (self.answers / f"{relation}.csv").open() as file:
            for line in file:
                yield tuple(map(int, line.split("\t")))

    def close(self) -> None:
        pass


def _run(words: list[str]) -> tuple[str, float]:
    """The output of a command and its peak memory in MB.  Raises if it fails."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out = process.stdout.read()  # only sizes: the error stream stays short meanwhile
        problem = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(
            f"{Path(words[0]).name} ended with status {process.returncode}: {problem.strip()[:300]}"
        )
    return out, in_megabytes(usage.ru_maxrss)


def command() -> str:
    found = shutil.which("souffle")
    if found is None:
        raise NotInstalled("`souffle` is not on the PATH")
    return found


def version() -> str:
    """The version number of Soufflé."""
    told = subprocess.run([command(), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(?:\.\d+)+", told.stdout + told.stderr)
    return found[0] if found else "of unknown version"


def compiler_version() -> str:
    """The same, if there is a C++ compiler."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise NotInstalled("a C++ compiler, which Soufflé needs to compile, is not on the PATH")
    return version()


def _interpreted(case: Case) -> Static:
    return Souffle(case, compiled=False)


def _compiled(case: Case) -> Static:
    return Souffle(case, compiled=True)


SIDES = [
    Side("souffle", "Soufflé, interpreted", version, _interpreted, grows=True),
    Side("souffle compiled", "Soufflé, compiled", compiler_version, _compiled),
]

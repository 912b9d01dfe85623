"""A real cluster on loopback: a Master and two Workers, each its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cluster import QUICK_JAVA, Cluster, descendants
from dlt import ROOT
from specs import has_steps

from everlog.cli import main

pytestmark = pytest.mark.spark

QUICK = [f"--conf=spark.{process}.extraJavaOptions={QUICK_JAVA}" for process in ("driver", "executor")]
DRIVER = Path(__file__).parent / "driver.py"
SPECS = sorted((ROOT / "tests" / "spec").rglob("*.dlt")) + sorted((ROOT / "programs").rglob("*.dlt"))
SPECS = [path for path in SPECS if has_steps(path)]
SOME = SPECS[::90] + [
    path for path in SPECS if path.parent.name in ("transitive_closure", "triangles", "same_generation")
]


@contextmanager
def driver(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A driver in a separate process, which ends with the test."""
    command = [sys.executable, "-P", str(DRIVER), *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield running
    finally:
        for pid in [running.pid, *descendants(running.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        running.wait()


def everlog(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "everlog", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("files", [SOME, pytest.param(SPECS, marks=pytest.mark.deep)], ids=["some", "all"])
def test_specified_programs_give_the_same_on_the_cluster(
    cluster: Cluster, tmp_path: Path, files: list[Path]
) -> None:
    with driver("specs", cluster.url, tmp_path, *files) as running:
        out, _ = running.communicate(timeout=1200)
    assert running.returncode == 0, out
    assert ", 0 relations differ" in out


@pytest.mark.parametrize("way", ["iterated"])
def test_a_worker_that_dies_in_the_middle_of_a_recursion_changes_nothing(cluster: Cluster, way: str) -> None:
    """A worker and its executor die at round 4 of 12; the result is the same."""
    length, killed = 12, False
    lines: list[str] = []
    with driver("closure", cluster.url, length, way) as running:
        assert running.stdout is not None
        for line in running.stdout:
            lines.append(line.strip())
            if line.startswith("round 4 ") and not killed:
                cluster.workers.pop(0).kill()
                killed = True
        assert running.wait(timeout=300) == 0, lines
    cluster.add_worker()
    total = length * (length - 1) // 2
    assert killed
    assert f"result {length * length} {length * length}" in lines, lines
    assert f"sums ({length * total}, {length * total}, {total * total})" in lines, lines
    assert sum(line.startswith("round ") for line in lines) == length + 1


@pytest.mark.deep
def test_the_command_line_on_a_cluster_writes_the_same_files(cluster: Cluster, tmp_path: Path) -> None:
    program = ROOT / "programs" / "transitive_closure"
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    source = next(program.glob("*.dl"))
    assert main(["run", str(source), "-F", str(program / "facts"), "-D", str(here)]) == 0
    places = ["-F", program / "facts", "-D", there, "--master", cluster.url, "--memory", "700m"]
    done = everlog("run", source, "--engine", "spark", *places)
    assert (done.returncode, done.stderr) == (0, "")
    files = {path.name: path.read_bytes() for path in here.iterdir()}
    assert files
    assert {path.name: path.read_bytes() for path in there.iterdir()} == files


def test_submit_ships_the_program_and_the_package(cluster: Cluster, tmp_path: Path) -> None:
    """The program's functors run on executors that have neither them nor this package."""
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "functors.py").write_text(
        "def twice(x: int) -> int:\n    return helper(x)\n\ndef helper(x):\n    return 2 * x\n"
    )
    (tmp_path / "prog.dl").write_text(
        ".functor twice(number):number\n.decl edge(x:number, y:number)\n.input edge\n"
        ".decl far(x:number, y:number)\n.output far\nfar(x, @twice(y)) :- edge(x, y).\n"
    )
    places = ["-F", tmp_path, "-D", tmp_path, "--master", cluster.url, "--memory", "700m"]
    done = everlog("submit", tmp_path / "prog.dl", *places, *QUICK)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "far.csv").read_text() == "1\t4\n2\t6\n"


@pytest.mark.deep
def test_more_memory_than_any_worker_has_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "prog.dl").write_text(".decl p(x:number)\np(1).\n.output p\n")
    places = ["-D", tmp_path, "--master", cluster.url, "--memory", "50g"]
    places += ["--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=8s"]
    done = everlog("run", tmp_path / "prog.dl", "--engine", "spark", *places)
    assert done.returncode == 1
    assert "gave no executor within 8 s" in done.stderr
    assert "50g of memory" in done.stderr
    assert done.stderr.startswith("error: ")


@pytest.mark.deep
def test_an_executor_that_runs_out_of_memory_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    """A symbol of a gigabyte kills an executor of 700 MiB, and nothing is written."""
    (tmp_path / "p0.facts").write_text("x" * 1024 + "\n")
    steps = "".join(f".decl p{n}(s:symbol)\np{n}(cat(s, s)) :- p{n - 1}(s).\n" for n in range(1, 21))
    (tmp_path / "prog.dl").write_text(f".decl p0(s:symbol)\n.input p0\n{steps}.output p20\n")
    places = ["-F", tmp_path, "-D", tmp_path, "--master", cluster.url, "--memory", "700m"]
    done = everlog("run", tmp_path / "prog.dl", "--engine", "spark", *places, "--conf", "spark.task.maxFailures=1")
    assert done.returncode == 1
    assert "memory" in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "p20.csv").exists()

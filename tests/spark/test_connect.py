"""Spark Connect: a server and a driver in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from cluster import connect_server
from conftest import require_spark

from everlog import compile_file
from everlog.core.evaluate.seminaive import evaluate

pytestmark = [pytest.mark.spark, pytest.mark.deep]

PROGRAM = """.decl edge(x:symbol, y:symbol, n:number)
.input edge
.decl path(x:symbol, y:symbol)
.output path
.decl meet(x:symbol, y:symbol)
.output meet
.decl far(x:symbol, total:number)
.output far
.decl sink(x:symbol)
.output sink
.decl ring(x:symbol, y:symbol, z:symbol)
.output ring
path(x, y) :- edge(x, y, _).
path(x, z) :- path(x, y), edge(y, z, _).
meet(x, y) :- edge(a, x, _), edge(a, y, _), x != y.
meet(x, y) :- edge(a, x, _), meet(a, b), edge(b, y, _).
far(cat(x, "!"), total) :- edge(x, _, _), total = sum n * 3 : { edge(x, _, n) }.
sink(y) :- edge(_, y, _), !edge(y, _, _).
ring(x, y, z) :- edge(x, y, _), edge(y, z, _), edge(z, x, _).
"""
EDGES = [("a", "b", 1), ("b", "c", 2), ("a", "d", -5), ("d", "e", 7), ("e", "a", 1 << 40), ("c", "é", 0)]


IN_A_WAY = """
import sys
from everlog import compile_file
from everlog.spark_backend.evaluate import evaluate
from everlog.spark_backend.spark_session import spark_session
from everlog.spark_backend.settings import Settings

spark = spark_session(sys.argv[1])
found = evaluate(spark, compile_file(sys.argv[2])[0], {"edge": EDGES}, Settings(recursion=sys.argv[3], cyclic="cube"))
for name in ("path", "meet", "ring"):
    print(sorted(tuple(row) for row in found[name].collect()))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_spark()
    if find_spec("grpc") is None:
        pytest.skip("grpc is not installed: pip install 'pyspark[connect]'")
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "edge.facts").write_text("".join("\t".join(map(str, edge)) + "\n" for edge in EDGES))
    path = tmp_path / "p.dl"
    path.write_text(PROGRAM)
    return path


def python(*arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "SPARK_HOME"}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_runs_over_connect(server: str, program: Path) -> None:
    written = []
    for name, flags in {"here": [], "there": ["--engine", "spark", "--master", server]}.items():
        out = program.parent / name
        out.mkdir()
        python("-m", "everlog", "run", str(program), "-F", str(program.parent), "-D", str(out), *flags)
        written.append({path.name: path.read_text() for path in sorted(out.glob("*.csv"))})
    assert written[0] == written[1]
    assert len(written[0]) == 5


@pytest.mark.parametrize("recursion", ["iterated", "decomposed"])
def test_recursion_and_cyclic_joins_over_connect(server: str, program: Path, recursion: str) -> None:
    told = python("-c", IN_A_WAY.replace("EDGES", repr(EDGES)), server, str(program), recursion).splitlines()
    relations = evaluate(compile_file(program)[0], {"edge": EDGES})
    assert told == [str(sorted(relations.rows(name))) for name in ("path", "meet", "ring")]

"""Starting Spark: the errors if it cannot start, and failures while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import require_spark

from everlog.core.program.values import EvaluationError
from everlog.spark_backend.errors import SparkError, clear_errors, explained
from everlog.spark_backend.spark_session import STACK, settings_of, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("master", "memory", "message"),
    [
        ("cluster", None, "`cluster` is not a Spark master: write local"),
        ("local[x]", None, "is not a Spark master"),
        ("local[0]", None, "is not a Spark master"),
        ("spark://127.0.0.1:1", None, r"cannot reach the master spark://127.0.0.1:1 \(.*Connection refused\)"),
        ("spark://no-such-host.invalid:7077", None, "cannot reach the master"),
        ("local[1]", "4 gigabytes", "`4 gigabytes` is not a size of memory: write it as 800m or 4g"),
        ("local[1]", "100m", "100m of memory is too little for Spark"),
    ],
)
def test_a_failing_start_is_reported_at_once(master: str, memory: str | None, message: str) -> None:
    require_spark()
    with pytest.raises(SparkError, match=message):
        spark_session(master, memory=memory)


def test_pyspark_that_is_missing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkError, match=r"pyspark cannot be imported: `pip install 'everlog\[spark\]'`"):
        spark_session("local[1]")


def test_a_session_that_runs_is_taken_and_another_master_is_an_error(spark: SparkSession) -> None:
    assert spark_session("local[2]", conf={"spark.sql.shuffle.partitions": "2"}) is spark
    with pytest.raises(SparkError, match=r"already has a Spark session at local\[2\]"):
        spark_session("local[1]")
    with pytest.raises(SparkError, match=r"spark\.ui\.port cannot be changed while Spark runs"):
        spark_session("local[2]", conf={"spark.ui.port": "99"})


def test_what_the_caller_sets_goes_before_ours() -> None:
    conf = {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Dmine=1"}
    settings = settings_of("local[2]", "2g", conf)
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.memory"] == "2g"
    assert settings["spark.driver.extraJavaOptions"].endswith(f"{STACK} -XX:+ExitOnOutOfMemoryError -Dmine=1")
    assert (
        "log4j2" not in settings_of("local[2]", None, {"spark.log.level": "INFO"})["spark.driver.extraJavaOptions"]
    )
    far = settings_of("spark://far:7077", None, {"spark.executor.extraJavaOptions": "-Dmine=1"})
    assert far["spark.executor.extraJavaOptions"] == f"{STACK} -Dmine=1"
    assert settings_of("spark://far:7077", "3g", {})["spark.executor.memory"] == "3g"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Job aborted … java.lang.OutOfMemoryError: Java heap space", "Spark ran out of memory"),
        ("ExecutorLostFailure (executor 1 exited …) Reason: Command exited with code 137", "an executor ran out"),
        ("Total size of serialized results is bigger than spark.driver.maxResultSize", "the driver ran out"),
        ("All masters are unresponsive! Giving up.", "the master does not answer"),
        ("java.lang.StackOverflowError", "nested too deeply for Java's stack"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "lacks pyarrow or pandas"),
        ('Cannot run program "/opt/python": error=2', "cannot start Python"),
        ("java.io.IOException: No space left on device", "a disk is full"),
    ],
)
def test_causes_are_known_by_their_marks(text: str, message: str) -> None:
    found = explained(RuntimeError(text))
    assert isinstance(found, SparkError)
    assert message in str(found)


def test_errors_of_ours_pass_as_they_are() -> None:
    with pytest.raises(EvaluationError, match="division by zero"), clear_errors():
        raise EvaluationError("division by zero: OutOfMemoryError")
    with pytest.raises(KeyError), clear_errors():
        raise KeyError("unknown")


@pytest.mark.deep  # how a Java that is out of memory ends is not always the same
def test_a_process_that_runs_out_of_memory_says_so(tmp_path: Path) -> None:
    """A symbol of a gigabyte in half a gigabyte of heap."""
    require_spark()
    (tmp_path / "p0.facts").write_text("x" * 1024 + "\n")
    steps = "".join(f".decl p{n}(s:symbol)\np{n}(cat(s, s)) :- p{n - 1}(s).\n" for n in range(1, 21))
    (tmp_path / "prog.dl").write_text(f".decl p0(s:symbol)\n.input p0\n{steps}.output p20\n")
    run = ["run", tmp_path / "prog.dl", "-F", tmp_path, "-D", tmp_path]
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "everlog",
            *run,
            "--engine",
            "spark",
            "--master",
            "local[1]",
            "--memory",
            "512m",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: Spark")
    assert "memory" in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) < 5, done.stderr
    assert not (tmp_path / "p20.csv").exists()


@pytest.mark.parametrize("seconds", [0.5, pytest.param(15, marks=pytest.mark.deep)], ids=["starting", "at work"])
def test_ctrl_c_ends_python_and_java_with_one_line(tmp_path: Path, seconds: float) -> None:
    """So long after Java has been started; it must not stay behind."""
    require_spark()
    (tmp_path / "prog.dl").write_text(
        ".decl v(x:number)\nv(x) :- x = range(0, 3000).\n"
        ".decl p(n:number)\np(n) :- n = count : { v(x), v(y), v(z), x + y * z > 5 }.\n.output p\n"
    )
    command = [
        sys.executable,
        "-P",
        "-m",
        "everlog",
        "run",
        "prog.dl",
        "--engine",
        "spark",
        "--master",
        "local[2]",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not _children(process.pid):
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    until = time.monotonic() + 30
    while _session(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _session(process.pid)


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def _session(leader: int) -> list[int]:
    """The processes that a leader and its children have started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            after_name = (place / "stat").read_text().rpartition(")")[2].split()
            if int(after_name[3]) == leader and after_name[0] != "Z":
                found.append(int(place.name))
    return found

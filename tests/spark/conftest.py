"""Fixtures of the tests on Spark: one session for all, one cluster where needed.

If pyspark or Java is missing, the tests are skipped, and say which.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests/spark/cluster.py

from cluster import QUICK_JAVA

if TYPE_CHECKING:
    from cluster import Cluster
    from pyspark.sql import SparkSession


def require_spark() -> None:
    """Skip, with the reason, where Spark cannot run."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    import pyspark

    from everlog.spark_backend.java import NoJava, find_java

    try:
        find_java(pyspark.__version__)
    except NoJava as problem:
        pytest.skip(str(problem).splitlines()[0])


LIMITS = {"usual": 300, "deep": 1800}  # seconds of a test, a start of Spark among them


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that hangs, and show the stacks: Python may wait for a dead Java."""
    if not item.get_closest_marker("spark"):
        return (yield)
    seconds = LIMITS["deep" if item.get_closest_marker("deep") else "usual"]

    def stop(_signal: int, _frame: object) -> None:
        faulthandler.dump_traceback(sys.__stderr__ or 2)
        raise TimeoutError(f"{item.nodeid} stood still for {seconds} s")

    signal.alarm(seconds)  # first: a tick of a step before would be taken for it
    before = signal.signal(signal.SIGALRM, stop)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Java ignores `chdir`: with a relative path, Spark would make a folder here."""
    before = set(os.listdir())
    yield
    left = {name for name in set(os.listdir()) - before if not name.startswith(".")}
    assert not left, f"tests on Spark left {sorted(left)} in {os.getcwd()}"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for the whole run, in this process."""
    require_spark()
    from everlog.spark_backend.spark_session import spark_session

    folder = tmp_path_factory.mktemp("spark")  # tables, and the log of Derby, the database that Spark brings
    conf = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} {QUICK_JAVA}",
    }
    session = spark_session("local[2]", app="everlog tests", memory="2g", conf=conf)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A master and two workers, each its own Java process."""
    require_spark()
    from cluster import Cluster

    with Cluster.started(workers=2) as running:
        yield running

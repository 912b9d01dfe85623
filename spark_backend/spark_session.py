"""A Spark session with settings for Datalog: a Java, quiet logs, fast small jobs.

Spark's defaults are for few large jobs.  Recursion runs many small ones, where fixed costs
dominate: 200 partitions for a handful of rows, a web server, a progress bar, log lines per job.
`SETTINGS` has our values with their reasons; the caller's `conf` overrides them.

Foreseeable failures (no pyspark, no Java, an unreachable master) are reported before Spark starts,
since Spark itself would report them after a minute, in a hundred lines.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everlog.spark_backend.errors import SparkError, clear_errors, explained
from everlog.spark_backend.interrupts import cancel_on_interrupt, interrupts_wait
from everlog.spark_backend.java import Java, find_java, launching_home
from everlog.spark_backend.shipping import package_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",  # a web server per run: 0.3 s, and a port
    "spark.ui.showConsoleProgress": "false",  # we report progress ourselves, by stratum and iteration
    "spark.sql.execution.arrow.pyspark.enabled": "true",  # columns, not pickled rows, between Python and Java
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.localRelationThreshold": "1MB",  # larger tables are not part of the plan
    "spark.sql.requireAllClusterKeysForCoPartition": "false",  # a frame by x serves a join on (x, y) in place
    "spark.sql.session.timeZone": "UTC",
    "spark.cleaner.periodicGC.interval": "5min",  # Java's collections free checkpoints of old iterations
    "spark.python.worker.reuse": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # saves three calls of Java per operation
    "spark.executorEnv.PYTHONSAFEPATH": "1",  # tasks import installed modules, not files of their folder
}
# Spark walks plans recursively.  If a thread dies of a full stack or heap, threads that wait for
# its result (`toArrow` among them) wait for ever.  So stacks are large, and a full heap ends the
# process.
STACK = "-Xss16m"
_DRIVER_JAVA = f"{STACK} -XX:+ExitOnOutOfMemoryError"
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # spark-submit sets it for the driver that it starts
_WAIT = "spark.scheduler.maxRegisteredResourcesWaitingTime"
_DEFAULT_WAIT = "60s"
_LOCAL = re.compile(r"local(?:\[(\*|[1-9]\d*)(?:,\d+)?\])?")
_STANDALONE = re.compile(r"spark://([^:/,\s]+:\d+(?:,[^:/,\s]+:\d+)*)")
_LOOPBACK = re.compile(r"spark://(127\.0\.0\.1|localhost):")
_MEMORY = re.compile(r"(\d+)([kmgt])b?", re.IGNORECASE)
_LEAST_MEMORY = 512 << 20  # Spark refuses to start with less than 450 MiB


def spark_session(
    master: str = "local[*]",
    *,
    app: str = "everlog",
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session at a master: `local[2]`, `spark://host:7077`, `yarn`, `k8s://…`, ….

    `sc://…` is Spark Connect.  In a program that `spark-submit` has started, its own master counts.
    `memory` is the heap of the process for a local master, else of each executor: "800m", "4g".
    `conf` are settings of Spark, which override ours.  A session of this process with the same
    master is reused.  SparkError explains a failure.
    """
    conf = dict(conf or {})
    _require_pyspark()
    if SUBMITTED in os.environ:
        return _submitted(app, conf)
    check_master(master, memory)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None and not master.startswith("sc://"):
        return _reused(running, master, conf)
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # not used here
    with clear_errors():
        if master.startswith("sc://"):
            return _connected(master, app, conf)
        return _started(master, app, memory, conf)


def stop(spark: SparkSession) -> None:
    """Stop a session, even if its Java process has ended."""
    with suppress(Exception):
        spark.stop()


def is_local(master: str) -> bool:
    """Whether a master is this machine.

    >>> is_local("local[2]"), is_local("local"), is_local("spark://host:7077")
    (True, True, False)
    """
    return _LOCAL.fullmatch(master) is not None


# ── before Spark starts ──────────────────────────────────────────────────────────────────────


def _require_pyspark() -> None:
    missing = []
    for package in ("pyspark", "pyarrow", "pandas"):
        try:
            __import__(package)
        except ImportError:
            missing.append(package)
    if missing:
        raise SparkError(f"{' and '.join(missing)} cannot be imported: `pip install 'everlog[spark]'` brings it")


def check_master(master: str, memory: str | None) -> None:
    """Raise SparkError if no session can be started there."""
    standalone = _STANDALONE.fullmatch(master)
    if standalone is not None:
        _reach(master, standalone[1].split(","))
    elif not (is_local(master) or master == "yarn" or master.startswith(("k8s://", "sc://"))):
        raise SparkError(
            f"`{master}` is not a Spark master: write local[2], local[*], spark://HOST:PORT, yarn, k8s://…"
            " or sc://HOST:PORT (Spark Connect)"
        )
    if memory is not None and memory_bytes(memory) < _LEAST_MEMORY:
        raise SparkError(f"{memory} of memory is too little for Spark: it needs at least 512m")


def memory_bytes(text: str) -> int:
    """The bytes of a size such as 800m.

    >>> memory_bytes("800m"), memory_bytes("2g")
    (838860800, 2147483648)
    """
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise SparkError(f"`{text}` is not a size of memory: write it as 800m or 4g")
    return int(found[1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[found[2].lower()]


def _reach(master: str, places: list[str]) -> None:
    """Raise SparkError unless one of the masters accepts a connection."""
    problems = []
    for place in places:
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except (OSError, OverflowError) as problem:
            why = (isinstance(problem, OSError) and problem.strerror) or str(problem)
            problems.append(f"{place}: {why}")
        else:
            return
    raise SparkError(
        f"cannot reach the master {master} ({'; '.join(problems)}): is it running, and is the port right?"
    )


# ── starting ─────────────────────────────────────────────────────────────────────────────────


def _started(master: str, app: str, memory: str | None, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    java = prepare_environment(master)
    settings: dict[str, Any] = dict(settings_of(master, memory, conf))
    builder = SparkSession.builder.master(master).appName(app).config(map=settings)
    try:
        with interrupts_wait():
            spark = builder.getOrCreate()
    except KeyboardInterrupt:
        if (begun := SparkSession.getActiveSession()) is not None:
            stop(begun)
        raise
    except Exception as error:
        raise explained(error) or SparkError(f"Spark did not start with {java}: {_first_line(error)}") from error
    cancel_on_interrupt(spark)
    if not is_local(master):
        _await_executor(spark, master)
        spark.sparkContext.addPyFile(str(package_archive()))
    _set_partitions(spark, conf)
    return spark


def prepare_environment(master: str) -> Java:
    """Set the environment in which Spark's scripts find Java and Python."""
    import pyspark

    java = find_java(pyspark.__version__)
    os.environ["JAVA_HOME"] = str(launching_home(java))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master) or _LOOPBACK.match(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return java


def settings_of(master: str, memory: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of a new session."""
    settings = dict(SETTINGS)
    if is_local(master):
        settings["spark.driver.memory"] = memory or f"{_default_memory() >> 20}m"
    elif memory is not None:
        settings["spark.executor.memory"] = memory
    if is_local(master) or _LOOPBACK.match(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if _LOOPBACK.match(master):
        settings["spark.checkpoint.dir"] = str(_folder("everlog-checkpoints-"))  # everything is on this machine
    settings |= conf
    driver, executor = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
    quiet = "" if "spark.log.level" in conf else f'-Dlog4j2.configurationFile="{_quiet_log().as_uri()}" '
    settings[driver] = f"{quiet}{_DRIVER_JAVA} {conf.get(driver, '')}".strip()
    if not is_local(master):
        settings[executor] = f"{STACK} {conf.get(executor, '')}".strip()
    return settings


def _default_memory() -> int:
    """A quarter of the machine's memory, from 1 to 4 GiB."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 30
    return min(max(whole // 4, 1 << 30), 4 << 30)


def _reused(running: SparkSession, master: str, conf: Mapping[str, str]) -> SparkSession:
    there = running.conf.get("spark.master", "")
    if there != master:
        raise SparkError(
            f"this process already has a Spark session at {there}; stop it before you start one at {master}"
        )
    for key, value in conf.items():
        if running.conf.isModifiable(key):
            running.conf.set(key, value)
        elif running.conf.get(key, None) != value:
            raise SparkError(f"{key} cannot be changed while Spark runs: stop the session first")
    return running


def _submitted(app: str, conf: Mapping[str, str]) -> SparkSession:
    """The session of a driver that spark-submit has started, with its own settings."""
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    with clear_errors():
        spark = SparkSession.builder.appName(app).config(map=dict(conf)).getOrCreate()
        master = spark.conf.get("spark.master", "") or ""
        if not is_local(master):
            _await_executor(spark, master)
    for key, value in SETTINGS.items():
        if key.startswith("spark.sql.") and key not in conf and spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    _set_partitions(spark, conf)
    return spark


def _set_partitions(spark: SparkSession, conf: Mapping[str, str]) -> None:
    """Use as many partitions as cores; Spark's 200 are for large clusters."""
    if "spark.sql.shuffle.partitions" not in conf:
        spark.conf.set("spark.sql.shuffle.partitions", str(max(2, spark.sparkContext.defaultParallelism)))


def _connected(master: str, app: str, conf: Mapping[str, str]) -> SparkSession:
    """A Spark Connect session: the server has its own Java and settings."""
    from pyspark.sql import SparkSession

    ours = {key: value for key, value in SETTINGS.items() if key.startswith("spark.sql.")}
    try:
        spark: SparkSession = SparkSession.builder.remote(master).appName(app).getOrCreate()
        spark.addArtifacts(str(package_archive()), pyfile=True)
    except Exception as error:
        raise SparkError(f"cannot reach the Spark Connect server {master}: {_first_line(error)}") from error
    for key, value in (ours | dict(conf)).items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    return spark


def _await_executor(spark: SparkSession, master: str) -> None:
    """Wait for an executor; a cluster without a free worker would block for ever."""
    wait = _seconds(spark.conf.get(_WAIT, _DEFAULT_WAIT) or _DEFAULT_WAIT)
    until = time.monotonic() + wait
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    while len(tracker.getExecutorInfos()) < 2:  # the driver counts as one
        if time.monotonic() > until:
            memory = spark.conf.get("spark.executor.memory", "1g")
            spark.stop()
            raise SparkError(
                f"{master} gave no executor within {wait:.0f} s: does it have live workers with {memory}"
                " of memory and a free core? Ask for less (`--memory 800m`), or wait until other applications end"
            )
        time.sleep(0.1)


def _seconds(text: str) -> float:
    """The seconds of a time such as 30s.

    >>> _seconds("8s"), _seconds("1500ms"), _seconds("2min"), _seconds("30")
    (8.0, 1.5, 120, 30.0)
    """
    found = re.fullmatch(r"(\d+)(ms|s|m|min|h)?", text.strip().lower())
    if found is None:
        raise SparkError(f"{_WAIT}={text} is not a time: write it as 30s")
    return int(found[1]) * {"ms": 0.001, "m": 60, "min": 60, "h": 3600}.get(found[2] or "s", 1.0)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# ── quiet logs ───────────────────────────────────────────────────────────────────────────────

# Errors of tasks come back as exceptions; the log would repeat each three times, with its stack.
_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n%throwable{0}
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
_SILENT = (
    "org.apache.spark.TaskContextImpl",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.scheduler.TaskSchedulerImpl",
    "org.apache.spark.scheduler.cluster",
    "org.apache.spark.api.python",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.sql.execution.datasources.v2",
    "org.apache.spark.util.Utils",
    "org.apache.spark.network",
    "org.apache.spark.storage",
    "org.apache.spark.rpc",
    "org.apache.spark.ContextCleaner",
)


@lru_cache(maxsize=1)
def _quiet_log() -> Path:
    folder = _folder("everlog-log-")
    lines = [_LOG]
    for number, name in enumerate(_SILENT):
        lines.append(f"logger.l{number}.name = {name}\nlogger.l{number}.level = off\n")
    path = folder / "log4j2.properties"
    path.write_text("".join(lines))
    return path


def _folder(prefix: str) -> Path:
    """A folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

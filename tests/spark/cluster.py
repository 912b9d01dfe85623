"""A real cluster on loopback from the installed pyspark: Master and Workers.

`spark-class` starts each as its own process, as on any machine.  The system chooses ports: the
Master's is read from its log, so two test runs do not collide.  Every process is ended by its own
pid, executors with the worker that started them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import define, field

# Processes that live for seconds: the second compiler of Java, and collectors in threads of their
# own, cost more than they save.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_START = 120.0  # seconds that a process has to say that it is up


@define
class Node:
    """A Master or a Worker, with the file that has its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def await_line(self, pattern: str) -> re.Match[str]:
        """Wait until the log has a line like this."""
        until = time.monotonic() + _START
        while time.monotonic() < until:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            if found is not None:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{self.log.name} does not come up:\n{self.log.read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """Kill the process and those it started, as when a machine goes down."""
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@define
class Cluster:
    master: Node
    url: str
    folder: Path
    workers: list[Node] = field(factory=list)

    @classmethod
    @contextmanager
    def started(cls, workers: int, cores: int = 1, memory: str = "1500m") -> Iterator[Cluster]:
        folder = Path(tempfile.mkdtemp(prefix="everlog-cluster-"))
        nodes: list[Node] = []
        try:
            master = _start(folder, "master", "org.apache.spark.deploy.master.Master", "--port", "0")
            nodes.append(master)
            url = master.await_line(r"Starting Spark master at (spark://\S+)")[1]
            cluster = cls(master, url, folder, nodes[1:])
            for _ in range(workers):
                nodes.append(cluster.add_worker(cores, memory))
            yield cluster
            nodes = [master, *cluster.workers]
        finally:
            for node in reversed(nodes):
                node.kill()
            shutil.rmtree(folder, ignore_errors=True)

    def add_worker(self, cores: int = 1, memory: str = "1500m") -> Node:
        name = f"worker{len(self.workers)}"
        resources = ["--cores", str(cores), "--memory", memory, "--work-dir", str(self.folder / name)]
        node = _start(self.folder, name, "org.apache.spark.deploy.worker.Worker", *resources, self.url)
        self.workers.append(node)
        node.await_line(r"Successfully registered with master")
        return node


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A server of Spark Connect, a process of its own; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.checkpoint.dir": str(folder / "checkpoints"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    node = _run(folder, "connect", "1g", *command)
    try:
        until = time.monotonic() + _START
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except OSError:
                if time.monotonic() > until or node.process.poll() is not None:
                    raise RuntimeError(node.log.read_text(errors="replace")[-3000:]) from None
                time.sleep(0.1)
            else:
                break
        yield f"sc://127.0.0.1:{port}"
    finally:
        node.kill()


def _start(folder: Path, name: str, main: str, *arguments: str) -> Node:
    return _run(folder, name, "256m", main, "--host", "127.0.0.1", "--webui-port", "0", *arguments)


def _run(folder: Path, name: str, memory: str, *command: str) -> Node:
    import pyspark

    from everlog.spark_backend.java import find_java, launching_home

    home = Path(str(pyspark.__file__)).parent
    environment = dict(os.environ)
    environment |= {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(launching_home(find_java(pyspark.__version__))),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        started = [str(home / "bin" / "spark-class"), *command]
        process = subprocess.Popen(started, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    return Node(process, log)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with the one that started it."""
    if Path("/proc/self/stat").exists():
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended
                yield int(stat.parent.name), int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        return
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        child, parent = map(int, line.split())
        yield child, parent

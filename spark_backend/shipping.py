"""Our own package and its pure Python dependencies, as an archive for executors.

A task that runs the in-process engine imports it, but on a cluster it is not installed.  So a
session on another machine adds this archive; Spark puts it on the path of every Python worker.
Executors then need only Python of our version with pyarrow and pandas.
"""

from __future__ import annotations

import atexit
import pickle
import pkgutil
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

_OURS = ("everlog", "everlog.core", "everlog.dsl", "everlog.ies", "everlog.spark_backend")
_THEIRS = ("attr", "attrs", "lark", "sortedcontainers")  # pure Python packages
_JOB = "everlog_job"  # the package that holds the job
_KEPT = {".py", ".lark", ".typed"}


@lru_cache(maxsize=1)
def package_archive() -> Path:
    """A zip file with `everlog` and its dependencies, removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="everlog-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "everlog_package.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        written: set[str] = set()
        for name, source in _files():
            if name not in written:
                written.add(name)
                archive.write(source, name)
    return path


def _files() -> Iterator[tuple[str, Path]]:
    """Each file with its name in the archive; subpackages may be elsewhere."""
    for package in _OURS + _THEIRS:
        root = Path(str(import_module(package).__file__)).parent
        top = Path(*package.split("."))
        for source in sorted(root.rglob("*")):
            if source.suffix in _KEPT and "__pycache__" not in source.parts:
                yield (top / source.relative_to(root)).as_posix(), source


def archive_with(job: object, folder: Path) -> Path:
    """The archive with a pickled job, in a folder; users' functions go by value."""
    from pyspark import cloudpickle

    pickled: bytes = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]  # pyspark says no types of it
    archive = folder / f"{_JOB}.zip"
    shutil.copy(package_archive(), archive)
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as added:
        added.writestr(f"{_JOB}/__init__.py", "")
        added.writestr(f"{_JOB}/job.pickle", pickled)
    return archive


def shipped() -> Any:
    """The job of the archive, in a driver that was started with it."""
    data = pkgutil.get_data(_JOB, "job.pickle")
    assert data is not None, "the archive has the job"
    return pickle.loads(data)


def spark_submit() -> Path:
    """The `spark-submit` of the installed pyspark."""
    import pyspark

    return Path(str(pyspark.__file__)).parent / "bin" / "spark-submit"

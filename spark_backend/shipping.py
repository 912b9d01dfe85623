"""Our own package, and the pure Python that it needs, as one archive that Spark sends to executors.

A task that runs the in-process engine imports it, and on a cluster nobody has installed it there.
So whatever starts a session away from this machine adds this archive; Spark puts it on the path of
every Python worker.  Executors then need Python of our version with pyarrow and pandas, and nothing
of ours.
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
_THEIRS = ("attr", "attrs", "lark", "sortedcontainers")  # no code in C in any of them
_JOB = "everlog_job"  # the package that holds what is to be done
_KEPT = {".py", ".lark", ".typed"}


@lru_cache(maxsize=1)
def package_archive() -> Path:
    """A zip file with `everlog` and what it imports; it goes when this process does."""
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
    """Each file's name in the archive, and the file; subpackages may lie elsewhere in the source
    tree.
    """
    for package in _OURS + _THEIRS:
        root = Path(str(import_module(package).__file__)).parent
        top = Path(*package.split("."))
        for source in sorted(root.rglob("*")):
            if source.suffix in _KEPT and "__pycache__" not in source.parts:
                yield (top / source.relative_to(root)).as_posix(), source


def archive_with(job: object, folder: Path) -> Path:
    """The archive with something to do beside the package (functions of users by value), made in a
    folder.
    """
    from pyspark import cloudpickle

    pickled: bytes = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]  # pyspark says no types of it
    archive = folder / f"{_JOB}.zip"
    shutil.copy(package_archive(), archive)
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as added:
        added.writestr(f"{_JOB}/__init__.py", "")
        added.writestr(f"{_JOB}/job.pickle", pickled)
    return archive


def shipped() -> Any:
    """In a driver that was sent with such an archive: what is to be done."""
    data = pkgutil.get_data(_JOB, "job.pickle")
    assert data is not None, "the archive has the job"
    return pickle.loads(data)


def spark_submit() -> Path:
    """The command of the pyspark that is installed here."""
    import pyspark

    return Path(str(pyspark.__file__)).parent / "bin" / "spark-submit"

"""A temporary PostgreSQL server for the tests, on a Unix socket only.

It comes from Debian's packages.  The server refuses to run as root, so as root it runs as the user
`postgres`.  It is ended by its process id.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BINARIES = Path("/usr/lib/postgresql/15/bin")


def missing() -> str | None:
    """Why there is no server here, or None."""
    if not (BINARIES / "postgres").exists():
        return f"no PostgreSQL server in {BINARIES} (Debian's package postgresql-15)"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "no psycopg (pip install everlog[sql])"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "root may not run the server, and there is no user `postgres`"
    return None


@contextmanager
def server(*more: str) -> Iterator[str]:
    """A fresh server with these settings; yields the arguments of psycopg.connect."""
    folder = Path(tempfile.mkdtemp(prefix="everlog-postgres-"))
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    who = {"user": user.pw_uid, "group": user.pw_gid} if os.geteuid() == 0 else {}
    os.chown(folder, user.pw_uid, user.pw_gid)
    process: subprocess.Popen[bytes] | None = None
    try:
        data = folder / "data"
        make = [
            BINARIES / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        ]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, cwd=folder, **who)
        settings = [
            "fsync=off",
            "listen_addresses=",
            f"unix_socket_directories={folder}",
            "shared_buffers=32MB",
            *more,
        ]
        run = [BINARIES / "postgres", "-D", data, *(word for one in settings for word in ("-c", one))]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(run, stdout=log, stderr=log, cwd=folder, start_new_session=True, **who)
        target = f"host={folder} user=postgres dbname=postgres"
        _wait(process, target, folder / "log")
        yield target
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # an immediate shutdown: nothing here is to be kept
            process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], target: str, log: Path) -> None:
    import psycopg

    end = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(target).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(log.read_text()) from None
            time.sleep(0.05)

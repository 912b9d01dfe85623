"""A server of static files for tests of built pages, and the built playground."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

import pytest

PLAYGROUND = Path(__file__).parent.parent / "web" / "playground"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class StaticServer:
    """The files of a folder on a free port of this machine, as long as the block."""

    def __init__(self, folder: Path) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self._http.server_port}/"

    def __enter__(self) -> StaticServer:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()


def playground(out: Path) -> Path:
    """Build the playground; the test fails with a word if npm is missing."""
    if not (PLAYGROUND / "node_modules" / "pyodide").is_dir():
        if shutil.which("npm") is None:
            pytest.fail("npm is missing: the playground is built with Node (Debian: apt-get install npm)")
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=PLAYGROUND, check=True)
    subprocess.run([sys.executable, "-P", str(PLAYGROUND / "build.py"), str(out)], check=True)
    return out

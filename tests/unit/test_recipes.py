"""The recipe with PostgreSQL, as its page says, on a server of its own.

The other recipes run with all examples, in `test_docs.py`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import postgres
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "recipes" / "alerts.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def everlog(line: str, url: str, folder: Path) -> str:
    """What a line of the page prints, with the address of this server."""
    words = shlex.split(line.replace("\\\n", " ").replace("postgresql://localhost/bank", url))
    assert words[0] == "everlog"
    command = [sys.executable, "-P", "-m", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.deep  # four runs against a server that is started
def test_alerts_from_a_table_of_postgresql(tmp_path: Path) -> None:
    if why := postgres.missing():
        pytest.skip(why)
    import psycopg

    (create,), (program,) = blocks("sql"), blocks("dl")
    once, live, ask = blocks("sh")
    alerts, proof = blocks("text")
    (tmp_path / "alerts.dl").write_text(program)
    with postgres.server() as place, psycopg.connect(place, autocommit=True) as bank:
        url = f"postgresql:///?{place.replace(' ', '&')}"

        def now() -> list[tuple[str, str]]:
            return bank.execute("SELECT sender, account FROM alert ORDER BY 1").fetchall()

        bank.execute(create)
        everlog(once, url, tmp_path)
        assert now() == [("ann", "cy"), ("bob", "cy")]
        shown = [f" {sender:<7}| {account}" for sender, account in now()]
        assert shown == alerts.splitlines()[2:]
        ending = live.replace("--live", "")  # the same without waiting for ever
        everlog(ending, url, tmp_path)
        assert everlog(ask, url, tmp_path) == proof
        bank.execute("DELETE FROM payment WHERE id = 2")
        bank.execute("INSERT INTO payment VALUES (4, 'dan', 'cy', 500)")
        everlog(ending, url, tmp_path)
        assert now() == [("dan", "cy")]
        bank.execute("DELETE FROM flagged")
        everlog(ending, url, tmp_path)
        assert now() == []

"""A user's program, checked by mypy --strict against the installed package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed (extra `dev`)")

PROGRAM = """
from __future__ import annotations

import asyncio
from collections.abc import Mapping

import everlog
from everlog import Changes, Database, DatalogError, FactError, Limits, QueryError, Result, Subscription, Update

db: Database = Database.from_text(".decl edge(x:number, y:number)", limits=Limits(seconds=5))
db["edge"] += [(1, 2), (2, 3)]
changes: Changes = db.insert("edge", (3, 4))
signed: Mapping[tuple[int | float | str, ...], int] = changes["edge"]
db["edge"].delete([(1, 2)])
found: Result = db.query("edge(x, y), x > 1")
names: tuple[str, ...] = found.columns
for x, y in found:
    print(x, y)
first: tuple[int | float | str, ...] = found[0]
rows: list[tuple[int | float | str, ...]] = found.rows() + found[1:] + db["edge"].rows()
inside: bool = (1, 2) in db["edge"] and db.holds("edge", (1, 2))


def told(changes: Changes) -> None:
    print(changes.inserted("edge"))


subscription: Subscription = db.subscribe("edge", told)
with db.transaction() as tx:
    tx.insert("edge", (7, 8))
    tx.apply([Update("edge", (8, 9)), "+edge(9, 9).", ("edge", (1, 1), +1)])


async def main() -> None:
    async with db.watch("edge") as steps:
        async for step in steps:
            told(step)


try:
    asyncio.run(main())
    frame = found.to_pandas()
    print(frame.shape, found.to_polars(), found.to_arrow())
except (DatalogError, FactError, QueryError) as error:
    print(error)
print(db.why("edge(1, 2)").text(), everlog.__version__, everlog.evaluate(everlog.compile_text("")))
"""

WRONG = """
from everlog import Database

db = Database.from_text("")
db.insert(1)
db.query("edge(x, y)").column
total: int = db.query("edge(x, y)")[0]
db.nothing
"""


def mypy(folder: Path, text: str) -> str:
    (folder / "program.py").write_text(text)
    cache = folder.parent / "mypy_cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600).stdout


def test_a_typed_program_passes_and_mistakes_are_found(tmp_path: Path) -> None:
    assert re.fullmatch(r"Success: no issues found in 1 source file\n", mypy(tmp_path, PROGRAM))
    found = mypy(tmp_path, WRONG)
    assert [int(line) for line in re.findall(r"program\.py:(\d+): error", found)] == [5, 6, 7, 8], found

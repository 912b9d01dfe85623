"""Ten million rows of three numbers: load, one join, write; beside DuckDB on one thread.

    python -P bench/columns.py [--small] [--only csv]

Each side is a command of its own that reads the same files and writes its answer; DuckDB is told
that relations are sets, as everlog's are.  Printed are CPU seconds and peak memory of the commands
and their ratios.  DuckDB compares the answers.  CSV here is Soufflé's: tabs, and no header.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SIZE, SMALL = 10_000_000, 100_000
COLUMNS = {"r": "a b x", "s": "b c d", "q": "a x c"}
PROGRAM = """.decl r(a:number, b:number, x:number)
.decl s(b:number, c:number, d:number)
.decl q(a:number, x:number, c:number)
.input r{0} .input s{0} .output q{0}
q(a, x, c) :- r(a, b, x), s(b, c, _).
"""
IO = {"csv": "", "parquet": "(IO=parquet)"}
ENDS = {"csv": "facts", "parquet": "parquet"}
COPY = {"csv": "(format csv, delimiter '\t', header false)", "parquet": "(format parquet)"}
DUCKDB = """
import sys, duckdb
database = duckdb.connect()
database.execute("set enable_progress_bar = false")
for statement in sys.argv[1:]:
    rows = database.execute(statement).fetchall()
print(rows)
"""


class Used(NamedTuple):
    seconds: float
    megabytes: float


def source(way: str, name: str, path: str) -> str:
    """What DuckDB reads, with the columns of a relation."""
    if way == "parquet":
        return f"'{path}'"
    types = dict.fromkeys(COLUMNS[name].split(), "BIGINT")
    return f"read_csv('{path}', delim='\t', header=false, columns={types})"


def made(size: int) -> list[str]:
    """Statements that make the files: r has `size` rows, s a tenth."""
    key = f"(random() * {size // 10})::bigint"
    return [
        "select setseed(0.5)",
        f"create table r as select range // 2 as a, {key} as b, {key} as x from range({size})",
        f"create table s as select range as b, range * 7919 % 1000 as c, range % 50 as d from range({size // 10})",
        *(f"copy {name} to '{name}.{ENDS[way]}' {COPY[way]}" for name in "rs" for way in COPY),
    ]


def same_work(way: str) -> list[str]:
    """Statements that do what the program does."""
    read = {name: source(way, name, f"{name}.{ENDS[way]}") for name in "rs"}
    return [
        "set threads = 1",
        *(f"create table {name} as select distinct * from {what}" for name, what in read.items()),
        "create table q as select distinct a, x, c from r join s using (b)",
        f"copy q to 'duckdb.{way}' {COPY[way]}",
    ]


def differences(way: str) -> list[str]:
    one, other = (source(way, "q", f"{name}.{way}") for name in ("q", "duckdb"))
    rows = f"(from {one} except all from {other}) union all (from {other} except all from {one})"
    return [f"select count(*), (select count(*) from {one}) from ({rows})"]


def run(*command: str) -> tuple[Used, str]:
    """What a command takes, and what it prints."""
    process = subprocess.Popen([sys.executable, "-P", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command}: exit status {process.returncode}")
    return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), printed


def measured(way: str) -> None:
    """Run both sides, compare their answers, and print figures and ratios."""
    Path("program.dl").write_text(PROGRAM.format(IO[way]))
    sides = {
        "everlog": run("-m", "everlog", "run", "program.dl")[0],
        "DuckDB": run("-c", DUCKDB, *same_work(way))[0],
    }
    different, rows = (
        int(number) for number in run("-c", DUCKDB, *differences(way))[1].strip("[()]\n").split(",")
    )
    for side, used in sides.items():
        times = used.seconds / sides["DuckDB"].seconds, used.megabytes / sides["DuckDB"].megabytes
        figures = f"{used.seconds:7.2f} s {used.megabytes:7.0f} MB   {times[0]:5.2f} x {times[1]:5.2f} x"
        print(f"{way:<8} {side:<8} {figures}   {rows} rows" + ", OTHER ROWS" * bool(different), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--only", choices=IO, help="one format")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run("-c", DUCKDB, *made(SMALL if asked.small else SIZE))
        for way in IO if asked.only is None else [asked.only]:
            measured(way)
        os.chdir("/")


if __name__ == "__main__":
    main()

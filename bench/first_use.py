"""The time of first use: of the command, the prompt, a query, and each rule.

It measures `everlog --version` in a process of its own (wall time, the least of several), the
prompt in a pseudo-terminal until it accepts input, and the first row of a new query over a view of
a million facts.  Starting a prompt is computation, so its bar is for CPU seconds of its process, as
far as the system reports them; wall time is printed beside them.

A version is one rule for one event (a body atom gains, loses, …).  Its first run compiles it to
Python and builds the indexes that it needs.  This script loads every program with its facts,
compiles each version, and generates each path of a single update through the program (a function
per base relation).  The least of several fresh databases counts.

    python -P bench/first_use.py [--small] [--rounds 3]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_most, options

from everlog import Database
from everlog.core.engine.engine import Engine
from everlog.core.engine.fused import fused
from everlog.core.engine.stepping.store import RunRule, Task

MORE = "── more".encode()
EVERLOG = [sys.executable, "-P", "-m", "everlog"]


def main() -> None:
    asked = options(__doc__, rounds=3)
    door(asked.small)
    folder = Path(__file__).parent.parent / "programs"
    times: dict[tuple[str, str], float] = {}
    ways: dict[tuple[str, str], float] = {}
    for _ in range(1 if asked.small else asked.rounds):
        for path in sorted(folder.glob("*/*.dl")):
            for what, seconds, is_way in uses(path):
                key, of = (path.stem, what), ways if is_way else times
                of[key] = min(of.get(key, seconds), seconds)
    tell("version of a rule", times)
    tell("way of a single update", ways)
    prompt(1 if asked.small else 3 * asked.rounds)


def prompt(starts: int) -> None:
    if sys.platform == "win32":
        return  # no pseudo-terminals
    found = [seconds_of_prompt() for _ in range(starts)]
    print(f"the prompt, the least of {starts} starts:")
    print(f"  ready after {min(clock for (_, clock), _, _ in found):.2f} s on the clock")
    at_most("prompt ready", min(used for (used, _), _, _ in found), 0.4, "s")
    print(f"  first rule answered after {min(clock for _, (_, clock), _ in found):.2f} s on the clock")
    at_most("first page of 90 thousand million rows", min(page for _, _, page in found), 0.5, "s")


def seconds_of_prompt() -> tuple[tuple[float, float], tuple[float, float], float]:
    """Seconds to the prompt, to its first rule, and to the first page of a query."""
    import pty

    with tempfile.TemporaryDirectory() as state:
        start = time.perf_counter()
        child, terminal = pty.fork()
        if child == 0:
            os.environ |= {"TERM": "xterm", "XDG_STATE_HOME": state, "LINES": "24", "COLUMNS": "80"}
            os.execv(EVERLOG[0], EVERLOG)
        shown = read_until(terminal, b"", b"everlog>")
        ready = used_since(child, start)
        shown = answered_with(terminal, shown, b".decl n(x:number)", b"mn(x:number)")
        answered = used_since(child, start)
        shown = answered_with(terminal, shown, b"n(x) :- x = range(0, 300000), x >= 0.", b"n#1: no join")
        shown = stopped(terminal, read_until(terminal, shown, MORE))
        before = used_since(child, start)[0]
        shown = answered_with(terminal, shown, b"?- n(x), n(y), x != y.", MORE)
        page = used_since(child, start)[0] - before
        stopped(terminal, shown)
        os.write(terminal, b"\x04")
        read_until(terminal, b"", None)
        os.waitpid(child, 0)
    return ready, answered, page


def used_since(process: int, start: float) -> tuple[float, float]:
    """CPU and wall seconds of a process; wall time twice if CPU time is unknown."""
    clock = time.perf_counter() - start
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return clock, clock
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), clock


def stopped(terminal: int, shown: bytes) -> bytes:
    """Leave the pager, and wait for the prompt."""
    os.write(terminal, b"q")
    return read_until(terminal, shown, b"everlog>")


def answered_with(terminal: int, shown: bytes, line: bytes, answer: bytes) -> bytes:
    os.write(terminal, line + b"\r")
    return read_until(terminal, shown, answer)


def read_until(terminal: int, shown: bytes, wanted: bytes | None) -> bytes:
    """Read the terminal until a text appears (None: to the end); return the rest."""
    while wanted is None or wanted not in shown:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            data = b""
        if not data:
            assert wanted is None, shown
            return b""
        shown += data
    return shown.partition(wanted)[2]


def door(small: bool) -> None:
    at_most("everlog --version, seconds", waited("-m", "everlog", "--version"), 0.15, "s")
    at_most(
        "import everlog, seconds more than Python alone",
        waited("-c", "import everlog") - waited("-c", ""),
        0.05,
        "s",
    )
    size = 10_000 if small else 1_000_000
    facts = {"n": [(i,) for i in range(size)], "e": [(i % 1000, i) for i in range(size)]}
    text = ".decl n(x:number)  .decl e(x:number, y:number)  .decl v(y:number, x:number)  v(y, x) :- e(x, y)."
    for query in ("v(x, y)", "v(x, 7)", "v(x, 7), n(x), x > 10", "e(x, y), !e(y, x), x != y"):
        database = Database.from_text(text, facts=facts)
        start = time.process_time()
        assert next(iter(database.query(query)), None) is not None
        at_most(f"first row of {query}", (time.process_time() - start) * 1e3, 20, "ms", small)


def waited(*words: str) -> float:
    """The least time that a Python process takes, of ten."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-P", *words], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def tell(what: str, times: dict[tuple[str, str], float]) -> None:
    slowest = sorted(times.items(), key=lambda item: -item[1])
    print(f"{len(times)} times a {what}, {sum(times.values()) * 1e3:.0f} ms in all; the slowest:")
    for (program, use), seconds in slowest[:3]:
        print(f"  {seconds * 1e3:6.2f} ms  {program}: {use}")
    at_most(f"first use of a {what}", slowest[0][1] * 1e3, 20, "ms")


def uses(path: Path) -> Iterator[tuple[str, float, bool]]:
    """Each first use: its name, its time, and whether it is the path of an update."""
    made: list[tuple[str, float]] = []
    bind = Task.bind

    def timed_bind(task: Task) -> RunRule:
        start = time.process_time()
        run = bind(task)
        made.append((f"{task.use.action.name} {task.position} {task.rule}", time.process_time() - start))
        return run

    Task.bind = timed_bind  # type: ignore[method-assign]
    try:
        database = Database.from_file(path, facts=path.parent / "facts")
        network = engine_of(database)._network
        for keeper in network.keepers:
            for task in keeper.tasks():
                if task.run is None:
                    task.bind()
    finally:
        Task.bind = bind  # type: ignore[method-assign]
    for use, seconds in made:
        yield use, seconds, False
    for name, keeper in network.home.items():
        if keeper.planned.strategy == "given":
            start = time.process_time()
            fused(network, name, insert=True)
            yield f"the way of an update of {name}", time.process_time() - start, True


def engine_of(database: Database) -> Engine:
    return database._engine


if __name__ == "__main__":
    main()

"""Measurements as processes: limits, rounds in turn, answers compared.

The first round has every side's answers as digests, later ones their sizes; the changes of each
step of a stream are compared in all rounds.  A side whose answers differ from ours is `wrong`, and
none of its times counts.  Sides take turns, once per round; a slow one is measured once.  If a side
exceeds its limit, the limit is stored as a bound.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Any

from attrs import frozen

from everlog.bench.harness.discovery import sides
from everlog.bench.harness.workload import Case

OK, WRONG, LONG, LARGE, FAILED = "ok", "wrong answer", "took longer", "took more memory", "failed"
OURS = "everlog"

Play = tuple[str, int, int]  # stream, updates of a step, updates in all
Record = dict[str, Any]


@frozen
class Limits:
    """Seconds of a phase, seconds of timed steps, gigabytes of a process, and rounds.

    With `own_process` false, sides are measured in this process, unless they need one of their own:
    for a quick check.
    """

    seconds: float = 120.0
    budget: float = 10.0
    gigabytes: float = 8.0
    rounds: int = 3
    patience: float = 20.0  # a slower side is measured once
    own_process: bool = True


# ── one process ──────────────────────────────────────────────────────────────────────────────


def measured(
    case: Case,
    side: str,
    living: bool,
    plays: Sequence[Play],
    check: bool,
    limits: Limits,
    soak: tuple[int, int] | None = None,
) -> Record:
    """The result of a measurement: `status`, and its figures if it is ok.

    `soak` is (updates, size) of a soak.
    """
    asked = {
        "case": str(case.folder),
        "side": side,
        "living": living,
        "plays": plays,
        "check": check,
        "limit": limits.seconds,
        "budget": limits.budget,
        "soak": soak,
    }
    if not limits.own_process and not sides()[side].own_process:
        return _here(asked)
    with tempfile.TemporaryFile("w+") as noise:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "everlog.bench.harness.measure"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            start_new_session=True,  # so that its children end with it
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.close()
            return _followed(process, process.stdout, limits, noise)
        finally:
            _end(process)


class _Heard:
    """The messages of a measurement so far."""

    def __init__(self) -> None:
        self.phase, self.deadline = "start", time.monotonic() + 120
        self.so_far: Record = {}
        self.result: Record | None = None

    def __call__(self, **told: object) -> None:
        match told:
            case {"ok": dict(done)}:
                self.result = {"status": OK, **self.so_far, **done}
            case {"error": why}:
                self.result = {"status": FAILED, "why": why, "phase": self.phase}
            case {"part": dict(part)}:
                self.so_far = {**part, "plays": []}
            case {"play": play, "peak": peak}:
                self.so_far["plays"].append(play)
                self.so_far["peak"] = peak
            case {"phase": str(phase), "limit": float(seconds) | int(seconds)}:
                self.phase, self.deadline = phase, time.monotonic() + seconds


def _here(asked: Record) -> Record:
    """Measure in this process: quick, without limits; memory is that of all sides."""
    from everlog.bench.harness.measure import answer

    heard = _Heard()

    def tell(**told: object) -> None:
        heard(**json.loads(json.dumps(told)))  # as from a process

    answer(asked, tell)
    assert heard.result is not None
    return heard.result


def _followed(process: subprocess.Popen[bytes], out: IO[bytes], limits: Limits, noise: IO[str]) -> Record:
    """Listen until the process ends or exceeds a limit."""
    heard, rest = _Heard(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        while heard.result is None:
            if not selector.select(0.5):
                if _gigabytes(process.pid) > limits.gigabytes:
                    return _stopped(LARGE, limits.gigabytes, heard)
                if time.monotonic() > heard.deadline:
                    return _stopped(LONG, limits.seconds, heard)
                continue
            came = os.read(out.fileno(), 1 << 20)
            if not came:
                process.wait()
                noise.seek(0)
                tail = " ".join(noise.read()[-400:].split())
                why = f"ended with status {process.returncode} in {heard.phase}: {tail}"
                return {"status": FAILED, "why": why}
            *lines, rest = (rest + came).split(b"\n")
            for line in lines:
                heard(**json.loads(line))
    return heard.result


def _stopped(status: str, bound: float, heard: _Heard) -> Record:
    """The result of a stopped process; streams played before count."""
    if not heard.so_far.get("plays"):
        return {"status": status, "bound": bound, "phase": heard.phase}
    return {**heard.so_far, "status": OK, "stopped": f"{status} than {bound:g} in {heard.phase}"}


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _gigabytes(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, IndexError):
        return 0.0


# ── rounds ───────────────────────────────────────────────────────────────────────────────────


def compared(
    case: Case, names: Sequence[str], living: bool, plays: Sequence[Play], limits: Limits
) -> list[Record]:
    """A record for each side, in turn; ours is first, and the others must equal it."""
    records: dict[str, Record] = {}
    for name in dict.fromkeys([OURS, *names]):
        if not sides()[name].refusal(case.query, living):
            records[name] = {"side": name, "status": OK, "runs": []}
    reference: Record | None = _if_ok(measured(case, OURS, False, (), True, limits)) if living else None
    ours: Record = {}
    for turn in range(limits.rounds):
        for name, record in records.items():
            if record["status"] != OK or (turn and record["seconds"] > limits.patience):
                continue
            found = measured(case, name, living, plays, turn == 0, limits)
            record["seconds"] = _worked(found)
            if found["status"] == OK:
                record["checked"] = reference is not None or name == OURS
                found = found if reference is None else verdict(found, reference)
            if found["status"] == OK:
                reference = found if name == OURS and turn == 0 else reference
                ours = found if name == OURS else ours
                record["runs"].append(_kept(found, ours))
            elif not record["runs"] or found["status"] == WRONG:
                record |= found | {"runs": []}
    for record in records.values():
        record.pop("seconds", None)
    return list(records.values())


def _worked(found: Record) -> float:
    """The seconds that were timed."""
    played = sum(sum(play["times"]) for play in found.get("plays", ()))
    return float(found.get("load", 0.0)) + float(found.get("solve", 0.0)) + played


def _if_ok(found: Record) -> Record | None:
    return found if found["status"] == OK else None


def verdict(found: Record, reference: Record) -> Record:
    """The record, or why it does not count.

    Digests of all rows exist in the first round, sizes in all.
    """
    for relation, size in reference.get("sizes", {}).items():
        actual = found.get("sizes", {}).get(relation, size)
        if actual != size:
            return {"status": WRONG, "why": f"{relation} has {actual} rows, ours {size}"}
    for what in ("answers", "restored"):
        for relation, expected in reference["answers"].items():
            actual = found.get(what, {}).get(relation, expected)
            if actual != expected:
                why = f"{relation} has {actual[0]} rows, ours {expected[0]}"
                why += " that are not all the same" if actual[0] == expected[0] else ""
                return {"status": WRONG, "why": why if what == "answers" else f"after streams and back: {why}"}
    for play, ours in zip(found.get("plays", ()), reference.get("plays", ()), strict=False):
        both = list(zip(play["chain"], ours["chain"], strict=False))
        for number, (theirs, expected) in enumerate(both, 1):
            if theirs != expected:
                where = f"step {number} of {play['stream']} by {play['batch']}"
                return {"status": WRONG, "why": f"gave other changes in {where}"}
    return found


def _kept(found: Record, ours: Record) -> Record:
    """The record without digests and single times, with our time for the same steps."""
    kept = {key: value for key, value in found.items() if key not in ("answers", "restored", "status")}
    if "plays" in kept:
        mine = {(play["stream"], play["batch"]): play["times"] for play in ours.get("plays", ())}
        kept["plays"] = [
            {key: play[key] for key in play if key not in ("chain", "times")}
            | {"ours": same_steps(play, mine.get((play["stream"], play["batch"]), []))}
            for play in kept["plays"]
        ]
    return kept


def same_steps(play: Record, ours: Sequence[float]) -> float | None:
    """Our seconds of the steps that a side has done; None if we have not done all.

    >>> same_steps({"from": 1, "steps": 3}, [9.0, 1.0, 2.0, 4.0])
    3.0
    """
    return sum(ours[play["from"] : play["steps"]]) if len(ours) >= play["steps"] else None

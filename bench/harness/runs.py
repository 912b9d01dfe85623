"""Measurements as processes: limits of time and memory, rounds by turns, answers compared before a time counts.

The first round has every side's answers as digests; a side whose answers are not ours is `wrong`, and none of its
times is kept.  Then sides take turns again, as often as there are rounds; one that needs long is
measured once.  What a side could not do in its time is kept as a bound, not left out.

Reads: bench.harness.model, catalogue.  Read by: bench.harness.jobs, growth, soak.
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

from attrs import field, frozen

from everlog.bench.harness.catalogue import sides
from everlog.bench.harness.model import Case

OK, WRONG, LONG, LARGE, FAILED = "ok", "wrong answer", "took longer", "took more memory", "failed"
OURS = "everlog"

Play = tuple[str, int, int]  # stream, updates of a step, updates in all
Record = dict[str, Any]


@frozen
class Limits:
    """Seconds of a phase, seconds of steps to be timed, gigabytes of a process, and rounds."""

    seconds: float = 120.0
    budget: float = 10.0
    gigabytes: float = 8.0
    rounds: int = 3
    patience: float = field(default=20.0)  # a side that needs longer is measured once


# ── one process ──────────────────────────────────────────────────────────────────────────────


def measured(case: Case, side: str, living: bool, plays: Sequence[Play], check: bool, limits: Limits) -> Record:
    """What a measurement came to: `status`, and its figures if that is ok."""
    asked = {
        "case": str(case.folder),
        "side": side,
        "living": living,
        "plays": plays,
        "check": check,
        "limit": limits.seconds,
        "budget": limits.budget,
    }
    with tempfile.TemporaryFile("w+") as noise:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "everlog.bench.harness.measure"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            start_new_session=True,  # with what it starts itself, so that all of it can be ended
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.close()
            return _followed(process, process.stdout, limits, noise)
        finally:
            _end(process)


def _followed(process: subprocess.Popen[bytes], out: IO[bytes], limits: Limits, noise: IO[str]) -> Record:
    phase, deadline, rest = "start", time.monotonic() + 120, b""
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        while True:
            if not selector.select(0.5):
                if _gigabytes(process.pid) > limits.gigabytes:
                    return {"status": LARGE, "bound": limits.gigabytes, "phase": phase}
                if time.monotonic() > deadline:
                    return {"status": LONG, "bound": limits.seconds, "phase": phase}
                continue
            came = os.read(out.fileno(), 1 << 20)
            if not came:
                process.wait()
                noise.seek(0)
                tail = " ".join(noise.read()[-400:].split())
                return {"status": FAILED, "why": f"ended with status {process.returncode} in {phase}: {tail}"}
            *lines, rest = (rest + came).split(b"\n")
            for line in lines:
                told: Record = json.loads(line)
                if "ok" in told:
                    return {"status": OK, **told["ok"]}
                if "error" in told:
                    return {"status": FAILED, "why": told["error"], "phase": phase}
                phase, deadline = told["phase"], time.monotonic() + told["limit"]


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
    """A record for each side, by turns; ours is first, and what it answers is what the others are held to."""
    records: dict[str, Record] = {}
    for name in dict.fromkeys([OURS, *names]):
        if not sides()[name].refusal(case.query, living):
            records[name] = {"side": name, "status": OK, "runs": []}
    reference: Record | None = _if_ok(measured(case, OURS, False, (), True, limits)) if living else None
    for turn in range(limits.rounds):
        for name, record in records.items():
            if record["status"] != OK or (turn and record["seconds"] > limits.patience):
                continue
            start = time.monotonic()
            found = measured(case, name, living, plays, turn == 0, limits)
            record["seconds"] = time.monotonic() - start
            if turn == 0 and found["status"] == OK:
                record["checked"] = reference is not None or name == OURS
                found = found if reference is None else verdict(found, reference)
                if name == OURS and found["status"] == OK:
                    reference = found
            if found["status"] == OK:
                record["runs"].append(_without_digests(found))
            elif not record["runs"]:
                record |= found
    for record in records.values():
        record.pop("seconds", None)
    return list(records.values())


def _if_ok(found: Record) -> Record | None:
    return found if found["status"] == OK else None


def verdict(found: Record, reference: Record) -> Record:
    """The record, or why it does not count."""
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
                return {"status": WRONG, "why": f"told other changes in {where}"}
    return found


def _without_digests(found: Record) -> Record:
    kept = {key: value for key, value in found.items() if key not in ("answers", "restored", "status")}
    if "plays" in kept:
        kept["plays"] = [{key: play[key] for key in play if key != "chain"} for play in kept["plays"]]
    return kept

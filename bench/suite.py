"""Runs a folder of Soufflé's tests and compares files, rejections and time.

Each test is a folder NAME with NAME.dl, `facts/`, the expected `*.csv`, and NAME.err if Soufflé
rejects it.  Rows are compared as sets.  If Soufflé is on the PATH both are timed, and programs on
which Soufflé needs more than a tenth of a second are shown as a ratio (its time over ours).

    python bench/suite.py FOLDER [FOLDER …]
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_OURS = [sys.executable, "-P", "-m", "everlog", "run"]
_FLAT = re.compile(r"DL09[012]")  # unsupported by design: records, lattices, debug_delta


def run(words: list[str], test: Path, out: Path) -> tuple[int, str, float]:
    facts = test / "facts"
    where = ["-F", str(facts if facts.is_dir() else test), "-D", str(out)]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [*words, str(test / f"{test.name}.dl"), *where],
            capture_output=True, text=True, errors="replace", cwd=out, timeout=300,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, "timeout", 300.0
    return done.returncode, done.stderr, time.perf_counter() - start


def rows(path: Path) -> list[str]:
    return sorted(path.read_text(errors="replace").splitlines()) if path.is_file() else ["(no file)"]


def verdict(test: Path, out: Path, status: int, told: str) -> str:
    errors = test / f"{test.name}.err"
    text = errors.read_text(errors="replace") if errors.is_file() else ""
    wanted = {int(n) for n in re.findall(r"^Error: .* in file \S+ at line (\d+)", text, re.M)}
    if status and _FLAT.search(told):
        return "not flat"
    if wanted or re.search(r"^Error: Unable to stratify", text, re.M):
        if not status:
            return "ACCEPTED, Soufflé rejects it"
        lines = {int(n) for n in re.findall(r"^ *--> .*:(\d+):\d+$", told, re.M)}
        return "rejected, at a line of Soufflé's" if not wanted or wanted & lines else "REJECTED ELSEWHERE"
    if status:
        return "no input files" if "cannot open fact file" in told else "REJECTED OR FAILED"
    expected = sorted(test.glob("*.csv"))
    if not expected:
        return "ran, nothing to compare"
    return "same files" if all(rows(e) == rows(out / e.name) for e in expected) else "OTHER FILES"


def main() -> None:
    tests = [
        d for folder in sys.argv[1:] for d in sorted(Path(folder).iterdir()) if (d / f"{d.name}.dl").is_file()
    ]
    if not tests:
        print("no folder of tests given: left out")
        return
    souffle = shutil.which("souffle")
    if not souffle:
        print("Soufflé is not installed: nothing is timed against it")
    counts: Counter[str] = Counter()
    for test in tests:
        with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
            status, told, seconds = run(_OURS, test, Path(ours))
            found = verdict(test, Path(ours), status, told)
            counts[found] += 1
            if found.isupper() or found.split(",")[0].isupper():
                print(f"  {test.name}: {found}")
            if souffle and not status:
                _, _, other = run([souffle], test, Path(theirs))
                if other > 0.1:
                    print(f"  {test.name}: {seconds:.2f} s, Soufflé {other:.2f} s, {other / seconds:.2f} × ours")
    for what, number in counts.most_common():
        print(f"{number:5}  {what}")


if __name__ == "__main__":
    main()

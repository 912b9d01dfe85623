"""`python -P -m everlog.bench [FLAG …]`: comparisons; with NAMEs, single scripts.

A name runs a script of this folder in a process of its own (`figure4`, `costs`, …); `--small`,
`--only` and `--plot` go to it.  Without names the harness runs (bench/harness/main.py).  The bars
that scripts print are repeated at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def have(flag: str) -> list[str]:
    """The scripts that take a flag: they name it or, for `--small`, use `options`."""
    written = [f'"{flag}"', *(["options("] if flag == "--small" else [])]
    texts = {name: (HERE / f"{name}.py").read_text(encoding="utf-8") for name in NAMES}
    return [name for name, text in texts.items() if any(one in text for one in written)]


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0].startswith("-"):
        from everlog.bench.harness.main import main as side_by_side

        return side_by_side(words)
    return scripts(words)


def scripts(words: list[str]) -> int:
    """Run benchmark scripts one after the other."""
    parser = argparse.ArgumentParser(prog="everlog bench")
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", metavar="CASE")
    parser.add_argument("--plot", metavar="FOLDER")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.names if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    without = [name for name in asked.names if asked.only is not None and name not in have("--only")]
    if without:
        print(f"error: {', '.join(without)} has no --only", file=sys.stderr)
        return 2
    bars: list[str] = []
    for name in asked.names:
        print(f"── {name} ──", flush=True)
        more = ["--small"] if asked.small and name in have("--small") else []
        more += ["--only", asked.only] if asked.only is not None else []
        more += ["--plot", asked.plot] if asked.plot is not None and name == "figure4" else []
        status = run(name, more, bars)
        if status:
            return status
        print()
    if bars:
        print("── bars ──", *bars, sep="\n")
    return 0


def run(name: str, more: list[str], bars: list[str]) -> int:
    """Show the output of a benchmark, and collect its bars."""
    words = [sys.executable, "-P", "-u", str(HERE / f"{name}.py"), *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if " bar: " in line:
                bars.append(line.rstrip())
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())

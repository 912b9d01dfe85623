"""`python -P -m everlog.bench [FLAG …]`: comparisons; with NAMEs, single scripts.

A name runs a script of this folder in a process of its own (`figure4`, `costs`, …); `--small` and
`--plot` go to it.  Without names the harness runs (bench/harness/main.py).  The bars that scripts
print are repeated at the end.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
HAVE_SMALL = [name for name in NAMES if "--small" in (HERE / f"{name}.py").read_text(encoding="utf-8")]


def main() -> int:
    words = sys.argv[1:]
    if not words or words[0].startswith("-"):
        from everlog.bench.harness.main import main as side_by_side

        return side_by_side(words)
    return scripts(words)


def scripts(words: list[str]) -> int:
    """Run benchmark scripts one after the other."""
    small = "--small" in words
    plot = words[words.index("--plot") : words.index("--plot") + 2] if "--plot" in words else []
    wanted = [word for word in words if word != "--small" and word not in plot]
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    bars: list[str] = []
    for name in wanted:
        print(f"── {name} ──", flush=True)
        more = ["--small"] if small and name in HAVE_SMALL else []
        status = run(name, [*more, *(plot if name == "figure4" else [])], bars)
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

"""`python bench/__main__.py [NAME …]`: run the benchmarks that are named, or all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in wanted:
        print(f"── {name} ──", flush=True)
        status = subprocess.call([sys.executable, "-P", str(HERE / f"{name}.py")])
        if status:
            return status
        print()
    return 0


sys.exit(main())

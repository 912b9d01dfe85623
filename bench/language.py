"""The speed of parsing and checking: rules, inline facts, growth with the file.

python bench/language.py [--rules 20000] [--facts 100000]
"""

from __future__ import annotations

import argparse
import time

from everlog.dsl.check import diagnose
from everlog.dsl.source import Source

DECLARATIONS = "".join(f".decl {name}(x:number, y:number)\n" for name in ("edge", "path", "node")) + "".join(
    f".decl rel{i}(x:number, y:number, z:number)\n" for i in range(100)
)


def rules(count: int) -> str:
    lines = (f"rel{i % 100}(x, y, z) :- edge(x, w), path(w, y), node(z, {i}), w != z.\n" for i in range(count))
    return DECLARATIONS + "".join(lines)


def short_rules(count: int) -> str:
    return DECLARATIONS + "".join(f"rel{i % 100}(x, y, z) :- path(x, y), edge(y, z).\n" for i in range(count))


def facts(count: int) -> str:
    lines = (f'fact({i}, {i + 1}, "a{i}").\n' for i in range(count))
    return ".decl fact(x:number, y:number, z:symbol)\n" + "".join(lines)


def seconds(text: str) -> float:
    start = time.perf_counter()
    program, report = diagnose(Source(text))
    assert program is not None, report.text()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rules", type=int, default=20_000)
    parser.add_argument("--facts", type=int, default=100_000)
    arguments = parser.parse_args()
    seconds(rules(10))  # the grammar is analysed once per process
    kinds = [
        ("rules of 25 words", short_rules, arguments.rules),
        ("rules of 34 words", rules, arguments.rules),
        ("facts", facts, arguments.facts),
    ]
    for what, make, size in kinds:
        half = min(seconds(make(size // 2)) for _ in range(3))
        whole = min(seconds(make(size)) for _ in range(3))
        print(f"{size} {what}: {size / whole:8.0f} a second; twice the file takes {whole / half:.2f} × the time")


if __name__ == "__main__":
    main()

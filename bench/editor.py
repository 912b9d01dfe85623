"""What the language server needs for a large file: to open it, after each key, and per request.

python bench/editor.py [--lines 2000]

The file is made of blocks of declarations, recursive, cyclic and aggregating rules, with a comment
each.  A key is typed in its middle.  All times are CPU time of the server's work, without pipes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from lsprotocol import types as lsp

from everlog.editor.features import navigation
from everlog.editor.features.completing import completions
from everlog.editor.features.cost_hints import CostMemory, code_lenses, inlay_hints
from everlog.editor.features.hovering import hover
from everlog.editor.features.token_colours import semantic_tokens
from everlog.editor.features.told_diagnostics import diagnostics
from everlog.editor.open_documents import Documents
from everlog.editor.program_view import ProgramView

URI = "untitled:large"
BLOCK = """
// Roads of region {0}, and what they reach.
.decl road{0}(from:number, to:number)
.input road{0}
.decl path{0}(x:number, y:number)
path{0}(x, y) :- road{0}(x, y).
path{0}(x, z) :- path{0}(x, y), road{0}(y, z).

// Places on a ring of three roads.
.decl ring{0}(a:number, b:number, c:number)
ring{0}(a, b, c) :- road{0}(a, b), road{0}(b, c), road{0}(c, a), a < b, b < c.
.decl busy{0}(x:number, n:number)
busy{0}(x, n) :- path{0}(x, _), n = count : {{ path{0}(x, y), !road{0}(x, y) }}, n > 3.
.output busy{0}
"""


def program(lines: int) -> str:
    """A program of about `lines` lines."""
    return "".join(BLOCK.format(number) for number in range(lines // BLOCK.count("\n")))


def milliseconds(act: Callable[[int], object], times: int = 5) -> float:
    """The least CPU time of several runs; the number of the run makes each text new."""
    least = float("inf")
    for turn in range(times):
        start = time.process_time()
        act(turn)
        least = min(least, time.process_time() - start)
    return 1000 * least


def measure(lines: int) -> dict[str, float]:
    """Milliseconds by what was done."""
    documents = Documents()
    text = program(lines)
    middle = text.index("\npath", len(text) // 2)

    def view() -> ProgramView:
        return ProgramView(documents, documents.opened[URI], documents.analysis(URI))

    def opened(turn: int) -> None:
        documents.close(URI)
        documents.put(URI, text)
        diagnostics(view())

    def typed(turn: int, more: str = "pat") -> None:
        documents.put(URI, f"{text[:middle]}\n{more}{'x' * turn}{text[middle:]}", turn)
        diagnostics(view())

    out = {"open": milliseconds(opened), "one key": milliseconds(typed)}
    documents.put(URI, text)
    seen, memory = view(), CostMemory()
    line = text[:middle].count("\n") + 1
    at = lsp.Position(line, 3)
    out["names"] = milliseconds(lambda _: navigation.references(seen, at, True), 1)
    out["references"] = milliseconds(lambda _: navigation.references(seen, at, True))
    out["hover"] = milliseconds(lambda _: hover(seen, at), 1)
    out["completion"] = milliseconds(lambda _: completions(seen, at, True))
    out["costs of a screen"] = milliseconds(
        lambda _: inlay_hints(seen, memory, line, line + 60, lambda _: None), 1
    )
    out["lenses"] = milliseconds(lambda _: code_lenses(seen))
    out["colours"] = milliseconds(lambda _: semantic_tokens(seen))
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=2_000)
    arguments = parser.parse_args()
    measure(50)  # the grammar is analysed once per process
    half, whole = measure(arguments.lines // 2), measure(arguments.lines)
    for what, took in whole.items():
        print(f"{what:<18} {took:8.1f} ms; twice the file takes {took / half[what]:.2f} × the time")


if __name__ == "__main__":
    main()

"""Python functions that are written line by line and compiled once."""

from __future__ import annotations

from typing import Any

MOST_LOOPS = 18  # Python's own limit on nested blocks is 20


class Code:
    """Functions under construction; `test` skips what cannot match, whatever loops are open.

    >>> code = Code()
    >>> code.define("evens", "numbers")
    >>> code.loop("n", "numbers")
    >>> code.test("n % 2 == 0")
    >>> code.line("yield n")
    >>> list(code.compiled()["evens"]([1, 2, 4]))
    [2, 4]
    """

    def __init__(self, **scope: object) -> None:
        self.scope: dict[str, object] = scope
        self.lines: list[str] = []
        self.depth = 0
        self.loops = 0

    def define(self, name: str, arguments: str) -> None:
        self.lines.append(f"def {name}({arguments}):")
        self.depth, self.loops = 1, 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def loop(self, variable: str, container: str) -> None:
        self.line(f"for {variable} in {container}:")
        self.depth += 1
        self.loops += 1

    def finish(self, text: str) -> None:
        """A last line, after all loops."""
        self.lines.append("    " + text)

    def test(self, condition: str) -> None:
        self.line(f"if not ({condition}): {'continue' if self.loops else 'return'}")

    def name(self, prefix: str, value: object) -> str:
        """A name for a value of the scope; the same value has the same name."""
        for known, other in self.scope.items():
            if other is value:
                return known
        name = f"_{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name

    def compiled(self) -> dict[str, Any]:
        source = "\n".join(self.lines)
        exec(compile(source, "<view of a join>", "exec"), self.scope)  # our own text, made here
        return self.scope


def local(variable: str) -> str:
    """A variable of the query as a name of Python."""
    return "v_" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c)}_" for c in variable)

"""Lines of a text, and the columns that editors count.

An editor counts columns in UTF-16 units unless it asks for others; Python counts characters.
"""

from __future__ import annotations

import re

_LINE_END = re.compile(r"\r\n|\n|\r")


def normal(text: str) -> str:
    """The text with `\\n` at the end of each line, as the language reads it."""
    return _LINE_END.sub("\n", text)


def units(text: str, encoding: str) -> int:
    """The length of a text in the units of an encoding.

    >>> units("a🦉", "utf-16"), units("a🦉", "utf-8"), units("a🦉", "utf-32")
    (3, 5, 2)
    """
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(char > "\uffff" for char in text)


def column_at(line: str, count: int, encoding: str) -> int:
    """The column (in characters) that stands `count` units into a line, or its end.

    >>> column_at("a🦉b", 3, "utf-16"), column_at("ab", 9, "utf-16")
    (2, 2)
    """
    if encoding == "utf-32" or line.isascii():
        return min(max(count, 0), len(line))
    used = 0
    for column, char in enumerate(line):
        if used >= count:
            return column
        used += units(char, encoding)
    return len(line)


def aligned(column: int, line: str, other: str) -> int:
    """The column of `other` that stands for a column of `line`.

    The two are one line before and after macros: equal up to the first and from the last one on.

    >>> aligned(7, "p(N) :- q(N).", "p(3) :- q(3)."), aligned(10, "p(x, LIMIT) .", "p(x, 10) .")
    (2, 7)
    """
    if line == other:
        return min(column, len(other))
    before = _shared(line, other)
    if column <= before:
        return column
    room = min(len(line), len(other)) - before
    after = _shared(line[::-1][:room], other[::-1][:room])
    if len(line) - column <= after:
        return len(other) - (len(line) - column)
    return before


def _shared(a: str, b: str) -> int:
    """The length of the longest text that both begin with."""
    same = (x == y for x, y in zip(a, b, strict=False))
    return next((at for at, equal in enumerate(same) if not equal), min(len(a), len(b)))


def replaced(text: str, start: tuple[int, int], end: tuple[int, int], new: str, encoding: str) -> str:
    """The text with a range of (line, units) replaced.

    >>> replaced("ab\\r\\ncd", (0, 1), (1, 1), "-", "utf-16")
    'a-d'
    """
    first, last = _offset(text, *start, encoding), _offset(text, *end, encoding)
    return text[: min(first, last)] + new + text[max(first, last) :]


def _offset(text: str, line: int, count: int, encoding: str) -> int:
    at = 0
    for _ in range(line):
        found = _LINE_END.search(text, at)
        if found is None:
            return len(text)
        at = found.end()
    stop = _LINE_END.search(text, at)
    return at + column_at(text[at : stop.start() if stop else len(text)], count, encoding)

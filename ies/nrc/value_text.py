"""Values as text of the calculus: written, read from a line, and ordered.

Python writes its values differently: `True`, `frozenset({1})`.  The text written here can be read
again, here and as a term.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from everlog.ies.nrc.arithmetic import plain
from everlog.ies.nrc.errors import MAX_DEPTH
from everlog.ies.nrc.types import Value

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_PLAIN = {escaped[1]: char for char, escaped in _ESCAPES.items()}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?\s*[0-9]+(?:\.[0-9]+)?(?:\s*/\s*[0-9]+)?(?![\w.]))
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<truth>(?:true|false)(?!\w))
      | (?P<mark>[(){},])
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "{": "}"}


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def value_text(value: Value) -> str:
    """A value as the calculus writes it; other objects as Python does.

    >>> value_text((1, "a", True, frozenset({(2, Fraction(1, 2)), (1, 2)})))
    '(1, "a", true, {(1, 2), (2, 1/2)})'
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(_ESCAPES.get(char, char) for char in value) + '"'
        case tuple():
            return f"({', '.join(map(value_text, value))})"
        case frozenset():
            return f"{{{', '.join(value_text(item) for item in sorted(value, key=value_key))}}}"
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
    return str(value)


def fact_text(relation: str, row: Value) -> str:
    """A tuple in its relation; an element of a unary relation need not be one.

    >>> fact_text("edge", ("a", 2)), fact_text("item", 3)
    ('edge("a", 2)', 'item(3)')
    """
    return relation + value_text(row if isinstance(row, tuple) else (row,))


def value_key(value: Value) -> Any:
    """An order of values of any types, by kind and then by value.

    >>> sorted([("b", 1), (2, "a"), (2, 1)], key=value_key)
    [(2, 1), (2, 'a'), ('b', 1)]
    """
    match value:
        case bool():
            return (0, value)
        case int() | float() | Fraction():
            return (1, value)
        case str():
            return (2, value)
        case tuple():
            return (3, *map(value_key, value))
        case frozenset():
            return (4, *sorted(map(value_key, value)))
    return (5, type(value).__name__, str(value))


def is_itself(value: Value) -> bool:
    """Whether a value equals itself, as stored values must: a NaN does not."""
    return all(map(is_itself, value)) if isinstance(value, (tuple, list)) else bool(value == value)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def row_of(text: str) -> Value:
    """The value of `(1, "a")`: a tuple; a single value stays itself.

    Decimals are exact.  Raises ValueError.

    >>> row_of('(-1.50, "a", (true, 2/4))')
    (Fraction(-3, 2), 'a', (True, Fraction(1, 2)))
    >>> row_of("(1, x)")
    Traceback (most recent call last):
    ValueError: expected a value before `x)`
    """
    reader = _Reader(text)
    row = reader.value(0)
    if text[reader.pos :].strip():
        raise ValueError(f"{reader.next()} follows the tuple")
    return row


class _Reader:
    """A text, and the position up to which it was read."""

    def __init__(self, text: str) -> None:
        self.text, self.pos = text, 0

    def next(self) -> str:
        """The unread text, for a message."""
        rest = self.text[self.pos :].strip()
        shown = rest if len(rest) <= 40 else f"{rest[:40]}…"
        return f"`{shown}`" if rest else "the end"

    def value(self, depth: int) -> Value:
        found = _TOKEN.match(self.text, self.pos)
        kind = found.lastgroup if found is not None else None
        if found is None or (kind == "mark" and found["mark"] not in _CLOSING):
            raise ValueError(f"expected a value before {self.next()}")
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        self.pos = found.end()
        match kind:
            case "number":
                return _number("".join(found["number"].split()))
            case "string":
                return re.sub(r"\\(.)", _unescaped, found["string"][1:-1], flags=re.DOTALL)
            case "truth":
                return found["truth"] == "true"
        parts = self.parts(_CLOSING[found["mark"]], depth + 1)
        if found["mark"] == "{":
            return frozenset(parts)
        if not parts:
            raise ValueError("a tuple has one value or more")
        return parts[0] if len(parts) == 1 else tuple(parts)

    def parts(self, closing: str, depth: int) -> list[Value]:
        out: list[Value] = []
        if self.taken(closing):
            return out
        while True:
            out.append(self.value(depth))
            if self.taken(closing):
                return out
            if not self.taken(","):
                raise ValueError(f"`,` or `{closing}` expected before {self.next()}")

    def taken(self, mark: str) -> bool:
        found = _TOKEN.match(self.text, self.pos)
        if found is None or found["mark"] != mark:
            return False
        self.pos = found.end()
        return True


def _number(text: str) -> int | Fraction:
    above, _, below = text.partition("/")
    if below and not int(below):
        raise ValueError(f"{text} divides by zero")
    return plain(Fraction(above) / int(below or 1))


def _unescaped(found: re.Match[str]) -> str:
    if found[1] not in _PLAIN:
        raise ValueError(f'unknown escape sequence `\\{found[1]}`; known are \\" \\\\ \\n \\t')
    return _PLAIN[found[1]]

"""Rows that do not fit: the first one is an error, or all of them go to a file.

A reader that meets a bad row reports it (`Refuse`) and continues.  The caller decides what that
means: by default it is an error, and nothing is loaded; with the parameter `rejects=FILE` the row
is written there with the reason, as a line of JSON, and the others are loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from typing import TypeAlias

from attrs import frozen

from everlog.core.program.fact_rows import shown
from everlog.core.program.values import decoded
from everlog.files.text_values import FactsError


@frozen
class BadRow:
    """A row that does not fit: its place, the reason, and its values.

    `counted` says what `number` counts, from 1: the `line`s of a text, the `row`s of a table, the
    `change`s of a transaction.
    """

    source: str
    number: int
    reason: str
    values: object
    counted: str = "row"

    def __str__(self) -> str:
        number = f":{self.number}" if self.counted == "line" else f": {self.counted} {self.number}"
        return f"{self.source}{number}: {self.reason}"


Refuse: TypeAlias = Callable[[BadRow], object]


def abort(bad: BadRow) -> None:
    """Raise FactsError: one bad row ends the load."""
    raise FactsError(str(bad))


def reject_line(bad: BadRow) -> str:
    r"""A bad row as a line of a rejects file: JSON in UTF-8, whatever the row contains.

    >>> print(reject_line(BadRow("edge.csv", 2, "'b' is not a number", ["a", "b"], "line")), end="")
    {"source": "edge.csv", "line": 2, "reason": "'b' is not a number", "values": ["a", "b"]}
    >>> bad = BadRow("n.jsonl", 1, "no text", {"x": "\ud800", "y": float("nan")})
    >>> print(reject_line(bad), end="")
    {"source": "n.jsonl", "row": 1, "reason": "no text", "values": {"x": "\ud800", "y": "NaN"}}
    """
    entry = {"source": bad.source, bad.counted: bad.number, "reason": bad.reason, "values": bad.values}
    try:
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False, default=_plain)
        text.encode()
    except ValueError:  # half a surrogate pair, or bytes that are not UTF-8; NaN
        text = json.dumps(_writable(entry), default=_plain)
    except RecursionError:
        text = json.dumps(_writable({**entry, "values": shown(bad.values)}))
    return text + "\n"


def _writable(value: object) -> object:
    """A value in which JSON has a form for each number."""
    match value:
        case float() if value != value or value in (inf, -inf):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: _writable(of) for name, of in value.items()}
        case list() | tuple():
            return [_writable(of) for of in value]
    return value


def _plain(value: object) -> object:
    """Values without a form in JSON: bytes as text, all others as their `repr`."""
    return decoded(value) if isinstance(value, bytes) else str(value)

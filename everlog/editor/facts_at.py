"""The fact under the cursor, wherever it is written: in the program, or in a comment."""

from __future__ import annotations

import re

from everlog.dsl.fact_text import is_fact
from everlog.dsl.parser import parse_text

_CALL = re.compile(r'[?A-Za-z_][\w?.]*\((?:"(?:\\.|[^"\\])*"|[^()"])*\)')
_LONGEST = 10_000  # characters of a line that is searched


def fact_at(line: str, column: int) -> str | None:
    """The fact around a column of a line.

    >>> fact_at("// is path(1, 3) there?", 8), fact_at("path(x, 3) :- edge(x, 3).", 2)
    ('path(1, 3)', None)
    """
    if len(line) > _LONGEST:
        return None
    for found in _CALL.finditer(line):
        if found.start() <= column <= found.end():
            program, report = parse_text(f"{found[0]}.")
            sound = not report.items and len(program.statements) == 1 and is_fact(program.statements[0])
            return found[0] if sound else None
    return None

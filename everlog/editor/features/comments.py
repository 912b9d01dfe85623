"""Comments of a document: the documentation above a declaration, and where a cursor is in one."""

from __future__ import annotations

import re

_INLINE = re.compile(r'"(?:\\.|[^"\\\n])*"|//(.*)|/\*(.*?)\*/')


def documentation(lines: list[str], line: int) -> str:
    """The comment right above a line, or else the one at its end.

    >>> documentation(["// A road.", "// One way.", ".decl road(x:number)"], 2)
    'A road.\\nOne way.'
    >>> documentation([".decl road(x:number) // one way"], 0)
    'one way'
    """
    above = _above(lines, line)
    if above:
        return above
    here = lines[line] if 0 <= line < len(lines) else ""
    found = [match for match in _INLINE.finditer(here) if match[1] is not None or match[2] is not None]
    return (found[-1][1] or found[-1][2] or "").strip() if found else ""


def _above(lines: list[str], line: int) -> str:
    found: list[str] = []
    inside = False  # a block comment, read upwards
    for text in reversed(lines[:line]):
        plain = text.strip()
        if not inside and plain.startswith("//"):
            found.append(plain.lstrip("/").strip())
        elif inside or plain.endswith("*/"):
            inside = "/*" not in plain
            if not inside and not plain.startswith("/*"):
                break  # it stands behind code
            found.append(plain.removesuffix("*/").lstrip("/").strip("* ").strip())
        else:
            break
    return "\n".join(reversed(found)).strip()

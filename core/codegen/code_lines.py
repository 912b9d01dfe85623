"""Lines of generated code, and the names in it.

How a name begins tells whose it is, so a user's names meet no others:

`v_…`   variables of a rule
other   ours: indexes, constants and functions of the scope, temporaries, parameters
"""

from __future__ import annotations

from functools import lru_cache
from types import CodeType
from typing import Any

from attrs import frozen

_MOST = 2_000  # characters of a comment


@frozen
class Line:
    """One line of code and its depth of indentation.

    >>> print(Line(1, "return x"))
        return x
    """

    depth: int
    text: str

    def __str__(self) -> str:
        return "    " * self.depth + self.text


def identifier(prefix: str, name: str) -> str:
    """A Python name for a user's name; different names of a user may get the same one.

    >>> identifier("v_", "?x"), identifier("v_", "größe"), identifier("v_", "a.path#2")
    ('v__x', 'v_gr__e', 'v_a_path_2')
    """
    return prefix + "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def comment(text: str) -> str:
    """Any text as one line of a comment: long text is cut, and what cannot be printed is escaped.

    >>> print(comment('p("a\\nb\\0")'))
    # p("a b\\x00")
    """
    shown = " ".join(text[:_MOST].split()) + ("…" if len(text) > _MOST else "")
    return f"# {''.join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)}"


def defined(name: str, source: str, filename: str, scope: dict[str, object]) -> Any:
    """What generated code defines under a name; it runs in `scope`, and is our own text."""
    exec(_compiled(source, f"<{filename}>"), scope)
    return scope[name]


@lru_cache(maxsize=4096)
def _compiled(source: str, filename: str) -> CodeType:
    """Compiled code; rules that are alike but for their names share it."""
    return compile(source, filename, "exec")

"""Lines of generated code, with what later steps need to know of them.

Code is a list of `Line`s until it is compiled.  Which names a loop binds and what it runs through
stand beside its text, so no text is ever searched or taken apart.

How a name begins tells whose it is, so a user's names meet no others:

`v_…`   variables of a rule
`r_…`   the function of a rule
other   ours: indexes, constants and functions of the scope, temporaries, parameters
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve, frozen

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


@frozen
class Test(Line):
    """A line that skips what does not satisfy `condition`."""

    condition: str


@frozen
class Values:
    """An expression that a loop runs through.

    `names` are the local names in it.  `index` is the index that it reads (`_delta`: the change),
    and with `items` it runs through the whole of it.  `cut` are indexes: values that are no key of
    one of them are left out.  `sized` says that `len` works.

    >>> print(Values("_values1").cut_to(["_i2"]))
    _values1 & _i2.keys()
    """

    text: str
    names: frozenset[str] = frozenset()
    index: str = ""
    items: bool = False
    cut: tuple[str, ...] = ()
    sized: bool = True

    def __str__(self) -> str:
        return " & ".join([self.text, *(f"{index}.keys()" for index in self.cut)])

    def cut_to(self, indexes: Iterable[str]) -> Values:
        return evolve(self, cut=(*self.cut, *indexes))

    def not_cut_to(self, index: str) -> Values:
        return evolve(self, cut=tuple(other for other in self.cut if other != index))


@frozen
class Loop(Line):
    """`for pattern in values:`, which binds `targets`."""

    pattern: str
    targets: tuple[str, ...]
    values: Values

    @property
    def header(self) -> str:
        return f"for {self.pattern} in {self.values}"


def identifier(prefix: str, name: str) -> str:
    """A Python name for a user's name; different names of a user may get the same one.

    >>> identifier("v_", "?x"), identifier("v_", "größe"), identifier("r_", "a.path#2")
    ('v__x', 'v_gr__e', 'r_a_path_2')
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
    exec(compile(source, f"<{filename}>", "exec"), scope)
    return scope[name]

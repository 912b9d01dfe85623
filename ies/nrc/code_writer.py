"""Writes Python source: lines, names, loop levels, and values cached per level.

    level 0: parameters        level n + 1: bound by a loop (or function) at level n

A term that makes a set or runs over one, and does not depend on the innermost loop, is cached at
the level on which it depends: a variable that is None, and a function beside it that fills it on
first use.  So a value is computed only when it is needed, which matters where it is undefined.
Equal terms share one such variable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from attrs import define, field, frozen

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.term_analysis import KEPT, Facts

Lines: TypeAlias = "list[str | Lines]"  # a list inside is indented; an empty one is skipped


@frozen
class Known:
    """A variable: the code of its value, and the loop level on which it depends."""

    code: str
    level: int


Scope: TypeAlias = Mapping[str, Known]


@define
class Level:
    """The body of a loop or function: its cached values and its open loops."""

    number: int
    prologue: Lines
    loops: int
    kept: dict[tuple[Any, ...], str] = field(factory=dict)


class Frames(ABC):
    """The function that is being written."""

    def __init__(self, definitions: Mapping[str, t.Definition]) -> None:
        self.definitions = definitions
        self.facts = Facts(definitions)
        self.constants: dict[str, Any] = {}
        self.outermost: Scope = {}
        self.levels: list[Level] = []
        self.body: Lines = []
        self.names = 0
        self.calls: list[t.Call] = []
        self.called = 0

    @abstractmethod
    def value(self, term: t.Term, scope: Scope) -> str:
        """An expression for the value of a term; needed statements are put before it."""

    @abstractmethod
    def plain(self, term: t.Term, scope: Scope) -> str:
        """Like `value`, computed in place."""

    # ── lines and names ──────────────────────────────────────────────────────────────────────

    def fresh(self, name: str) -> str:
        self.names += 1
        return f"{name}{self.names}"

    def put(self, line: str) -> None:
        self.body.append(line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Lines put inside stand under the header."""
        inside: Lines = []
        self.body += [header, inside]
        with self.into(inside):
            yield

    @contextmanager
    def into(self, lines: Lines) -> Iterator[None]:
        before, self.body = self.body, lines
        yield
        self.body = before

    @contextmanager
    def deeper(self, lines: Lines, loops: int) -> Iterator[None]:
        """A deeper level, whose body is `lines`."""
        prologue: Lines = []
        rest: Lines = []
        self.levels.append(Level(len(self.levels), prologue, loops))
        with self.into(rest):
            yield
        self.levels.pop()
        lines += [*prologue, *rest]

    @property
    def level(self) -> int:
        return self.levels[-1].number

    def place(self, term: t.Term) -> str:
        """pos and end as arguments: of the term, or of the call if it has no place."""
        at = next((node for node in (term, *reversed(self.calls)) if node.pos >= 0), term)
        return f"{at.pos}, {at.end}"

    # ── what is kept ─────────────────────────────────────────────────────────────────────────

    def again(self, home: int) -> bool:
        """Whether a value of that level would be computed here repeatedly."""
        return any(level.loops for level in self.levels[home + 1 :])

    def depends(self, term: t.Term, scope: Scope) -> int:
        """The level of the loop on which a term depends."""
        return max((scope[name].level for name in self.facts.free(term) if name in scope), default=0)

    def kept(self, term: t.Term, scope: Scope) -> str | None:
        """The code of a cached term; None if it is better computed in place."""
        if not isinstance(term, KEPT):
            return None
        number = self.facts.number(term)
        home = self.depends(term, scope)
        if not self.again(home) and self.facts.occurrences.get(number, 0) < 2:
            return None
        known = tuple(sorted((name, scope[name].code) for name in self.facts.free(term) if name in scope))
        level = self.levels[home]
        key = (number, known, *(call.pos for call in self.calls if not self.facts.total(term)))
        if key not in level.kept:
            level.kept[key] = self.keeper(level, lambda: self.plain(term, scope))
        return _asked(level.kept[key])

    def shared(self, term: t.Term, scope: Scope, what: str, make: Callable[[str], str]) -> str:
        """A value derived from a set, cached beside it."""
        level = self.levels[self.depends(term, scope)]
        known = tuple(sorted((name, scope[name].code) for name in self.facts.free(term) if name in scope))
        key = (what, self.facts.number(term), known)
        if key not in level.kept:
            level.kept[key] = self.keeper(level, lambda: make(self.value(term, scope)))
        return _asked(level.kept[key])

    def keeper(self, level: Level, make: Callable[[], str]) -> str:
        """The name of a cached variable at a level; a function beside it fills it."""
        name = self.fresh("k")
        inside: Lines = []
        levels, self.levels = self.levels, self.levels[: level.number + 1]
        with self.deeper(inside, 0):
            self.put(f"nonlocal {name}")
            self.put(f"{name} = {make()}")
            self.put(f"return {name}")
        self.levels = levels
        level.prologue += [f"{name} = None", f"def {name}_():", inside]
        return name

    def named(self, term: t.Term, scope: Scope) -> Known:
        """A value with a name, for `let` and calls; lazy if it may be undefined."""
        match term:
            case t.Var(name) if name in scope:
                return scope[name]
            case t.Const():
                return Known(self.value(term, scope), 0)
        kept = self.kept(term, scope)
        home = min(self.depends(term, scope), self.level)
        if kept is not None:
            return Known(kept, home)
        if self.facts.total(term):
            name = self.fresh("v")
            self.put(f"{name} = {self.plain(term, scope)}")
            return Known(name, self.level)
        keeper = self.keeper(self.levels[-1], lambda: self.plain(term, scope))
        return Known(_asked(keeper), self.level)


def _asked(name: str) -> str:
    return f"({name} if {name} is not None else {name}_())"

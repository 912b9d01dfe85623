"""Python source that is being written: lines, names, the levels of its loops, and what is kept at
each level.

    level 0: parameters        level n + 1: what a loop (or function) at level n binds, anew in each turn

A term that makes a set or runs over one, and does not depend on the innermost loop, is kept at the
level on which it depends: a variable that is None, and a function beside it that fills it when it
is first asked for.  So nothing is computed before it is wanted, which matters where it has no
value.  Equal terms share one such variable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from attrs import define, field, frozen

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.term_analysis import KEPT, Facts

Lines: TypeAlias = "list[str | Lines]"  # a list inside is indented; an empty one says nothing


@frozen
class Known:
    """A variable: the code that gives its value, and the level of the loop on which it depends."""

    code: str
    level: int


Scope: TypeAlias = Mapping[str, Known]


@define
class Level:
    """The body of a loop or function: what is kept there, and how many loops of its function are
    open.
    """

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
        """An expression for the value of a term; statements that it needs are put before."""

    @abstractmethod
    def plain(self, term: t.Term, scope: Scope) -> str:
        """As `value`, computed in its place."""

    # ── lines and names ──────────────────────────────────────────────────────────────────────

    def fresh(self, wish: str) -> str:
        self.names += 1
        return f"{wish}{self.names}"

    def put(self, line: str) -> None:
        self.body.append(line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """What is put inside stands under the header."""
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
        """pos and end as arguments: of the term, or of the call whose function has no place."""
        at = next((node for node in (term, *reversed(self.calls)) if node.pos >= 0), term)
        return f"{at.pos}, {at.end}"

    # ── what is kept ─────────────────────────────────────────────────────────────────────────

    def again(self, home: int) -> bool:
        """Whether what depends on that level only would be computed here again and again."""
        return any(level.loops for level in self.levels[home + 1 :])

    def depends(self, term: t.Term, scope: Scope) -> int:
        """The level of the loop on which a term depends."""
        return max((scope[name].level for name in self.facts.free(term) if name in scope), default=0)

    def kept(self, term: t.Term, scope: Scope) -> str | None:
        """The code of a term that is computed once and kept; None where it is better computed in
        its place.
        """
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
        """Something made of a set, kept beside it."""
        level = self.levels[self.depends(term, scope)]
        known = tuple(sorted((name, scope[name].code) for name in self.facts.free(term) if name in scope))
        key = (what, self.facts.number(term), known)
        if key not in level.kept:
            level.kept[key] = self.keeper(level, lambda: make(self.value(term, scope)))
        return _asked(level.kept[key])

    def keeper(self, level: Level, make: Callable[[], str]) -> str:
        """The name of a variable at a level, which a function beside it fills."""
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
        """A value that has a name, as `let` and calls want it; by need, where it may have none."""
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

"""The mechanics of generated code: lines, names, the indexes it reads, loops and their limit.

Reads: core.codegen.agenda, core.codegen.expressions, core.tables.  Read by: core.codegen.atoms.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from everlog.core import program as p
from everlog.core.codegen.agenda import Agenda
from everlog.core.codegen.expressions import Expressions
from everlog.core.program import Atom, Variable
from everlog.core.tables import Columns, Shape

MAX_LOOPS = 16  # Python allows 20 nested blocks in one function


class NoSet(Exception):
    """The set variable that was tried cannot be one in this order of the body."""


@frozen
class Access:
    """An index that generated code reads: of `relation`, by `key`, giving `rest`."""

    relation: str
    key: Columns
    rest: Columns


@frozen
class Compiled:
    """The generated function: `make(*indexes)` binds it to tables; the result takes (Δ, new)."""

    source: str
    accesses: tuple[Access, ...]
    make: Callable[..., Callable[[Any, Any], None]]
    driver: int | None = None  # of code that reads Δ late: the access that its outermost loop runs through
    only_new: bool = False  # whether it derives no fact that its relation has
    from_delta: bool = False  # whether it does nothing outside of its loop over Δ


@define
class Writer:
    """Code in the making.

    `bound` maps a variable to the Python name that holds it; `sets` are the names of the sets
    whose intersection the set variable ranges over; `made` says at which depth a set was made that nobody
    else has.  If there is a `late` atom, it is joined in its turn, and its index is Δ.
    """

    shapes: Mapping[str, Shape]
    sizes: Mapping[str, int]
    functors: Mapping[str, p.Functor]
    set_variable: Variable | None
    lines: list[str] = field(factory=list)
    depth: int = 1
    loops: int = 0
    bound: dict[Variable, str] = field(factory=dict)
    sets: list[str] = field(factory=list)
    accesses: dict[Access, str] = field(factory=dict)
    helpers: list[str] = field(factory=list)
    expressions: Expressions = field(init=False)
    names: dict[str, str] = field(factory=dict)
    taken: set[str] = field(factory=set)
    temporaries: int = 0
    skip: str = "return"
    pending: list[tuple[str, list[str], list[str]]] = field(factory=list)
    agenda: Agenda = field(init=False)
    kept: frozenset[Variable] = frozenset()
    current: frozenset[Variable] = frozenset()
    last_loop: tuple[Variable, str, int] | None = None
    made: dict[str, int] = field(factory=dict)
    dropped: str = ""  # a value that the set at the bottom is still to lose
    known: bool = False  # whether derived facts are compared with those that the head's relation has
    only_new: bool = False
    late: Atom | None = None
    turned: bool = False  # whether relations that are run through are so by their fans
    driver: str = ""

    def __attrs_post_init__(self) -> None:
        self.expressions = Expressions(self.functors)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def temporary(self, prefix: str = "_t") -> str:
        self.temporaries += 1
        return f"{prefix}{self.temporaries}"

    def name(self, variable: Variable) -> str:
        """A readable Python name for a variable, unlike any other name in the code."""
        if variable.name not in self.names:
            plain = re.sub(r"\W", "_", variable.name.replace("?", "q_")).strip("_") or "v"
            if keyword.iskeyword(plain) or not plain.isidentifier():
                plain = f"v_{plain}"
            while plain in self.taken:
                plain += "_"
            self.taken.add(plain)
            self.names[variable.name] = plain
        return self.names[variable.name]

    def index_of(self, atom: Atom, key: Columns, rest: Columns) -> str:
        """The index that an atom is read through."""
        if atom is not self.late:
            return self.index(atom.relation, key, rest)
        shape = self.shapes[atom.relation]
        if shape.arity != 2 or (key, rest) != ((shape.key,), (shape.fan,)):
            raise NoSet
        return "_delta"

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        access = Access(relation, key, rest)
        if access not in self.accesses:
            self.accesses[access] = f"_i{len(self.accesses)}"
        return self.accesses[access]

    def open_loop(self, text: str, container: str) -> None:
        """Begin a `for`; past Python's limit of nested blocks the rest goes into a new function."""
        if self.loops >= MAX_LOOPS:
            self.split(container)
        self.driver = self.driver or container
        self.enter_loop(text)

    def enter_loop(self, header: str) -> None:
        self.line(header)
        self.depth += 1
        self.loops += 1
        self.skip = "continue"

    def leave_loop(self) -> str:
        """Take back the header of the loop that the last line began."""
        self.depth -= 1
        self.loops -= 1
        if not self.loops:
            self.skip = "return"
        return self.lines.pop().strip()

    def is_free_of_loop(self, expression: str) -> bool:
        """Whether the last line begins a loop, and an expression has none of its variables."""
        header = self.lines[-1].strip()
        if not (header.startswith("for ") and header.endswith(":")):
            return False
        targets = header.removeprefix("for ").split(" in ")[0]
        return set(re.findall(r"\w+", targets)).isdisjoint(re.findall(r"\w+", expression))

    def split(self, container: str) -> None:
        """Go on in a function of its own, called from here with everything that is bound."""
        needed = self.agenda.needed | self.kept | self.current
        arguments = ["_new", *(n for v, n in self.bound.items() if v in needed), *self.sets]
        fans = [m.container for m in self.agenda.members()]
        fans += re.findall(r"_fan\d+", container)
        arguments += dict.fromkeys(fans)
        part = f"_part{self.expressions.number()}"
        self.line(f"{part}({', '.join(arguments)})")
        self.pending.append((part, arguments, self.lines))
        self.lines, self.last_loop, self.made = [], None, {}
        self.depth, self.loops, self.skip = 1, 0, "return"

    def collect_parts(self) -> None:
        """Put the functions that `split` began before the code that calls them."""
        while self.pending:
            part, arguments, caller = self.pending.pop()
            self.helpers.append(f"    def {part}({', '.join(arguments)}):")
            self.helpers += [f"    {line}" for line in self.lines]
            self.lines = caller

    def test(self, condition: str) -> None:
        """Go on only where the condition holds."""
        self.line(f"if not ({condition}): {self.skip}")

    def expr(self, term: p.Term) -> str:
        return self.expressions.term(term, self.bound)

    def is_bound(self, terms: Sequence[p.Term]) -> bool:
        return all(v in self.bound for t in terms for v in p.variables_of(t))

    def is_new(self, arg: p.Term) -> bool:
        return isinstance(arg, Variable) and arg not in self.bound


def tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def one_line(text: str) -> str:
    return " ".join(text.split())

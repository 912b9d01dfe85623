"""The mechanics of generated code: names, the indexes it reads, loops and their limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen

from everlog.core import program as p
from everlog.core.codegen.agenda import Agenda
from everlog.core.codegen.code_lines import Line, Loop, Test, Values, identifier
from everlog.core.codegen.expressions import Expressions
from everlog.core.program import Atom, Variable
from everlog.core.storage.shape import Columns, Facts, Shape
from everlog.core.storage.table_statistics import Statistics

MAX_LOOPS = 16  # Python allows 20 nested blocks in one function
DELTA = Values("_delta", frozenset(["_delta"]), "_delta")


class NoSet(Exception):
    """The set variable that was tried cannot be one in this order of the body."""


@frozen
class Access:
    """An index that generated code reads: of `relation`, by `key`, giving `rest`."""

    relation: str
    key: Columns
    rest: Columns


Run: TypeAlias = Callable[[Facts | None, Facts], None]  # from Δ, into what is new
Lookup: TypeAlias = Callable[[Access], object]  # finds an index, as a rule asks for it


@frozen
class Compiled:
    """The generated function; bound to its indexes, it takes (Δ, new)."""

    source: str
    accesses: tuple[Access, ...]
    make: Callable[..., Run]
    driver: int | None = None  # of code that reads Δ late: the access that its outermost loop runs through
    only_new: bool = False  # whether it derives no fact that its relation has
    from_delta: bool = False  # whether it does nothing outside of its loop over Δ

    def bound_to(self, lookup: Lookup) -> Run:
        """The function, over the indexes that `lookup` finds."""
        return self.make(lookup, *map(lookup, self.accesses))


@define
class Part:
    """A function for the loops that were too deep for the one before it."""

    name: str
    parameters: list[str]
    caller: list[Line]


@define
class Writer:
    """Code under construction.

    `bound` maps a variable to the Python name that holds it; `sets` are the names of the sets whose
    intersection the set variable ranges over; `made` has the depth at which a set was made that has
    no other owner.  If there is a `late` atom, it is joined in its turn, and its index is Δ.
    """

    shapes: Mapping[str, Shape]
    statistics: Mapping[str, Statistics]
    functors: Mapping[str, p.Functor]
    set_variable: Variable | None
    lines: list[Line] = field(factory=list)
    depth: int = 1
    loops: int = 0
    bound: dict[Variable, str] = field(factory=dict)
    sets: list[str] = field(factory=list)
    accesses: dict[Access, str] = field(factory=dict)
    helpers: list[Line] = field(factory=list)
    expressions: Expressions = field(init=False)
    names: dict[str, str] = field(factory=dict)
    taken: set[str] = field(factory=set)
    temporaries: int = 0
    skips: bool = False  # whether a line leaves the innermost loop, or the function
    pending: list[Part] = field(factory=list)
    agenda: Agenda = field(init=False)
    kept: frozenset[Variable] = frozenset()
    current: frozenset[Variable] = frozenset()
    last_loop: tuple[Variable, Values, int] | None = None
    made: dict[str, int] = field(factory=dict)
    dropped: str = ""  # a value that the set at the bottom is still to lose
    known: bool = False  # whether derived facts are compared with those that the head's relation has
    only_new: bool = False
    late: Atom | None = None
    turned: bool = False  # whether binary relations are run through by value, not by key
    driver: Values | None = None  # what the outermost loop runs through
    unions_of_delta: int = 0
    failing: frozenset[str] = frozenset()  # groups whose value may be a failure
    guards: bool = True  # whether failures are told apart here, or left to the caller
    out_of_reach: set[str] = field(factory=set)  # of bound variables: they vanished, or a new function lacks them

    def __attrs_post_init__(self) -> None:
        self.expressions = Expressions(self.functors)

    def line(self, text: str) -> None:
        self.lines.append(Line(self.depth, text))

    def temporary(self, prefix: str = "_t") -> str:
        self.temporaries += 1
        return f"{prefix}{self.temporaries}"

    def name(self, variable: Variable) -> str:
        """A readable Python name for a variable, unlike any other name in the code."""
        found = self.names.get(variable.name)
        if found is None:
            found = identifier("v_", variable.name)
            while found in self.taken:
                found += "_"
            self.taken.add(found)
            self.names[variable.name] = found
        return found

    def index_of(self, atom: Atom, key: Columns, rest: Columns) -> str:
        """The index that an atom is read through."""
        if atom is not self.late:
            return self.index(atom.relation, key, rest)
        shape = self.shapes[atom.relation]
        if not shape.key_columns or not shape.is_stored(key, rest):
            raise NoSet
        return DELTA.text

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        access = Access(relation, key, rest)
        if access not in self.accesses:
            self.accesses[access] = f"_i{len(self.accesses)}"
        return self.accesses[access]

    # ── loops ────────────────────────────────────────────────────────────────────────────────

    def open_loop(self, pattern: str, targets: Sequence[str], values: Values) -> None:
        """Begin a `for`; past Python's limit of nested blocks the rest goes into a new function."""
        if self.loops >= MAX_LOOPS:
            self.split(values)
        self.driver = self.driver or values
        self.enter_loop(pattern, targets, values)

    def enter_loop(self, pattern: str, targets: Sequence[str], values: Values) -> None:
        text = f"for {pattern} in {values}:"
        self.lines.append(Loop(self.depth, text, pattern, tuple(targets), values))
        self.depth += 1
        self.loops += 1

    def leave_loop(self) -> Loop:
        """Take back the loop that the last line began."""
        loop = self.lines.pop()
        assert isinstance(loop, Loop)
        self.depth -= 1
        self.loops -= 1
        return loop

    def loop_without(self, names: Iterable[str]) -> Loop | None:
        """The loop that the last line begins, if it binds none of these names."""
        last = self.lines[-1] if self.lines else None
        return last if isinstance(last, Loop) and not set(names).intersection(last.targets) else None

    def split(self, values: Values) -> None:
        """Go on in a function of its own, called from here with everything that is bound."""
        needed = self.agenda.needed | self.kept | self.current
        arguments = ["_new", *(n for v, n in self.bound.items() if v in needed), *self.sets]
        arguments += [name for member in self.agenda.members() for name in sorted(member.values.names)]
        arguments += sorted(values.names)
        if self.late is not None:
            arguments.append(DELTA.text)
        arguments = list(dict.fromkeys(arguments))
        self.out_of_reach |= set(self.bound.values()).difference(arguments)
        part = f"_part{self.expressions.number()}"
        self.call_part(f"{part}({', '.join(arguments)})")
        self.pending.append(Part(part, arguments, self.lines))
        self.lines, self.last_loop, self.made = [], None, {}
        self.depth, self.loops = 1, 0

    def call_part(self, call: str) -> None:
        self.line(call)

    def collect_parts(self) -> None:
        """Put the functions that `split` began before the code that calls them."""
        while self.pending:
            part = self.pending.pop()
            self.helpers.append(Line(1, f"def {part.name}({', '.join(part.parameters)}):"))
            self.helpers += deeper(self.lines)
            self.lines = part.caller

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def skip(self) -> str:
        """The statement that leaves out what is at hand."""
        self.skips = True
        return "continue" if self.loops else "return"

    def test(self, condition: str) -> None:
        """Go on only where the condition holds."""
        self.lines.append(Test(self.depth, f"if not ({condition}): {self.skip()}", condition))

    def expr(self, term: p.Term) -> str:
        return self.expressions.term(term, self.bound)

    def names_in(self, terms: Iterable[p.Term]) -> set[str]:
        """The local names in the expressions for these terms."""
        return {self.bound[v] for term in terms for v in p.variables_of(term)}

    def is_bound(self, terms: Sequence[p.Term]) -> bool:
        return all(v in self.bound for t in terms for v in p.variables_of(t))

    def is_new(self, arg: p.Term) -> bool:
        return isinstance(arg, Variable) and arg not in self.bound


def deeper(lines: Iterable[Line], by: int = 1) -> list[Line]:
    """The same lines inside of something else."""
    return [Line(line.depth + by, line.text) for line in lines]


def same(one: str, other: str) -> str:
    """The test that two expressions are one value: NaN is, and equals nothing."""
    return f"{one} is {other} or {one} == {other}"


def tuple_text(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def packed(values: Sequence[str], columns: Columns) -> str:
    """The values of some columns, as keys and facts have them: one is bare."""
    return key_text([values[column] for column in columns])


def key_text(parts: Sequence[str]) -> str:
    """Several expressions as one key: one is bare."""
    return parts[0] if len(parts) == 1 else tuple_text(parts)

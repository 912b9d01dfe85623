"""The syntax tree of a program, correct or not, with source positions.

Every node has its position (`pos`, `end`: offsets in the source).  Equality ignores positions, so
`parse(print(program)) == program` holds.  The lexer makes the leaves, and the parser uses them as
tokens: `type` is the name of their terminal in the grammar.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from attrs import define, field


@define(hash=False)
class Node:
    pos: int = field(default=0, eq=False, repr=False, kw_only=True)
    end: int = field(default=0, eq=False, repr=False, kw_only=True)


# ── leaves ───────────────────────────────────────────────────────────────────────────────────
# Without attrs inheritance, for speed: the lexer makes one for every word of the text.


@define(hash=False)
class Name:
    """An identifier: a variable in a term, a name elsewhere."""

    name: str
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "IDENT"


@define(hash=False)
class Underscore:
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "UNDERSCORE"


@define(hash=False)
class Number:
    """A literal without suffix: a number, or by its context an unsigned or a float."""

    text: str
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "NUMBER"


@define(hash=False)
class Unsigned:
    text: str
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "UNSIGNED"


@define(hash=False)
class Float:
    text: str
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "FLOAT"


@define(hash=False)
class String:
    value: str
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "STRING"


@define(hash=False)
class Parameter:
    """`$name`: a value that the caller of a query passes beside its text."""

    name: str
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "PARAMETER"

    @property
    def variable(self) -> str:
        """Its name among the variables; no variable of a program begins with `$`."""
        return f"${self.name}"


@define(hash=False)
class FactLine:
    """`name(constant, …).` alone on a line.

    One regular expression reads the whole line: program files may hold many thousands of facts.
    """

    name: str
    values: list[int | str]
    pos: int = field(default=0, eq=False, repr=False)
    end: int = field(default=0, eq=False, repr=False)
    type: ClassVar[str] = "FACT"


# ── terms ────────────────────────────────────────────────────────────────────────────────────


@define(hash=False)
class Counter(Node):
    """`autoinc()` or `$`."""


@define(hash=False)
class IterationCounter(Node):
    """`recursive_iteration_cnt()`."""


@define(hash=False)
class Functor(Node):
    """A built-in: an operator (`+`, `neg`, `band`) or a name (`cat`, `range`, `max`)."""

    name: str
    args: list[Term]


@define(hash=False)
class UserFunctor(Node):
    name: str
    args: list[Term]


@define(hash=False)
class Cast(Node):
    term: Term
    type_name: str


@define(hash=False)
class Aggregate(Node):
    """`op target : { body }`; with `@f` as `op`, `@@f target : start, { body }`."""

    op: str
    target: Term | None
    body: Formula
    start: Term | None = None


@define(hash=False)
class HeadAggregate(Node):
    """`min(d)` as a column of a head: the aggregate of what its rules derive for one group."""

    op: str
    target: Term | None


@define(hash=False)
class Nonflat(Node):
    """A record, a branch of an algebraic type, or nil; kept to report it at its place."""

    what: str
    args: list[Term]


Term: TypeAlias = (
    Name
    | Underscore
    | Number
    | Unsigned
    | Float
    | String
    | Parameter
    | Counter
    | IterationCounter
    | Functor
    | UserFunctor
    | Cast
    | Aggregate
    | HeadAggregate
    | Nonflat
)


# ── formulas ─────────────────────────────────────────────────────────────────────────────────


@define(hash=False)
class Atom(Node):
    name: str
    args: list[Term]


@define(hash=False)
class Constraint(Node):
    op: str
    left: Term
    right: Term


@define(hash=False)
class Truth(Node):
    value: bool


@define(hash=False)
class Not(Node):
    formula: Formula


@define(hash=False)
class And(Node):
    parts: list[Formula]


@define(hash=False)
class Or(Node):
    parts: list[Formula]


Formula: TypeAlias = Atom | Constraint | Truth | Not | And | Or


# ── statements ───────────────────────────────────────────────────────────────────────────────


@define(hash=False)
class Plan(Node):
    """`.plan 0:(2,1), 1:(1,2)`: the order of joins in each version of the rule before it."""

    orders: list[tuple[int, list[int]]]


@define(hash=False)
class Strategy(Node):
    """`.strategy view_tree` after a rule: the strategy that maintains its relation."""

    name: str


@define(hash=False)
class Clause(Node):
    """A fact (no body) or a rule with one or more heads."""

    heads: list[Atom]
    body: Formula | None
    plan: Plan | None = None
    strategy: Strategy | None = None


@define(hash=False)
class Subsumption(Node):
    dominated: Atom
    dominating: Atom
    body: Formula
    plan: Plan | None = None


@define(hash=False)
class Attribute(Node):
    name: str
    type_name: str


@define(hash=False)
class Qualifier(Node):
    name: str


@define(hash=False)
class Choice(Node):
    """One key of a `choice-domain`."""

    keys: list[Name]


@define(hash=False)
class RelationDecl(Node):
    names: list[Name]
    attributes: list[Attribute]
    qualifiers: list[Qualifier] = field(factory=list)
    choices: list[Choice] = field(factory=list)
    delta_of: str | None = None


@define(hash=False)
class TypeDecl(Node):
    """A `.type` declaration.

    `form` is `subset` (`<:`), `equals` (alias or union), `legacy` or `nonflat`.
    """

    name: str
    form: str
    bases: list[Name]


@define(hash=False)
class FunctorDecl(Node):
    name: str
    params: list[Attribute]
    result: Attribute
    stateful: bool = False


@define(hash=False)
class Directive(Node):
    """A directive for one or more relations.

    `kind` is `input`, `output`, `printsize`, `limitsize`, `insert_only` or `view`.
    """

    kind: str
    relations: list[Name]
    params: list[tuple[str, str]] = field(factory=list)


@define(hash=False)
class Pragma(Node):
    key: str
    value: str


@define(hash=False)
class ComponentType(Node):
    name: str
    params: list[str]


@define(hash=False)
class Component(Node):
    type: ComponentType
    bases: list[ComponentType]
    items: list[Statement]


@define(hash=False)
class Init(Node):
    name: str
    component: ComponentType


@define(hash=False)
class Override(Node):
    name: str


@define(hash=False)
class Lattice(Node):
    """`.lattice L<> { Bottom -> 0, Lub -> @lub(_, _) }`: a type whose values are joined."""

    name: str
    operators: list[tuple[str, Term]] = field(factory=list)


Statement: TypeAlias = (
    FactLine
    | Clause
    | Subsumption
    | RelationDecl
    | TypeDecl
    | FunctorDecl
    | Directive
    | Pragma
    | Component
    | Init
    | Override
    | Lattice
)


@define(hash=False)
class Program:
    statements: list[Statement]

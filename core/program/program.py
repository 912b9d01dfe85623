"""The checked program: the narrow waist between the language and every executor.

`dsl.check` builds a `Program` from text; tests build one without text.  A `Program` is valid: names
resolve, arities and kinds agree, every variable is grounded, negation stratifies.  So later stages
never report a user's mistake about rules; they only compute.

The language is already small here.  Components, disjunctions, inlined relations, macros and unions
are gone; an aggregate, a range and an equality are body literals of their own.  Positive atoms of a
body compute nothing: `q(z + 1)` is `q(c), c = z + 1` (`flat_body`), because the term may need a
variable that another atom binds, or the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from attrs import field, frozen

Value: TypeAlias = int | float | str
Row: TypeAlias = tuple[Value, ...]


class Kind(StrEnum):
    """How a value is stored, and which arithmetic it has."""

    NUMBER = "number"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    SYMBOL = "symbol"


PARAMETERS = "$"  # the relation that binds the parameters of a query: one fact per run


# ── terms ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Variable:
    name: str

    def __hash__(self) -> int:
        """That of its name, which Python keeps: planning looks variables up all the time."""
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


@frozen
class Wildcard:
    """`_`: in a positive atom any value will do; under `!` it means "for no value"."""

    def __str__(self) -> str:
        return "_"


@frozen
class Constant:
    value: Value
    kind: Kind

    def __str__(self) -> str:
        match self.kind:
            case Kind.SYMBOL:
                return quoted(str(self.value))
            case Kind.UNSIGNED:
                return f"{self.value}u"
            case Kind.FLOAT:
                text = repr(self.value)
                return text.replace("e", ".0e") if "e" in text and "." not in text else text
            case Kind.NUMBER:
                return str(self.value)


@frozen
class Call:
    """A functor applied to terms.

    `operand` is the kind that picks among overloads (`+` on floats or on numbers); `kind` is the
    kind of the result.  A name that begins with `@` is a user's function.
    """

    name: str
    args: tuple[Term, ...]
    operand: Kind
    kind: Kind

    def __str__(self) -> str:
        if not self.name[0].isalpha() and self.name[0] != "@" and len(self.args) == 2:
            return f"({self.args[0]} {self.name} {self.args[1]})"
        return f"{self.name}({', '.join(map(str, self.args))})"


Term: TypeAlias = Variable | Wildcard | Constant | Call


# ── literals ─────────────────────────────────────────────────────────────────────────────────


@frozen
class Atom:
    relation: str
    args: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(str, self.args))})"


@frozen
class Negation:
    atom: Atom

    def __str__(self) -> str:
        return f"!{self.atom}"


@frozen
class Comparison:
    """`left op right`, both of one kind.  `=` may bind a variable to the other side."""

    op: str
    left: Term
    right: Term
    kind: Kind

    def __str__(self) -> str:
        if self.op.isalpha():
            return f"{self.op}({self.left}, {self.right})"
        if self.op.startswith("not_"):
            return f"!{self.op[4:]}({self.left}, {self.right})"
        return f"{self.left} {self.op} {self.right}"


Body: TypeAlias = "tuple[Literal, ...]"


def flat_body(body: Body) -> Body:
    """The body with a variable for each argument that a positive atom computes.

    >>> x, y, one = Variable("x"), Variable("y"), Constant(1, Kind.NUMBER)
    >>> body = flat_body((Atom("q", (Call("+", (x, one), Kind.NUMBER, Kind.NUMBER), y)),))
    >>> print(*body, sep=" and ")
    q(q((x + 1), y)@0.0, y) and q((x + 1), y)@0.0 = (x + 1)
    >>> flat_body(body) is body
    True
    >>> print(*written_body(body))
    q((x + 1), y)
    """
    if not any(isinstance(x, Atom) and any(isinstance(arg, Call) for arg in x.args) for x in body):
        return body
    out: list[Literal] = []
    for place, literal in enumerate(body):
        if not isinstance(literal, Atom):
            out.append(literal)
            continue
        new = {n: Variable(f"{literal}@{place}.{n}") for n, a in enumerate(literal.args) if isinstance(a, Call)}
        out.append(Atom(literal.relation, tuple(new.get(n, arg) for n, arg in enumerate(literal.args))))
        for n, variable in new.items():
            arg = literal.args[n]
            assert isinstance(arg, Call)
            out.append(Comparison("=", variable, arg, arg.kind))
    return tuple(out)


def computed_arguments(body: Body) -> dict[Term, Term]:
    """The variables of computed arguments, each with the term it stands for.

    Their names contain a parenthesis, which no name in a text does.  Part of a body may have such a
    variable without its equality: there it is an ordinary variable.
    """
    return {
        x.left: x.right
        for x in body
        if isinstance(x, Comparison) and isinstance(x.left, Variable) and "(" in x.left.name
    }


def written_body(body: Body) -> list[Literal]:
    """The body with computed arguments where they were written."""
    terms = computed_arguments(body)
    if not terms:
        return list(body)
    out: list[Literal] = []
    for literal in body:
        match literal:
            case Atom():
                out.append(_with_terms(literal, terms))
            case Negation(atom):
                out.append(Negation(_with_terms(atom, terms)))
            case Comparison(left=left) if left in terms:
                pass
            case _:
                out.append(literal)
    return out


def _with_terms(atom: Atom, terms: Mapping[Term, Term]) -> Atom:
    return Atom(atom.relation, tuple(terms.get(arg, arg) for arg in atom.args))


@frozen
class Aggregate:
    """`result = op target : { body }`, computed once for each binding of `outer`.

    The aggregate runs over the set of bindings of *all* variables of `body` (where wildcards count,
    the checker has named them).  `min`, `max` and `mean` over nothing have no value, and then the
    literal has no match.  `partial` says that it may fail although `body` no longer shows it
    (core.engine.planning.normal).
    """

    result: Variable
    op: str
    target: Term | None
    body: Body = field(converter=flat_body)
    outer: tuple[Variable, ...]
    kind: Kind
    partial: bool = False
    start: Constant | None = None  # of a function of the user: `op` is `@f`

    def __str__(self) -> str:
        target = "" if self.target is None else f" {self.target}"
        return f"{self.result} = {self.over(target, map(str, written_body(self.body)))}"

    def over(self, target: str, body: Iterable[str]) -> str:
        """The aggregate as it is written, with its parts as text."""
        if self.start is None:
            return f"{self.op}{target} : {{ {', '.join(body)} }}"
        return f"@{self.op}{target} : {self.start}, {{ {', '.join(body)} }}"


@frozen
class Range:
    """`result = range(start, stop, step)`: one match per value, `stop` excluded.

    Without a step it counts from `start` towards `stop`, up or down.
    """

    result: Variable
    start: Term
    stop: Term
    step: Term | None
    kind: Kind

    @property
    def bounds(self) -> list[Term]:
        """The arguments: start and stop, and the step if there is one."""
        return [self.start, self.stop] if self.step is None else [self.start, self.stop, self.step]

    def __str__(self) -> str:
        return f"{self.result} = range({', '.join(map(str, self.bounds))})"


Literal: TypeAlias = Atom | Negation | Comparison | Aggregate | Range


# ── rules, relations, directives ─────────────────────────────────────────────────────────────


@frozen
class Origin:
    """Where a rule was written, for messages, proofs and explanations."""

    text: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else f"line {self.line}"


class Failure(StrEnum):
    """The effect of an open condition of a rule (core.program.bodies)."""

    ERROR = "error"  # the rule fails
    VALUE = "value"  # the last column of the head has the error for its value
    NOTHING = "nothing"  # nothing is derived


Orders: TypeAlias = tuple[tuple[int | None, tuple[int, ...]], ...]


@frozen
class Rule:
    """`head :- body.`  Rules are named `relation#n`, numbered from 1 in program order.

    `strategy` is the author's choice of how to maintain it (`.strategy`), or empty.  `orders` are
    the author's orders of joins (`.plan`): the places of the body's atoms, by the place of the one
    that reads Δ; None stands for every version of a rule that is not recursive.
    """

    head: Atom
    body: Body = field(converter=flat_body)
    name: str = ""
    origin: Origin = field(factory=Origin, eq=False)
    strategy: str = ""
    failure: Failure = Failure.ERROR
    orders: Orders = ()

    def order_of(self, delta: int | None) -> tuple[int, ...]:
        """The atoms in the order that the author gave, Δ first; empty if there is none.

        A rule that was rewritten to have other atoms has none.

        >>> x = Variable("x")
        >>> body = Atom("q", (x,)), Atom("r", (x,))
        >>> rule = Rule(Atom("p", (x,)), body, orders=((None, (1, 0)),))
        >>> rule.order_of(None), rule.order_of(0)
        ((1, 0), (0, 1))
        """
        if not self.orders:
            return ()
        known = dict(self.orders)
        order = known.get(delta, known.get(None, ()))
        others = [place for place in order if place != delta]
        atoms = [place for place, literal in enumerate(self.body) if isinstance(literal, Atom) and place != delta]
        if not order or sorted(others) != atoms:
            return ()
        return tuple(others) if delta is None else (delta, *others)

    def __str__(self) -> str:
        if not self.body:
            return f"{self.head}."
        return f"{self.head} :- {', '.join(map(str, written_body(self.body)))}."

    @property
    def written(self) -> str:
        """The rule as its author wrote it, on one line, for messages."""
        return " ".join(self.origin.text.split()) or str(self)


@frozen
class Subsumption:
    """`dominated <= dominating :- body.`: a fact goes when a better one is present."""

    dominated: Atom
    dominating: Atom
    body: Body = field(converter=flat_body)
    origin: Origin = field(factory=Origin, eq=False)

    def __str__(self) -> str:
        return f"{self.dominated} <= {self.dominating} :- {', '.join(map(str, written_body(self.body)))}."


@frozen
class Column:
    name: str
    kind: Kind
    type_name: str = ""


@frozen
class Lattice:
    """An order of values, given by functions of the user (`.lattice`).

    `lub` names the functor that joins two values; `bottom` is the least value, which stands for the
    absence of a fact.  `glb` and `leq` name functors that are only tried (`check --try`).
    """

    name: str
    lub: str
    bottom: Value | None = None
    glb: str = ""
    leq: str = ""
    top: Value | None = None


@frozen
class Relation:
    """A declared relation.

    `equivalence` closes it under reflexivity, symmetry and transitivity (`eqrel`).  Each entry of
    `choices` lists key columns that at most one fact may have (`choice-domain`): of several
    candidates the first stays (`core.evaluate.choice_domains` defines "first").  Base facts of an
    `insert_only` relation are never deleted.  `auxiliary_of` names the relation that this one helps
    a system of auxiliary relations to maintain (core.engine.planning.systems): the system alone
    fills it.  `lattices` has the columns whose values are joined: there is
    one fact for each value of the others.  `on_demand` relations (`magic`) hold only what somebody
    asks for (core.program.live_demand).
    The facts of a `view` are not stored, and no rule reads it: it reads the bodies of its rules.
    """

    name: str
    columns: tuple[Column, ...]
    equivalence: bool = False
    choices: tuple[tuple[int, ...], ...] = ()
    insert_only: bool = False
    auxiliary_of: str = ""
    lattices: tuple[tuple[int, Lattice], ...] = ()
    on_demand: bool = False
    view: bool = False

    @property
    def arity(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        columns = ", ".join(f"{c.name}:{c.type_name or c.kind}" for c in self.columns)
        return f"{self.name}({columns})"


@frozen
class Directive:
    """`.input`, `.output` or `.printsize` of a relation, with its parameters."""

    relation: str
    params: Mapping[str, str] = field(factory=dict)
    origin: Origin = field(factory=Origin, eq=False)


@frozen
class Functor:
    """A user's function: its kinds, and the Python callable bound to it (or None)."""

    name: str
    params: tuple[Kind, ...]
    result: Kind
    function: Callable[..., Value] | None = None


@frozen
class Program:
    """A checked program.

    `facts` are the ground facts of the text.  `limits` maps a relation to the size at which its
    recursion stops (`.limitsize`).
    """

    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...] = ()
    facts: Mapping[str, tuple[Row, ...]] = field(factory=dict)
    subsumptions: tuple[Subsumption, ...] = ()
    inputs: tuple[Directive, ...] = ()
    outputs: tuple[Directive, ...] = ()
    printsizes: tuple[Directive, ...] = ()
    limits: Mapping[str, int] = field(factory=dict)
    functors: Mapping[str, Functor] = field(factory=dict)
    pragmas: Mapping[str, str] = field(factory=dict)

    def rules_of(self, relation: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.head.relation == relation)


# ── walks ────────────────────────────────────────────────────────────────────────────────────


def variables_of(term: Term) -> Iterator[Variable]:
    """The variables of a term, from left to right, with repetitions.

    >>> x = Variable("x")
    >>> [str(v) for v in variables_of(Call("+", (x, x), Kind.NUMBER, Kind.NUMBER))]
    ['x', 'x']
    """
    if isinstance(term, Variable):
        yield term
    elif isinstance(term, Call):
        for arg in term.args:
            yield from variables_of(arg)


def atoms_of(body: tuple[Literal, ...]) -> Iterator[tuple[Atom, str]]:
    """Every atom of a body with its use: `positive`, `negative` or `aggregate`."""
    for literal in body:
        match literal:
            case Atom():
                yield literal, "positive"
            case Negation(atom):
                yield atom, "negative"
            case Aggregate(body=inner):
                for atom, _ in atoms_of(inner):
                    yield atom, "aggregate"
            case Comparison() | Range():
                pass


def calls_of(rule: Rule) -> Iterator[Call]:
    """Every functor application of a rule, in head and body."""

    def of_term(term: Term | None) -> Iterator[Call]:
        if isinstance(term, Call):
            yield term
            for arg in term.args:
                yield from of_term(arg)

    def of_body(body: tuple[Literal, ...]) -> Iterator[Call]:
        for literal in body:
            match literal:
                case Atom(args=args) | Negation(Atom(args=args)):
                    for arg in args:
                        yield from of_term(arg)
                case Comparison(left=left, right=right):
                    yield from of_term(left)
                    yield from of_term(right)
                case Range(start=start, stop=stop, step=step):
                    yield from of_term(start)
                    yield from of_term(stop)
                    yield from of_term(step)
                case Aggregate(op=op, target=target, body=inner, kind=kind, start=value):
                    if value is not None and target is not None:  # a functor of the user folds the targets
                        yield Call(op, (value, target), kind, kind)
                    yield from of_term(target)
                    yield from of_body(inner)

    for arg in rule.head.args:
        yield from of_term(arg)
    yield from of_body(rule.body)


def invents(rule: Rule) -> bool:
    """Whether a rule computes new values, so that its recursion may not end."""
    return any(True for _ in calls_of(rule)) or any(isinstance(literal, Range) for literal in rule.body)


def draws_numbers(rule: Rule) -> bool:
    """Whether a rule draws numbers from `autoinc()`."""
    return any(call.name == "autoinc" for call in calls_of(rule))


_ESCAPES = str.maketrans(
    {
        '"': '\\"',
        "\\": "\\\\",
        "\n": "\\n",
        "\t": "\\t",
        "\r": "\\r",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\v": "\\v",
    }
)


def quoted(text: str) -> str:
    r"""A symbol as the language writes it.

    >>> print(quoted('a "b"\n'))
    "a \"b\"\n"
    """
    return f'"{text.translate(_ESCAPES)}"'

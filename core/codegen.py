"""A rule to straight-line Python over indexes, innermost variable set-at-a-time.

For each rule, and for each body atom that may be read as a *delta* (only what is new), one Python
function is generated: nested loops over the indexes it needs, and at the bottom one operation on
sets.  The variable at the bottom, the *set variable*, is never looped over: every atom that has it
gives the set of its values, and `&`, `-` and `|` combine them in C.  For

    path(x, z) :- path(x, y), edge(y, z).

with Δpath kept as {y: {x, …}} this is `for y, S in Δ.items(): for z in edge[y]: new[z] |= S`.

A loop over a variable that only leads from one atom to the next is a union of fans instead, and
any other loop runs only over values that the atoms after it have at all.

The order of the body is chosen greedily: tests and equalities as soon as their variables are
bound, then the atom that is expected to give the fewest matches.

Reads: core.program, core.functors, core.tables, core.expressions.  Read by: core.seminaive.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from everlog.core import program as p
from everlog.core.agenda import Agenda, Item, Member, variables_of_literal
from everlog.core.expressions import Expressions
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Range,
    Rule,
    Variable,
)
from everlog.core.tables import Columns, Shape

MAX_LOOPS = 16  # Python allows 20 nested blocks in one function
MAX_CANDIDATES = 6  # set variables to try for one rule
_LARGE = 10_000_000


class _NoSet(Exception):
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


def compile_rule(
    rule: Rule,
    delta: int | None,
    shapes: Mapping[str, Shape],
    sizes: Mapping[str, int],
    functors: Mapping[str, p.Functor],
) -> Compiled:
    """The function that derives `rule`; with `delta` the body atom at that position reads Δ."""
    body = _without_calls(rule.body)
    for candidate in [*_set_variables(rule, body, delta, shapes), None]:
        try:
            writer = _Writer(shapes, sizes, functors, candidate)
            return writer.rule(rule, body, delta)
        except _NoSet:
            continue
    raise AssertionError("a rule without set variable always compiles")


def _without_calls(body: Sequence[Literal]) -> list[Literal]:
    """Functors in positive atoms become equalities, so that atoms hold variables and constants."""
    out: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom) and any(isinstance(a, Call) for a in literal.args):
            args: list[p.Term] = []
            equalities: list[Literal] = []
            for arg in literal.args:
                if isinstance(arg, Call):
                    variable = Variable(f"arg@{len(out)}.{len(args)}")
                    equalities.append(Comparison("=", variable, arg, arg.kind))
                    args.append(variable)
                else:
                    args.append(arg)
            out += [Atom(literal.relation, tuple(args)), *equalities]
        else:
            out.append(literal)
    return out


# ── which variable is the set variable ───────────────────────────────────────────────────────


def _set_variables(
    rule: Rule, body: Sequence[Literal], delta: int | None, shapes: Mapping[str, Shape]
) -> list[Variable]:
    """The variables worth trying, best first: those that fill a head column, then unneeded ones."""
    head = rule.head
    shape = shapes[head.relation]
    columns = {1: [0], 2: [shape.fan]}.get(shape.arity, list(range(shape.arity - 1, -1, -1)))
    in_head = [v for arg in head.args for v in p.variables_of(arg)]
    wanted = [a for c in columns if isinstance(a := head.args[c], Variable) and in_head.count(a) == 1]
    counts: dict[Variable, int] = {}
    for literal in body:
        if isinstance(literal, Atom):
            for arg in literal.args:
                if isinstance(arg, Variable):
                    counts[arg] = counts.get(arg, 0) + 1
    unneeded = [v for v, n in sorted(counts.items(), key=lambda e: -e[1]) if v not in in_head]
    likely = [v for v in [*wanted, *unneeded] if v in counts][:MAX_CANDIDATES]
    return [v for v in likely if settable(v, body)]


def settable(variable: Variable, body: Sequence[Literal]) -> bool:
    """Whether every literal that has the variable can work on the set of its values."""
    for literal in body:
        match literal:
            case Atom(args=args) | Negation(Atom(args=args)):
                if sum(v == variable for a in args for v in p.variables_of(a)) > 1:
                    return False
                if any(isinstance(a, Call) and variable in p.variables_of(a) for a in args):
                    return False
            case Comparison(op, left, right, _):
                inside = [t for t in (left, right) if variable in p.variables_of(t)]
                if inside and (len(inside) == 2 or inside[0] != variable or op == "="):
                    return False
            case Aggregate(result=result, outer=outer):
                if variable == result or variable in outer:
                    return False
            case Range(result, start, stop, step, _):
                terms = (result, start, stop) + (() if step is None else (step,))
                if any(variable in p.variables_of(t) for t in terms):
                    return False
    return True


# ── writing code ─────────────────────────────────────────────────────────────────────────────


@define
class _Writer:
    """Code in the making.

    `bound` maps a variable to the Python name that holds it; `sets` are the names of the sets
    whose intersection the set variable ranges over; `absent` those it must avoid.
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

    def __attrs_post_init__(self) -> None:
        self.expressions = Expressions(self.functors)

    # ── a whole rule ─────────────────────────────────────────────────────────────────────────

    def rule(self, rule: Rule, body: list[Literal], delta: int | None) -> Compiled:
        position = _delta_position(rule.body, body, delta)
        self.kept = frozenset(v for arg in rule.head.args for v in p.variables_of(arg))
        self.join(body, position, lambda: self.emit_head(rule.head))
        name = re.sub(r"\W", "_", rule.name or rule.head.relation) + ("" if delta is None else f"_delta{delta}")
        return self.finish(rule, name, delta)

    def finish(self, rule: Rule, name: str, delta: int | None) -> Compiled:
        order = list(self.accesses.values())
        version = "" if delta is None else f"   Δ at body atom {delta + 1}"
        text = [f"def make({', '.join(order)}):", f"    # {_one_line(str(rule))}{version}"]
        text += self.helpers
        text += [f"    def {name}(_delta, _new):", *(f"    {line}" for line in self.lines), f"    return {name}"]
        source = "\n".join(text)
        scope: dict[str, Any] = dict(self.expressions.scope)
        exec(compile(source, f"<rule {rule.name}>", "exec"), scope)  # our own text, made above
        return Compiled(source, tuple(self.accesses), scope["make"])

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

    def index(self, relation: str, key: Columns, rest: Columns) -> str:
        access = Access(relation, key, rest)
        if access not in self.accesses:
            self.accesses[access] = f"_i{len(self.accesses)}"
        return self.accesses[access]

    def open_loop(self, text: str, container: str) -> None:
        """Begin a `for`; past Python's limit of nested blocks the rest goes into a new function."""
        if self.loops >= MAX_LOOPS:
            self.split(container)
        self.line(text)
        self.depth += 1
        self.loops += 1
        self.skip = "continue"

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
        self.lines, self.last_loop = [], None
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

    # ── joins ────────────────────────────────────────────────────────────────────────────────

    def join(self, body: list[Literal], delta: int | None, emit: Callable[[], None]) -> None:
        """Loops and tests for the whole body, then `emit` at the bottom."""
        agenda = Agenda(body, self.set_variable)
        self.agenda = agenda
        if delta is not None:
            first = body[delta]
            assert isinstance(first, Atom)
            agenda.done(delta)
            self.delta_atom(first)
        while True:
            self.settle(agenda)
            if not agenda.open:
                break
            if agenda.only_tests_left():
                for literal in list(agenda.open.values()):
                    assert not isinstance(literal, Member)
                    self.filter_set(literal)
                break
            position = agenda.next(self.expected_of)
            chosen = agenda.done(position)
            self.current = frozenset(variables_of_literal(chosen))
            if isinstance(chosen, Range):
                self.range_loop(chosen)
            elif isinstance(chosen, Member):
                self.values(chosen.container, chosen.variable)
            else:
                assert isinstance(chosen, Atom), f"never ready: {chosen}"
                self.atom(chosen)
        emit()
        self.collect_parts()

    def settle(self, agenda: Agenda) -> None:
        """Write every test and equality that became ready with the variables bound since the last time."""
        while True:
            positions = agenda.touched(self.bound)
            if not positions:
                return
            for position in positions:
                literal = agenda.open.get(position)
                if literal is not None and self.write_ready(literal):
                    agenda.done(position)

    def is_bound(self, terms: Sequence[p.Term]) -> bool:
        return all(v in self.bound for t in terms for v in p.variables_of(t))

    def write_ready(self, literal: Item) -> bool:
        match literal:
            case Member(variable, container):
                if variable not in self.bound:
                    return False
                self.test(f"{self.bound[variable]} in {container}")
                return True
            case Comparison(op, left, right, kind):
                return self.comparison(op, left, right, kind)
            case Negation(atom):
                if not self.is_bound(atom.args):
                    return False
                self.negation(atom)
                return True
            case Aggregate(outer=outer):
                if not self.is_bound(outer):
                    return False
                self.aggregate(literal)
                return True
            case Atom(args=args):
                if self.set_variable in args or not all(
                    isinstance(a, p.Wildcard) or self.is_bound((a,)) for a in args
                ):
                    return False
                self.atom(literal)
                return True
            case _:
                return False

    def expected_of(self, literal: Item) -> float | None:
        """The expected matches of an atom or a range; None for what cannot be joined next."""
        match literal:
            case Member(variable):
                return 10.0 if self.leads_on(variable) else 100.0
            case Atom(relation, args):
                cost = self.expected(relation, args)
                new = [a for a in args if isinstance(a, Variable) and self.is_new(a) and a != self.set_variable]
                bound = any(a in self.bound for a in args)
                return min(cost, 50.0) if bound and len(new) == 1 and self.leads_on(new[0]) else cost
            case Range(start=start, stop=stop, step=step):
                return 20.0 if self.is_bound((start, stop) if step is None else (start, stop, step)) else None
            case _:
                return None

    def leads_on(self, variable: Variable) -> bool:
        """Whether a variable only leads into one further atom: then its loop becomes a union."""
        if variable in self.kept or self.agenda.uses(variable) != 2:
            return False
        return all(isinstance(self.agenda.open[x], Atom | Member) for x in self.agenda.positions(variable))

    def expected(self, relation: str, args: tuple[p.Term, ...]) -> float:
        """Expected matches: each bound column divides the size by the same factor."""
        size = max(2, self.sizes.get(relation, _LARGE))
        needed = [a for a in args if not isinstance(a, p.Wildcard)]
        if not needed:
            return 1.0
        known = sum(isinstance(a, Constant) or a in self.bound for a in needed)
        free = len(needed) - known
        if self.set_variable in needed:
            free -= 1
            if free == 0:
                return 0.5
        return math.pow(size, free / len(needed))

    # ── atoms ────────────────────────────────────────────────────────────────────────────────

    def delta_atom(self, atom: Atom) -> None:
        """Read an atom from Δ, in the form its relation has, testing what is not a new variable."""
        shape = self.shapes[atom.relation]
        if shape.arity == 0:
            self.test("_delta")
        elif shape.arity == 1:
            self.values("_delta", atom.args[0])
        elif shape.arity == 2:
            key, fan = atom.args[shape.key], atom.args[shape.fan]
            if key == self.set_variable:
                raise _NoSet
            name = self.temporary("_fan")
            if isinstance(key, Constant):
                self.line(f"{name} = _delta.get({self.expr(key)}, _EMPTY)")
                self.test(name)
            else:
                self.loop([key], name, "_delta.items()")
                self.existence_tests(key)
            self.fan(name, fan)
        else:
            if self.set_variable in atom.args:
                raise _NoSet
            self.rows("_delta", atom.args)

    def fan(self, container: str, arg: p.Term) -> None:
        """The fan of a key: a loop over it waits until nothing better is to be done."""
        if self.is_new(arg) and arg != self.set_variable:
            assert isinstance(arg, Variable)
            self.agenda.add(Member(arg, container))
        else:
            self.values(container, arg)

    def existence_tests(self, key: p.Term) -> None:
        """Leave out at once the keys that a further atom does not have at all."""
        if isinstance(key, Variable):
            for index in self.leading_indexes(key):
                self.line(f"if {self.bound[key]} not in {index}: continue")

    def leading_indexes(self, variable: Variable) -> list[str]:
        """The indexes of open atoms that a variable alone leads into."""
        out: list[str] = []
        for position in self.agenda.positions(variable):
            atom = self.agenda.open[position]
            if not isinstance(atom, Atom) or atom.args.count(variable) != 1 or len(out) > 1:
                continue
            column = atom.args.index(variable)
            others = [c for c, a in enumerate(atom.args) if c != column and not isinstance(a, p.Wildcard)]
            if len(others) == 1 and self.is_new(atom.args[others[0]]):
                out.append(self.index(atom.relation, (column,), (others[0],)))
        return out

    def values(self, container: str, arg: p.Term) -> None:
        """One column whose values are the set `container`."""
        if arg == self.set_variable:
            self.sets.append(container)
        elif isinstance(arg, p.Wildcard):
            self.test(container)
        elif isinstance(arg, Constant) or arg in self.bound:
            self.test(f"{self.expr(arg)} in {container}")
        else:
            assert isinstance(arg, Variable)
            restricted = self.restricted(container, arg)
            self.loop([arg], "", restricted)
            self.last_loop = (arg, restricted, len(self.lines))

    def restricted(self, container: str, variable: Variable) -> str:
        """The values of a loop, cut down in C to those that further atoms have at all."""
        parts = [container, *(f"{index}.keys()" for index in self.leading_indexes(variable))]
        return " & ".join(parts)

    def union_over_loop(self, atom: Atom, key: list[int], index: str) -> str | None:
        """Instead of a loop whose variable only leads into `index`: the union of what it leads to."""
        if self.last_loop is None or len(key) != 1:
            return None
        variable, container, at = self.last_loop
        if at != len(self.lines) or atom.args[key[0]] != variable:
            return None
        if variable in self.agenda.needed or variable in self.kept:
            return None
        self.lines.pop()
        self.depth -= 1
        self.loops -= 1
        if not self.loops:
            self.skip = "return"
        if f"{index}.keys()" not in container:
            container += f" & {index}.keys()"
        name = self.temporary("_fan")
        self.line(f"{name} = _set().union(*_map({index}.__getitem__, {container}))")
        return name

    def rows(self, container: str, args: Sequence[p.Term]) -> None:
        """Several columns whose rows are the set `container`."""
        self.loop(args, "", container)

    def loop(self, args: Sequence[p.Term], extra: str, container: str) -> None:
        """`for args…[, extra] in container`, then the tests that repeated or known columns need."""
        targets: list[str] = []
        tests: list[str] = []
        new: list[Variable] = []
        for arg in args:
            if isinstance(arg, p.Wildcard):
                targets.append("_")
            elif self.is_new(arg) and arg not in new:
                assert isinstance(arg, Variable)
                new.append(arg)
                targets.append(self.name(arg))
            else:
                targets.append(self.temporary())
                value = self.name(arg) if isinstance(arg, Variable) and arg in new else self.expr(arg)
                tests.append(f"{targets[-1]} == {value}")
        pattern = ", ".join(targets)
        if extra:
            pattern = f"({pattern}), {extra}" if len(targets) > 1 else f"{pattern}, {extra}"
        self.open_loop(f"for {pattern} in {container}:", container)
        for variable in new:
            self.bound[variable] = self.name(variable)
        for condition in tests:
            self.test(condition)

    def is_new(self, arg: p.Term) -> bool:
        return isinstance(arg, Variable) and arg not in self.bound

    def atom(self, atom: Atom) -> None:
        """Join with a whole relation through the index that its bound columns ask for."""
        key: list[int] = []
        rest: list[int] = []
        set_column: int | None = None
        for column, arg in enumerate(atom.args):
            if isinstance(arg, p.Wildcard):
                continue
            if arg == self.set_variable:
                set_column = column
            elif isinstance(arg, Constant) or arg in self.bound:
                key.append(column)
            else:
                rest.append(column)
        if set_column is not None:
            self.set_atom(atom, key, rest, set_column)
        elif not rest:
            self.membership(atom, key)
        elif not key and len(rest) == len(atom.args):
            self.scan(atom)
        elif not key:
            container = self.index(atom.relation, (), tuple(rest))
            self.columns(container, [atom.args[c] for c in rest])
        else:
            index = self.index(atom.relation, tuple(key), tuple(rest))
            union = self.union_over_loop(atom, key, index)
            self.columns(union or f"{index}.get({self.key(atom, key)}, _EMPTY)", [atom.args[c] for c in rest])

    def columns(self, container: str, args: list[p.Term]) -> None:
        if len(args) == 1:
            self.values(container, args[0])
        else:
            self.rows(container, args)

    def scan(self, atom: Atom) -> None:
        shape = self.shapes[atom.relation]
        if shape.arity == 2:
            index = self.index(atom.relation, (shape.key,), (shape.fan,))
            name = self.temporary("_fan")
            key = atom.args[shape.key]
            self.loop([key], name, f"{index}.items()")
            self.existence_tests(key)
            self.fan(name, atom.args[shape.fan])
        else:
            container = self.index(atom.relation, (), tuple(range(shape.arity)))
            self.columns(container, list(atom.args))

    def set_atom(self, atom: Atom, key: list[int], rest: list[int], column: int) -> None:
        """The set of values of the set variable, for what the other columns hold."""
        name = self.temporary("_S")
        if not rest:
            if key:
                index = self.index(atom.relation, tuple(key), (column,))
                union = self.union_over_loop(atom, key, index)
                if union is None:
                    self.line(f"{name} = {index}.get({self.key(atom, key)})")
                name = union or name
            else:
                self.line(f"{name} = {self.index(atom.relation, (), (column,))}")
            self.line(f"if not {name}: {self.skip}")
        elif key:
            raise _NoSet
        else:
            index = self.index(atom.relation, tuple(rest), (column,))
            self.loop([atom.args[c] for c in rest], name, f"{index}.items()")
        self.sets.append(name)

    def key(self, atom: Atom, columns: Sequence[int]) -> str:
        parts = [self.expr(atom.args[c]) for c in columns]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def membership(self, atom: Atom, key: list[int]) -> None:
        condition = self.contains(atom, key)
        self.test(condition)

    def contains(self, atom: Atom, key: Sequence[int]) -> str:
        """The test that some fact has these values in its `key` columns."""
        shape = self.shapes[atom.relation]
        if not key:
            return self.nonempty(atom.relation)
        if shape.arity == 2 and len(key) == 2:
            index = self.index(atom.relation, (shape.key,), (shape.fan,))
            key_text, fan_text = self.expr(atom.args[shape.key]), self.expr(atom.args[shape.fan])
            return f"{fan_text} in {index}.get({key_text}, _EMPTY)"
        return f"{self.key(atom, key)} in {self.index(atom.relation, tuple(key), ())}"

    def nonempty(self, relation: str) -> str:
        shape = self.shapes[relation]
        if shape.arity == 2:
            return self.index(relation, (shape.key,), (shape.fan,))
        return self.index(relation, (), tuple(range(shape.arity)))

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def negation(self, atom: Atom) -> None:
        key = [c for c, arg in enumerate(atom.args) if not isinstance(arg, p.Wildcard)]
        condition = self.contains(atom, key)
        self.line(f"if {condition}: {self.skip}")

    def comparison(self, op: str, left: p.Term, right: p.Term, kind: p.Kind) -> bool:
        left_known, right_known = self.is_bound((left,)), self.is_bound((right,))
        if left_known and right_known:
            self.test(self.expressions.comparison(op, self.expr(left), self.expr(right), kind))
            return True
        if op != "=":
            return False
        for side, other, known in ((left, right, right_known), (right, left, left_known)):
            if known and isinstance(side, Variable) and side != self.set_variable:
                self.line(f"{self.name(side)} = {self.expr(other)}")
                self.bound[side] = self.name(side)
                return True
        return False

    def range_loop(self, literal: Range) -> None:
        step = "None" if literal.step is None else self.expr(literal.step)
        values = f"_range({self.expr(literal.start)}, {self.expr(literal.stop)}, {step})"
        if literal.result in self.bound:
            self.test(f"{self.expr(literal.result)} in {values}")
        else:
            self.loop([literal.result], "", values)

    def filter_set(self, literal: Literal) -> None:
        """A test on the set variable: it cuts down the set at the bottom."""
        current = self.single_set()
        name = self.temporary("_S")
        variable = self.set_variable
        assert variable is not None
        match literal:
            case Negation(Atom() as atom):
                column = atom.args.index(variable)
                key = [c for c, a in enumerate(atom.args) if c != column and not isinstance(a, p.Wildcard)]
                if key:
                    index = self.index(atom.relation, tuple(key), (column,))
                    self.line(f"{name} = {current} - {index}.get({self.key(atom, key)}, _EMPTY)")
                else:
                    self.line(f"{name} = {current} - {self.index(atom.relation, (), (column,))}")
            case Comparison(op, left, right, kind):
                other = right if left == variable else left
                value = self.temporary()
                self.line(f"{value} = {self.expr(other)}")
                inner = self.name(variable)
                sides = (inner, value) if left == variable else (value, inner)
                condition = self.expressions.comparison(op, *sides, kind)
                if op == "!=":
                    self.line(f"{name} = {current} - {{{value}}}")
                else:
                    self.line(f"{name} = {{{inner} for {inner} in {current} if {condition}}}")
            case _:
                raise AssertionError(f"no test on a set: {literal}")
        self.line(f"if not {name}: {self.skip}")
        self.sets = [name]

    def single_set(self) -> str:
        """The intersection of what every atom gave, under one name."""
        if len(self.sets) > 1:
            name = self.temporary("_S")
            self.line(f"{name} = {' & '.join(self.sets)}")
            self.line(f"if not {name}: {self.skip}")
            self.sets = [name]
        return self.sets[0]

    def expr(self, term: p.Term) -> str:
        return self.expressions.term(term, self.bound)

    # ── heads ────────────────────────────────────────────────────────────────────────────────

    def emit_head(self, head: Atom) -> None:
        shape = self.shapes[head.relation]
        if self.set_variable is not None:
            self.emit_set(head, shape)
            return
        values = [self.expr(a) for a in head.args]
        self.emit_row(shape, values)

    def emit_row(self, shape: Shape, values: list[str]) -> None:
        if shape.arity != 2:
            value = values[0] if shape.arity == 1 else _tuple(values)
            if not self.emit_comprehension(value):
                self.line(f"_new.add({value})")
        else:
            key, fan = values[shape.key], values[shape.fan]
            self.line(f"_k = {key}")
            self.line("_a = _new.get(_k)")
            self.line(f"if _a is None: _new[_k] = {{{fan}}}")
            self.line(f"else: _a.add({fan})")

    def emit_comprehension(self, value: str) -> bool:
        """The innermost loop, with nothing but tests in it, as one comprehension: twice as fast."""
        indent = "    " * self.depth
        at = len(self.lines)
        tests: list[str] = []
        while at and (found := re.fullmatch(rf"{indent}if not \((.*)\): continue", self.lines[at - 1])):
            tests.insert(0, f" if {found[1]}")
            at -= 1
        header = re.fullmatch(r"    +(for .* in .*):", self.lines[at - 1]) if at and self.depth > 1 else None
        if header is None or self.lines[at - 1].startswith(indent):
            return False
        del self.lines[at - 1 :]
        self.depth -= 1
        self.line(f"_new.update([{value} {header[1]}{''.join(tests)}])")
        return True

    def emit_set(self, head: Atom, shape: Shape) -> None:
        variable = self.set_variable
        assert variable is not None
        if variable not in head.args:  # only whether there is a value matters
            self.any_value()
            self.emit_row(shape, [self.expr(a) for a in head.args])
            return
        values = self.single_set()
        if shape.arity == 1:
            self.line(f"_new |= {values}")
        elif shape.arity == 2:
            self.line(f"_k = {self.expr(head.args[shape.key])}")
            self.line("_a = _new.get(_k)")
            self.line(f"if _a is None: _new[_k] = _set({values})")
            self.line(f"else: _a |= {values}")
        else:
            columns = [values if a == variable else f"_repeat({self.expr(a)})" for a in head.args]
            self.line(f"_new.update(_zip({', '.join(columns)}))")

    def any_value(self) -> None:
        """Go on only where the sets have a value in common."""
        if len(self.sets) == 2:
            self.line(f"if {self.sets[0]}.isdisjoint({self.sets[1]}): {self.skip}")
        else:
            self.single_set()

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def aggregate(self, literal: Aggregate) -> None:
        """A call of the function that computes the aggregate for the outer variables, remembered."""
        function = f"_agg{self.expressions.number()}"
        self.helpers += self.aggregate_function(function, literal)
        arguments = ", ".join(self.bound[v] for v in literal.outer)
        if literal.result in self.bound:
            value = self.temporary()
            self.line(f"{value} = {function}({arguments})")
            self.test(f"{value} is not None and {value} == {self.bound[literal.result]}")
        else:
            name = self.name(literal.result)
            self.line(f"{name} = {function}({arguments})")
            self.line(f"if {name} is None: {self.skip}")
            self.bound[literal.result] = name

    def aggregate_function(self, function: str, literal: Aggregate) -> list[str]:
        body = _without_calls(literal.body)
        for candidate in [*_aggregated_sets(literal, body), None]:
            inner = _Writer(self.shapes, self.sizes, self.functors, candidate)
            inner.accesses, inner.expressions = self.accesses.copy(), self.expressions
            inner.kept = frozenset(v for x in body for v in variables_of_literal(x))  # all of them count
            parameters = []
            for variable in literal.outer:
                inner.bound[variable] = inner.name(variable)
                parameters.append(inner.bound[variable])
            try:
                inner.join(body, None, lambda inner=inner: inner.accumulate(literal))  # type: ignore[misc]
            except _NoSet:
                continue
            self.accesses.update(inner.accesses)
            return inner.aggregate_text(function, parameters, literal)
        raise AssertionError("an aggregate without set variable always compiles")

    def aggregate_text(self, function: str, parameters: list[str], literal: Aggregate) -> list[str]:
        key = parameters[0] if len(parameters) == 1 else _tuple(parameters)
        text = [f"    # {_one_line(str(literal))}", f"    {function}_known = {{}}"]
        text += self.helpers
        text += [f"    def {function}_run(_new{''.join(', ' + x for x in parameters)}):"]
        text += [f"    {line}" for line in self.lines]
        text += [
            f"    def {function}({', '.join(parameters)}):",
            f"        _v = {function}_known.get({key}, _MISSING)",
            "        if _v is _MISSING:",
            "            _new = []",
            f"            {function}_run(_new{''.join(', ' + x for x in parameters)})",
            f"            _v = {function}_known[{key}] = _total_{literal.op}_{literal.kind}(_new)",
            "        return _v",
        ]
        return text

    def accumulate(self, literal: Aggregate) -> None:
        """At the bottom of an aggregate's body: note the value, or the whole set, of its target."""
        if literal.op == "count":
            amount = "1" if self.set_variable is None else f"_len({self.single_set()})"
            self.line(f"_new.append({amount})")
            return
        assert literal.target is not None
        if self.set_variable is None:
            self.line(f"_new.append({self.expr(literal.target)})")
        else:
            self.line(f"_new.extend({self.single_set()})")


def _aggregated_sets(literal: Aggregate, body: list[Literal]) -> list[Variable]:
    if literal.op == "count":
        candidates = [a for x in body if isinstance(x, Atom) for a in x.args if isinstance(a, Variable)]
    else:
        candidates = [literal.target] if isinstance(literal.target, Variable) else []
    in_atoms = {a for x in body if isinstance(x, Atom) for a in x.args}
    fresh = [v for v in dict.fromkeys(candidates) if v not in literal.outer and v in in_atoms]
    return [v for v in fresh if settable(v, body)]


def _delta_position(original: Sequence[Literal], body: list[Literal], delta: int | None) -> int | None:
    """Where the atom at position `delta` of the rule stands after `_without_calls`."""
    if delta is None:
        return None
    before = len(_without_calls(original[:delta]))
    assert isinstance(body[before], Atom)
    return before


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _one_line(text: str) -> str:
    return " ".join(text.split())

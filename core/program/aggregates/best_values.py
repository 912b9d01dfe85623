"""Relations that are maps to a best value, and rules that use such a value soundly.

`dist(x, d) <= dist(x, e) :- e < d.` keeps, for each x, the smallest d: `dist` is a map.  Recursion
through a map has one meaning, the least fixpoint in the order of its values, if every rule is
*monotone*: when a value improves, the rule derives at least what it derived before, or better.

A term that depends on a value moves with it, down (`-1`) or up (`+1`), or is a mixture.  `d + w`
moves as `d` does, `-d` against it, `d * w` as `d` does if `w` is never negative.  A rule is
monotone if it never joins on a value, compares it only in the direction in which it improves
(`d < 5` for a minimum), and gives the head a value that moves in the direction of the head's map.

Source: Ross, Sagiv, Monotonic aggregation in deductive databases, PODS 1992.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

from everlog.core import program as p
from everlog.core.program.dependencies import Unit
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Program,
    Range,
    Rule,
    Subsumption,
    Term,
    Value,
    Variable,
    Wildcard,
    atoms_of,
    variables_of,
)
from everlog.core.program.values import EvaluationError

_MONOTONE = frozenset({"min", "max"})
_WIDENING = frozenset({"itof", "utof", "to_float"})


@frozen
class BestMap:
    """A relation that maps its other columns to the least (`min`) or greatest value."""

    relation: str
    column: int
    op: str

    @property
    def direction(self) -> int:
        """Where a value moves when it improves: -1 is down."""
        return -1 if self.op == "min" else 1


@frozen
class Misuse:
    """A use of a value that is not monotone: the literal, None for the head, and why."""

    rule: Rule
    literal: Literal | None
    variable: str
    why: str
    hint: str

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.why}"


def as_written(message: str) -> str:
    """A message without the numbers of local names.

    >>> as_written("`sum n@2` may become smaller")
    '`sum n` may become smaller'
    """
    return re.sub(r"@\d+", "", message)


def best_map(program: Program, relation: str) -> BestMap | None:
    """The map that subsumption makes of a relation, if it does.

    >>> x, d, e = map(Variable, "xde")
    >>> smaller = Comparison("<", e, d, Kind.NUMBER)
    >>> rule = Subsumption(Atom("dist", (x, d)), Atom("dist", (x, e)), (smaller,))
    >>> best_map(Program({}, subsumptions=(rule,)), "dist")
    BestMap(relation='dist', column=1, op='min')
    """
    own = [s for s in program.subsumptions if s.dominated.relation == relation]
    return _map_of(own[0]) if len(own) == 1 else None


def _map_of(subsumption: Subsumption) -> BestMap | None:
    worse, better = subsumption.dominated.args, subsumption.dominating.args
    if not all(isinstance(arg, Variable) for arg in (*worse, *better)):
        return None
    differ = [n for n, (one, other) in enumerate(zip(worse, better, strict=True)) if one != other]
    if len(differ) != 1 or len({*worse, *better}) != len(worse) + 1 or len(subsumption.body) != 1:
        return None
    column, test = differ[0], subsumption.body[0]
    if not isinstance(test, Comparison) or {test.left, test.right} != {worse[column], better[column]}:
        return None
    less = {"<": True, "<=": True, ">": False, ">=": False}.get(test.op)
    if less is None:
        return None
    smaller = less == (test.left == better[column])  # whether the better value is the smaller one
    return BestMap(subsumption.dominated.relation, column, "min" if smaller else "max")


def best_maps(program: Program, names: Iterable[str]) -> dict[str, BestMap]:
    """The maps among some relations."""
    found = ((name, best_map(program, name)) for name in names)
    return {name: known for name, known in found if known is not None}


def misuse_of(program: Program, unit: Unit, maps: Mapping[str, BestMap]) -> Misuse | None:
    """The first use of a map's value in a unit that is not monotone."""
    for rule in unit.rules:
        found = Uses(program, rule, maps).misuse()
        if found is not None:
            return found
    return None


def only_maps(program: Program, unit: Unit) -> dict[str, BestMap] | str:
    """The maps of a unit that can be settled in the order of their values, or why it cannot."""
    maps = best_maps(program, unit.relations)
    for name in unit.relations:
        relation = program.relations[name]
        if name not in maps:
            if any(s.dominated.relation == name for s in unit.subsumptions):
                return f"facts of `{name}` subsume each other, but not as a map to a least or greatest value"
            return f"`{name}` is no map to a least or greatest value, but recursive with one"
        if relation.equivalence or relation.choices or name in program.limits:
            return f"`{name}` has an order of its own"
        if maps[name].op == "max" and relation.columns[maps[name].column].kind is Kind.SYMBOL:
            return f"`{name}` has the greatest of some symbols"
    if len({known.op for known in maps.values()}) > 1:
        return "a least and a greatest value depend on each other"
    for rule in unit.rules:
        if p.draws_numbers(rule):
            return f"`autoinc()` in {rule.name} numbers facts in sorted order"
        if sum(atom.relation in maps for atom, _ in atoms_of(rule.body)) > 1:
            return f"{rule.name} combines two values of the recursion"
    misuse = misuse_of(program, unit, maps)
    return maps if misuse is None else str(misuse)


def check_ordered(value: Value, relation: str) -> None:
    """Raise an error for NaN, which is neither better nor worse than any value."""
    if value != value:
        raise EvaluationError(
            f"a value of `{relation}` is NaN, which no order has: it cannot be least or greatest"
        )


class Mixture(Exception):
    """A term moves neither up nor down when a value improves."""

    def __init__(self, term: Term, hint: str = "") -> None:
        self.term, self.hint = term, hint


class Uses:
    """The uses of values in one rule."""

    def __init__(self, program: Program, rule: Rule, maps: Mapping[str, BestMap]) -> None:
        self.program, self.rule, self.maps = program, rule, maps
        self.moves: dict[str, int] = {}  # variables that move with a value
        self.of: dict[str, str] = {}  # each with the relation of the value
        self.what: dict[str, str] = {}  # what the value is of it; by default `the value of`
        self.bound = {v.name for x in rule.body if isinstance(x, Atom) for a in x.args for v in variables_of(a)}
        self.kinds = dict(_kinds(program, rule))
        self.positive = dict(_not_negative(rule))

    def misuse(self) -> Misuse | None:
        found = self._joined() or self.bound_by_equality()
        for literal in self.rule.body:
            found = found or self.use_of(literal)
        return found or self._head()

    def _wrong(self, literal: Literal | None, variable: str, why: str, hint: str) -> Misuse:
        return Misuse(self.rule, literal, variable, as_written(why), as_written(hint))

    # ── atoms ────────────────────────────────────────────────────────────────────────────────

    def _joined(self) -> Misuse | None:
        """Find the values of the body; none of them is joined on."""
        count: dict[str, int] = {}
        for literal in self.rule.body:
            if isinstance(literal, Atom):
                for arg in literal.args:
                    for v in variables_of(arg):
                        count[v.name] = count.get(v.name, 0) + 1
        for literal in self.rule.body:
            if not isinstance(literal, Atom) or literal.relation not in self.maps:
                continue
            known = self.maps[literal.relation]
            value = literal.args[known.column]
            if isinstance(value, Wildcard):
                continue
            better = "smaller" if known.op == "min" else "larger"
            sign = "<=" if known.op == "min" else ">="
            hint = f"read the value into a variable of its own and compare it with `{sign}`"
            if not isinstance(value, Variable):
                why = f"`{literal}` asks for one value of `{literal.relation}`, which may still become {better}"
                return self._wrong(literal, str(value), why, hint)
            if count[value.name] > 1:
                why = f"`{value}`, the value of `{literal.relation}`, is joined with another column"
                return self._wrong(literal, value.name, f"{why}, but may still become {better}", hint)
            self.moves[value.name], self.of[value.name] = known.direction, literal.relation
        return None

    def bound_by_equality(self) -> Misuse | None:
        """Find the variables that equalities make of values."""
        todo = [x for x in self.rule.body if isinstance(x, Comparison) and x.op == "="]
        changed = True
        while changed:
            changed = False
            for literal in list(todo):
                for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if not isinstance(side, Variable) or side.name in self.bound or side.name in self.moves:
                        continue
                    if not any(v.name in self.moves for v in variables_of(other)):
                        continue
                    try:
                        self.moves[side.name] = self._move(other)
                    except Mixture as problem:
                        return self._mixture(literal, problem)
                    source = next(v.name for v in variables_of(other) if v.name in self.of)
                    self.of[side.name] = self.of[source]
                    if source in self.what:
                        self.what[side.name] = self.what[source]
                    todo.remove(literal)
                    changed = True
                    break
        self.defining = [x for x in self.rule.body if isinstance(x, Comparison) and x.op == "=" and x not in todo]
        return None

    # ── literals ─────────────────────────────────────────────────────────────────────────────

    def use_of(self, literal: Literal) -> Misuse | None:
        match literal:
            case Comparison():
                return None if literal in self.defining else self._compared(literal)
            case Negation(atom):
                return self.unused(literal, atom.args, "is negated")
            case Range():
                return self.unused(literal, literal.bounds, "bounds a range")
            case Aggregate(outer=outer):
                return self.unused(literal, outer, "is used in an aggregate")
            case Atom():
                return None

    def unused(self, literal: Literal | None, terms: Iterable[Term], how: str) -> Misuse | None:
        for term in terms:
            for v in variables_of(term):
                if v.name in self.moves:
                    why = f"`{v}`, the value of `{self.of[v.name]}`, {how}, but may still improve"
                    if v.name in self.what:
                        why = f"{self.what[v.name]} `{self.of[v.name]}` {how}, but may still grow"
                    return self._wrong(literal, v.name, why, "use it in another relation, after the recursion")
        return None

    def _compared(self, literal: Comparison) -> Misuse | None:
        try:
            left, right = self._move(literal.left), self._move(literal.right)
        except Mixture as problem:
            return self._mixture(literal, problem)
        if not left and not right:
            return None
        less, more = left <= 0 <= right, right <= 0 <= left
        if (less and literal.op in ("<", "<=")) or (more and literal.op in (">", ">=")):
            return None
        term = literal.left if left else literal.right
        name = next(v.name for v in variables_of(term) if v.name in self.moves)
        relation = self.of[name]
        if name in self.what:
            return self._shrinks(literal, name)
        op = self.maps[relation].op
        better = "smaller" if op == "min" else "larger"
        why = f"`{literal}` may cease to hold when the value of `{relation}` becomes {better}"
        sign = "<=" if op == "min" else ">="
        hint = f"accepted are tests that a {better} value passes, too, such as `{name} {sign} 5`"
        return self._wrong(literal, name, why, hint)

    def _shrinks(self, literal: Comparison, name: str) -> Misuse:
        what = f"{self.what[name]} `{self.of[name]}`"
        why = f"`{literal}` may cease to hold when {what} grows"
        hint = f"accepted are tests that a larger one passes, too: `{name} > 5`"
        return self._wrong(literal, name, why, hint)

    def _mixture(self, literal: Literal | None, problem: Mixture) -> Misuse:
        name = next(v.name for v in variables_of(problem.term) if v.name in self.moves)
        why = f"`{problem.term}` may become better or worse when the value of `{self.of[name]}` improves"
        hint = problem.hint or "accepted are `+`, `min`, `max`, and `*` by what is known not to be negative"
        return self._wrong(literal, name, why, hint)

    def _head(self) -> Misuse | None:
        head, known = self.rule.head, self.maps.get(self.rule.head.relation)
        keys = [arg for n, arg in enumerate(head.args) if known is None or n != known.column]
        found = self.unused(None, keys, "is a key of the head" if known else "is a column of the head")
        if found is not None or known is None:
            return found
        value = head.args[known.column]
        try:
            move = self._move(value)
        except Mixture as problem:
            return self._mixture(None, problem)
        if move in (0, known.direction):
            return None
        name = next(v.name for v in variables_of(value) if v.name in self.moves)
        why = f"`{value}` becomes worse for `{head.relation}` when the value of `{self.of[name]}` improves"
        return self._wrong(
            None, name, why, f"a `{known.op}` accepts values that move with their source; here the sign is turned"
        )

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def _move(self, term: Term) -> int:
        """How a term moves when values improve: -1 down, 1 up, 0 not at all."""
        if isinstance(term, Variable):
            return self.moves.get(term.name, 0)
        if not isinstance(term, Call):
            return 0
        moves = [self._move(arg) for arg in term.args]
        if not any(moves):
            return 0
        match term.name:
            case "+" if term.kind is not Kind.SYMBOL:
                return self._together(term, moves)
            case "-" if len(moves) == 2 and term.kind is not Kind.UNSIGNED:
                return self._together(term, [moves[0], -moves[1]])
            case "neg":
                return -moves[0]
            case "*":
                return self._product(term, moves)
            case "/" if not moves[1] and isinstance(term.args[1], Constant) and _sign(term.args[1]) > 0:
                return moves[0]
            case name if name in _MONOTONE:
                return self._together(term, moves)
            case name if name in _WIDENING and term.operand is not Kind.SYMBOL:
                return moves[0]
        raise Mixture(term)

    def _together(self, term: Term, moves: list[int]) -> int:
        """The common direction of the parts of a sum, a minimum or a maximum."""
        found = {move for move in moves if move}
        if len(found) > 1:
            raise Mixture(term)
        return found.pop()

    def _product(self, term: Call, moves: list[int]) -> int:
        out = self._together(term, moves)
        for arg, move in zip(term.args, moves, strict=True):
            if isinstance(arg, Constant) and _sign(arg) < 0 and len(term.args) == 2:
                return -out
            if not (self.is_at_least_zero(arg) or (move and moves.count(0) == len(moves) - 1)):
                hint = f"add `{arg} >= 0` to the body if it is never negative" if isinstance(arg, Variable) else ""
                raise Mixture(term, hint)
        return out

    def is_at_least_zero(self, term: Term) -> bool:
        match term:
            case Constant():
                return _sign(term) >= 0
            case Variable(name):
                return self.kinds.get(name) is Kind.UNSIGNED or name in self.positive
            case Call("+" | "*" | "min" | "max", args):
                return term.kind is Kind.UNSIGNED or all(map(self.is_at_least_zero, args))
            case _:
                return False


def _sign(constant: Constant) -> int:
    value = constant.value
    if isinstance(value, str):
        return 0
    return (value > 0) - (value < 0)


def _kinds(program: Program, rule: Rule) -> Iterable[tuple[str, Kind]]:
    for literal in rule.body:
        if isinstance(literal, Atom) and literal.relation in program.relations:
            for arg, column in zip(literal.args, program.relations[literal.relation].columns, strict=True):
                if isinstance(arg, Variable):
                    yield arg.name, column.kind


def _not_negative(rule: Rule) -> Iterable[tuple[str, None]]:
    """The variables that a test of the body keeps from being negative."""
    for literal in rule.body:
        if isinstance(literal, Comparison):
            sides = (
                (literal.left, literal.op, literal.right),
                (literal.right, _TURNED.get(literal.op), literal.left),
            )
            for side, op, bound in sides:
                known = isinstance(bound, Constant) and _sign(bound) >= 0
                if known and isinstance(side, Variable) and op in (">", ">=", "="):
                    yield side.name, None


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

"""Bodies solved over tables: every binding that makes a body hold, one by one.

The reference evaluator defines what a literal means; the solver looks its atoms up in the tables of
an engine instead of lists, and orders literals so that it reads the fewest facts.  `first` finds
one solution and never repeats the common part of two partial solutions, so a long join ends in
polynomial time.

A functor that fails for a binding (a division by zero) makes its literal false: in a state that was
computed without an error, another literal excludes that binding.

`5 = x + 1` binds x: 64-bit addition and subtraction can be inverted.  So a head such as `n(x + 1)`
leads to the one fact it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from everlog.core.evaluate.reference import NaiveEvaluation
from everlog.core.program import (
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
    Row,
    Term,
    Value,
    Variable,
    Wildcard,
    flat_body,
    variables_of,
)
from everlog.core.program.bodies import Binding, binds, is_ready, names
from everlog.core.program.functors import COMPARISONS
from everlog.core.program.order import rank
from everlog.core.program.values import MASK, NoValue, wrap
from everlog.core.proofs.reader import Reader
from everlog.core.storage.tables import Table

same = COMPARISONS["="]


class Solver(NaiveEvaluation):
    """Solves bodies over the facts of tables, read-only and until they change."""

    def __init__(self, program: Program, tables: Mapping[str, Table]) -> None:
        super().__init__(program)
        self._tables = tables
        self._readers: dict[str, Reader] = {}
        self._orders: dict[tuple[int, frozenset[str]], tuple[Sequence[Literal], list[Literal]]] = {}

    def reader(self, relation: str) -> Reader:
        if relation not in self._readers:
            self._readers[relation] = Reader(self._tables[relation])
        return self._readers[relation]

    def has(self, relation: str, row: Row) -> bool:
        return self.reader(relation).has(row)

    # ── bodies ───────────────────────────────────────────────────────────────────────────────

    def solve(self, body: Iterable[Literal], binding: Mapping[str, Value]) -> Iterator[Binding]:
        """Every way to extend the binding so that all literals hold, lazily."""
        return self.extend(self.order(tuple(body), frozenset(binding)), dict(binding))

    def first(self, body: Sequence[Literal], binding: Mapping[str, Value]) -> Binding | None:
        """One solution, or None.

        It does not repeat a partial solution that failed: the rest depends only on the variables
        that occur in it.
        """
        order = self.order(body, frozenset(binding))
        later: list[set[str]] = [set() for _ in order]
        for place in range(len(order) - 2, -1, -1):
            later[place] = later[place + 1] | names_in(order[place + 1])
        tried: list[set[Row]] = [set() for _ in order]
        stack: list[Iterator[Binding]] = [iter((dict(binding),))]
        while stack:
            wider = next(stack[-1], None)
            if wider is None:
                stack.pop()
                continue
            place = len(stack) - 1
            if place == len(order):
                return wider
            if place:
                state = tuple(wider[name] for name in sorted(later[place - 1] & wider.keys()))
                if state in tried[place]:
                    continue
                tried[place].add(state)
            stack.append(self.matches(order[place], wider))
        return None

    def order(self, body: Sequence[Literal], bound: frozenset[str]) -> list[Literal]:
        """The literals in solving order: at each step the cheapest that is ready."""
        key = id(body), bound
        if key not in self._orders or self._orders[key][0] is not body:
            order: list[Literal] = []
            rest, known = list(body), set(bound)
            while rest:
                ready = [literal for literal in rest if can_solve(literal, known)]
                if not ready:
                    rest = list(flat_body(tuple(rest)))
                    ready = [literal for literal in rest if can_solve(literal, known)]
                assert ready, f"not grounded: {', '.join(map(str, rest))}"
                chosen = min(ready, key=lambda literal: self.cost(literal, known))
                rest.remove(chosen)
                order.append(chosen)
                known |= names_in(chosen)
            self._orders[key] = body, order
        return self._orders[key][1]

    def cost(self, literal: Literal, bound: set[str]) -> float:
        """About how many facts it takes to match a literal."""
        match literal:
            case Comparison():
                return 0
            case Atom(relation, args) | Negation(Atom(relation, args)):
                columns = [n for n, arg in enumerate(args) if is_known(arg, bound)]
                return self.reader(relation).cost(columns)
            case Range() | Aggregate():
                return 4
        raise AssertionError(literal)

    # ── literals ─────────────────────────────────────────────────────────────────────────────

    def matches(self, literal: Literal, binding: Binding) -> Iterator[Binding]:
        try:
            yield from self.matches_or_error(literal, binding)
        except NoValue:
            return

    def matches_or_error(self, literal: Literal, binding: Binding) -> Iterator[Binding]:
        """As in the reference; an equation is solved for its one unknown."""
        if isinstance(literal, Comparison) and literal.op == "=":
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if unknown(side, binding.keys()) is not None and is_known(other, binding.keys()):
                    yield binding | self._solved(side, self.value(other, binding), binding)
                    return
        yield from super().matches(literal, binding)

    def _solved(self, term: Term, value: Value, binding: Binding) -> Binding:
        """The value of the one unknown in a term for which the term has this value."""
        while isinstance(term, Call):
            assert isinstance(value, int), f"{term} = {value!r}"
            left, right = term.args[0], term.args[-1]
            if term.name == "neg":
                value = -value
            elif is_known(right, binding.keys()):
                known = self.value(right, binding)
                assert isinstance(known, int)
                value, right = (value - known if term.name == "+" else value + known), left
            else:
                known = self.value(left, binding)
                assert isinstance(known, int)
                value = value - known if term.name == "+" else known - value
            value = wrap(value) if term.kind is Kind.NUMBER else value & MASK
            term = right
        assert isinstance(term, Variable)
        return {term.name: value}

    def facts_of(self, atom: Atom, binding: Binding) -> Iterator[Row]:
        """The facts that an atom matches."""
        return (row for row, _ in self._matched(atom, binding))

    def unified(self, atom: Atom, binding: Binding) -> Iterator[Binding]:
        found = (wider for _, wider in self._matched(atom, binding))
        if all(isinstance(arg, Wildcard) or is_known(arg, binding.keys()) for arg in atom.args):
            yield from list(islice(found, 1))  # it binds nothing: one match is as good as all
        else:
            yield from found

    def _matched(self, atom: Atom, binding: Binding) -> Iterator[tuple[Row, Binding]]:
        known: dict[int, Value] = {}
        other: list[tuple[int, Term]] = []
        for column, arg in enumerate(atom.args):
            if is_known(arg, binding.keys()):
                known[column] = self.value(arg, binding)
            elif not isinstance(arg, Wildcard):
                other.append((column, arg))
        for row in self.reader(atom.relation).matching(known):
            if not other:
                yield row, binding
                continue
            wider = {arg.name: row[n] for n, arg in other if isinstance(arg, Variable)} | binding
            if all(same(self.value(arg, wider), row[n]) for n, arg in other):
                yield row, wider

    def aggregated(self, literal: Aggregate, binding: Binding) -> list[Value]:
        """As in the reference; `count`, `min` and `max` keep no list of the matches."""
        if literal.op not in ("count", "min", "max"):
            return super().aggregated(literal, binding)
        outer = {variable.name: binding[variable.name] for variable in literal.outer}
        if literal.op == "count":
            return [self.counted(literal.body, outer)]
        assert literal.target is not None
        values = (self.value(literal.target, inner) for inner in self.solve(literal.body, outer))
        best = min(values, key=rank, default=None) if literal.op == "min" else max(values, key=rank, default=None)
        return [] if best is None else [best]

    def counted(self, body: Sequence[Literal], outer: Binding) -> int:
        """The number of bindings of all variables of a body."""
        if len(body) == 1 and isinstance(body[0], Atom):
            args = body[0].args
            free = [arg for arg in args if not is_known(arg, outer.keys())]
            if all(isinstance(arg, Variable) for arg in free) and len(set(free)) == len(free):
                known = {n: self.value(arg, outer) for n, arg in enumerate(args) if arg not in free}
                return self.reader(body[0].relation).count(known)  # a match for each fact
        found = self.solve(body, outer)
        return len({tuple(binding[name] for name in sorted(binding)) for binding in found})


# ── known and unknown variables ──────────────────────────────────────────────────────────────


def can_solve(literal: Literal, bound: Iterable[str]) -> bool:
    """Whether the variables that a literal needs are bound.

    Proofs show bodies as they were written, so here an atom may compute an argument, even from a
    variable that it binds itself.
    """
    known = set(bound)
    if isinstance(literal, Atom):
        computed = (arg for arg in literal.args if isinstance(arg, Call))
        return names(computed) <= known | binds(literal)
    if is_ready(literal, known):
        return True
    if not isinstance(literal, Comparison) or literal.op != "=":
        return False
    sides = (literal.left, literal.right), (literal.right, literal.left)
    return any(unknown(one, known) is not None and is_known(other, known) for one, other in sides)


def unknown(term: Term, bound: Iterable[str]) -> str | None:
    """The one variable that a sum or difference of integers can be solved for.

    >>> x, one = Variable("x"), Constant(1, Kind.NUMBER)
    >>> unknown(Call("+", (x, one), Kind.NUMBER, Kind.NUMBER), set())
    'x'
    """
    free = [variable for variable in variables_of(term) if variable.name not in bound]
    if len(free) != 1:
        return None
    while isinstance(term, Call):
        if (term.name, len(term.args)) not in (("+", 2), ("-", 2), ("neg", 1)):
            return None
        if term.operand not in (Kind.NUMBER, Kind.UNSIGNED):
            return None
        term = next(arg for arg in term.args if free[0] in variables_of(arg))
    return free[0].name


def names_in(literal: Literal) -> set[str]:
    """The variables of a literal; for an aggregate its outer ones and its result."""
    match literal:
        case Atom(args=args) | Negation(Atom(args=args)):
            terms: Iterable[Term | None] = args
        case Comparison(left=left, right=right):
            terms = (left, right)
        case Aggregate(result=result, outer=outer):
            terms = (result, *outer)
        case Range(result=result, start=start, stop=stop, step=step):
            terms = (result, start, stop, step)
    return {variable.name for term in terms if term is not None for variable in variables_of(term)}


def is_known(term: Term, bound: Iterable[str]) -> bool:
    match term:
        case Variable(name):
            return name in bound
        case Constant():
            return True
        case Wildcard():
            return False
        case Call(args=args):
            return all(is_known(arg, bound) for arg in args)

"""Aggregates over a part of an order: ranks, previous and next, running and rolling totals.

    n = count : { rev(_, u), u > t }                    how many are above t
    p = max z : { o(_, c, z), z < y }                   the one before y
    s = sum v : { sale(c, d, v), d > day - 7, d <= day }   the last seven days

The braces have facts of their own, and compare one of their terms, the *place*, with *bounds* that
only the rest of the rule knows.  For each value of the bounds the aggregate runs over an interval
of places, so values need not be joined with bounds: with the facts in order, an interval has its
total after two searches (`core.storage.ordered_totals`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from everlog.core.program.bodies import binds as bound_by
from everlog.core.program.bodies import may_fail, names, needs, sure_and_open, variables_of_literal
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Body,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Term,
    Value,
    Variable,
)
from everlog.core.program.values import wrap

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@frozen
class Bound:
    """One end of an interval of places."""

    term: Term
    strict: bool


@frozen
class OrderedAggregate:
    """An aggregate over the places of an interval.

    `group` are the outer variables that the facts in the braces have, `outside` those of the
    bounds.  `inner` are the facts, without the comparisons with bounds.
    """

    op: str
    kind: Kind
    target: Term | None
    place: Term
    lower: Bound | None
    upper: Bound | None
    group: tuple[Variable, ...]
    outside: tuple[Variable, ...]
    inner: Body

    @property
    def is_sliding(self) -> bool:
        """Whether an interval that ends later also begins later."""
        if self.lower is None or self.upper is None:
            return True
        return len(self.outside) == 1

    @property
    def grows(self) -> bool:
        """Whether intervals only grow, in one direction: they have one bound."""
        return self.lower is None or self.upper is None


def ordered_aggregate(literal: Aggregate) -> OrderedAggregate | None:
    """The aggregate as one over intervals, if it is of that form.

    >>> t, u, number = Variable("t"), Variable("u"), Kind.NUMBER
    >>> body = Atom("rev", (Variable("_1"), u)), Comparison(">", u, t, number)
    >>> found = ordered_aggregate(Aggregate(Variable("n"), "count", None, body, (t,), number))
    >>> found.place, found.lower, found.upper
    (Variable(name='u'), Bound(term=Variable(name='t'), strict=True), None)
    """
    if literal.op not in ("count", "sum", "mean", "min", "max") or may_fail(literal):
        return None
    facts = [x for x in literal.body if not isinstance(x, Comparison) or x.op not in _TURNED]
    outer = {v.name for v in literal.outer}
    inside = {name for x in sure_and_open(facts, ())[0] for name in bound_by(x)}
    outside = outer - inside
    if not outside or not any(isinstance(x, Atom) for x in facts):
        return None
    inner: list[Literal] = []
    bounds: list[tuple[Term, str, Term]] = []
    for x in literal.body:
        used = {v.name for v in variables_of_literal(x)} | needs(x)
        if outside.isdisjoint(used):
            inner.append(x)
            continue
        found = _bound(x, inside, outside)
        if found is None:
            return None
        bounds.append(found)
    if literal.target is not None and not names([literal.target]) <= inside:
        return None
    return _assembled(literal, inner, bounds, outside)


def _bound(literal: Literal, inside: set[str], outside: set[str]) -> tuple[Term, str, Term] | None:
    """A comparison as (place, operator, bound)."""
    if not isinstance(literal, Comparison) or literal.op not in _TURNED:
        return None
    for place, op, bound in (
        (literal.left, literal.op, literal.right),
        (literal.right, _TURNED[literal.op], literal.left),
    ):
        if names([place]) <= inside and names([place]) and names([bound]) <= outside and _is_shift(bound):
            return place, op, bound
    return None


def _is_shift(term: Term) -> bool:
    """Whether a bound is a variable, plus or minus a constant."""
    match term:
        case Variable():
            return True
        case Call("+" | "-", (Variable(), Constant())):
            return term.kind is not Kind.SYMBOL
        case Call("+", (Constant(), Variable())):
            return term.kind is not Kind.SYMBOL
    return False


def _assembled(
    literal: Aggregate,
    inner: Sequence[Literal],
    bounds: Sequence[tuple[Term, str, Term]],
    outside: set[str],
) -> OrderedAggregate | None:
    places = {place for place, _, _ in bounds}
    lower = [Bound(term, op == ">") for _, op, term in bounds if op in (">", ">=")]
    upper = [Bound(term, op == "<") for _, op, term in bounds if op in ("<", "<=")]
    if len(places) != 1 or len(lower) > 1 or len(upper) > 1:
        return None
    if outside != {name for _, _, term in bounds for name in names([term])}:
        return None
    order, rest = sure_and_open(inner, ())
    if rest or len(order) != len(inner):
        return None
    return OrderedAggregate(
        literal.op,
        literal.kind,
        literal.target,
        places.pop(),
        lower[0] if lower else None,
        upper[0] if upper else None,
        tuple(v for v in literal.outer if v.name not in outside),
        tuple(v for v in literal.outer if v.name in outside),
        tuple(inner),
    )


# ── the interval of some values of the bounds ────────────────────────────────────────────────

Interval = tuple[Value | None, Value | None]


def interval_of(form: OrderedAggregate) -> Callable[[Sequence[Value]], Interval | None]:
    """From values of `outside` to the ends of an interval; None if nothing lies in it.

    >>> t, day = Variable("t"), Constant(7, Kind.NUMBER)
    >>> week = Bound(Call("-", (t, day), Kind.NUMBER, Kind.NUMBER), True), Bound(t, False)
    >>> number, ends = Kind.NUMBER, (*week, (), (t,), ())
    >>> last = interval_of(OrderedAggregate("count", number, None, Variable("d"), *ends))
    >>> last((30,)), last((-2**63,))
    ((23, 30), None)
    """
    lower, upper = _shifted(form.lower, form.outside), _shifted(form.upper, form.outside)
    strict = (form.lower is not None and form.lower.strict) or (form.upper is not None and form.upper.strict)

    def found(values: Sequence[Value]) -> Interval | None:
        low, high = lower(values), upper(values)
        if low != low or high != high:
            return None
        if low is not None and high is not None and (low > high or (strict and low == high)):  # type: ignore[operator]
            return None
        return low, high

    return found


def _shifted(bound: Bound | None, outside: Sequence[Variable]) -> Callable[[Sequence[Value]], Value | None]:
    if bound is None:
        return lambda values: None
    match bound.term:
        case Variable() as variable:
            at = outside.index(variable)
            return lambda values: values[at]
        case Call(name, (Variable() as variable, Constant(value))):
            by = -value if name == "-" else value  # type: ignore[operator]
        case Call(_, (Constant(value), Variable() as variable)):
            by = value
        case _:
            raise AssertionError(f"not a bound: {bound.term}")
    at, kind = outside.index(variable), bound.term.kind
    if kind is Kind.FLOAT:
        return lambda values: values[at] + by  # type: ignore[operator]
    if kind is Kind.UNSIGNED:
        return lambda values: (values[at] + by) & 0xFFFFFFFFFFFFFFFF  # type: ignore[operator]
    return lambda values: wrap(values[at] + by)  # type: ignore[operator, arg-type]


# ── what a rule still asks of the result ─────────────────────────────────────────────────────


def most_counted(literal: Aggregate, body: Iterable[Literal]) -> int | None:
    """The least count that a rule's tests refuse, with all larger ones; None if there is none.

    >>> n, number = Variable("n"), Kind.NUMBER
    >>> counting = Aggregate(n, "count", None, (), (), number)
    >>> most_counted(counting, [Comparison("<=", n, Constant(3, number), number)])
    4
    """
    if literal.op != "count" or literal.kind is Kind.FLOAT:
        return None
    found = [most for x in body if (most := _most(x, literal.result)) is not None]
    return max(min(found), 0) if found else None


def _most(literal: Literal, result: Variable) -> int | None:
    if not isinstance(literal, Comparison):
        return None
    sides = (
        (literal.left, literal.op, literal.right),
        (literal.right, _TURNED.get(literal.op, literal.op), literal.left),
    )
    for side, op, bound in sides:
        if not isinstance(bound, Constant) or not isinstance(bound.value, int):
            continue
        over = bound.value + (op != "<")
        match side:
            case Variable() if side == result and op in ("<", "<=", "="):
                return over
            case Call("+", (Variable() as v, Constant(value=int(more)))) if v == result and op in ("<", "<=", "="):
                return over - more
    return None

"""What a rule body means: when a literal is ready, and when a failure counts.

Some functors are not defined for all values: `10 / 0`, `to_number("x")`, a user's function that
raises.  Whether such a failure counts must not depend on the order in which an executor reads a
body, so there is one definition, and reference, engine, proofs and Spark follow it:

  A body chooses a fact for each of its positive atoms.  Its other literals are *conditions*.
  1. A condition that is false excludes the choice, whatever the other conditions are.
  2. A condition is *open* if a functor in it fails, or if it needs a variable that only open
     conditions compute.
  3. If no condition excludes a choice, it derives the head when none is open; otherwise the rule
     fails.

So a filter protects the other conditions: `s = 10 / x, x != 0` never fails, in either order.  An
argument that a positive atom computes is a condition of its own (`program.flat_body`): `q(10 / x)`
is `q(c), c = 10 / x`.  An aggregate fails for values of its outer variables if its body or its
target fails.  A functor fails if one of its arguments does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Range,
    Rule,
    Term,
    Value,
    Variable,
    variables_of,
)
from everlog.core.program.values import NoValue

Binding: TypeAlias = dict[str, Value]
Matches: TypeAlias = Callable[[Literal, Binding], Iterable[Binding]]


# ── what may fail ────────────────────────────────────────────────────────────────────────────


def may_fail(part: Term | Literal | None) -> bool:
    """Whether a term or literal computes something that some values do not have.

    >>> x, zero, two = Variable("x"), Constant(0, Kind.NUMBER), Constant(2, Kind.NUMBER)
    >>> [may_fail(Call("/", (two, by), Kind.NUMBER, Kind.NUMBER)) for by in (x, zero, two)]
    [True, True, False]
    """
    match part:
        case Call(args=args):
            return _fails_itself(part) or any(map(may_fail, args))
        case Atom(args=args) | Negation(Atom(args=args)):
            return any(map(may_fail, args))
        case Comparison(left=left, right=right):
            return may_fail(left) or may_fail(right)
        case Range(start=start, stop=stop, step=step, kind=kind):
            return kind is Kind.FLOAT or any(map(may_fail, (start, stop, step)))
        case Aggregate(op=op, target=target, body=body, partial=partial):
            return partial or op.startswith("@") or may_fail(target) or any(map(may_fail, body))
        case _:
            return False


def _fails_itself(call: Call) -> bool:
    """Whether a functor has no value for some values of its arguments."""
    if call.name in ("/", "%"):
        divisor = call.args[1]
        return call.operand is not Kind.FLOAT and not (isinstance(divisor, Constant) and divisor.value != 0)
    if call.name == "as":
        return call.kind is Kind.SYMBOL and call.operand is not Kind.SYMBOL
    if call.name.startswith("to_"):
        return call.operand is Kind.SYMBOL and call.kind is not Kind.SYMBOL
    return call.name.startswith("@")


def rule_may_fail(rule: Rule) -> bool:
    """Whether some part of a rule may fail, its head included."""
    return may_fail(rule.head) or any(map(may_fail, rule.body))


# ── which literals are ready ─────────────────────────────────────────────────────────────────


def schedule(body: Iterable[Literal], bound: Collection[str]) -> tuple[list[Literal], list[Literal]]:
    """Literals in an order that binds what each needs, and those that never get it.

    Each turn takes the first ready literal: those with at most one match, then ranges, then atoms.
    So the answer does not depend on the order in which a body is written.
    """
    order: list[Literal] = []
    rest = list(body)
    known = set(bound)
    while ready := [literal for literal in rest if is_ready(literal, known)]:
        chosen = min(ready, key=lambda literal: 2 * isinstance(literal, Atom) + isinstance(literal, Range))
        rest = [literal for literal in rest if literal is not chosen]
        order.append(chosen)
        known |= binds(chosen)
    return order, rest


def sure_and_open(body: Iterable[Literal], bound: Collection[str]) -> tuple[list[Literal], list[Literal]]:
    """Literals that certainly have a value, in order, and those that may be open.

    >>> x, s, number = Variable("x"), Variable("s"), Kind.NUMBER
    >>> inverse = Comparison("=", s, Call("/", (Constant(9, number), x), number, number), number)
    >>> body = [inverse, Atom("r", (x,)), Comparison("<", x, s, number)]
    >>> sure, may_be_open = sure_and_open(body, [])
    >>> print(*sure, "|", *may_be_open)
    r(x) | s = (9 / x) x < s
    """
    literals = list(body)
    order, _ = schedule([literal for literal in literals if not may_fail(literal)], bound)
    done = set(map(id, order))
    return order, [literal for literal in literals if id(literal) not in done]


def is_ready(literal: Literal, bound: Collection[str]) -> bool:
    """Whether the variables that a literal needs are bound."""
    match literal:
        case Atom():
            return True
        case Comparison("=", left, right) if isinstance(left, Variable) or isinstance(right, Variable):
            sides = (left, right), (right, left)
            return any(isinstance(one, Variable) and names([other]).issubset(bound) for one, other in sides)
        case _:
            return needs(literal).issubset(bound)


def needs(literal: Literal) -> set[str]:
    """The variables that a condition needs, whichever side of `=` it binds."""
    match literal:
        case Atom():
            return set()
        case Negation(atom):
            return names(atom.args)
        case Comparison(_, left, right):
            return names([left, right])
        case Aggregate(outer=outer):
            return names(outer)
        case Range():
            return names(literal.bounds)
        case _:
            assert_never(literal)


def binds(literal: Literal) -> set[str]:
    """The variables that are bound once this literal holds."""
    match literal:
        case Atom(args=args):
            return names(arg for arg in args if isinstance(arg, Variable))
        case Comparison("=", left, right):
            return names([left, right])
        case Aggregate(result=result) | Range(result=result):
            return {result.name}
        case _:
            return set()


def names(terms: Iterable[Term]) -> set[str]:
    return {variable.name for term in terms for variable in variables_of(term)}


# ── how conditions turn out ──────────────────────────────────────────────────────────────────


def variables_of_literal(literal: Literal) -> list[Variable]:
    """The variables that a literal shares with its body (those inside an aggregate stay inside)."""
    match literal:
        case Atom(args=args) | Negation(Atom(args=args)):
            terms: Sequence[Term] = args
        case Comparison(left=left, right=right):
            terms = [left, right]
        case Aggregate(result=result, outer=outer):
            terms = [result, *outer]
        case Range(result=result):
            terms = [result, *literal.bounds]
        case _:
            assert_never(literal)
    return [variable for term in terms for variable in variables_of(term)]


def outcomes(
    conditions: Sequence[Literal], choice: Mapping[str, Value], matches: Matches, error: NoValue | None = None
) -> Iterator[tuple[Binding, NoValue | None]]:
    """The bindings that no condition excludes, each with the error of an open one.

    `matches` finds every way to extend a binding so that a ready condition holds.  Conditions that
    never become ready are open, because of the error.
    """
    binding, waiting = dict(choice), list(conditions)
    while (ready := next((x for x in waiting if is_ready(x, binding)), None)) is not None:
        waiting = [literal for literal in waiting if literal is not ready]
        try:
            found = list(matches(ready, binding))
        except NoValue as problem:  # of several errors, report always the same one
            error = problem if error is None else min(error, problem, key=lambda e: e.message)
            continue
        if len(found) != 1:
            for wider in found:
                yield from outcomes(waiting, wider, matches, error)
            return
        binding = found[0]
    assert error is not None or not waiting, f"not grounded: {', '.join(map(str, waiting))}"
    yield binding, error

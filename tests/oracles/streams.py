"""Streams over an abelian group: incremental computation as operators.

A view that stays current is an operator on streams: changes in, changes out.  Its definition is
simple and useless: add up the changes (I), ask the query for everything (Q), subtract what was
answered before (D).  The trick is that D∘Q∘I can be rewritten: it distributes over composition,
leaves linear operators alone, turns a product into two products with a change in each, and goes
inside a feedback loop.  What is left after rewriting costs in proportion to the change.

A stream here is a function of time, computed on demand and remembered.  Feedback then needs no
solver: a strict operator reads only earlier values, and those are there.  Streams form a group
again, so a stream of streams is a stream: one clock for the steps, and one for the rounds of a
recursion inside a step.  Semi-naive evaluation is the cycle rule on the inner clock, and its
maintenance is the same rule on the outer one.

Source: Budiu et al., PVLDB 16(7), 2023, Sections 2, 3, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from oracles.zsets import ZSet, distinct_delta


class Abelian(Protocol):
    """A value of an abelian group: an integer, a Z-set, a stream of such values."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...


A = TypeVar("A", bound=Abelian)
B = TypeVar("B", bound=Abelian)
T = TypeVar("T", bound=Hashable)


class NotStrict(ValueError):
    """A feedback value depends on itself: the operator in `fix` is not strict."""


class Stream(Generic[A]):
    """A function from time 0, 1, 2, … to a group, computed on demand, in order.

    Invariants:
      I1  `_known` holds the values of the times 0, …, len(_known) - 1; each is computed once;
      I2  while a value is being computed, only earlier values of the same stream are read.

    >>> squares = Stream(lambda t: t * t, 0)
    >>> squares[3], squares.prefix(5)
    (9, [0, 1, 4, 9, 16])
    """

    __slots__ = ("_at", "_busy", "_known", "zero")

    def __init__(self, at: Callable[[int], A], zero: A) -> None:
        self._at, self.zero = at, zero
        self._known: list[A] = []
        self._busy = False

    def __getitem__(self, t: int) -> A:
        while len(self._known) <= t:
            if self._busy:
                raise NotStrict(f"the value at time {len(self._known)} is needed to compute itself")
            self._busy = True
            try:
                value = self._at(len(self._known))
            finally:
                self._busy = False
            self._known.append(value)
        return self._known[t]

    def prefix(self, n: int) -> list[A]:
        return [self[t] for t in range(n)]

    # A stream of group values is a group value: everything holds at each time.

    def __add__(self, other: Stream[A]) -> Stream[A]:
        return Stream(lambda t: self[t] + other[t], self.zero)

    def __sub__(self, other: Stream[A]) -> Stream[A]:
        return Stream(lambda t: self[t] - other[t], self.zero)

    def __neg__(self) -> Stream[A]:
        return Stream(lambda t: -self[t], self.zero)


# Operators have any number of streams as arguments; one result.
Operator: TypeAlias = Callable[..., Stream[B]]


def stream(values: Iterable[A], zero: A) -> Stream[A]:
    """These values, and zero ever after.

    >>> stream([3, 1], 0).prefix(4)
    [3, 1, 0, 0]
    """
    given = list(values)
    return Stream(lambda t: given[t] if t < len(given) else zero, zero)


# ── the two ways to make operators, and feedback ─────────────────────────────────────────────────


def lift(function: Callable[..., B]) -> Operator[B]:
    """↑f: apply a function at each time; lifts stream operators to streams of streams.

    >>> lift(lambda a, b: a * b)(stream([1, 2, 3], 0), stream([4, 5, 6], 0)).prefix(3)
    [4, 10, 18]
    """

    def lifted(*streams: Stream[Any]) -> Stream[B]:
        some = function(*(s.zero for s in streams))
        return Stream(lambda t: function(*(s[t] for s in streams)), some - some)

    return lifted


def delay(s: Stream[A]) -> Stream[A]:
    """z⁻¹: zero first, then the stream, one step late.  Strict.

    >>> delay(stream([1, 2, 3], 0)).prefix(3)
    [0, 1, 2]
    """
    return Stream(lambda t: s[t - 1] if t else s.zero, s.zero)


def fix(operator: Callable[[Stream[A]], Stream[A]], zero: A) -> Stream[A]:
    """fix α. F(α): the only stream that a strict operator maps to itself.

    >>> fix(lambda a: lift(lambda n: 1 - n)(delay(a)), 0).prefix(5)       # a toggle
    [1, 0, 1, 0, 1]

    Of a stream of streams the operator may be strict on either clock: inner streams are handed out
    before any of their values is computed.
    """
    loop: Stream[A] = Stream(lambda t: _deferred(lambda: body[t], zero), zero)
    body = operator(loop)
    return loop


def _deferred(get: Callable[[], Any], zero: Any) -> Any:
    """The value of `get`; if it is a stream, one that calls `get` on demand."""
    if not isinstance(zero, Stream):
        return get()
    return Stream(lambda t: _deferred(lambda: get()[t], zero.zero), zero.zero)


# ── differentiation, integration, incremental forms ──────────────────────────────────────────────


def differentiate(s: Stream[A]) -> Stream[A]:
    """D: the stream of changes.

    >>> differentiate(stream([1, 4, 9], 0)).prefix(3)
    [1, 3, 5]
    """
    return s - delay(s)


def integrate(s: Stream[A]) -> Stream[A]:
    """I: the sum of all values so far, by feedback.

    >>> integrate(stream([1, 3, 5], 0)).prefix(3)
    [1, 4, 9]
    """
    return fix(lambda a: s + delay(a), s.zero)


def incremental(operator: Operator[B]) -> Operator[B]:
    """Q^Δ = D ∘ Q ∘ I, with I on every argument: from changes to changes.

    >>> square = lift(lambda n: n * n)
    >>> incremental(square)(stream([1, 1, 1], 0)).prefix(3)     # changes of 1, 4, 9
    [1, 3, 5]
    """
    return lambda *streams: differentiate(operator(*map(integrate, streams)))


def cumulative(operator: Operator[B]) -> Operator[B]:
    """I ∘ Q ∘ D: the operator whose incremental form is Q; inverse of `incremental`."""
    return lambda *streams: integrate(operator(*map(differentiate, streams)))


def linear_incremental(operator: Operator[B]) -> Operator[B]:
    """Theorem 3.3: a linear time-invariant operator is its own incremental form."""
    return operator


def bilinear_incremental(times: Operator[B]) -> Operator[B]:
    """Theorem 3.4: (a × b)^Δ = I(a) × b + a × z⁻¹ I(b).

    In words, the change of a product is new left times change of right, plus change of left times
    old right.

    >>> times = lift(lambda a, b: a * b)
    >>> bilinear_incremental(times)(stream([2, 1], 0), stream([5, 2], 0)).prefix(2)   # 10, then 21
    [10, 11]
    """
    return lambda a, b: times(integrate(a), b) + times(a, delay(integrate(b)))


def bilinear_incremental_of_three(times: Operator[B]) -> Operator[B]:
    """Theorem 3.4, first form: a × b + z⁻¹ I(a) × b + a × z⁻¹ I(b)."""
    return lambda a, b: times(a, b) + times(delay(integrate(a)), b) + times(a, delay(integrate(b)))


def distinct_incremental(s: Stream[ZSet[T]]) -> Stream[ZSet[T]]:
    """(↑distinct)^Δ: H of the state so far and the change.

    >>> a = ZSet({"a": 1})
    >>> distinct_incremental(stream([a, a, -a, -a], ZSet())).prefix(4)
    [ZSet({'a': 1}), ZSet(), ZSet(), ZSet({'a': -1})]
    """
    return lift(distinct_delta)(delay(integrate(s)), s)


# ── recursion: the rounds of a step are a stream of their own ────────────────────────────────────


def impulse(value: A) -> Stream[A]:
    """δ₀: the value at time 0, then zero.  Into the inner clock."""
    return stream([value], value - value)


def total(s: Stream[A], rounds: int) -> A:
    """∫: the sum of a stream that is zero from time `rounds` on."""
    result = s.zero
    for value in s.prefix(rounds):
        result = result + value
    return result


def limit(s: Stream[A]) -> A:
    """∫ of the changes of one recursion: once a round adds nothing, no later one does.

    >>> limit(stream([3, 2, 1], 0))
    6
    """
    result, t = s.zero, 0
    while s[t] != s.zero:
        result, t = result + s[t], t + 1
    return result


def naive(step: Callable[[Any, B], B], zero: B) -> Callable[[Any], Stream[B]]:
    """The rounds of naive evaluation: fix α. ↑step(I δ₀(i), z⁻¹ α).

    >>> naive(lambda bound, n: min(bound, n + 2), 0)(5).prefix(4)
    [2, 4, 5, 5]
    """
    return lambda given: fix(lambda a: lift(step)(integrate(impulse(given)), delay(a)), zero)


def seminaive(step: Operator[B], zero: B) -> Callable[[Any], Stream[B]]:
    """The new values of each round: fix α. step(δ₀(i), z⁻¹ α).

    By the cycle rule this is D of `naive`.  `limit` of it is the value of the recursion.

    >>> step = incremental(lift(lambda bound, n: min(bound, n + 2)))
    >>> seminaive(step, 0)(5).prefix(4), limit(seminaive(step, 0)(5))
    ([2, 2, 1, 0], 5)
    """
    return lambda given: fix(lambda a: step(impulse(given), delay(a)), zero)


def maintained(step: Operator[Stream[B]], zero: B, rounds: int) -> Callable[[Stream[Any]], Stream[B]]:
    """From changes of the input of a recursion to changes of its value.

    `rounds` rounds must suffice.  `step` is incremental on both clocks: (↑(↑step)^Δ)^Δ.  By the
    cycle rule on the outer clock,
    ↑∫ (fix α. step(↑δ₀(s), ↑z⁻¹ α)) is the incremental form of the whole recursion.

    A round without a change does not end a step: a later round of the step before may be affected.
    """

    def run(changes: Stream[Any]) -> Stream[B]:
        loop = fix(lambda a: step(lift(impulse)(changes), lift(delay)(a)), stream((), zero))
        return Stream(lambda t: total(loop[t], rounds), zero)

    return run

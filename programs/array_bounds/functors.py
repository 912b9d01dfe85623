"""The functors of array_bounds.dl: intervals "0..9", "-..9", "-..-", and "" for no value."""

from math import inf

MOST = 200  # beyond it there is no bound


def ends(interval: str) -> tuple[float, float]:
    """The ends of an interval; (inf, -inf) of none."""
    if not interval:
        return inf, -inf
    low, _, high = interval.partition("..")
    return -inf if low == "-" else int(low), inf if high == "-" else int(high)


def interval(low: float, high: float) -> str:
    """The smallest interval that has both ends and bounds that are kept."""
    if low > high:
        return ""
    shown = ("-" if abs(end) > MOST else str(int(end)) for end in (low, high))
    first, last = shown
    first = str(MOST) if low > MOST else first
    last = str(-MOST) if high < -MOST else last
    return f"{first}..{last}"


def hull(a: str, b: str) -> str:
    (low, high), (other_low, other_high) = ends(a), ends(b)
    return interval(min(low, other_low), max(high, other_high))


def meet(a: str, b: str) -> str:
    (low, high), (other_low, other_high) = ends(a), ends(b)
    return interval(max(low, other_low), min(high, other_high))


def exactly(n: int) -> str:
    return interval(n, n)


def shifted(a: str, n: int) -> str:
    low, high = ends(a)
    return interval(low + n, high + n)


def below(a: str, n: int) -> str:
    low, high = ends(a)
    return interval(low, min(high, n - 1))


def above(a: str, n: int) -> str:
    low, high = ends(a)
    return interval(max(low, n), high)


def within(a: str, size: int) -> int:
    low, high = ends(a)
    return int(low >= 0 and high < size)

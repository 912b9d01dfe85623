"""What a turn of a recursive unit will cost, from the turns before it.

A batch of many rows may cost more than computing the unit.  To find that out on the way costs half
a computation more, so a turn that is expected to reach its limit is not begun.  Rows that may take
facts away cost something else than rows that may add some: each kind has an average of its own.
"""

from __future__ import annotations

KEPT = 7 / 8  # of what was learned before, with each further turn


class Forecast:
    """The work for one row that may take facts away, and for one that may add some."""

    def __init__(self) -> None:
        self._losses = (0.0, 0.0)  # rows, and the work for them
        self._gains = (0.0, 0.0)

    def work(self, losses: int, gains: int) -> float:
        """The work that a turn is expected to do.

        >>> forecast = Forecast()
        >>> forecast.learn(2, 1, 300)
        >>> forecast.work(10, 7)
        1500.0
        """
        return losses * _average(self._losses) + gains * _average(self._gains)

    def learn(self, losses: int, gains: int, work: int) -> None:
        """Take in a turn that was followed to its end; losses explain it if there are any."""
        if losses:
            self._losses = _moved(self._losses, losses, work)
        else:
            self._gains = _moved(self._gains, gains, work)


def _moved(known: tuple[float, float], rows: int, work: int) -> tuple[float, float]:
    return KEPT * known[0] + rows, KEPT * known[1] + work


def _average(known: tuple[float, float]) -> float:
    return known[1] / known[0] if known[0] else 0.0

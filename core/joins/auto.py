"""Begin with first-order delta, and move to generations (or heavy and light values) when the stream
asks for it.

First-order delta needs nothing but indexes and is the fastest while values have few partners.  It
counts its work beyond the answers that it tells.  When that excess has paid for building
generations, and for each update is more than they would take, the view moves there, as one who
rents skis buys a pair when the rents have come to its price: whatever stream comes, it costs at
most a small factor more than the better of the two.

For the triangle and the 3-path, heavy and light values are worked out by hand and cheaper: it moves
there.

At a reset of the generations it looks back: if first-order delta would have done with less, it
moves back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from attrs import evolve

from everlog.core.joins.first_order import FirstOrder
from everlog.core.joins.generations import Generations, combinations_of
from everlog.core.joins.heavy_light import HeavyLight, heavy_light, is_served
from everlog.core.joins.view import Asked, Weighted
from everlog.core.program import Row

OFTEN = 16  # updates between two looks
FAIR = 8  # steps of an update that are no excess
MEMORY = 4096  # updates after which old evidence counts half
WORTH = 100  # steps of delta, in C, that take as long as one combination of generations, in Python
PRICE = 8  # steps of excess work per tuple, for which generations are built
LEAST = 256  # and at the least


class Auto:
    """Invariant: `view` holds what was inserted, whichever of the two it is."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.view: FirstOrder | Generations | HeavyLight = FirstOrder(evolve(asked, counting=True))
        self._by_hand = is_served(asked.query)
        self.moves = 0
        self._updates = 0  # since the last move
        self._before = 0  # steps of views that were left
        self._size = 0
        self._resets = 0

    @property
    def strategy(self) -> str:
        """The one in use now."""
        match self.view:
            case FirstOrder():
                return "delta"
            case HeavyLight():
                return "heavy_light"
            case _:
                return "generations"

    def insert(self, atom: int, row: Row) -> bool:
        if not self.view.insert(atom, row):
            return False
        self._size += 1
        self._updates += 1
        if not self._updates % OFTEN:
            self._look()
        return True

    def delete(self, atom: int, row: Row) -> bool:
        if not self.view.delete(atom, row):
            return False
        self._size -= 1
        self._updates += 1
        if not self._updates % OFTEN:
            self._look()
        return True

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return self.view.delta(atom, row)

    def _look(self) -> None:
        """Between two updates: has the excess paid for generations?  Were they worth it, until a
        reset?
        """
        view = self.view
        if isinstance(view, FirstOrder):
            excess = view.excess - FAIR * self._updates
            looks = 1 if self._by_hand else combinations_of(len(self.asked.query.atoms), self._size)
            if excess > max(LEAST, PRICE * self._size, WORTH * looks * self._updates):
                self._move(heavy_light(self.asked) if self._by_hand else Generations(self.asked))
            elif self._updates >= MEMORY:  # what was long ago is forgotten by and by
                self._updates //= 2
                view.halve_counts()
        elif isinstance(view, Generations) and view.resets > self._resets:
            self._resets = view.resets
            if not view.was_useful():
                self._move(FirstOrder(evolve(self.asked, counting=True)))

    def _move(self, view: FirstOrder | Generations | HeavyLight) -> None:
        """Go on with another view, between two updates."""
        view.load({atom: self.view.rows(atom) for atom in range(len(self.asked.query.atoms))})
        self._before += self.view.steps
        self.view = view
        self.moves += 1
        self._updates = self._resets = 0

    def answers(self) -> Iterator[Weighted]:
        return self.view.answers()

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        self.view.load(rows)
        self._size = sum(len(self.view.rows(atom)) for atom in range(len(self.asked.query.atoms)))

    def rows(self, atom: int) -> Collection[Row]:
        return self.view.rows(atom)

    @property
    def steps(self) -> int:
        return self._before + self.view.steps

    def check(self) -> None:
        self.view.check()
        assert self._size == sum(len(self.view.rows(atom)) for atom in range(len(self.asked.query.atoms)))

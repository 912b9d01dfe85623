"""Choice domains: of several facts with one key the first stays; defines "first".

`.decl match(x: symbol, y: symbol) choice-domain x, y` admits a fact only while no other fact has
its x, and none its y.  The result depends on the order of arrival, so the order is part of the
meaning: first the facts of program and inputs, then round by round of the fixpoint, within a round
rule by rule as written, and among the facts of one rule in sorted order.

This order does not depend on how a round is computed.  Semi-naive evaluation omits only candidates
that the same rule derived in an earlier round.  Such a candidate was admitted, and is present; or
it was refused, and is refused again, since a key once taken stays taken.  So naive and semi-naive
evaluation admit the same facts, provided that one round offers each rule's candidates at once,
however many delta versions computed them.

Source: Hu, Karp, Zhao, Zreika, Wu, Scholz, The choice construct in the Soufflé language, APLAS
2021.
"""

from __future__ import annotations

from collections.abc import Iterable

from everlog.core.program import Relation, Row
from everlog.core.program.order import ordered


class Chooser:
    """The gatekeeper of one relation with choice domains.

    Invariant: of the facts admitted so far, no two agree on all columns of a key; `_taken` has,
    for each key, exactly their values there.  A fact that subsumption drops later keeps its keys.
    """

    def __init__(self, relation: Relation, rows: Iterable[Row] = ()) -> None:
        assert relation.choices, f"{relation.name} has no choice domain"
        self._keys = relation.choices
        self._taken: list[set[Row]] = [set() for _ in self._keys]
        self.admit(rows)

    def admit(self, rows: Iterable[Row]) -> list[Row]:
        """Visit the candidates in sorted order; return those that are new and now in.

        >>> from everlog.core.program import Column, Kind
        >>> x, y = Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)
        >>> chooser = Chooser(Relation("match", (x, y), choices=((0,), (1,))))
        >>> chooser.admit([(2, 2), (1, 2), (1, 3), (3, 1)])
        [(1, 2), (3, 1)]
        >>> chooser.admit([(1, 2), (2, 3), (3, 4)])
        [(2, 3)]

        Cost: O(candidates · keys), and the sort.
        """
        admitted = []
        for row in ordered(rows):
            keys = [tuple(row[column] for column in columns) for columns in self._keys]
            if not any(key in taken for key, taken in zip(keys, self._taken, strict=True)):
                for key, taken in zip(keys, self._taken, strict=True):
                    taken.add(key)
                admitted.append(row)
        return admitted

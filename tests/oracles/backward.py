"""The backward reduction: a component Q̂σ is evaluated by whatever maintains Q.

An instance of Q̂σ is arbitrary: its values of Z1 … Zk need not come from lifespans.  Give each of
them a bit string of the same length ℓ.  The bits of z1 … zi lead to a node of a segment tree of
depth k · ℓ, whose interval becomes the lifespan of the row.  Since all strings have one length,
the intervals of k rows meet exactly if they agree on their common Zs.  So the answers of the time
extension are those of Q̂σ, one to one (Example 6.5).

Lifespans, in turn, are a stream: a row comes when its interval begins, and goes when it ends.  An
answer that is told to come at τ and to go at τ' lives from τ to τ' (Example 7.3).  So a lower bound
for evaluating Q̂σ is one for maintaining Q.

Source: Sections 6.2 and 7.2 of Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from everlog.core.classify.query import Query
from everlog.core.joins.view import JoinView
from everlog.core.program import Row, Value
from oracles.lifespans import Lifespan, Lived, interval, time_join


@frozen
class Backward:
    """An instance of Q̂σ as one of the time extension; `database` has lived rows by atom."""

    query: Query
    order: tuple[int, ...]
    database: dict[int, list[Lived]]
    values: tuple[Value, ...]  # those of the Zs; the number of each is its bit string
    bits: int

    @staticmethod
    def of(query: Query, order: Sequence[int], instance: Sequence[Iterable[Row]]) -> Backward:
        """`instance` has the rows of the atoms in the order σ, each with its Zs first.

        >>> query = Query.of("R(a)", "S(a)")
        >>> Backward.of(query, (0, 1), [[("u", 7)], [("u", "v", 7), ("v", "v", 7)]]).database
        {0: [((1, 2), (7,))], 1: [((2, 2), (7,)), ((4, 4), (7,))]}
        """
        rows = [list(given) for given in instance]
        zs = {z for parts, given in enumerate(rows, 1) for row in given for z in row[:parts]}
        values = tuple(sorted(zs, key=repr))
        bits = max(1, (len(values) - 1).bit_length())
        depth = bits * len(rows)
        database: dict[int, list[Lived]] = {atom: [] for atom in order}
        for parts, (atom, given) in enumerate(zip(order, rows, strict=True), 1):
            for row in given:
                node = "".join(format(values.index(z), f"0{bits}b") for z in row[:parts])
                database[atom].append((interval(node, depth), row[parts:]))
        return Backward(query, tuple(order), database, values, bits)

    def answers(self) -> set[Row]:
        """The answers of Q̂σ, by the static time extension (Example 6.5)."""
        return {self._decoded(span, answer) for span, answer in time_join(self.query, self.database)}

    def answers_through(self, view: JoinView) -> set[Row]:
        """The answers of Q̂σ, by a view of Q that tells changes (Example 7.3).

        Cost: that of 2 · |D̂| updates.
        """
        begins = [(born, 0, atom, row) for atom in self.order for (born, _), row in self.database[atom]]
        ends = [(died, 1, atom, row) for atom in self.order for (_, died), row in self.database[atom]]
        since: dict[Row, int] = {}
        found = set()
        for time, ending, atom, row in sorted(begins + ends, key=lambda event: event[:3]):
            if not ending:
                assert view.insert(atom, row), "the lifespans of one row are disjoint"
            for answer, _ in view.delta(atom, row):
                if ending:
                    found.add(self._decoded((since.pop(answer), time), answer))
                else:
                    since[answer] = time
            if ending:
                view.delete(atom, row)
        return found

    def _decoded(self, span: Lifespan, answer: Row) -> Row:
        """The Zs of the leaf that is this lifespan, and the answer."""
        assert span[0] == span[1], "the youngest row has a Z of its own for each bit"
        leaf = format(span[0] - 1, f"0{self.bits * len(self.order)}b")
        parts = [leaf[n : n + self.bits] for n in range(0, len(leaf), self.bits)]
        return *(self.values[int(part, 2)] for part in parts), *answer

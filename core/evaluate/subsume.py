"""Subsumption: a fact goes when a better one of its relation is there.

`dominated <= dominating :- body` is read as a rule over pairs: its head lists the columns of the
dominated fact and then those of the dominating one.  So whoever can derive facts can find the
pairs (`dominance_rule`), by a nested loop or by a compiled join; which facts then go is decided
here (`dominated`), once for all executors, at the end of each round.

A fact that went does not come back in that run.  Where `<=` is transitive this changes nothing,
as some fact better than it is still there.  Where it is not, it keeps the fixpoint from turning in
circles, and the result from depending on how often a strategy derives the same fact again.

After a removal no two facts that are left form a pair.  So in the next round it is enough to look
for pairs in which one of the two facts is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from everlog.core.program import Atom, Row, Rule, Subsumption, Variable, Wildcard
from everlog.core.program.order import ordered


def dominance_rule(subsumption: Subsumption) -> Rule:
    """The rule whose facts are the pairs (dominated, dominating), side by side.

    >>> d, e = Variable("d"), Variable("e")
    >>> from everlog.core.program import Comparison, Kind
    >>> shorter = Comparison("<", e, d, Kind.NUMBER)
    >>> one, two = Atom("dist", (Wildcard(), d)), Atom("dist", (Wildcard(), e))
    >>> print(dominance_rule(Subsumption(one, two, (shorter,))))
    dist(?0, d, ?1, e) :- dist(?0, d), dist(?1, e), e < d.
    """
    fresh = (Variable(f"?{number}") for number in count())  # no name of the language begins so
    one, two = _named(subsumption.dominated, fresh), _named(subsumption.dominating, fresh)
    head = Atom(one.relation, one.args + two.args)
    return Rule(head, (one, two, *subsumption.body), origin=subsumption.origin)


def _named(atom: Atom, fresh: Iterator[Variable]) -> Atom:
    return Atom(atom.relation, tuple(next(fresh) if isinstance(a, Wildcard) else a for a in atom.args))


def dominated(pairs: Iterable[Row]) -> set[Row]:
    """The facts that go: those with a better one, also where that one goes for a still better one.

    Only where facts dominate each other in a circle must one stay: pairs are visited in sorted
    order, and a fact does not go for one that went because of it.

    >>> sorted(dominated([(3, 2), (2, 1)]))
    [(2,), (3,)]
    >>> sorted(dominated([(1, 2), (2, 1), (3, 3)]))
    [(1,)]

    Cost: that of sorting the pairs.
    """
    better_than: dict[Row, Row] = {}  # of a fact that goes: one it went for
    for pair in ordered(pairs):
        worse, better = pair[: len(pair) // 2], pair[len(pair) // 2 :]
        if worse in better_than:
            continue
        best = better
        while best in better_than:
            best = better_than[best]
        if best != better:
            better_than[better] = best  # a shortcut for the next who asks
        if best != worse:
            better_than[worse] = best
    return set(better_than)

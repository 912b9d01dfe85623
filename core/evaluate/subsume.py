"""Subsumption: a fact goes when a better one of its relation is present.

`dominated <= dominating :- body` is read as a rule over pairs: its head lists the columns of the
dominated fact and then those of the dominating one (`dominance_rule`).  So each executor finds the
pairs in its own way, by a nested loop or a compiled join.  `dominated` decides which facts then go,
for all executors, at the end of each round.

A dominated fact does not return in that run.  Where `<=` is transitive this changes nothing, as a
better fact is still present.  Where it is not, this makes the fixpoint terminate, and makes the
result independent of how often an executor derives the same fact.

After a removal no two remaining facts form a pair.  So the next round only needs the pairs in which
one of the two facts is new.
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
    fresh = (Variable(f"?{number}") for number in count())  # names of the language cannot begin with ?
    one, two = _named(subsumption.dominated, fresh), _named(subsumption.dominating, fresh)
    head = Atom(one.relation, one.args + two.args)
    return Rule(head, (one, two, *subsumption.body), origin=subsumption.origin)


def _named(atom: Atom, fresh: Iterator[Variable]) -> Atom:
    return Atom(atom.relation, tuple(next(fresh) if isinstance(a, Wildcard) else a for a in atom.args))


def dominated(pairs: Iterable[Row]) -> set[Row]:
    """The facts that go: those with a better one, even if that one goes, too.

    If facts dominate each other in a circle, one must stay: pairs are visited in sorted order, and
    a fact does not go for one that went because of it.

    >>> sorted(dominated([(3, 2), (2, 1)]))
    [(2,), (3,)]
    >>> sorted(dominated([(1, 2), (2, 1), (3, 3)]))
    [(1,)]

    Cost: that of sorting the pairs.
    """
    better_than: dict[Row, Row] = {}  # a fact that goes → one it went for
    for pair in ordered(pairs):
        worse, better = pair[: len(pair) // 2], pair[len(pair) // 2 :]
        if worse in better_than:
            continue
        best = better
        while best in better_than:
            best = better_than[best]
        if best != better:
            better_than[better] = best  # path compression
        if best != worse:
            better_than[worse] = best
    return set(better_than)

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from attrs import evolve, frozen

from everlog.core.program import Atom, Comparison, Literal, Row, Rule, Subsumption, Term, Variable, Wildcard
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


# ── orders without circles ───────────────────────────────────────────────────────────────────

GONE = "%s, gone"  # the relation of the facts that go
_TWICE = "%s, twice"
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@frozen
class Dominance:
    """The rules that find what goes: they derive it, or pairs where only `dominated` can tell."""

    rules: tuple[Rule, ...]
    in_pairs: bool

    def gone(self, found: Iterable[Row]) -> set[Row]:
        """The facts that go, from what the rules have derived."""
        return dominated(found) if self.in_pairs else set(found)


def dominances(subsumptions: Sequence[Subsumption]) -> dict[str, Dominance]:
    """For each relation, the rules that find what goes.

    >>> c, d, x = Variable("c"), Variable("d"), Variable("x")
    >>> from everlog.core.program import Kind
    >>> no_more = Comparison("<=", d, c, Kind.NUMBER)
    >>> one, two = Atom("cost", (x, c)), Atom("cost", (x, d))
    >>> print(*dominances([Subsumption(one, two, (no_more,))])["cost"].rules)
    cost, gone(x, c) :- cost(x, c), cost(x, d), d <= c, d < c.
    >>> dominances([Subsumption(one, Atom("cost", (Wildcard(), d)), (no_more,))])["cost"].in_pairs
    True
    """
    of: dict[str, list[Subsumption]] = {}
    for subsumption in subsumptions:
        of.setdefault(subsumption.dominated.relation, []).append(subsumption)
    return {name: _dominance(name, some) for name, some in of.items()}


def _dominance(name: str, subsumptions: Sequence[Subsumption]) -> Dominance:
    clauses = [_clause(subsumption) for subsumption in subsumptions]
    if not _is_ordered(clauses):
        pairs = map(dominance_rule, subsumptions)
        named = (evolve(rule, head=evolve(rule.head, relation=_TWICE % name)) for rule in pairs)
        return Dominance(tuple(named), in_pairs=True)
    return Dominance(
        tuple(
            Rule(
                Atom(GONE % name, clause.dominated.args),
                (clause.dominated, clause.dominating, *body),
                origin=clause.subsumption.origin,
            )
            for clause in clauses
            for body in _strict_bodies(clause)
        ),
        in_pairs=False,
    )


@frozen
class _Clause:
    """A subsumption with what it says of each column: `dominating OP dominated`."""

    subsumption: Subsumption
    dominated: Atom
    dominating: Atom
    compared: Mapping[int, Comparison | None]  # None: they are equal

    def direction(self, column: int) -> str:
        """In which direction the value goes: empty, `<` or `>`."""
        compared = self.compared[column]
        return "" if compared is None or compared.op == "=" else compared.op[0]

    def strict(self) -> set[int]:
        """The columns in which the better value is another one."""
        return {column for column, one in self.compared.items() if one is not None and one.op in ("<", ">")}


def _clause(subsumption: Subsumption) -> _Clause:
    one, two, *_ = dominance_rule(subsumption).body
    assert isinstance(one, Atom)
    assert isinstance(two, Atom)
    compared: dict[int, Comparison | None] = {}
    for column, (worse, better) in enumerate(zip(one.args, two.args, strict=True)):
        found = {c.op: c for c in _comparisons(worse, better, subsumption.body)}
        strictest = next((op for op in ("<", ">", "=", "<=", ">=") if op in found), "")
        if strictest or worse == better:
            compared[column] = found.get(strictest)
    return _Clause(subsumption, one, two, compared)


def _comparisons(worse: Term, better: Term, body: Iterable[Literal]) -> Iterator[Comparison]:
    """The comparisons of two terms, as `better OP worse`."""
    for literal in body:
        if isinstance(literal, Comparison) and literal.op in _MIRRORED:
            if (literal.left, literal.right) == (better, worse):
                yield literal
            elif (literal.left, literal.right) == (worse, better):
                yield Comparison(_MIRRORED[literal.op], better, worse, literal.kind)


def _is_ordered(clauses: Sequence[_Clause]) -> bool:
    """Whether no facts dominate each other in a circle.

    Around a circle, a column in which no clause goes up, or none goes down, stays the same: so no
    clause that is strict in it takes part.  If the others let all columns stay, the circle is one
    fact.
    """
    left = list(clauses)
    while any(clause.strict() for clause in left):
        steady = _steady(left)
        rest = [clause for clause in left if not clause.strict() & steady]
        if len(rest) == len(left):
            return False
        left = rest
    return not left or len(_steady(left)) == len(left[0].dominated.args)


def _steady(clauses: Sequence[_Clause]) -> set[int]:
    """The columns in which all clauses go in one direction, or stay."""
    common = set.intersection(*(set(clause.compared) for clause in clauses))
    return {column for column in common if len({clause.direction(column) for clause in clauses} - {""}) <= 1}


def _strict_bodies(clause: _Clause) -> Iterator[tuple[Literal, ...]]:
    """The conditions under which a clause is about two facts, and not twice the same."""
    body = clause.subsumption.body
    if clause.strict():
        yield body
        return
    for one in clause.compared.values():
        if one is not None and one.op != "=":
            yield (*body, evolve(one, op=one.op[0]))

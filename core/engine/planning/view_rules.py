"""How a relation that is not stored is read: along the counts of a view tree, or by a search.

A rule that only joins, and has a variable order whose counts are no more than the rows of its
atoms, is kept as such a tree: then its answers are counted, tested and enumerated in constant time
each.  What the head hides must stand below what it shows, so that no answer comes twice.  Of any
other rule nothing is kept, and its body is joined when somebody asks.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from attrs import evolve, frozen

from everlog.core.classify.query import Query, query_of
from everlog.core.joins.join_strategies import JOINS, VIEW_TREE
from everlog.core.joins.order_costs import shown_first
from everlog.core.joins.strategy_choice import JoinChoice, shows_head_only, structural_obstacle
from everlog.core.joins.variable_orders import Order
from everlog.core.program import Atom, Program, Rule, Variable, Wildcard

VIEW, SEARCHED = "view", "searched"


@frozen
class CountedOrder:
    """The order along which a rule is counted, and the exponent of one update."""

    order: Order
    update: Fraction


def named_wildcards(rule: Rule, relations: Collection[str] | None = None) -> Rule:
    """The rule with a variable for each `_` in atoms of these relations, or of all.

    >>> print(named_wildcards(Rule(Atom("q", ()), (Atom("r", (Wildcard(), Wildcard())),))))
    q() :- r(_@0.0, _@0.1).
    """
    body = [
        Atom(
            x.relation,
            tuple(Variable(f"_@{n}.{m}") if isinstance(a, Wildcard) else a for m, a in enumerate(x.args)),
        )
        if isinstance(x, Atom) and (relations is None or x.relation in relations)
        else x
        for n, x in enumerate(rule.body)
    ]
    return evolve(rule, body=tuple(body))


def counted_order(query: Query) -> CountedOrder | None:
    """An order whose counts take space linear in the rows of the atoms; None if there is none.

    >>> found = counted_order(Query.of("R(a, b)", "S(b, c)", "T(c, d)"))
    >>> print(*found.order, found.update)
    b(c(d), a) 1
    >>> counted_order(Query.of("R(a, b)", "S(b, c)", free="ac"))
    """
    found = shown_first(query)
    if found is None or found[1] > 1:
        return None
    return CountedOrder(found[0], found[2])


def how_read(rule: Rule, program: Program) -> JoinChoice:
    """Whether a rule of a view is counted (`view`) or searched, and why."""
    query = query_of(rule)
    obstacle = structural_obstacle(rule, program) or JOINS[VIEW_TREE].refusal(query)
    if not obstacle and not shows_head_only(rule):
        obstacle = "more than a join of atoms"
    if obstacle:
        return JoinChoice(SEARCHED, f"not stored, and searched when somebody asks: {obstacle}")
    counted = counted_order(query)
    if counted is None:
        return JoinChoice(SEARCHED, "not stored, and searched when somebody asks: counts would outgrow its atoms")
    return JoinChoice(
        VIEW, f"not stored; counts along {', '.join(map(str, counted.order))}, no more than its rows"
    )

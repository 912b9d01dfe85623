"""What one update of a rule can cost, and why: everything that `everlog explain` tells, as values.

All of it follows from the program alone, before any data is loaded.  For each rule: the class of
its positive join, its widths, a decomposition, the strategies for facts that only come and for
facts that come and go, what one update then costs, and which strategy is in use with what it
promises.

Costs are for one row that comes or goes in one of the joined relations; telling the answers that
change comes on top, one by one with constant delay.  N is the number of inserts so far, D the size
of the joined relations now.

Source: Theorems 4.1 and 4.4 of Abo Khamis et al. 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from everlog.core.classify.classes import (
    QueryClass,
    classify,
    is_free_connex,
    is_q_hierarchical,
    loomis_whitney,
)
from everlog.core.classify.covers import agm_exponent, fractional_cover
from everlog.core.classify.decompositions import Decomposition
from everlog.core.classify.multivariate import MultivariateWidth, multivariate_width
from everlog.core.classify.query import Query, query_of
from everlog.core.classify.widths import Width, fractional_hypertree_width, free_connex_width
from everlog.core.engine.planning.plan import FLOW, RECURSIVE, Plan, PlannedUnit
from everlog.core.engine.planning.systems import systems
from everlog.core.joins.join_strategies import AUTO, CALIBRATED, DELTA, GENERATIONS, JOINS, NAIVE, VIEW_TREE
from everlog.core.joins.strategy_choice import JoinChoice, above_the_join
from everlog.core.joins.variable_orders import OrderNode, variable_order
from everlog.core.program import Rule

MOST_ATOMS = 200  # of a body that is classified
UNBOUNDED = "follows the facts whose proof breaks"
FLOWING = "follows the facts that change, and the cycles that a step opens or closes"


@frozen
class RuleCost:
    """One rule with its class, its widths and its promises."""

    rule: Rule
    query: Query
    query_class: str  # hierarchical, acyclic, cyclic or recursive
    join_class: QueryClass
    reason: str
    width: Width
    multivariate: MultivariateWidth
    free_connex: Width
    in_use: JoinChoice

    @property
    def order(self) -> tuple[OrderNode, ...]:
        """The variable order of its view tree, if it is hierarchical."""
        return variable_order(self.query) if self.join_class is QueryClass.HIERARCHICAL else ()

    @property
    def above(self) -> tuple[str, ...]:
        """What stands above the join."""
        return tuple(map(str, above_the_join(self.rule)))

    @property
    def strategies(self) -> dict[str, str]:
        """The strategy for facts that only come, and for facts that come and go."""
        if self.query_class == "recursive":
            return {"insert_only": self.in_use.strategy, "insert_delete": self.in_use.strategy}
        if self.join_class is QueryClass.HIERARCHICAL:
            return {"insert_only": VIEW_TREE, "insert_delete": VIEW_TREE}
        nothing_better = self.multivariate.value >= 2 or len(self.query.atoms) > JOINS[AUTO].most_atoms
        return {"insert_only": CALIBRATED, "insert_delete": DELTA if nothing_better else AUTO}

    @property
    def update_cost(self) -> dict[str, str]:
        """What one update of the class costs: by Theorem 4.1, and by Theorem 4.4."""
        if self.query_class == "recursive":
            return {"insert_only": self.cost_in_use, "insert_delete": self.cost_in_use}
        if self.join_class is QueryClass.HIERARCHICAL:
            return {"insert_only": "O(1)", "insert_delete": "O(1)"}
        exponent = self.multivariate.value - 1
        deletes = power("O" if exponent >= 1 else "Õ", "D", exponent)
        return {"insert_only": power("O", "N", self.width.value - 1), "insert_delete": deletes}

    @property
    def cost_in_use(self) -> str:
        """What one update costs with the strategy that is in use, in the worst case."""
        if self.query_class == "recursive" and self.in_use.strategy not in RECURSIVE:
            return systems()[self.in_use.strategy].described.cost
        match self.in_use.strategy:
            case name if name in RECURSIVE and self.query_class == "recursive":
                return FLOWING if name == FLOW else UNBOUNDED
            case name if name == VIEW_TREE and self.join_class is QueryClass.HIERARCHICAL:
                return "O(1)"
            case name if name == CALIBRATED and self.in_use.why != "asked for":
                return f"{self.update_cost['insert_only']} amortized"
            case name if len(self.query.atoms) > MOST_ATOMS:
                return power("O", "D", self.width.value)
            case name if name == NAIVE:
                return power("O", "D", agm_exponent(self.query))
            case name if name == DELTA and self.in_use.why.startswith("hierarchical"):
                return "O(1)"
            case name if name in (AUTO, GENERATIONS):
                return f"{self.update_cost['insert_delete']} amortized"
            case name if name == CALIBRATED:
                inserts, delete = self.update_cost["insert_only"], power("O", "D", self.width.value)
                return f"{inserts} amortized while facts only come, {delete} for a delete"
            case _:
                return power("O", "D", delta_exponent(self.query))

    def to_json(self) -> dict[str, Any]:
        """As `everlog explain --json` has it: see docs/costs.md."""
        small = len(self.query.atoms) <= MOST_ATOMS
        return {
            "rule": self.rule.written,
            "name": self.rule.name,
            "head": self.rule.head.relation,
            "file": self.rule.origin.file,
            "line": self.rule.origin.line,
            "class": self.query_class,
            "reason": self.reason,
            "join": {
                "class": str(self.join_class),
                "atoms": [{"relation": a.relation, "variables": list(a.variables)} for a in self.query.atoms],
                "free": [v for v in self.query.variables if v in self.query.free],
                "q_hierarchical": small and is_q_hierarchical(self.query),
                "free_connex": small and is_free_connex(self.query),
                "loomis_whitney": loomis_whitney(self.query) if small else None,
            },
            "above": list(self.above),
            "w": str(self.width.value),
            "w_exact": self.width.exact,
            "w_hat": str(self.multivariate.value),
            "w_hat_exact": self.multivariate.exact,
            "w_free_connex": str(self.free_connex.value),
            "strategy": self.strategies,
            "update_cost": self.update_cost,
            "in_use": {"strategy": self.in_use.strategy, "why": self.in_use.why, "update_cost": self.cost_in_use},
            "decomposition": decomposition_json(self.query, self.width.decomposition),
            "variable_order": [order_json(node) for node in self.order],
        }


def rule_costs(plan: Plan) -> Iterator[RuleCost]:
    """Every rule that was written, in the order of the text."""
    home = {rule.name: unit for unit in plan.units for rule in unit.unit.rules}
    for rule in plan.written.values():
        yield rule_cost(rule, home[rule.name])


def rule_cost(rule: Rule, unit: PlannedUnit) -> RuleCost:
    query = query_of(rule)
    if len(query.atoms) > MOST_ATOMS:
        return _unclassified(rule, query, unit)
    join_class, reason = classify(query)
    query_class = str(join_class)
    in_use = unit.joins.get(rule.name) or JoinChoice(unit.strategy, unit.why)
    if unit.unit.recursive:
        query_class = "recursive"
        reason = f"`{rule.head.relation}` depends on itself; of the join: {reason}"
    return RuleCost(
        rule,
        query,
        query_class,
        join_class,
        reason,
        fractional_hypertree_width(query),
        multivariate_width(query),
        free_connex_width(query),
        in_use,
    )


def _unclassified(rule: Rule, query: Query, unit: PlannedUnit) -> RuleCost:
    """Of a body that is too large to look into: bounds that hold for any."""
    most = Fraction(len(query.atoms))
    bag = Decomposition((frozenset(query.variables),), (None,), most)
    return RuleCost(
        rule,
        query,
        "recursive" if unit.unit.recursive else str(QueryClass.CYCLIC),
        QueryClass.CYCLIC,
        f"taken to be so: {len(query.atoms)} atoms are too many to classify",
        Width(most, False, bag),
        MultivariateWidth(most + 1, False, None, Fraction(1)),
        Width(most, False, bag),
        unit.joins.get(rule.name) or JoinChoice(unit.strategy, unit.why),
    )


def power(order: str, of: str, exponent: Fraction) -> str:
    """
    >>> power("Õ", "D", Fraction(1, 2)), power("O", "N", Fraction(0)), power("O", "D", Fraction(1))
    ('Õ(D^1/2)', 'O(1)', 'O(D)')
    """
    if not exponent:
        return "O(1)"
    return f"{order}({of})" if exponent == 1 else f"{order}({of}^{exponent})"


def delta_exponent(query: Query) -> Fraction:
    """The exponent of first-order delta: the widest join that is left when one row is fixed.

    >>> delta_exponent(Query.of("R(a, b)", "S(b, c)", "T(a, c)"))
    Fraction(1, 1)
    """
    widest = Fraction(0)
    for number, fixed in enumerate(query.atoms):
        others = [frozenset(a.variables) for n, a in enumerate(query.atoms) if n != number]
        left = frozenset(query.variables) - frozenset(fixed.variables)
        widest = max(widest, fractional_cover(others, left).number)
    return widest


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────


def decomposition_json(query: Query, decomposition: Decomposition) -> dict[str, Any]:
    """Bags as lists of variables with the atoms that are at home there, and the parent of each."""
    home = decomposition.home(query)
    return {
        "width": str(decomposition.width),
        "bags": [
            {
                "variables": [v for v in query.variables if v in bag],
                "atoms": [str(query.atoms[i]) for i, place in enumerate(home) if place == number],
                "parent": decomposition.parents[number],
            }
            for number, bag in enumerate(decomposition.bags)
        ],
    }


def order_json(node: OrderNode) -> dict[str, Any]:
    return {"variables": list(node.variables), "children": [order_json(child) for child in node.children]}

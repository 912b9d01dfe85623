"""What one update of a rule costs, and why: everything that `everlog explain` tells, as values.

All of it follows from the program alone, before any data is loaded.  For each rule: the class of
its positive join, its widths, a decomposition, what one update costs when facts only come and when
they also go, and which strategy is in use.

A cost is for one row that comes or goes in one of the joined relations.  The facts that change come
on top, one by one with constant delay.  Matches of the join that change no fact (the head hides a
variable, or a condition above the join rejects them) are part of the cost: no reader pays for them.
N is the number of inserts so far, D the size of the joined relations now.

A rule is run together with the auxiliary rules that its wildcards, hidden variables and aggregates
have become; its cost is that of the most expensive of them.

Source: Theorems 4.1 and 4.4 of Abo Khamis et al. 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from attrs import evolve, frozen

from everlog.core.classify.classes import (
    QueryClass,
    classify,
    is_free_connex,
    is_q_hierarchical,
    loomis_whitney,
)
from everlog.core.classify.covers import agm_exponent
from everlog.core.classify.decompositions import Decomposition
from everlog.core.classify.multivariate import MultivariateWidth, multivariate_width
from everlog.core.classify.query import Query, query_of
from everlog.core.classify.widths import Width, fractional_hypertree_width, free_connex_width
from everlog.core.engine.planning.existence import spread_through
from everlog.core.engine.planning.plan import (
    BEST,
    CLASSES,
    FLOW,
    GROWING,
    ORDERED,
    RECOMPUTE,
    Plan,
    PlannedUnit,
    wanted_of,
)
from everlog.core.engine.planning.systems import systems
from everlog.core.engine.planning.told_rules import Told, is_made
from everlog.core.engine.planning.view_rules import SEARCHED, VIEW, counted_order
from everlog.core.joins.exponents import (
    growing_exponent,
    growing_refuge_of,
    largest_cover,
    refuge_of,
    search_exponent,
)
from everlog.core.joins.join_strategies import (
    AUTO,
    CALIBRATED,
    DELTA,
    FACTORIZED,
    GENERATIONS,
    HEAVY_LIGHT,
    JOINS,
    NAIVE,
    VIEW_TREE,
)
from everlog.core.joins.strategy_choice import (
    JoinChoice,
    above_the_join,
)
from everlog.core.joins.untold import Shown, match_exponent, untold_exponent
from everlog.core.joins.variable_orders import OrderNode, variable_order
from everlog.core.program import Aggregate, Atom, Negation, Rule, atoms_of, variables_of
from everlog.core.program.containment import Covering
from everlog.core.program.shown import shown_rule

MOST_ATOMS = 200  # of a body that is classified
UNBOUNDED = "follows the facts whose proof breaks"
BEST_FIRST = "visits the keys that change, and the rules from and to them, in the order of values"
FLOWING = "follows the facts that change, and the cycles that a step opens or closes"
_RECURSIVE = {
    FLOW: FLOWING,
    BEST: BEST_FIRST,
    GROWING: "follows the facts that change; what depended on a loss is derived again",
    CLASSES: "follows the classes that it merges or splits",
    RECOMPUTE: "computes the relation again",
}


@frozen
class Promise:
    """What one update costs: a power of D or N, on which conditions, and who proved it."""

    exponent: Fraction
    of: str = "D"
    amortized: bool = False
    logarithms: bool = False
    source: str = ""
    told: bool = True  # whether each match is a fact that changes; else matches are in the exponent
    searches: bool = False  # whether it searches in an order

    def __str__(self) -> str:
        """
        >>> print(Promise(Fraction(1, 2), amortized=True, logarithms=True))
        Õ(D^1/2) amortized
        """
        return self.power + (" amortized" if self.amortized else "")

    @property
    def power(self) -> str:
        if self.searches and not self.exponent:
            return f"O(log {self.of})"
        return power("Õ" if self.logarithms and self.exponent < 1 else "O", self.of, self.exponent)

    def with_exponent(self, exponent: Fraction) -> Promise:
        """At least this exponent; what is proved of a smaller one does not matter then."""
        if exponent <= self.exponent:
            return self
        return Promise(exponent, self.of, self.amortized, source="each match is a step", told=False)


_SOURCES = {
    GENERATIONS: "Theorem 4.4",
    HEAVY_LIGHT: "Kara et al. 2020",
    CALIBRATED: "Wang et al. 2023",
    VIEW_TREE: "Berkholz et al. 2017",
    FACTORIZED: "Yannakakis 1981",
}


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
    wanted: Shown  # what it asks the join for
    in_use: JoinChoice
    told: Told
    parts: tuple[RuleCost, ...] = ()  # of the auxiliary rules that it is run with
    shown: Rule | None = None  # the rule as it was written, where it is run in another form
    coverings: tuple[Covering, ...] = ()  # what it reads instead of parts of its body
    looks_up: tuple[frozenset[str], ...] = ()  # the keys of best values that it looks up

    @property
    def order(self) -> tuple[OrderNode, ...]:
        """The variable order of its view tree, if it is hierarchical."""
        return variable_order(self.query) if self.join_class is QueryClass.HIERARCHICAL else ()

    @property
    def above(self) -> tuple[str, ...]:
        """What stands above the join."""
        return tuple(map(self.told.literal, above_the_join(self.rule)))

    @property
    def all_parts(self) -> tuple[RuleCost, ...]:
        """The auxiliary rules that it is run with, and those that they are run with."""
        found = {inner.rule.name: inner for part in self.parts for inner in (part, *part.all_parts)}
        return tuple(found.values())

    @property
    def text(self) -> str:
        """The rule as it was written; of an auxiliary rule what it holds."""
        if is_made(self.rule.head.relation):
            return self.told.part(self.rule)
        return (self.shown or self.rule).written

    @property
    def strategies(self) -> dict[str, str]:
        """The strategy for facts that only come, and for facts that come and go."""
        if self.query_class == "recursive" or self.in_use.strategy not in JOINS:
            return {"insert_only": self.in_use.strategy, "insert_delete": self.in_use.strategy}
        if self.planned == AUTO:
            growing = growing_refuge_of(self.query, self.wanted)
            return {"insert_only": growing, "insert_delete": refuge_of(self.query, self.wanted)}
        return {"insert_only": self.planned, "insert_delete": self.planned}

    @property
    def planned(self) -> str:
        """The strategy that was planned: a rule that moved is still one of `auto`."""
        return AUTO if self.in_use.moves else self.in_use.strategy

    @property
    def promise(self) -> Promise | None:
        """What one update costs with the strategy in use; None where nothing is promised."""
        if self.in_use.strategy == ORDERED:  # a search; the intervals that change are its `spread`
            return Promise(Fraction(0), searches=True)
        if self.in_use.strategy == SEARCHED:
            return Promise(Fraction(0))
        if self.in_use.strategy == VIEW and (counted := counted_order(self.query)) is not None:
            return Promise(counted.update)
        if self.query_class == "recursive" or self.in_use.strategy not in JOINS:
            return None
        own = self._own
        scopes = [frozenset(atom.variables) for atom in self.query.atoms]
        for key in self.looks_up:  # a value that changes is a change above the join: a delta rule
            own = own.with_exponent(Fraction(largest_cover([scope - key for scope in scopes])))
        for part in self.parts:
            inside = part.promise
            if inside is None:
                return None
            through = spread_through(own.exponent, part.spread, scopes)
            own = own.with_exponent(max(inside.exponent, through))
            own = evolve(own, amortized=own.amortized or inside.amortized)
        return own

    @property
    def _own(self) -> Promise:
        """Without the auxiliary rules."""
        planned = self.planned
        if len(self.query.atoms) < 2:
            return Promise(Fraction(0))
        if len(self.query.atoms) > MOST_ATOMS:
            return Promise(Fraction(len(self.query.atoms)))
        if planned == CALIBRATED and self.in_use.why != "asked for":
            return self.insert_only
        if planned == NAIVE:
            return Promise(agm_exponent(self.query), told=False)
        strategy = refuge_of(self.query, self.wanted) if planned == AUTO else planned
        matches = untold_exponent(strategy, self.query, self.wanted)
        search = search_exponent(strategy, self.query)
        if strategy == DELTA and matches == 0 and self._meets_answers_only:
            search = Fraction(0)
        found = Promise(
            search,
            amortized=planned == AUTO or strategy in (GENERATIONS, HEAVY_LIGHT),
            logarithms=strategy == GENERATIONS,
            source="" if strategy == VIEW_TREE and search else _SOURCES.get(strategy, ""),
            told=not matches or (JOINS[strategy].totals and matches <= search),
        )
        return found.with_exponent(matches)

    @property
    def _meets_answers_only(self) -> bool:
        """Delta between two atoms, whose indexes are the view tree."""
        return self.planned == DELTA and self.in_use.why.startswith("hierarchical")

    @property
    def spread(self) -> Fraction:
        """How many facts of its head one row can change, as a power of D."""
        if len(self.query.atoms) < 2 or len(self.query.atoms) > MOST_ATOMS:
            return Fraction(0)
        return match_exponent(self.query, self.query.free)

    @property
    def insert_only(self) -> Promise:
        """What one insert costs, as long as no fact goes."""
        growing = growing_refuge_of(self.query, self.wanted)
        if self.planned == AUTO and growing != CALIBRATED and self.promise is not None:
            return self.promise
        own = Promise(Fraction(0), "N", True, source="Theorem 4.1")
        if len(self.query.atoms) > 1:
            own = Promise(self.width.value - 1, "N", True, source="Theorem 4.1")
            own = own.with_exponent(growing_exponent(self.query, self.wanted))
        for part in self.parts:
            own = own.with_exponent(part.insert_only.exponent)
        return own

    @property
    def update_cost(self) -> dict[str, str]:
        """What one update costs, when facts only come and when they come and go."""
        promise = self.promise
        if promise is None:
            return {"insert_only": self.cost_in_use, "insert_delete": self.cost_in_use}
        only = self.insert_only if self._is_served_growing else promise
        return {"insert_only": only.power, "insert_delete": promise.power}

    @property
    def _is_served_growing(self) -> bool:
        """Whether inserts alone cost what `insert_only` says."""
        return self.planned in (AUTO, CALIBRATED, VIEW_TREE) or self._meets_answers_only

    @property
    def cost_in_use(self) -> str:
        """What one update costs with the strategy that is in use, in the worst case."""
        if self.promise is not None:
            return str(self.promise)
        if self.in_use.strategy in systems():
            return systems()[self.in_use.strategy].described.cost
        if self.query_class != "recursive":
            return "no promise: computed again"
        return _RECURSIVE.get(self.in_use.strategy, UNBOUNDED)

    def changes_above(self) -> Iterator[tuple[str, str]]:
        """The negated and aggregated relations, each with what one row of it costs."""
        scopes = [frozenset(atom.variables) for atom in self.query.atoms]
        for literal in self.rule.body:
            if isinstance(literal, Negation | Aggregate) and len(scopes) <= MOST_ATOMS:
                fixed = {v.name for v in literal.outer} if isinstance(literal, Aggregate) else set()
                for atom, _ in atoms_of((literal,)) if isinstance(literal, Negation) else ():
                    fixed |= {v.name for arg in atom.args for v in variables_of(arg)}
                yield (
                    self.told.literal(literal),
                    power("O", "D", Fraction(largest_cover([s - fixed for s in scopes]))),
                )

    def to_json(self) -> dict[str, object]:
        """As `everlog explain --json` has it: see docs/costs.md."""
        rule = self.shown or self.rule
        small = len(self.query.atoms) <= MOST_ATOMS
        return {
            "rule": self.text,
            "name": rule.name,
            "head": rule.head.relation,
            "file": rule.origin.file,
            "line": rule.origin.line,
            "class": self.query_class,
            "reason": self.reason,
            "join": {
                "class": str(self.join_class),
                "atoms": [
                    {"relation": a.relation, "variables": list(a.variables), "text": str(a)}
                    for a in self.query.atoms
                ],
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
            "in_use": self._in_use_json(),
            "reads": [each.to_json() for each in self.coverings],
            "decomposition": decomposition_json(self.query, self.width.decomposition),
            "variable_order": [order_json(node) for node in self.order],
        }

    def _in_use_json(self) -> dict[str, object]:
        promise = self.promise
        return {
            "strategy": self.in_use.strategy,
            "why": self.in_use.why,
            "update_cost": self.cost_in_use,
            "exponent": None if promise is None else str(promise.exponent),
            "of": None if promise is None else promise.of,
            "amortized": promise is not None and promise.amortized,
            "source": "" if promise is None else promise.source,
            "moves": list(self.in_use.moves),
            "parts": [
                {
                    "rule": part.text,
                    "strategy": part.in_use.strategy,
                    "why": part.in_use.why,
                    "update_cost": part.cost_in_use,
                    "moves": list(part.in_use.moves),
                }
                for part in self.all_parts
                if len(part.query.atoms) > 1
            ],
        }


def rule_costs(plan: Plan, moved: Mapping[str, JoinChoice] | None = None) -> Iterator[RuleCost]:
    """Every rule that was written, in the order of the text."""
    costs = Costs(plan, moved or {})
    for rule in plan.written.values():
        yield costs.of(rule.name, rule)


class Costs:
    """The costs of the rules of a plan.  `moved` has the strategies of rules that moved."""

    def __init__(self, plan: Plan, moved: Mapping[str, JoinChoice]) -> None:
        self.plan, self.moved, self.told = plan, moved, Told.of(plan)
        self.home = {rule.name: unit for unit in plan.units for rule in unit.unit.rules}
        self.run = {rule.name: rule for unit in plan.units for rule in unit.unit.rules}
        self.auxiliary: dict[str, list[Rule]] = {}
        for name, rule in self.run.items():
            if name not in plan.written:
                self.auxiliary.setdefault(rule.head.relation, []).append(rule)

    def of(self, name: str, shown: Rule | None = None) -> RuleCost:
        """The cost of a rule as it is run; `shown` is the rule to tell about, if it is another."""
        return self._of(name, shown, frozenset())

    def _of(self, name: str, shown: Rule | None, above: frozenset[str]) -> RuleCost:
        unit, run = self.home[name], self.run[name]
        read = dict.fromkeys(atom.relation for atom, _ in atoms_of(run.body))
        coverings = self.plan.coverings.get(name, ())
        instead = [self.run[each.rule.name] for each in coverings if each.rule.name in self.run]
        made = [part for relation in read for part in self.auxiliary.get(relation, ())]
        parts = tuple(
            self._of(part.name, None, above | {name})
            for part in dict.fromkeys((*instead, *made))
            if part.name not in above and not self.home[part.name].unit.recursive
        )
        shown = shown or self.plan.written.get(name)
        cost = rule_cost(run, unit, self.told, parts, self.moved.get(name))
        return evolve(cost, shown=shown, coverings=coverings)


def rule_cost(
    rule: Rule,
    unit: PlannedUnit,
    told: Told,
    parts: tuple[RuleCost, ...] = (),
    moved: JoinChoice | None = None,
) -> RuleCost:
    want = wanted_of(shown_rule(told.joined(rule)), unit.group)
    rule, query = want.rule, told.query(query_of(want.rule))
    best = [x for x in rule.body if isinstance(x, Atom) and x.relation in told.best]
    looks_up = tuple(frozenset(v.name for arg in x.args for v in variables_of(arg)) for x in best)
    if len(query.atoms) > MOST_ATOMS:
        return _unclassified(rule, query, unit, told)
    join_class, reason = classify(query)
    query_class = str(join_class)
    in_use = moved or unit.joins.get(rule.name) or JoinChoice(unit.strategy, unit.why)
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
        want.shown,
        in_use,
        told,
        parts,
        looks_up=looks_up,
    )


def _unclassified(rule: Rule, query: Query, unit: PlannedUnit, told: Told) -> RuleCost:
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
        Shown(frozenset(query.variables)),
        unit.joins.get(rule.name) or JoinChoice(unit.strategy, unit.why),
        told,
    )


def power(order: str, of: str, exponent: Fraction) -> str:
    """
    >>> power("Õ", "D", Fraction(1, 2)), power("O", "N", Fraction(0)), power("O", "D", Fraction(1))
    ('Õ(D^1/2)', 'O(1)', 'O(D)')
    """
    if not exponent:
        return "O(1)"
    return f"{order}({of})" if exponent == 1 else f"{order}({of}^{exponent})"


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────


def decomposition_json(query: Query, decomposition: Decomposition) -> dict[str, object]:
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


def order_json(node: OrderNode) -> dict[str, object]:
    return {"variables": list(node.variables), "children": [order_json(child) for child in node.children]}

"""The table of strategies for joins: how to make a view, and which queries it serves.

To add a strategy, write a file with a view, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from everlog.core.classify.decompositions import join_tree
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width
from everlog.core.joins.averaged import Averaged, FloatTotals
from everlog.core.joins.calibrated import Calibrated
from everlog.core.joins.code import MOST_LOOPS
from everlog.core.joins.factorized import Factorized
from everlog.core.joins.first_order import FirstOrder
from everlog.core.joins.generations import Generations
from everlog.core.joins.heavy_light import NO_SPLITS, HeavyLight
from everlog.core.joins.recomputed import Recomputed
from everlog.core.joins.splits import split_exponent
from everlog.core.joins.view import Asked, CannotServe, JoinView
from everlog.core.joins.view_tree import ViewTree

NAIVE, DELTA, VIEW_TREE, CALIBRATED = "recompute", "delta", "view_tree", "calibrated"
GENERATIONS, AUTO, HEAVY_LIGHT, FACTORIZED = "generations", "auto", "heavy_light", "factorized"


@frozen
class JoinStrategy:
    """One strategy: `make` makes a view, `about` says what it keeps.

    A view with `totals` counts hidden variables by totals, and does not read their rows.
    """

    make: Callable[[Asked], JoinView]
    about: str
    most_atoms: int = 1000
    serves: Callable[[Query], bool] | None = None
    totals: bool = False
    too_many: str = ""  # why more atoms are too many
    step: int = 60  # units of work (core.engine.stepping.work) that a step of the view takes

    def refusal(self, query: Query) -> str:
        """Why the strategy does not serve a query; nothing if it does."""
        if len(query.variables) >= MOST_LOOPS:
            return f"the body joins {MOST_LOOPS} variables or more"
        if len(query.atoms) > self.most_atoms:
            return f"the body joins more than {self.most_atoms} atoms{self.too_many}"
        if self.serves is not None and not self.serves(query):
            return NO_SPLITS
        return ""


def _calibrated(asked: Asked) -> JoinView:
    tree = join_tree(asked.query)  # of an acyclic query: then this is CROWN
    return Calibrated(asked, tree or fractional_hypertree_width(asked.query).decomposition)


JOINS: Mapping[str, JoinStrategy] = {
    NAIVE: JoinStrategy(Recomputed, "nothing: everything is evaluated again"),
    DELTA: JoinStrategy(FirstOrder, "indexes; what is left of the body is joined for each change"),
    VIEW_TREE: JoinStrategy(ViewTree, "counts along a variable order", totals=True, step=20),
    CALIBRATED: JoinStrategy(_calibrated, "bags of an optimal decomposition, calibrated both ways", step=30),
    GENERATIONS: JoinStrategy(
        Generations,
        "rows by age, and what the rest of the body is for each",
        most_atoms=6,
        too_many=", whose orders by age would be too many",
        step=180,
    ),
    HEAVY_LIGHT: JoinStrategy(
        HeavyLight,
        "a view tree for each class of values by their degree",
        serves=lambda query: split_exponent(query) is not None,
        totals=True,
        step=20,
    ),
    FACTORIZED: JoinStrategy(
        Factorized,
        "indexes; what is left of the body is searched along a tree, nothing twice",
        most_atoms=40,
        step=40,
    ),
    AUTO: JoinStrategy(FirstOrder, "as delta, until its work has paid for another view: see core.engine.watch"),
}


def view_of(strategy: str, asked: Asked) -> JoinView:
    """A new, empty view; CannotServe if the strategy does not serve the query.

    >>> view = view_of("view_tree", Asked.full(Query.of("R(a, b)", "S(a, c)")))
    >>> view.insert(0, (1, 2)), view.insert(1, (1, 3)), list(view.delta(1, (1, 3)))
    (True, True, [((1, 2, 3), 1)])
    """
    refusal = JOINS[strategy].refusal(asked.query)
    if refusal:
        raise CannotServe(refusal)
    make = JOINS[strategy].make
    assert not (asked.summed or asked.averaged) or JOINS[strategy].totals, "only totals are summed"
    if asked.averaged:
        return FloatTotals(asked, make) if asked.floats else Averaged(asked, make)
    return make(asked)

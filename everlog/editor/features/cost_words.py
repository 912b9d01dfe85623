"""What an update of a rule costs: a few words beside the rule, and a paragraph when one hovers."""

from __future__ import annotations

from fractions import Fraction

from everlog.core.engine.explain import cost_lines
from everlog.core.engine.planning.costs import FLOWING, RuleCost

_ROOTS = {2: "the square root", 3: "the cube root"}


def label(cost: RuleCost) -> str:
    """The promised cost in one short phrase, for the end of a line."""
    if cost.promise is not None:
        return f"{cost.promise}"
    if cost.query_class == "recursive":
        return "recursive: follows the change" if cost.cost_in_use == FLOWING else "recursive: no promise"
    return "no promise: computed again"


def sentence(cost: RuleCost) -> str:
    """The cost of one update in plain words.

    D is the size of the joined relations, N the number of inserts so far.
    """
    promise = cost.promise
    if promise is None:
        return f"One update {cost.cost_in_use}." if cost.query_class == "recursive" else "Computed again."
    size = "the joined relations" if promise.of == "D" else "all inserts so far"
    rest = "plus the facts that change" if promise.told else "with every match of the join that changes"
    often = " on average over many updates" if promise.amortized else ""
    return f"One update takes {_of(promise.exponent, size)}{often}, {rest}."


def _of(exponent: Fraction, size: str) -> str:
    """
    >>> _of(Fraction(0), "D"), _of(Fraction(1, 2), "D")
    ('constant time', 'time like the square root of D')
    >>> _of(Fraction(1), "D"), _of(Fraction(3, 2), "D")
    ('time in proportion to D', 'time like D to the power 3/2')
    """
    if not exponent:
        return "constant time"
    if exponent == 1:
        return f"time in proportion to {size}"
    if exponent.numerator == 1 and exponent.denominator in _ROOTS:
        return f"time like {_ROOTS[exponent.denominator]} of {size}"
    return f"time like {size} to the power {exponent}"


def paragraph(cost: RuleCost) -> str:
    """Class and cost of a rule in Markdown: words first, then what `explain` prints."""
    rule = cost.shown or cost.rule
    details = "\n".join(line.removeprefix("  ") for line in cost_lines(cost))
    return f"**{rule.name}**: {sentence(cost)}\n\n```text\n{details}\n```"

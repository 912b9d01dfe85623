"""Which recursive units the compiled machine keeps, by ranks and counts of derivations.

It finds every derivation of rules that are joins, negations, comparisons and arithmetic that cannot
fail.  Python keeps the others in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from everlog.core import program as p
from everlog.core.native.availability import why_not
from everlog.core.native.coverage import uncovered
from everlog.core.program import Program
from everlog.core.program.bodies import rule_may_fail


def why_not_ranked(program: Program, rules: Sequence[p.Rule], shared: Set[str]) -> str:
    """Why the compiled machine does not keep a unit; empty if it does.

    Relations in `shared` have sets that many keys share: as rows they would be far larger.
    """
    reads = sorted({atom.relation for rule in rules for atom, _ in p.atoms_of(rule.body)})
    for name in reads:
        if name in shared or (name in program.relations and program.relations[name].equivalence):
            return f"it reads {name}, whose keys share sets"
    return why_not() or next(filter(None, map(_unranked, rules)), "")


def _unranked(rule: p.Rule) -> str:
    """Why ranks do not keep a rule; empty if they do."""
    if any(isinstance(literal, p.Aggregate) for literal in rule.body):
        return f"{rule.name} has an aggregate"
    if any(isinstance(literal, p.Range) for literal in rule.body):
        return f"{rule.name} has a range"
    return f"{rule.name} computes what some values do not have" if rule_may_fail(rule) else uncovered(rule)

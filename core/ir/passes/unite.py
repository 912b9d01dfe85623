"""A loop whose variable only leads into an index becomes a union of sets.

Before, for `reach(x, z) :- Δreach(x, y), edge(y, z).`:

    keys Δ reach(x, …) as _values1
      each y in _values1
        entry _S2 = edge(=y, …)
        add reach(x, z), z in _S2

After:

    keys Δ reach(x, …) as _values1
      union _S2 = edge(y, …), each y in _values1
      add reach(x, z), z in _S2

The union is made in C.  A value is in it once where the loop would find several derivations, so
this is for plans that only want to know which facts there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from everlog.core.ir.operations import Index, Probe, Scan
from everlog.core.ir.passes.mentioned import mentions, only_variable
from everlog.core.ir.set_operations import Each, Entry, Local, SetOperation, SetPlan, Union
from everlog.core.program import Range


def unite(plan: SetPlan) -> SetPlan:
    if plan.use.keeps_all:
        return plan
    done: list[SetOperation] = []
    number = plan.temporaries
    for place, operation in enumerate(plan.operations):
        over, after = done[-1] if done else None, plan.operations[place + 1 :]
        if isinstance(over, Scan | Probe | Each):
            found = _united(over, operation, after, Local(f"_union{number + 1}"))
            if found:
                done[-1:] = found
                number += 1
                continue
        done.append(operation)
    return evolve(plan, operations=tuple(done), temporaries=number)


def _united(
    over: Scan | Probe | Each, operation: SetOperation, after: Sequence[SetOperation], name: Local
) -> list[SetOperation]:
    """The operations instead of a loop and what it leads into; none if both must stay."""
    variable = only_variable(over)
    if variable is None or (isinstance(over, Each) and isinstance(over.values, Range)):
        return []
    match operation:
        case Entry(values, index, ((_, key),)) if key == variable and not mentions(after, [variable]):
            return [Union(values, index, _not_cut_to(over, index))]
        case Probe(source, ((column, key),), binds, cut) if key == variable and not mentions(after, [variable]):
            index = Index(source, (column,), tuple(column for column, _ in binds))
            loop = Each(tuple(variable for _, variable in binds), name, cut)
            return [Union(name, index, _not_cut_to(over, index), leads_into_loop=True), loop]
        case _:
            return []


def _not_cut_to(loop: Scan | Probe | Each, index: Index) -> Scan | Probe | Each:
    """The union skips keys that an index has not, so the loop need not."""
    return evolve(loop, cut=tuple(other for other in loop.cut if other != index))

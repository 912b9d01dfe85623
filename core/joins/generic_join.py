"""What is left of a join when some variables are fixed, as nested loops: worst-case optimal, written as Python.

Variables are bound one after the other.  For each, every input that has it offers the values that go with
what is bound so far, and the smallest offer is walked while the others are looked up (`&` on the keys of
dicts, in C).  No pair of inputs is ever joined by itself, so the work stays within the AGM bound.

Reads: core.joins.code, core.joins.inputs, core.joins.leapfrog.  Read by: the views.
Source: Ngo, Ré, Rudra, "Skew strikes back", SIGMOD Record 42(4), 2013; Lemma 5.1 of Abo Khamis et al. 2024.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from everlog.core.joins.code import Code, key_text, local, row_text
from everlog.core.joins.inputs import Input
from everlog.core.joins.leapfrog import Bound, leapfrog


def binding_order(inputs: Sequence[Input], bound: Collection[str]) -> list[str]:
    """The variables that are not bound, those first that most inputs with bound variables share.

    >>> binding_order([Input("bc"), Input("cd")], {"b"})
    ['c', 'd']
    """
    known = set(bound)
    left = list(dict.fromkeys(v for source in inputs for v in source.schema if v not in known))
    order = []
    while left:
        best = max(left, key=lambda v: _ties(v, inputs, known))
        left.remove(best)
        known.add(best)
        order.append(best)
    return order


def _ties(variable: str, inputs: Sequence[Input], known: set[str]) -> tuple[int, int]:
    having = [source for source in inputs if variable in source.schema]
    return sum(not known.isdisjoint(source.schema) for source in having), len(having)


def write_join(
    code: Code, inputs: Sequence[Input], bound: set[str], ranges: Sequence[Bound] = (), counting: bool = False
) -> None:
    """Loops over all ways to extend the bound variables to rows of every input; `bound` grows to all of them.

    Inputs all of whose variables are bound are looked up first.
    """
    for source in inputs:
        if bound.issuperset(source.schema):
            if counting:
                code.line("_count[0] += 1")
            code.test(f"{row_text(map(local, source.schema))} in {code.name('rows', source.rows)}")
    bounds = [b for given in ranges for b in ([given] if given.constant else [given, given.turned()])]
    for b in ranges:  # between what is bound from the start: a row is in bounds however it was reached
        if b.variable in bound and (b.constant or b.other in bound):
            code.test(f"{local(b.variable)} {b.op} {_limit(code, b)}")
    for variable in binding_order(inputs, bound):
        having = [source for source in inputs if variable in source.schema]
        here = [b for b in bounds if b.variable == variable and (b.constant or b.other in bound)]
        offers = []
        for number, source in enumerate(having):
            key = [v for v in source.schema if v in bound]
            entries = code.name("index", source.index(key, variable, ordered=bool(here)))
            offer = f"{local(variable)}_{number}"
            code.line(f"{offer} = {entries}.get({key_text(map(local, key))})")
            code.test(offer)
            offers.append(offer)
        if counting:
            code.line(f"_count[0] += 1 + min(map(len, ({', '.join(offers)},)))")
        if here:
            limits = ", ".join(f"({b.op!r}, {_limit(code, b)})" for b in here)
            code.scope["_leapfrog"] = leapfrog
            code.loop(local(variable), f"_leapfrog(({', '.join(offers)},), ({limits},))")
        elif len(offers) == 1:
            code.loop(local(variable), offers[0])
        elif len(offers) == 2:
            code.loop(local(variable), f"{offers[0]}.keys() & {offers[1]}.keys()")
        else:
            code.scope["_common"] = common_keys
            code.loop(local(variable), f"_common({', '.join(offers)})")
        bound.add(variable)


def _limit(code: Code, bound: Bound) -> str:
    return code.name("limit", bound.other) if bound.constant else local(bound.other)


def common_keys(*offers: dict[object, int]) -> set[object]:
    """The keys that all have.  Cost: that of the smallest.

    >>> sorted(common_keys({1: 1, 2: 1, 3: 1}, {2: 1, 3: 1}, {3: 1, 2: 1, 5: 1}))
    [2, 3]
    """
    ordered = sorted(offers, key=len)
    found: set[object] = ordered[0].keys() & ordered[1].keys()
    for other in ordered[2:]:
        found &= other.keys()
    return found

"""A worst-case optimal join of what is left when some variables are fixed, as Python.

Variables are bound one after the other.  For each variable, every input that has it offers the
values that fit what is bound so far.  A loop runs through the smallest offer and looks the values
up in the others (`&` on the keys of dicts, in C).  No two inputs are joined by themselves, so the
work stays within the AGM bound.

Source: Ngo, Ré, Rudra, "Skew strikes back", SIGMOD Record 42(4), 2013; Lemma 5.1 of Abo Khamis et
al. 2024.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from everlog.core.ir.python_text import key_text, tuple_text
from everlog.core.joins.code import Code, local
from everlog.core.joins.leapfrog import Bound, leapfrog
from everlog.core.joins.tries import Input


def binding_order(schemas: Sequence[Sequence[str]], bound: Collection[str], wanted: Iterable[str]) -> list[str]:
    """The wanted variables; first those that most inputs share with bound variables.

    >>> binding_order(["bc", "cd"], {"b"}, "dc")
    ['c', 'd']
    """
    known = set(bound)
    left = list(wanted)
    order = []
    while left:
        best = max(left, key=lambda v: _ties(v, schemas, known))
        left.remove(best)
        known.add(best)
        order.append(best)
    return order


def _ties(variable: str, schemas: Sequence[Sequence[str]], known: set[str]) -> tuple[int, int]:
    having = [schema for schema in schemas if variable in schema]
    return sum(not known.isdisjoint(schema) for schema in having), len(having)


def write_offers(code: Code, variable: str, offers: Sequence[str], counting: bool) -> list[str]:
    """Name the values that each input offers for a variable; skip where one offers none."""
    names = [f"{local(variable)}_{number}" for number in range(len(offers))]
    for name, offer in zip(names, offers, strict=True):
        code.line(f"{name} = {offer}")
        code.test(name)
    if counting:
        code.line(f"_count[0] += 1 + min(map(len, ({', '.join(names)},)))")
    return names


def loop_over_common(code: Code, variable: str, names: Sequence[str]) -> None:
    """Begin a loop over the values that all offers have."""
    if len(names) == 1:
        code.loop(local(variable), names[0])
    elif len(names) == 2:
        code.loop(local(variable), f"{names[0]}.keys() & {names[1]}.keys()")
    else:
        code.scope["_common"] = common_keys
        code.loop(local(variable), f"_common({', '.join(names)})")


def write_join(
    code: Code, inputs: Sequence[Input], bound: set[str], ranges: Sequence[Bound] = (), counting: bool = False
) -> None:
    """Begin loops over all ways to extend the bound variables to rows of every input.

    `bound` grows by the variables of the loops.  Inputs without a free variable are tested first.
    """
    for source in inputs:
        if bound.issuperset(source.schema):
            if counting:
                code.line("_count[0] += 1")
            code.test(f"{tuple_text(map(local, source.schema))} in {code.name('rows', source.rows)}")
    bounds = [b for given in ranges for b in ([given] if given.constant else [given, given.turned()])]
    for b in ranges:  # of variables that are bound from the start, too: each row is tested, however it was found
        if b.variable in bound and (b.constant or b.other in bound):
            code.test(f"{local(b.variable)} {b.op} {_limit(code, b)}")
    left = dict.fromkeys(v for source in inputs for v in source.schema if v not in bound)
    for variable in binding_order([source.schema for source in inputs], bound, left):
        here = [b for b in bounds if b.variable == variable and (b.constant or b.other in bound)]
        offers = []
        for source in inputs:
            if variable in source.schema:
                key = [v for v in source.schema if v in bound]
                entries = code.name("index", source.index(key, variable, ordered=bool(here)))
                offers.append(f"{entries}.get({key_text(map(local, key))})")
        names = write_offers(code, variable, offers, counting)
        if here:
            limits = ", ".join(f"({b.op!r}, {_limit(code, b)})" for b in here)
            code.scope["_leapfrog"] = leapfrog
            code.loop(local(variable), f"_leapfrog(({', '.join(names)},), ({limits},))")
        else:
            loop_over_common(code, variable, names)
        bound.add(variable)


def _limit(code: Code, bound: Bound) -> str:
    return code.name("limit", bound.other) if bound.constant else local(bound.other)


def common_keys(*offers: dict[object, int]) -> set[object]:
    """The keys that all offers have.  Cost: that of the smallest.

    >>> sorted(common_keys({1: 1, 2: 1, 3: 1}, {2: 1, 3: 1}, {3: 1, 2: 1, 5: 1}))
    [2, 3]
    """
    ordered = sorted(offers, key=len)
    found: set[object] = ordered[0].keys() & ordered[1].keys()
    for other in ordered[2:]:
        found &= other.keys()
    return found

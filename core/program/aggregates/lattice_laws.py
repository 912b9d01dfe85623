"""The laws of a lattice, tried on values.

`Lub` must be idempotent, commutative and associative: then a join does not depend on the order in
which facts are derived.  `Bottom` and `Top`, `Glb` and `Leq` must fit it, and a functor that takes
values of the lattice through a recursion must give more for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from everlog.core.program.dependencies import units
from everlog.core.program.functors import call_functor
from everlog.core.program.program import (
    Atom,
    Call,
    Constant,
    Functor,
    Lattice,
    Program,
    Rule,
    Value,
    Variable,
    calls_of,
)

MOST = 12  # values that are tried in triples


def broken_laws(lattice: Lattice, functors: Mapping[str, Functor], values: Sequence[Value]) -> Iterator[str]:
    """The laws that some values break, each with those values.

    >>> from everlog.core.program import Functor, Kind
    >>> minus = Functor("minus", (Kind.NUMBER,) * 2, Kind.NUMBER, lambda a, b: a - b)
    >>> next(broken_laws(Lattice("L", "minus"), {"minus": minus}, [1, 2]))
    '@minus is not idempotent: @minus(1, 1) is 0'
    """
    name = f"@{lattice.lub}"
    lub = _function(functors, lattice.lub)
    for a in values:
        if lub(a, a) != a:
            yield f"{name} is not idempotent: {name}({a!r}, {a!r}) is {lub(a, a)!r}"
        if lattice.bottom is not None and lub(lattice.bottom, a) != a:
            yield f"`Bottom` is not least: {name}({lattice.bottom!r}, {a!r}) is {lub(lattice.bottom, a)!r}"
        if lattice.top is not None and lub(lattice.top, a) != lattice.top:
            yield f"`Top` is not greatest: {name}({lattice.top!r}, {a!r}) is {lub(lattice.top, a)!r}"
    for a, b in product(values, repeat=2):
        if lub(a, b) != lub(b, a):
            yield f"{name} is not commutative: {name}({a!r}, {b!r}) is {lub(a, b)!r}, the other {lub(b, a)!r}"
        if lattice.glb:
            lower = _function(functors, lattice.glb)(a, b)
            if lub(a, lower) != a:
                yield f"@{lattice.glb}({a!r}, {b!r}) is {lower!r}, which is not below {a!r}"
        if lattice.leq and bool(_function(functors, lattice.leq)(a, b)) != (lub(a, b) == b):
            yield f"@{lattice.leq}({a!r}, {b!r}) does not say whether {name}({a!r}, {b!r}) is {b!r}"
    for a, b, c in product(values[:MOST], repeat=3):
        if lub(lub(a, b), c) != lub(a, lub(b, c)):
            yield f"{name} is not associative on {a!r}, {b!r}, {c!r}"


def broken_functors(program: Program, values: Mapping[str, Sequence[Value]]) -> Iterator[str]:
    """The functors in recursions that do not give more for more, on values of each lattice."""
    for unit in units(program):
        for rule in unit.rules:
            for relation, found in _values_of(program, rule, unit.relations).items():
                for call in calls_of(rule):
                    if call.name.startswith("@") and any(arg in found for arg in call.args):
                        yield from _broken_call(program, rule, call, found, values, relation)


def _values_of(program: Program, rule: Rule, unit: Sequence[str]) -> dict[str, dict[Variable, Lattice]]:
    """The variables of a rule that have lattice values of its own unit."""
    out: dict[str, dict[Variable, Lattice]] = {}
    for literal in rule.body:
        if isinstance(literal, Atom) and literal.relation in unit:
            for column, lattice in program.relations[literal.relation].lattices:
                arg = literal.args[column]
                if isinstance(arg, Variable):
                    out.setdefault(lattice.name, {})[arg] = lattice
    return out


def _broken_call(
    program: Program,
    rule: Rule,
    call: Call,
    found: Mapping[Variable, Lattice],
    values: Mapping[str, Sequence[Value]],
    lattice_name: str,
) -> Iterator[str]:
    """Try a call whose other arguments are constants, or values of the lattice as well."""
    result = _result(program, rule, call)
    if result is None or not all(isinstance(arg, Constant) or arg in found for arg in call.args):
        return
    function = _function(program.functors, call.name[1:])
    above = _function(program.functors, result.lub)
    tried = list(values.get(lattice_name, ()))[:MOST]
    for place, arg in enumerate(call.args):
        if not isinstance(arg, Variable):
            continue
        join = _function(program.functors, found[arg].lub)
        choices = [[a.value] if isinstance(a, Constant) else tried[:3] for a in call.args]
        for a, b in product(tried, repeat=2):
            choices[place] = [a]
            for args in product(*choices):
                more = (*args[:place], join(a, b), *args[place + 1 :])
                if above(function(*args), function(*more)) != function(*more):
                    yield f"{call.name} is not monotone: {call.name}{args} is not below {call.name}{more}"
                    return


def _result(program: Program, rule: Rule, call: Call) -> Lattice | None:
    """The lattice of the column of the head that a call is."""
    for column, lattice in program.relations[rule.head.relation].lattices:
        if rule.head.args[column] is call or rule.head.args[column] == call:
            return lattice
    return None


def _function(functors: Mapping[str, Functor], name: str) -> Callable[..., Value]:
    return lambda *args: call_functor(functors[name], args)

"""Which rules the compiled machine can run, and how it computes functors and comparisons.

Arithmetic and comparisons of numbers have an operation of the machine.  All other functors are
calls of the function that Python has for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everlog.core.program import Aggregate, Atom, Call, Kind, Literal, Range, Rule, Wildcard, calls_of
from everlog.core.program.aggregates.ordered_groups import ordered_aggregate

NUMBER, UNSIGNED, FLOAT, SYMBOL = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL

# The operation of a functor, by name and kind of its operands.
FUNCTORS: dict[tuple[str, Kind], str] = {
    ("/", NUMBER): "DIVIDE",
    ("/", UNSIGNED): "UNSIGNED_DIVIDE",
    ("%", NUMBER): "MODULO",
    ("%", UNSIGNED): "UNSIGNED_MODULO",
    ("bshr", NUMBER): "SHIFT_RIGHT",
    ("bshr", UNSIGNED): "UNSIGNED_SHIFT_RIGHT",
    ("+", FLOAT): "FLOAT_PLUS",
    ("-", FLOAT): "FLOAT_MINUS",
    ("*", FLOAT): "FLOAT_TIMES",
    ("/", FLOAT): "FLOAT_DIVIDE",
    ("neg", FLOAT): "FLOAT_NEGATE",
    ("min", NUMBER): "LEAST",
    ("max", NUMBER): "GREATEST",
    ("min", UNSIGNED): "UNSIGNED_LEAST",
    ("max", UNSIGNED): "UNSIGNED_GREATEST",
    ("min", FLOAT): "FLOAT_LEAST",
    ("max", FLOAT): "FLOAT_GREATEST",
    ("to_number", UNSIGNED): "MOVE",
    ("utoi", UNSIGNED): "MOVE",
    ("ord", UNSIGNED): "MOVE",
    ("ord", NUMBER): "MOVE",
    ("to_unsigned", NUMBER): "MOVE",
    ("itou", NUMBER): "MOVE",
    ("to_float", NUMBER): "TO_FLOAT",
    ("itof", NUMBER): "TO_FLOAT",
    ("to_float", UNSIGNED): "UNSIGNED_TO_FLOAT",
    ("utof", UNSIGNED): "UNSIGNED_TO_FLOAT",
    ("to_number", FLOAT): "TRUNCATE",
    ("ftoi", FLOAT): "TRUNCATE",
    ("to_unsigned", FLOAT): "UNSIGNED_TRUNCATE",
    ("ftou", FLOAT): "UNSIGNED_TRUNCATE",
}
for _kind in (NUMBER, UNSIGNED):
    FUNCTORS |= {
        ("+", _kind): "PLUS",
        ("-", _kind): "MINUS",
        ("*", _kind): "TIMES",
        ("neg", _kind): "NEGATE",
        ("band", _kind): "BIT_AND",
        ("bor", _kind): "BIT_OR",
        ("bxor", _kind): "BIT_XOR",
        ("bnot", _kind): "BIT_NOT",
        ("bshl", _kind): "SHIFT_LEFT",
        ("bshru", _kind): "UNSIGNED_SHIFT_RIGHT",
        ("land", _kind): "BOTH",
        ("lor", _kind): "EITHER",
        ("lxor", _kind): "ONE_OF",
        ("lnot", _kind): "NEITHER",
    }
for _kind, _name in ((NUMBER, "to_number"), (UNSIGNED, "to_unsigned"), (FLOAT, "to_float"), (SYMBOL, "to_string")):
    FUNCTORS[_name, _kind] = "MOVE"

# The operation of a comparison, and whether its sides are swapped.
COMPARED: dict[tuple[str, Kind], tuple[str, bool]] = {}
for _kind, _prefix in ((NUMBER, ""), (UNSIGNED, "UNSIGNED_"), (FLOAT, "FLOAT_")):
    COMPARED |= {
        ("<", _kind): (f"{_prefix}LESS", False),
        ("<=", _kind): (f"{_prefix}LESS_EQUAL", False),
        (">", _kind): (f"{_prefix}LESS", True),
        (">=", _kind): (f"{_prefix}LESS_EQUAL", True),
    }
for _kind in Kind:
    COMPARED["=", _kind] = "EQUAL", False
    COMPARED["!=", _kind] = "FLOAT_DIFFERENT" if _kind is FLOAT else "DIFFERENT", False

# How an aggregate takes in a value, by name and kind of the value.
FOLDS: dict[tuple[str, Kind], str] = {}
for _kind, _prefix in ((NUMBER, ""), (UNSIGNED, "UNSIGNED_"), (FLOAT, "FLOAT_"), (SYMBOL, "SYMBOL_")):
    FOLDS |= {
        ("count", _kind): "COUNTED",
        ("sum", _kind): "FLOATS" if _kind is FLOAT else "SUM",
        ("mean", _kind): f"{_prefix if _kind is UNSIGNED else ''}{'FLOATS' if _kind is FLOAT else 'NUMBERS'}",
        ("min", _kind): f"{_prefix}MIN",
        ("max", _kind): f"{_prefix}MAX",
    }


def uncovered(rule: Rule, named: bool = False) -> str:
    """Why a rule cannot run on the compiled machine; empty if it can.

    `named`: atoms of aggregates with wildcards will be replaced by relations without them
    (`core.evaluate.parts.grouped_bodies`).
    """
    return next(_reasons(rule, named), "")


def _reasons(rule: Rule, named: bool) -> Iterator[str]:
    for literal in _literals(rule.body):
        is_best = isinstance(literal, Aggregate) and literal.op in ("min", "max")
        if isinstance(literal, Aggregate) and not (named or is_best) and _has_wildcards(literal):
            yield f"{rule.name} counts what it does not name"
        if isinstance(literal, Aggregate) and ordered_aggregate(literal) is not None:
            yield f"{rule.name} aggregates over intervals, which are kept in order"
        if isinstance(literal, Range) and literal.kind is FLOAT:
            yield f"{rule.name} has a range of floats"
    for call in calls_of(rule):
        if _depends_on_order(call):
            yield f"{rule.name} uses the ordinals of symbols"
        if call.name == "as" and call.kind is FLOAT and call.operand is not FLOAT:
            yield f"{rule.name} makes floats of bits"
        if call.name == "autoinc":
            yield f"{rule.name} numbers its facts"


def _literals(body: Iterable[Literal]) -> Iterator[Literal]:
    """All literals, also those inside aggregates."""
    for literal in body:
        yield literal
        if isinstance(literal, Aggregate):
            yield from _literals(literal.body)


def _has_wildcards(aggregate: Aggregate) -> bool:
    """Whether an aggregate has wildcards: it counts rows that differ only there once."""
    return any(isinstance(arg, Wildcard) for x in aggregate.body if isinstance(x, Atom) for arg in x.args)


def _depends_on_order(call: Call) -> bool:
    """Whether a call reads ordinals of symbols, which are given in order of first use."""
    return call.operand is SYMBOL and (call.name == "ord" or (call.name == "as" and call.kind is not SYMBOL))

"""Terms and comparisons as Python expressions.

Constants, variables and the common operators are written out; everything else is a call of the
function in the table of functors.  Integer arithmetic is exact in Python, so a result is brought
back into 64 bits only where it left them.  A constant is an object of the scope, never text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count, product
from typing import Any

from everlog.core import program as p
from everlog.core.program import Call, Constant, Kind, Value, Variable, values
from everlog.core.program.aggregates.folded import folded
from everlog.core.program.bodies import may_fail
from everlog.core.program.functors import BUILTINS, COMPARISONS, as_kind, call_functor, range_values
from everlog.core.program.order import rank
from everlog.core.storage.shape import sets_of

_SYMBOLS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Expressions:
    """Writes expressions; `scope` collects the objects that they name."""

    def __init__(self, functors: Mapping[str, p.Functor]) -> None:
        self.functors = functors
        self.scope: dict[str, object] = dict(_SCOPE)
        self.constants: dict[str, Value] = {}  # those of the scope, for readers of the code
        self._names: dict[tuple[str, int], str] = {}
        self.walrus = 0
        self.numbers = count(1)

    def number(self) -> int:
        """A number that no other name of this function has."""
        return next(self.numbers)

    def term(self, term: p.Term, names: Mapping[Variable, str]) -> str:
        match term:
            case Variable():
                return names[term]
            case Constant(value=value):
                return self.constant(value)
            case Call(name, args, operand, kind):
                texts = [self.term(a, names) for a in args]
                if name in ("land", "lor") and any(map(may_fail, args)):  # Python's own leave arguments out
                    return f"{self.named('call', BUILTINS[name, operand].function)}({', '.join(texts)})"
                return self.call(name, texts, operand, kind)
            case _:
                raise AssertionError(f"no value: {term}")

    def constant(self, value: Value) -> str:
        name = self.named("c", value if value == value else values.NAN)
        self.constants[name] = value
        return name

    def call(self, name: str, args: list[str], operand: Kind, kind: Kind) -> str:
        if name.startswith("@"):
            functor = self.functors[name[1:]]
            return f"{self.named('functor', _bound(functor))}({', '.join(args)})"
        if name == "as":
            convert = self.named("convert", _converter(operand, kind))
            return f"{convert}({args[0]})"
        builtin = BUILTINS[name, operand]
        if name in ("min", "max") and len(args) == 1:
            return args[0]
        if not builtin.inline:
            return f"{self.named('call', builtin.function)}({', '.join(args)})"
        text = builtin.inline.format(*args)
        if not builtin.checked:
            return text
        self.walrus += 1
        value = f"_w{self.walrus}"
        return f"({value} if -0x8000000000000000 <= ({value} := {text}) <= 0x7FFFFFFFFFFFFFFF else _wrap({value}))"

    def total(self, literal: p.Aggregate) -> str:
        """The name of the function that makes a list of targets an aggregate's value."""
        if literal.start is None:
            return f"_total_{literal.op}_{literal.kind}"
        functor, start = self.functors[literal.op[1:]], literal.start.value
        return self.named("total", lambda found: folded(functor, start, found))

    def comparison(self, op: str, left: str, right: str, kind: Kind) -> str:
        if op in _SYMBOLS and not (op == "=" and kind is Kind.FLOAT):
            return f"{left} {_SYMBOLS[op]} {right}"
        return f"{self.named('compare', COMPARISONS[op])}({left}, {right})"

    def named(self, prefix: str, value: object) -> str:
        """The name of an object of the scope; the same object has the same name."""
        name = self._names.get((prefix, id(value)))
        if name is None:
            name = self._names[prefix, id(value)] = f"_{prefix}{len(self.scope)}"
            self.scope[name] = value
        return name


def _bound(functor: p.Functor) -> Callable[..., Value]:
    return lambda *args: call_functor(functor, args)


def _converter(source: Kind, target: Kind) -> Callable[[Value], Value]:
    return lambda value: as_kind(value, source, target)


# ── what an aggregate makes of the values it met ─────────────────────────────────────────────


def _mean(found: list[Any]) -> float | None:
    mean = values.float_sum([float(x) for x in found]) / len(found) if found else None
    return values.NAN if mean != mean else mean


def _extreme(choose: Callable[..., Any], kind: Kind) -> Callable[[list[Any]], Any]:
    if kind is Kind.FLOAT:  # NaN has a place in the order of `rank`, and none in Python's
        return lambda found: choose(found, key=rank) if found else None
    return lambda found: choose(found) if found else None


def _float_count(found: list[int]) -> float:
    return float(sum(found))


_SUMS: dict[Kind, Callable[[list[Any]], Any]] = {
    Kind.NUMBER: lambda found: values.wrap(sum(found)),
    Kind.UNSIGNED: lambda found: sum(found) & values.MASK,
    Kind.FLOAT: values.float_sum,
}
_SCOPE: dict[str, object] = {
    "_EMPTY": frozenset(),
    "_MISSING": object(),
    "_product": product,
    "_set": set,
    "_sum": sum,
    "_len": len,
    "_sets": sets_of,
    "_wrap": values.wrap,
    "_Error": values.NoValue,
    "_Failed": values.Failed,
    "_range": range_values,
}
for _kind in Kind:
    _SCOPE[f"_total_count_{_kind}"] = _float_count if _kind is Kind.FLOAT else sum
    _SCOPE[f"_total_sum_{_kind}"] = _SUMS.get(_kind)
    _SCOPE[f"_total_min_{_kind}"] = _extreme(min, _kind)
    _SCOPE[f"_total_max_{_kind}"] = _extreme(max, _kind)
    _SCOPE[f"_total_mean_{_kind}"] = _mean

"""The variables and sets that an operation mentions, and those that a loop binds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from attrs import fields, has

from everlog.core.ir.operations import Probe, Scan
from everlog.core.ir.set_operations import Each, Keys, Local, Loop, SetPlan
from everlog.core.program import Variable


def mentioned(part: object) -> Iterator[Variable | Local]:
    """Every variable and every named set in an operation, or in a tuple of them.

    Plans of aggregates are left out: what they need from outside, the aggregate has, too.
    """
    if isinstance(part, Variable | Local):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from mentioned(one)
    elif not isinstance(part, SetPlan):
        kind: Any = type(part)
        for name in _fields(kind):
            yield from mentioned(getattr(part, name))


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if has(kind) else ()


def mentions(parts: Iterable[object], names: Iterable[Variable | Local]) -> bool:
    """Whether some of the operations mention one of the names."""
    wanted = set(names)
    return any(name in wanted for part in parts for name in mentioned(part))


def bound_by(loop: Loop) -> list[Variable | Local]:
    """What a loop gives values to."""
    if isinstance(loop, Each):
        return [*loop.variables]
    names: list[Variable | Local] = [variable for _, variable in loop.binds]
    return [*names, loop.values] if isinstance(loop, Keys) else names


def only_variable(loop: Loop) -> Variable | None:
    """The variable of a loop over single values."""
    match loop:
        case Each((variable,)):
            return variable
        case Scan(columns=(_,), binds=((_, variable),)) | Probe(binds=((_, variable),)):
            return variable
        case _:
            return None

"""A plan as text: one operation a line, loops indented.

    path(x, z) :- path(x, y), edge(y, z).   Δ at body atom 1
      scan Δ path(x, y)
        probe edge(=y, z)
          add path(x, z)

`=y` is a value that the index looks up; `_` is a column that nothing reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from everlog.core.ir.operations import (
    Add,
    Binds,
    Compare,
    Count,
    Exists,
    Fold,
    Key,
    Let,
    Operation,
    Plan,
    Probe,
    Scan,
    Source,
    Unknown,
    Version,
    is_loop,
)
from everlog.core.program import Call, Comparison


def listing(plan: Plan) -> str:
    """The rule, and the plan below it."""
    title = str(plan.rule) + ("" if plan.delta is None else f"   Δ at body atom {plan.delta + 1}")
    return "\n".join([title, *_lines(plan.operations, 1)])


def _lines(operations: Iterable[Operation], depth: int) -> Iterator[str]:
    for operation in operations:
        yield "  " * depth + _line(operation)
        if isinstance(operation, Fold):
            yield from _lines(operation.body, depth + 2)
        depth += is_loop(operation)


def line_of(operation: Operation) -> str:
    """One operation, in one line."""
    return _line(operation)


def _line(operation: Operation) -> str:
    match operation:
        case Scan(source, binds):
            return f"scan {_read(source, (), binds)}"
        case Probe(source, key, binds):
            return f"probe {_read(source, key, binds)}"
        case Exists(source, key, negated):
            return f"{'absent' if negated else 'exists'} {_read(source, key, ())}"
        case Compare(op, left, right, kind):
            return f"test {Comparison(op, left, right, kind)}"
        case Let(target, "", args):
            return f"let {target} = {args[0]}"
        case Let(target, functor, args, operand, kind):
            return f"let {target} = {Call(functor, args, operand, kind)}"
        case Count(target, bounds, _, is_test):
            return f"{'test' if is_test else 'count'} {target} = range({', '.join(map(str, bounds))})"
        case Fold(target, op, value, outer):
            of = "" if value is None else f" {value}"
            each = f" for {', '.join(map(str, outer))}" if outer else ""
            return f"let {target} = {op}{of}{each} of"
        case Unknown(relation, args):
            return f"unless known {relation}({', '.join(map(str, args))})"
        case Add(relation, args, leave):
            loops = f", leave {leave} loop{'s' * (leave > 1)}" if leave else ""
            return f"add {relation}({', '.join(map(str, args))}){loops}"
        case _:
            assert_never(operation)


def _read(source: Source, key: Key, binds: Binds) -> str:
    columns = ["_"] * source.arity
    for column, operand in key:
        columns[column] = f"={operand}"
    for column, variable in binds:
        columns[column] = str(variable)
    return read_of(source, dict(enumerate(columns)))


def read_of(source: Source, columns: Mapping[int, str]) -> str:
    """What is read of a relation; columns without a text are not read."""
    version = "" if source.version is Version.ALL else f"{source.version} "
    return f"{version}{source.relation}({', '.join(columns.get(n, '_') for n in range(source.arity))})"

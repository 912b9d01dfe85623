"""A plan for Python as text: one operation a line, loops indented.

    reach(x, z) :- reach(x, y), edge(y, z).   Δ at body atom 1
      keys Δ reach(x, …) as _values1
        union _S2 = edge(y, …) for each y in _values1
        add reach(x, z), z in _S2

`…` is a set of values; `=y` is a value that the index looks up; `_` is a column that nothing reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from everlog.core.ir import set_operations as ir
from everlog.core.ir.listing import line_of, read_of
from everlog.core.ir.operations import Index, Probe, Scan
from everlog.core.ir.set_operations import SetOperation, SetPlan
from everlog.core.program import Term


def set_listing(plan: SetPlan) -> str:
    """The rule, and the plan below it."""
    title = str(plan.rule) + ("" if plan.delta is None else f"   Δ at body atom {plan.delta + 1}")
    return "\n".join([title, *_lines(plan.operations, str(plan.set_variable or ""), 1)])


def _lines(operations: Iterable[SetOperation], variable: str, depth: int) -> Iterator[str]:
    for operation in operations:
        match operation:
            case ir.Guarded(inner):
                yield f"{'  ' * depth}guarded:"
                yield from _lines(inner, variable, depth + 1)
            case ir.Total(target, literal, one, every):
                yield f"{'  ' * depth}let {target} = total of {literal}, by group:"
                yield from _lines(one.operations, str(one.set_variable or ""), depth + 1)
                if every is not None:
                    yield f"{'  ' * depth}or for all groups:"
                    yield from _lines(every.operations, "", depth + 1)
            case ir.Gather(loop, tests, derive):
                parts = [_line(one, variable) for one in (loop, *tests, derive)]
                yield f"{'  ' * depth}gather: {'; '.join(parts)}"
            case _:
                yield "  " * depth + _line(operation, variable)
        depth += isinstance(operation, ir.LOOPS)


def _line(operation: SetOperation, variable: str) -> str:
    match operation:
        case ir.Each(variables, values, cut):
            return f"each {', '.join(map(str, variables))} in {values}{_cut(operation, cut)}"
        case Scan(_, _, _, cut) | Probe(_, _, _, cut):
            return line_of(operation) + _cut(operation, cut)
        case ir.Keys(index, binds, values):
            return f"keys {_index(index, dict(binds))} as {values}"
        case ir.Row(source, binds):
            return f"row {read_of(source, {column: str(bound) for column, bound in binds})}"
        case ir.Entry(values, index, key):
            return f"entry {values} = {_index(index, dict(key), '=')}"
        case ir.Union(values, index, over):
            bound = _variable_of(over)
            return f"union {values} = {_index(index, dict.fromkeys(index.key, bound))} for {_line(over, '')}"
        case ir.Numbers(values, numbers):
            return f"numbers {values} = {numbers}"
        case ir.Without(values, sets, index, key):
            return f"without {values} = {_sets(sets)} - {_index(index, dict(key), '=')}"
        case ir.Filter(values, sets, _, test):
            return f"filter {values} = {_sets(sets)}, {line_of(test)}"
        case ir.Member(term, values):
            return f"test {term} in {values}"
        case ir.Filled(values):
            return f"test {values} is not empty"
        case ir.Leads(bound, index):
            return f"test {bound} leads into {_index(index, dict.fromkeys(index.key, bound))}"
        case ir.Same(left, right):
            return f"test {left} = {right}"
        case ir.Lookup(target, literal):
            return f"look up {literal}" if target == literal.result else f"look up {target} of {literal}"
        case ir.Broken(value):
            return f"fail if {value} is a failure"
        case ir.Derive():
            return _derive(operation, variable)
        case ir.Guarded() | ir.Total() | ir.Gather():
            raise AssertionError(f"more than a line: {operation}")
        case _:
            return line_of(operation)


def _derive(derive: ir.Derive, variable: str) -> str:
    of = str(derive.target if derive.target is not None else 1) if derive.head.relation == "" else str(derive.head)
    parts = [f"{derive.action} {of}"]
    if derive.groups:
        parts.append(f"for {', '.join(map(str, derive.groups))}")
    if derive.sets.members:
        parts.append(f"{variable} in {_sets(derive.sets)}")
    if derive.factor is not None:
        parts.append(_line(derive.factor, ""))
    return ", ".join(parts)


def _index(index: Index, key: Mapping[int, Term | str | None], equal: str = "") -> str:
    columns = {column: f"{equal}{term}" for column, term in key.items()}
    return read_of(index.source, dict.fromkeys(index.rest, "…") | columns)


def _sets(sets: ir.Sets) -> str:
    found = " & ".join(map(str, sets.members))
    return f"{found} but {', '.join(map(str, sets.dropped))}" if sets.dropped else found


def _variable_of(loop: Scan | Probe | ir.Each) -> str:
    found = loop.variables if isinstance(loop, ir.Each) else [variable for _, variable in loop.binds]
    return ", ".join(map(str, found))


def _cut(loop: Scan | Probe | ir.Each, cut: Iterable[Index]) -> str:
    indexes = [_index(index, dict.fromkeys(index.key, _variable_of(loop))) for index in cut]
    return f", in {' and '.join(indexes)}" if indexes else ""

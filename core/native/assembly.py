"""A plan of `core.ir` as operations of the compiled machine.

Variables and constants get registers.  Each operation knows the loop to return to: the one above
it, for an `Add` perhaps one further up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from everlog.core.ir import operations as ir
from everlog.core.native import _machine as machine
from everlog.core.native.coverage import COMPARED, FUNCTORS
from everlog.core.native.words import KIND_NUMBERS
from everlog.core.program import Constant, Kind
from everlog.core.program.functors import BUILTINS, COMPARISONS, as_kind

_VERSIONS = {ir.Version.ALL: 0, ir.Version.OLD: 1, ir.Version.DELTA: 2}


def assemble(
    plan: ir.Plan, relations: Mapping[str, machine.Relation], symbols: machine.Symbols, watch: Callable[[], object]
) -> machine.Plan:
    """The plan over these relations, ready to run; builds the indexes that it needs."""
    operations = [part for operation in plan.operations for part in _unfolded(operation)]
    registers = _registers(operations)
    made = machine.Plan(len(operations), len(registers), symbols, watch)
    for operand, register in registers.items():
        if isinstance(operand, Constant):
            made.constant(register, operand.value, KIND_NUMBERS[operand.kind])
    loops: list[int] = []
    for at, operation in enumerate(operations):
        _Assembler(made, relations, registers, loops, at).operation(operation)
        if isinstance(operation, ir.Scan | ir.Probe):
            loops.append(at)
    return made


def _unfolded(operation: ir.Operation) -> list[ir.Operation]:
    """`min` and `max` of many values, two at a time."""
    match operation:
        case ir.Let(target, ("min" | "max") as name, args, operand, kind) if len(args) != 2:
            if len(args) == 1:
                return [ir.Let(target, "", args, kind, kind)]
            first = ir.Let(target, name, args[:2], operand, kind)
            return [first, *(ir.Let(target, name, (target, arg), operand, kind) for arg in args[2:])]
        case _:
            return [operation]


def _registers(operations: list[ir.Operation]) -> dict[ir.Operand, int]:
    """A register for each variable and each constant."""
    found: dict[ir.Operand, int] = {}
    for operation in operations:
        match operation:
            case ir.Scan(binds=binds):
                operands: list[ir.Operand] = [variable for _, variable in binds]
            case ir.Probe(key=key, binds=binds):
                operands = [operand for _, operand in key] + [variable for _, variable in binds]
            case ir.Exists(key=key):
                operands = [operand for _, operand in key]
            case ir.Compare(left=left, right=right):
                operands = [left, right]
            case ir.Let(target=target, args=args):
                operands = [*args, target]
            case ir.Unknown(args=args) | ir.Add(args=args):
                operands = list(args)
            case _:
                assert_never(operation)
        for operand in operands:
            found.setdefault(operand, len(found))
    return found


def registers_of(plan: ir.Plan) -> dict[ir.Operand, int]:
    """The register of each variable and each constant, as `assemble` gives them."""
    return _registers([part for operation in plan.operations for part in _unfolded(operation)])


class _Assembler:
    """Writes one operation, at its place."""

    def __init__(
        self,
        made: machine.Plan,
        relations: Mapping[str, machine.Relation],
        registers: Mapping[ir.Operand, int],
        loops: list[int],
        at: int,
    ) -> None:
        self.made, self.relations, self.registers, self.loops, self.at = made, relations, registers, loops, at
        self.back = loops[-1] if loops else -1

    def operation(self, operation: ir.Operation) -> None:
        match operation:
            case ir.Scan(source, binds):
                self.put("SCAN", (), binds)
                self.over(source)
            case ir.Probe(source, key, binds):
                self.put("PROBE", tuple(operand for _, operand in key), binds)
                self.over(source, key)
            case ir.Exists(source, key, negated):
                self.exists(source, key, negated)
            case ir.Compare(op, left, right, kind):
                self.compare(op, left, right, kind)
            case ir.Let():
                self.let(operation)
            case ir.Unknown(relation, args):
                self.put("UNKNOWN", args)
                self.made.over(self.at, self.relations[relation], 0)
            case ir.Add(relation, args, leave):
                outside = self.loops[: len(self.loops) - leave]
                self.back = outside[-1] if outside else -1
                self.put("ADD", args)
                self.made.over(self.at, self.relations[relation], 0)
            case _:
                assert_never(operation)

    def put(self, code: str, read: tuple[ir.Operand, ...], binds: ir.Binds = ()) -> None:
        targets = tuple((column, self.registers[variable]) for column, variable in binds)
        self.made.put(self.at, code, self.back, tuple(self.registers[operand] for operand in read), targets)

    def over(self, source: ir.Source, key: ir.Key = ()) -> None:
        columns = tuple(column for column, _ in key)
        self.made.over(self.at, self.relations[source.relation], _VERSIONS[source.version], columns)

    def exists(self, source: ir.Source, key: ir.Key, negated: bool) -> None:
        if not key:
            code, index = "EMPTY" if negated else "FILLED", key
        elif len(key) == source.arity:
            code, index = "MISSING" if negated else "FOUND", ()
        else:
            code, index = "ABSENT" if negated else "EXISTS", key
        self.put(code, tuple(operand for _, operand in key))
        self.over(source, index)

    def compare(self, op: str, left: ir.Operand, right: ir.Operand, kind: Kind) -> None:
        if (op, kind) in COMPARED:
            code, is_swapped = COMPARED[op, kind]
            self.put(code, (right, left) if is_swapped else (left, right))
        else:
            self.put("CALL_TEST", (left, right))
            self.made.function(self.at, COMPARISONS[op], (KIND_NUMBERS[kind],) * 2, 0)

    def let(self, let: ir.Let) -> None:
        target = ((0, let.target),)
        code = FUNCTORS.get((let.functor, let.operand)) if let.functor else "MOVE"
        if let.functor == "as" and (let.operand == let.kind or Kind.FLOAT not in (let.operand, let.kind)):
            code = "MOVE"
        if code is not None:
            self.put(code, let.args, target)
            return
        self.put("CALL", let.args, target)
        self.made.function(self.at, _function(let), self.argument_kinds(let), KIND_NUMBERS[let.kind])

    def argument_kinds(self, let: ir.Let) -> tuple[int, ...]:
        if let.functor == "substr":
            return KIND_NUMBERS[Kind.SYMBOL], KIND_NUMBERS[Kind.NUMBER], KIND_NUMBERS[Kind.NUMBER]
        return (KIND_NUMBERS[let.operand],) * len(let.args)


def _function(let: ir.Let) -> Callable[..., object]:
    if let.functor == "as":
        return lambda value: as_kind(value, let.operand, let.kind)
    return BUILTINS[let.functor, let.operand].function

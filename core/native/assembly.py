"""A plan of `core.ir` as operations of the compiled machine.

Variables and constants get registers.  Each operation knows the loop to return to: the one above
it, for an `Add` perhaps one further up.  The body of an aggregate stands behind its `FOLD`, and has
registers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import assert_never

from attrs import define

from everlog.core.ir import operations as ir
from everlog.core.native import _machine as machine
from everlog.core.native.coverage import COMPARED, FOLDS, FUNCTORS
from everlog.core.native.words import KIND_NUMBERS
from everlog.core.program import Constant, Functor, Kind
from everlog.core.program.aggregates.folded import folded
from everlog.core.program.functors import BUILTINS, COMPARISONS, as_kind, call_functor

_VERSIONS = {ir.Version.ALL: 0, ir.Version.OLD: 1, ir.Version.DELTA: 2}


def assemble(
    plan: ir.Plan,
    relations: Mapping[str, machine.Relation],
    functors: Mapping[str, Functor],
    symbols: machine.Symbols,
    watch: Callable[[], object],
    out: machine.Relation | None = None,
) -> Assembled:
    """The plan over these relations, ready to run; builds the indexes that it needs.

    Derived facts go to the relation of the head, or to `out`.
    """
    code = _Code()
    code.write(plan.operations, {}, [])
    made = machine.Plan(len(code.parts), code.registers, symbols, watch)
    for constant, register in code.constants.items():
        made.constant(register, constant.value, KIND_NUMBERS[constant.kind])
    for at, part in enumerate(code.parts):
        _Assembler(made, relations, functors, out, at, part).put_part()
    return Assembled(plan, made, [part.operation for part in code.parts])


@define
class Assembled:
    """A plan, and the same plan on the machine; `laid_out` are its operations there."""

    plan: ir.Plan
    code: machine.Plan
    laid_out: list[object]

    def counted(self) -> list[tuple[int, int, int]]:
        """For each step of the plan: how often it began, the rows it has tried and kept so far."""
        counted = self.code.counted()
        places = {id(operation): at for at, operation in enumerate(self.laid_out)}
        steps = {id(step.operation) for step in self.plan.steps}
        found = []
        for step in self.plan.steps:
            begun, tried = counted[places[id(step.operation)]]
            kept = counted[self._next(places[id(step.operation)], steps)][0]
            found.append((begun, tried if ir.is_loop(step.operation) else begun, kept))
        return found

    def _next(self, at: int, steps: Set[int]) -> int:
        """Where the rows that a step keeps go: to the next step, or to the end of its body."""
        depth = 0
        for place in range(at + 1, len(self.laid_out)):
            one = self.laid_out[place]
            if not depth and (isinstance(one, _Collect | ir.Add) or id(one) in steps):
                return place
            depth += isinstance(one, ir.Fold) - isinstance(one, _Collect)
        raise AssertionError("a body has an end")


@define
class _Collect:
    """The end of an aggregate's body."""

    value: ir.Operand | None


@define
class _Part:
    """An operation of the machine to be."""

    operation: ir.Operation | _Collect
    scope: Mapping[ir.Operand, int]
    back: int  # the loop to return to, or -1
    end: int = 0  # of the body of an aggregate


class _Code:
    """A plan laid out flat, with a register for each variable and each constant."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.constants: dict[Constant, int] = {}
        self.registers = 0

    def write(self, operations: Iterable[ir.Operation], scope: dict[ir.Operand, int], loops: list[int]) -> None:
        """Lay out operations; `scope` has registers of variables, `loops` the loops around."""
        for operation in (part for one in operations for part in _unfolded(one)):
            self._name(operation, scope)
            if isinstance(operation, ir.Fold):
                self._fold(operation, scope, loops)
                continue
            outside = loops[: len(loops) - operation.leave] if isinstance(operation, ir.Add) else loops
            self.parts.append(_Part(operation, scope, outside[-1] if outside else -1))
            if ir.is_loop(operation):
                loops.append(len(self.parts) - 1)

    def _fold(self, fold: ir.Fold, scope: dict[ir.Operand, int], loops: list[int]) -> None:
        part = _Part(fold, scope, loops[-1] if loops else -1)
        self.parts.append(part)
        inner: dict[ir.Operand, int] = {variable: scope[variable] for variable in fold.outer}
        within = [len(self.parts) - 1]
        self.write(fold.body, inner, within)
        if fold.value is not None:
            self._register(fold.value, inner)
        self.parts.append(_Part(_Collect(fold.value), inner, within[-1]))
        part.end = len(self.parts) - 1

    def _name(self, operation: ir.Operation, scope: dict[ir.Operand, int]) -> None:
        for operand in _operands(operation):
            self._register(operand, scope)

    def _register(self, operand: ir.Operand, scope: dict[ir.Operand, int]) -> None:
        if operand in scope:
            return
        if isinstance(operand, Constant) and operand in self.constants:
            scope[operand] = self.constants[operand]
            return
        scope[operand] = self.registers
        if isinstance(operand, Constant):
            self.constants[operand] = self.registers
        self.registers += 1


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


def _operands(operation: ir.Operation) -> list[ir.Operand]:
    match operation:
        case ir.Scan(binds=binds):
            return [variable for _, variable in binds]
        case ir.Probe(key=key, binds=binds):
            return [operand for _, operand in key] + [variable for _, variable in binds]
        case ir.Count(target=target, bounds=bounds):
            return [*bounds, target]
        case ir.Exists(key=key):
            return [operand for _, operand in key]
        case ir.Compare(left=left, right=right):
            return [left, right]
        case ir.Let(target=target, args=args):
            return [*args, target]
        case ir.Fold(target=target, outer=outer):
            return [*outer, target]
        case ir.Unknown(args=args) | ir.Add(args=args):
            return list(args)
        case _:
            assert_never(operation)


def registers_of(plan: ir.Plan) -> dict[ir.Operand, int]:
    """The register of each variable and each constant, as `assemble` gives them."""
    registers: dict[ir.Operand, int] = {}
    _Code().write(plan.operations, registers, [])
    return registers


class _Assembler:
    """Writes one operation, at its place."""

    def __init__(
        self,
        made: machine.Plan,
        relations: Mapping[str, machine.Relation],
        functors: Mapping[str, Functor],
        out: machine.Relation | None,
        at: int,
        part: _Part,
    ) -> None:
        self.made, self.relations, self.functors, self.out, self.at = made, relations, functors, out, at
        self.part, self.registers = part, part.scope

    def put_part(self) -> None:
        if isinstance(self.part.operation, _Collect):
            value = self.part.operation.value
            self.put("COLLECT", () if value is None else (value,))
        else:
            self.operation(self.part.operation)

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
            case ir.Add(relation, args):
                self.put("ADD", args)
                self.made.over(self.at, self.relations[relation] if self.out is None else self.out, 0)
            case ir.Count(target, bounds, kind, is_test):
                binds = () if is_test else ((0, target),)
                self.put("WITHIN" if is_test else "RANGE", (*bounds, target) if is_test else bounds, binds)
                self.made.range(self.at, kind is Kind.UNSIGNED)
            case ir.Fold():
                self.fold(operation)
            case _:
                assert_never(operation)

    def put(self, code: str, read: tuple[ir.Operand, ...], binds: ir.Binds = ()) -> None:
        targets = tuple((column, self.registers[variable]) for column, variable in binds)
        self.made.put(self.at, code, self.part.back, tuple(self.registers[operand] for operand in read), targets)

    def over(self, source: ir.Source, key: ir.Key = ()) -> None:
        columns = tuple(column for column, _ in key)
        self.made.over(self.at, self.relations[source.relation], _VERSIONS[source.version], columns)

    def fold(self, fold: ir.Fold) -> None:
        self.put("FOLD", fold.outer, ((0, fold.target),))
        if fold.start is not None:
            functor, start = self.functors[fold.op[1:]], fold.start.value
            self.made.fold(self.at, self.part.end, "KEPT", True, False)
            kinds = KIND_NUMBERS[fold.value_kind], KIND_NUMBERS[fold.kind]
            self.made.function(self.at, lambda found: folded(functor, start, found), kinds, 0)
            return
        kind = FOLDS[fold.op, fold.value_kind]
        self.made.fold(self.at, self.part.end, kind, fold.op in ("count", "sum"), fold.op == "mean")

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
        self.made.function(self.at, self.function(let), self.argument_kinds(let), KIND_NUMBERS[let.kind])

    def argument_kinds(self, let: ir.Let) -> tuple[int, ...]:
        if let.functor.startswith("@"):
            return tuple(KIND_NUMBERS[kind] for kind in self.functors[let.functor[1:]].params)
        if let.functor == "substr":
            return KIND_NUMBERS[Kind.SYMBOL], KIND_NUMBERS[Kind.NUMBER], KIND_NUMBERS[Kind.NUMBER]
        return (KIND_NUMBERS[let.operand],) * len(let.args)

    def function(self, let: ir.Let) -> Callable[..., object]:
        if let.functor == "as":
            return lambda value: as_kind(value, let.operand, let.kind)
        if let.functor.startswith("@"):
            functor = self.functors[let.functor[1:]]
            return lambda *args: call_functor(functor, args)
        return BUILTINS[let.functor, let.operand].function

"""Rules as Python functions: lowered to a plan, passed, printed, and compiled.

`everlog explain --code` prints what is made here, and `everlog explain --ir` the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from attrs import frozen

from everlog.core import program as p
from everlog.core.codegen.code_lines import Line, comment, defined
from everlog.core.codegen.expressions import Expressions
from everlog.core.ir.atoms import NoSet
from everlog.core.ir.heads import RulePrinter
from everlog.core.ir.operations import Index, Probe, Scan, Version
from everlog.core.ir.passes import passed
from everlog.core.ir.printer import Access, no_index
from everlog.core.ir.rule_lowering import Lowering
from everlog.core.ir.set_operations import LOOPS, Keys, SetPlan, Union
from everlog.core.ir.set_variables import set_variables
from everlog.core.ir.uses import FACTS, Action, Use
from everlog.core.program import Atom, Literal, Rule, Variable
from everlog.core.program.bodies import may_fail
from everlog.core.storage.shape import Facts, Shape
from everlog.core.storage.table_statistics import Statistics

Run: TypeAlias = Callable[[Facts | None, Facts], None]  # from Δ, into what is new
Lookup: TypeAlias = Callable[[Access], object]  # finds an index, as a rule asks for it


@frozen
class Compiled:
    """The generated function; bound to its indexes, it takes (Δ, new)."""

    plan: SetPlan
    source: str
    accesses: tuple[Access, ...]
    make: Callable[..., Run]
    driver: int | None = None  # of code that reads Δ late: the access that its outermost loop runs through
    only_new: bool = False  # whether it derives no fact that its relation has
    from_delta: bool = False  # whether it does nothing outside of its loop over Δ

    def bound_to(self, lookup: Lookup) -> Run:
        """The function, over the indexes that `lookup` finds."""
        return self.make(lookup, *map(lookup, self.accesses))


def planned(
    rule: Rule,
    delta: int | None,
    shapes: Mapping[str, Shape],
    statistics: Mapping[str, Statistics],
    use: Use = FACTS,
    sets: bool = True,
) -> SetPlan:
    """The plan of a rule; with `delta` the body atom at that position reads Δ.

    Without `sets` no variable is one: better where Δ has few facts of a key.
    """
    sets = sets and not may_fail(rule.head)  # what may fail there is computed when the rest holds
    candidates = set_variables(rule, shapes) if sets else []
    for candidate in [*candidates, None]:
        try:
            return passed(Lowering(shapes, statistics, use, candidate, rule).plan(delta))
        except NoSet:
            continue
    raise AssertionError("a rule without set variable always has a plan")


def compile_rule(
    rule: Rule,
    delta: int | None,
    shapes: Mapping[str, Shape],
    statistics: Mapping[str, Statistics],
    functors: Mapping[str, p.Functor],
    use: Use = FACTS,
    sets: bool = True,
    has_index: Callable[[Access], bool] = no_index,
) -> Compiled:
    """The function that derives `rule`; `use` says what becomes of a derivation.

    `has_index` says which indexes are there, and may be used where one would not be made.
    """
    plan = planned(rule, delta, shapes, statistics, use, sets)
    return _Compiler(shapes, statistics, functors, has_index).compiled(plan)


def compile_late(
    rule: Rule,
    delta: int,
    shapes: Mapping[str, Shape],
    statistics: Mapping[str, Statistics],
    functors: Mapping[str, p.Functor],
    use: Use = FACTS,
) -> Compiled | None:
    """Compile `rule` from another atom than Δ, with one union of sets of Δ at a time.

    Where Δ has many keys those are fewer and larger operations:
    `points_to(v, o) :- load(v, p), points_to(p, q), Δ(q, o)` is one union for each load.  None if
    the rule has no such form.
    """
    atom = rule.body[delta]
    if not isinstance(atom, Atom) or sum(literal is atom for literal in rule.body) > 1 or may_fail(rule.head):
        return None
    for candidate, turned in product(set_variables(rule, shapes), (True, False)):
        try:
            plan = Lowering(shapes, statistics, use, candidate, rule, late=atom, turned=turned).plan(delta)
        except NoSet:
            continue
        driver = _driver(plan)
        plan = passed(plan)
        unions = [one for one in plan.operations if isinstance(one, Union)]
        scans = sum(isinstance(one, Keys) for one in plan.operations)
        if scans == 1 and driver is not None and any(one.index.source.version is Version.DELTA for one in unions):
            return _Compiler(shapes, statistics, functors).compiled(plan, driver)
    return None


def _driver(plan: SetPlan) -> Access | None:
    """The index that the outermost loop runs through."""
    loop = next((one for one in plan.operations if isinstance(one, LOOPS)), None)
    match loop:
        case Keys(index):
            pass
        case Scan(source, _, columns):
            index = Index(source, (), columns)
        case Probe(source, key, binds):
            index = Index(source, tuple(c for c, _ in key), tuple(c for c, _ in binds))
        case _:
            return None
    return None if index.source.version is Version.DELTA else Access(index.source.relation, index.key, index.rest)


@frozen
class _Compiler:
    """Prints and compiles plans."""

    shapes: Mapping[str, Shape]
    statistics: Mapping[str, Statistics]
    functors: Mapping[str, p.Functor]
    has_index: Callable[[Access], bool] = no_index

    def compiled(self, plan: SetPlan, driver: Access | None = None) -> Compiled:
        expressions, solve = Expressions(self.functors), self.solver(plan.use)
        printer = RulePrinter(self.shapes, expressions, plan, solve, has_index=self.has_index)
        function = printer.function("rule", ["_delta", "_new"])
        accesses, scope = tuple(printer.accesses), printer.expressions
        text = [
            Line(0, f"def make({', '.join(['_lookup', *printer.accesses.values()])}):"),
            *printer.helpers,
            *function,
            Line(1, "return rule"),
        ]
        source = "\n".join(map(str, text))
        make = defined("make", source, "rule", dict(scope.scope))
        place = accesses.index(driver) if driver in accesses else None
        first = plan.operations[0]
        from_delta = isinstance(first, Scan) and first.source.version is Version.DELTA
        from_delta = from_delta or (isinstance(first, Keys) and first.index.source.version is Version.DELTA)
        source = "\n".join([*_title(plan, scope), source])
        return Compiled(plan, source, accesses, make, place, printer.only_new, from_delta)

    def solver(self, use: Use) -> Callable[..., Compiled]:
        """What compiles literals to a generator of the values for which they hold."""
        solving = Use(Action.YIELD, living=use.living, guards=False)

        def solve(body: Sequence[Literal], given: Sequence[Variable], new: Sequence[Variable]) -> Compiled:
            rule = Rule(Atom("", tuple(new)), tuple(body), "open conditions")
            lowering = Lowering(self.shapes, self.statistics, solving, None, rule, given=tuple(given))
            return self.compiled(passed(lowering.plan(None)))

        return solve


def _title(plan: SetPlan, expressions: Expressions) -> Iterator[str]:
    version = "" if plan.delta is None else f"   Δ at body atom {plan.delta + 1}"
    yield comment(f"{plan.rule}{version}")
    constants = ", ".join(f"{name} = {value!r}" for name, value in expressions.constants.items())
    if constants:
        yield comment(f"where {constants}")

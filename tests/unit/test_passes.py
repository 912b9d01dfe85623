"""Plans for Python: what lowering makes of a rule, and each pass before and after."""

from __future__ import annotations

from attrs import evolve

from everlog.core.engine.explain import explain_delta_code
from everlog.core.ir.compile import compile_rule
from everlog.core.ir.passes.gather import gather
from everlog.core.ir.passes.hoist import hoist
from everlog.core.ir.passes.unite import unite
from everlog.core.ir.printer import common
from everlog.core.ir.rule_lowering import Lowering
from everlog.core.ir.set_listing import set_listing
from everlog.core.ir.set_operations import SetPlan
from everlog.core.ir.set_variables import set_variables
from everlog.core.ir.uses import FACTS, Action, Use
from everlog.core.storage.table_shapes import shape_of
from everlog.dsl.check import compile_text

DECLARED = """.decl edge(x:number, y:number)  .decl up(x:number, y:number)  .decl t(x:number, y:number, z:number)
.decl reach(x:number, y:number)  .decl far(x:number, y:number, z:number)  .decl o(x:number)
"""


def plan(text: str, delta: int | None = None, use: Use = FACTS, sets: bool = True) -> SetPlan:
    """The plan of a rule before any pass."""
    program = compile_text(DECLARED + text)
    shapes = {name: shape_of(relation.arity) for name, relation in program.relations.items()}
    (rule,) = program.rules
    variable = set_variables(rule, shapes)[0] if sets else None
    return Lowering(shapes, {}, use, variable, rule).plan(delta)


def shown(found: SetPlan) -> list[str]:
    return set_listing(found).splitlines()[1:]


REACH = "reach(x, z) :- reach(x, y), edge(y, z)."


def test_a_set_variable_is_never_looped_over() -> None:
    assert shown(plan(REACH, 0)) == [
        "  keys Δ reach(x, …) as _values1",
        "    each y in _values1, in edge(y, …)",
        "      entry _S2 = edge(=y, …)",
        "      add reach(x, z), z in _S2",
    ]


def test_a_loop_that_only_leads_into_an_index_becomes_a_union() -> None:
    assert shown(unite(plan(REACH, 0))) == [
        "  keys Δ reach(x, …) as _values1",
        "    union _S2 = edge(y, …) for each y in _values1",
        "    add reach(x, z), z in _S2",
    ]


def test_a_variable_that_is_needed_keeps_its_loop() -> None:
    found = plan("far(x, y, z) :- edge(x, y), up(y, z).")
    assert unite(found) == found


def test_where_each_derivation_counts_no_loop_becomes_a_union() -> None:
    found = plan(REACH, 0, Use(Action.COUNT, living=True))
    assert unite(found) == found


def test_a_union_stands_before_a_loop_of_another_variable() -> None:
    before = unite(plan(REACH, 0))
    keys, union, derive = before.operations
    between = plan("o(w) :- o(w).", sets=False).operations[0]
    turned = evolve(before, operations=(keys, between, union, derive))
    assert shown(hoist(turned)) == [
        "  keys Δ reach(x, …) as _values1",
        "    union _S2 = edge(y, …) for each y in _values1",
        "    scan o(w)",
        "      add reach(x, z), z in _S2",
    ]


def test_the_innermost_loop_is_gathered_with_its_tests() -> None:
    found = plan("far(x, y, z) :- t(x, y, z), x < y, !edge(x, y).", sets=False)
    assert shown(found) == [
        "  scan t(x, y, z)",
        "    test x < y",
        "    absent edge(=x, =y)",
        "    add far(x, y, z)",
    ]
    assert shown(gather(found)) == ["  gather: scan t(x, y, z); test x < y; absent edge(=x, =y); add far(x, y, z)"]


def test_a_loop_of_one_column_is_a_factor_of_a_product() -> None:
    found = plan("far(x, y, z) :- edge(1, x), edge(2, y), edge(y, z).")
    assert shown(found) == [
        "  probe edge(=2, y), in edge(y, …)",
        "    entry _S1 = edge(=y, …)",
        "    probe edge(=1, x)",
        "      add far(x, y, z), z in _S1",
    ]
    assert shown(gather(found)) == [
        "  probe edge(=2, y), in edge(y, …)",
        "    entry _S1 = edge(=y, …)",
        "    add far(x, y, z), z in _S1, probe edge(=1, x)",
    ]


def test_a_loop_whose_value_is_needed_elsewhere_is_no_factor() -> None:
    found = plan("far(x + 1, x, z) :- edge(1, x), edge(2, y), edge(y, z).")
    assert shown(gather(found)) == shown(found)


def test_the_printed_code_is_that_of_the_plan() -> None:
    program = compile_text(DECLARED + REACH)
    shapes = {name: shape_of(relation.arity) for name, relation in program.relations.items()}
    found = compile_rule(program.rules[0], 0, shapes, {}, {}, Use(known=True))
    assert found.source.splitlines()[1:] == [
        "def make(_lookup, _i0, _i1):",
        "    def rule(_delta, _new):",
        "        for v_x, _values1 in _delta.items():",
        "            _S2 = _set().union(*_sets(_i0, _values1))",
        "            if not _S2: continue",
        "            _k = v_x",
        "            _f = _i1.get(_k)",
        "            _n = _S2 if _f is None else _S2 - _f",
        "            if not _n: continue",
        "            _a = _new.get(_k)",
        "            if _a is None: _new[_k] = _n",
        "            else: _a |= _n",
        "    return rule",
    ]


def test_an_intersection_of_many_sets_walks_the_smallest_one() -> None:
    walked = []

    class Walked(set[object]):
        def __and__(self, other: object) -> Walked:
            assert isinstance(other, set)
            walked.append(min(len(self), len(other)))
            return Walked(set.__and__(self, other))

    assert common(Walked(range(1000)), Walked(range(500, 2000)), Walked({7, 700})) == {700}
    assert walked == [2, 2]
    columns = "(x:number, y:number)"
    text = f".decl a{columns} .decl b{columns} .decl c{columns} .decl k(x:number) .decl q{columns}\n"
    text += "q(x, y) :- k(x), a(x, y), b(x, y), c(x, y)."
    assert "_common(_S1, _S2, _S3)" in explain_delta_code(compile_text(text))

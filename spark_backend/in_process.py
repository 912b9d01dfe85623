"""A unit computed by our own engine on rows in memory, in a driver or a task.

The unit becomes a program: its relations, those that it reads (as inputs), its rules.  The driver
computes units whose meaning depends on one order of all facts, and those that are too small for a
job; a task computes its part of a decomposed recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core import program as p
from everlog.core.evaluate.seminaive import evaluate
from everlog.core.program import Kind, Program, Row, Rule
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.guards import Limits
from everlog.core.storage.shape import SavedColumns
from everlog.core.storage.table_shapes import PairShape
from everlog.core.storage.tables import Table
from everlog.spark_backend.column_types import HOLDS, arrow_array, kinds_of

if TYPE_CHECKING:
    import pyarrow as pa


def program_of(program: Program, unit: Unit, rules: Sequence[Rule] | None = None) -> Program:
    """A unit as a program whose inputs are what it reads."""
    own = unit.rules if rules is None else tuple(rules)
    bodies = [rule.body for rule in own] + [s.body for s in unit.subsumptions]
    names = dict.fromkeys([*unit.relations, *(atom.relation for body in bodies for atom, _ in p.atoms_of(body))])
    calls = {call.name[1:] for rule in own for call in p.calls_of(rule) if call.name.startswith("@")}
    calls |= {lattice.lub for name in names for _, lattice in program.relations[name].lattices}
    calls |= {
        call.name[1:]
        for s in unit.subsumptions
        for call in p.calls_of(Rule(s.dominated, s.body))
        if call.name.startswith("@")
    }
    return evolve(
        program,
        relations={name: program.relations[name] for name in names},
        rules=own,
        facts={},
        subsumptions=unit.subsumptions,
        inputs=(),
        outputs=(),
        printsizes=(),
        limits={name: size for name, size in program.limits.items() if name in unit.relations},
        functors={name: functor for name, functor in program.functors.items() if name in calls},
    )


def computed(
    program: Program, wanted: Iterable[str], inputs: Mapping[str, Iterable[Row]], most: int | None = None
) -> dict[str, Table]:
    """The wanted relations of a program; LimitExceeded beyond `most` derived facts."""
    found = evaluate(program, inputs, limits=Limits(facts=most))
    return {name: found.tables[name] for name in wanted}


def columns_of(table: Table) -> SavedColumns:
    """The facts of a table column by column, in no order, each once."""
    shape = table.shape
    if not isinstance(shape, PairShape):
        return shape.columns_of(table.facts)
    keys, lengths, values = shape.columns_of(table.facts)
    keys = list(chain.from_iterable(map(repeat, keys, lengths)))
    return [keys, values] if shape.value == 1 else [values, keys]


def arrow_of(program: Program, name: str, table: Table) -> pa.Table:
    """A relation as an Arrow table with the columns of its DataFrame."""
    import pyarrow as pa

    kinds: tuple[Kind, ...] = kinds_of(program.relations[name])
    if not kinds:
        return pa.table({HOLDS: pa.array([True] * bool(table.facts), pa.bool_())})
    arrays = [arrow_array(values, kind) for values, kind in zip(columns_of(table), kinds, strict=True)]
    return pa.table({f"c{n}": array for n, array in enumerate(arrays)})

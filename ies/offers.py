"""Systems for the engine: which recursive units they fit, and how they run.

A system has relations `edge` and `path`; a program has names and orders of columns of its own.
`ies.rule_shapes` maps one to the other.  A flat auxiliary relation is named after the relation that
it helps to maintain, a dot, and its own name: `path.tree`.
"""

from __future__ import annotations

from functools import cache, partial

from attrs import evolve, frozen

from everlog.core.engine.planning.systems import Described, Fit, Offer
from everlog.core.program import Column, Kind, Program, Relation
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import integer
from everlog.ies import registry
from everlog.ies.adapters import ADAPTERS
from everlog.ies.known_shapes import ALTERNATING, CLOSURE, SAME_GENERATION, shapes_of
from everlog.ies.nrc.types import NUM, Base
from everlog.ies.rule_shapes import match, why_not
from everlog.ies.system import DEFAULT_LIMIT

# The systems for each shape, practical ones before those of the paper.
SYSTEMS = {
    CLOSURE: ("tc_witness", "tc_algebra", "tc_counts", "tc_acyclic", "tc_paths", "tc_sri"),
    SAME_GENERATION: ("same_generation_counts", "same_generation", "same_generation_sri"),
    ALTERNATING: ("alternating_counters", "alternating_paths"),
}


LIMIT = "auxiliary-limit"  # the pragma that limits the number of values in auxiliary relations


@frozen
class SystemOffer:
    """One system of the catalogue, for units of one shape."""

    name: str
    shape: str

    @property
    def described(self) -> Described:
        entry = registry.entry(self.name)
        auxiliaries = tuple((kept.name, kept.arity) for kept in entry.kept)
        growth = f"exponential: {entry.growth}" if entry.exponential else entry.growth
        return Described(self.name, entry.title, auxiliaries, growth, entry.cost)

    def auxiliaries(self, relation: Relation) -> tuple[Relation, ...]:
        """The flat auxiliary relations; `everlog ies run` shows nested ones."""
        out = []
        for kept in registry.entry(self.name).kept:
            if kept.flat:
                columns = tuple(map(self._column, kept.columns, kept.types, [relation] * kept.arity))
                out.append(Relation(f"{relation.name}.{kept.name}", columns, auxiliary_of=relation.name))
        return tuple(out)

    @staticmethod
    def _column(name: str, type_: Base, relation: Relation) -> Column:
        """A column; a node has the type of the relation's first column."""
        return (
            Column(name, Kind.NUMBER)
            if type_ == NUM or not relation.columns
            else evolve(relation.columns[0], name=name)
        )

    def fit(self, program: Program, unit: Unit) -> Fit | str:
        own = tuple(name for name in unit.relations if not program.relations[name].auxiliary_of)
        for rule in unit.rules:
            if rule.head.relation not in own:
                return f"{rule.name} derives facts of `{rule.head.relation}`, which the system itself maintains"
        unit = evolve(unit, relations=own)
        known = shapes_of(self.shape)
        for number, shape in enumerate(known):
            found = match(shape, program, unit)
            if found is not None:
                answer = found.relations[shape.answer][0]
                inputs = tuple(r for name, (r, _) in found.relations.items() if not shape.program.rules_of(name))
                limit = program.pragmas.get(LIMIT, "")
                if limit and not limit.isdecimal():
                    return f'.pragma "{LIMIT}" "{limit}" is not a number of values'
                values = integer(limit) if limit else DEFAULT_LIMIT
                make = partial(ADAPTERS[self.shape], self.name, number, found.relations, values)
                return Fit(self.name, answer, inputs, make)
        return f"not {self.shape}: {why_not(known, program, unit)}"


@cache
def offers() -> dict[str, Offer]:
    """Every system that can maintain a relation of a program, by its name."""
    return {name: SystemOffer(name, shape) for shape, names in SYSTEMS.items() for name in names}

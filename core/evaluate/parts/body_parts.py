"""Parts of bodies as relations of their own, computed before the rule that needs them.

Two parts that differ only in the names of their variables share one relation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set

from attrs import fields, frozen, has

from everlog.core.program import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Kind,
    Literal,
    Range,
    Relation,
    Rule,
    Variable,
)
from everlog.core.program.bodies import variables_of_literal
from everlog.core.storage.table_statistics import UNKNOWN, Guess, Statistics


@frozen
class Bindings:
    """The relation of a part, the rule that derives it, and about how many facts it will have.

    `owner` is the name of the user's rule.
    """

    relation: Relation
    rule: Rule
    rows: float
    owner: str


class BodyParts:
    """The parts that have a relation: `made`, by its name."""

    def __init__(self, relations: Mapping[str, Relation]) -> None:
        self._relations = relations
        self.made: dict[str, Bindings] = {}
        self._forms: dict[Hashable, str] = {}

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations of the program and those of the parts."""
        if not self.made:
            return self._relations
        return {**self._relations, **{name: one.relation for name, one in self.made.items()}}

    def atom(self, part: Sequence[Literal], shown: Set[Variable], rows: float, rule: str) -> Atom | None:
        """The atom that stands for a part, with the values of some of its variables.

        None where the kind of a variable is not known.  `rule` is the name of one, or of a part.
        """
        kinds = dict(_kinds(part, self.relations))
        variables = tuple(v for v in kinds if v in shown)
        if not {v for x in part for v in variables_of_literal(x)} <= kinds.keys():
            return None
        form = form_of((tuple(part), variables), {})
        if form not in self._forms:
            owner = self.made[rule].owner if rule in self.made else rule
            name = self._forms[form] = f"bindings {len(self.made) + 1} of {owner}"
            relation = Relation(name, tuple(Column(v.name, kinds[v]) for v in variables))
            self.made[name] = Bindings(relation, Rule(Atom(name, variables), tuple(part), name), rows, owner)
        return Atom(self._forms[form], variables)


def guessed(bindings: Bindings) -> Statistics:
    """What is known of a relation of bindings before it is computed."""
    return Guess(len(bindings.relation.columns), min(max(bindings.rows, 1.0), UNKNOWN))


def _kinds(body: Sequence[Literal], relations: Mapping[str, Relation]) -> Iterator[tuple[Variable, Kind]]:
    """Each variable of a body with the kind of its values."""
    for literal in body:
        match literal:
            case Atom(name, args):
                for column, arg in zip(relations[name].columns, args, strict=True):
                    if isinstance(arg, Variable):
                        yield arg, column.kind
            case Comparison("=", left, right, kind):
                yield from ((v, kind) for v in (left, right) if isinstance(v, Variable))
            case Range(result=result, kind=kind) | Aggregate(result=result, kind=kind):
                yield result, kind


def form_of(part: object, numbers: dict[Variable, int]) -> Hashable:
    """A part of a body with its variables numbered: alike for bodies that differ in names only."""
    if isinstance(part, Variable):
        return Variable, numbers.setdefault(part, len(numbers))
    if isinstance(part, tuple):
        return tuple(form_of(one, numbers) for one in part)
    kind = type(part)
    if has(kind):
        return kind, *(form_of(getattr(part, one.name), numbers) for one in fields(kind))
    assert isinstance(part, Hashable)
    return part

"""Auxiliary relations, declared by the systems that rules name in `.strategy`.

`.strategy tc_witness` after a rule of `path` makes `path.tree` a relation of the program. Rules,
queries and `.output` read it like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from everlog.core.program import Column, Relation
from everlog.dsl import ast
from everlog.dsl.checks.declarations import Declarations, Signature

if TYPE_CHECKING:
    from everlog.core.engine.planning.systems import Offer


def declare_auxiliaries(statements: Iterable[ast.Statement], declared: Declarations) -> None:
    """Declare the auxiliary relations of the systems that rules name.

    A relation that the program declares stays as it is.
    """
    for clause, strategy, offer in _rules_with_systems(statements):
        for head in clause.heads:
            signature = declared.relations.get(head.name)
            if signature is not None and signature.sound:
                for relation in offer.auxiliaries(_relation(signature)):
                    declared.relations.setdefault(relation.name, _signature(relation, strategy, declared))


def auxiliary_names(statements: Iterable[ast.Statement]) -> set[str]:
    """Names of the auxiliary relations that these rules bring in."""
    return {
        f"{head.name}.{name}"
        for clause, _, offer in _rules_with_systems(statements)
        for head in clause.heads
        for name, _ in offer.described.auxiliaries
    }


def _rules_with_systems(statements: Iterable[ast.Statement]) -> Iterator[tuple[ast.Clause, ast.Strategy, Offer]]:
    """The rules that name a system, each with that system."""
    requested = [(s, s.strategy) for s in statements if isinstance(s, ast.Clause) and s.strategy is not None]
    if requested:
        from everlog.core.engine.planning.systems import systems  # loaded lazily: few programs need it

        offers = systems()
        for clause, strategy in requested:
            if strategy.name in offers:
                yield clause, strategy, offers[strategy.name]


def _relation(signature: Signature) -> Relation:
    columns = zip(signature.attributes, signature.kinds, strict=True)
    return Relation(signature.name, tuple(Column(a.name, kind, a.type_name) for a, kind in columns))


def _signature(relation: Relation, strategy: ast.Strategy, declared: Declarations) -> Signature:
    """The relation as if it were declared where the strategy is named."""
    types = [column.type_name or str(column.kind) for column in relation.columns]
    return Signature(
        relation.name,
        ast.Name(relation.name, pos=strategy.pos, end=strategy.end),
        [
            ast.Attribute(c.name, t, pos=strategy.pos, end=strategy.end)
            for c, t in zip(relation.columns, types, strict=True)
        ],
        [column.kind for column in relation.columns],
        [declared.types.canonical[type_] for type_ in types],
        frozenset(),
        [],
        auxiliary_of=relation.auxiliary_of,
    )

"""Auxiliary relations that nobody declares: a system that a rule asks for brings them along.

`.strategy tc_witness` after a rule of `path` makes `path.witness` a relation of the program, to be read by rules,
queries and `.output` like any other.

Reads: core.engine.systems, dsl.declarations.  Read by: dsl.check.
"""

from __future__ import annotations

from collections.abc import Iterable

from everlog.core.program import Column, Relation
from everlog.dsl import ast
from everlog.dsl.declarations import Declarations, Signature


def declare_auxiliaries(statements: Iterable[ast.Statement], declared: Declarations) -> None:
    """Add the auxiliary relations of the systems that rules ask for; one that is declared stays as it is."""
    asking = [s for s in statements if isinstance(s, ast.Clause) and s.strategy is not None]
    if not asking:
        return
    from everlog.core.engine.systems import systems  # what few programs need is not loaded for all

    offers = systems()
    for clause in asking:
        assert clause.strategy is not None
        offer = offers.get(clause.strategy.name)
        for head in clause.heads if offer is not None else ():
            signature = declared.relations.get(head.name)
            if offer is not None and signature is not None and signature.sound:
                for relation in offer.auxiliaries(_relation(signature)):
                    declared.relations.setdefault(relation.name, _signature(relation, clause.strategy, declared))


def _relation(signature: Signature) -> Relation:
    columns = zip(signature.attributes, signature.kinds, strict=True)
    return Relation(signature.name, tuple(Column(a.name, kind, a.type_name) for a, kind in columns))


def _signature(relation: Relation, wish: ast.Strategy, declared: Declarations) -> Signature:
    """As if it had been declared where the strategy is asked for."""
    types = [column.type_name or str(column.kind) for column in relation.columns]
    return Signature(
        relation.name,
        ast.Name(relation.name, pos=wish.pos, end=wish.end),
        [
            ast.Attribute(c.name, t, pos=wish.pos, end=wish.end)
            for c, t in zip(relation.columns, types, strict=True)
        ],
        [column.kind for column in relation.columns],
        [declared.types.canonical[type_] for type_ in types],
        frozenset(),
        [],
        auxiliary_of=relation.auxiliary_of,
    )

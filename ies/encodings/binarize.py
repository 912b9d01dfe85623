"""Auxiliary relations of any arity as binary ones: Proposition 12.

A tuple (o1, ..., ok) of a relation R has a rank r in it, by the order from left to right.  R is
stored as k relations R_1 ... R_k, where R_i has (r, oi); joined by the rank they are R again.  So
every system becomes one with auxiliary relations of arity at most 2: nested relations are flattened
first, and the orders on constants are binary themselves.

Source: Libkin and Wong, Proposition 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from everlog.ies.encodings.coding import Coded, Note, coded_system, leaf_terms
from everlog.ies.encodings.flatten import flatten
from everlog.ies.encodings.orders import Names, Ordering
from everlog.ies.nrc.terms import Bind, Comprehension, Equal, Generator, Parts, Qualifier, Term, Tuple, Var
from everlog.ies.nrc.types import NUM, Base, Product, SetOf, Type, columns
from everlog.ies.system import Stored, System

NOTE = Note(
    "with auxiliary relations of arity at most 2",
    "binary by Proposition 12",
    "each row of k > 2 columns stored as k rows of two, beside orders of n(n + 1)/2 rows",
    "joining all those rows, and comparing the tuples of each relation that is written, each with each",
)


def binarize(system: System) -> System:
    """The same answers with auxiliary relations of at most two columns.

    A system that has no wider ones is returned unchanged.
    """
    system = flatten(system)
    wide = [stored for stored in system.auxiliaries if len(columns(stored.type.element)) > 2]
    if not wide:
        return system

    def codes(original: System, names: Names, ordering: Ordering) -> list[Coded]:
        return [_coded(relation, names, ordering) for relation in wide]

    return coded_system(system, wide, codes, "binarize", NOTE)


def _coded(relation: Stored, names: Names, ordering: Ordering) -> Coded:
    element = relation.type.element
    stored = tuple(
        Stored(
            names.new(f"{relation.name}_{place}"),
            SetOf(Product((NUM, base))),
            f"(r, o): column {place} of the tuple of rank r in {relation.name}",
        )
        for place, base in enumerate(columns(element), 1)
    )

    def encode(ranked: Term) -> Mapping[str, Term]:
        # R_i = {(r, x.i) | (x, r) in rank(R)}
        source = Generator(Parts((Bind("x"), Bind("r"))), ranked)
        leaves = leaf_terms(element, Var("x"))
        return {
            one.name: Comprehension(Tuple((Var("r"), leaf)), (source,))
            for one, (_, leaf) in zip(stored, leaves, strict=True)
        }

    return Coded(relation, stored, _decode(element, stored, names), encode, partial(ordering.rank, element))


def _decode(element: Type, stored: tuple[Stored, ...], names: Names) -> Term:
    """{(o1, ..., ok) | (r1, o1) in R_1, (r2, o2) in R_2, r2 = r1, ...}"""
    ranks = [names.new(f"r{place}") for place, _ in enumerate(stored, 1)]
    parts = [names.new(f"o{place}") for place, _ in enumerate(stored, 1)]
    qualifiers: list[Qualifier] = []
    for rank, part, one in zip(ranks, parts, stored, strict=True):
        qualifiers.append(Generator(Parts((Bind(rank), Bind(part))), Var(one.name)))
        if rank != ranks[0]:
            qualifiers.append(Equal(Var(rank), Var(ranks[0])))
    return Comprehension(_nested(element, iter([Var(part) for part in parts])), tuple(qualifiers))


def _nested(type_: Type, leaves: Iterator[Term]) -> Term:
    """A value of a flat type from its leaves, with its nested products."""
    match type_:
        case Base():
            return next(leaves)
        case Product(parts):
            return Tuple(tuple(_nested(part, leaves) for part in parts))
        case SetOf():
            raise AssertionError(f"{type_} is not flat")

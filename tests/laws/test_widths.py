"""Propositions about classes and widths, against brute force.

Section numbers are those of Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.literal import components

from everlog.core.classify.classes import (
    classify,
    ear_removal,
    is_acyclic,
    is_free_connex,
    is_hierarchical,
    is_q_hierarchical,
)
from everlog.core.classify.covers import fractional_cover, highs, proves, simplex
from everlog.core.classify.decompositions import from_elimination, join_tree, width_of
from everlog.core.classify.multivariate import component, multivariate_width
from everlog.core.classify.query import Query, QueryAtom
from everlog.core.classify.widths import fractional_hypertree_width, free_connex_width

few = settings(max_examples=settings().max_examples * 2 // 5)  # of what the profile asks for

# ── what is drawn ────────────────────────────────────────────────────────────────────────────────

schemas = st.lists(st.sampled_from("ABCDE"), unique=True, max_size=4).map(tuple)


@st.composite
def queries(draw: st.DrawFn, most_atoms: int = 5, full: bool = True) -> Query:
    """One to five atoms of arity 0 to 4 over up to five variables."""
    drawn = draw(st.lists(schemas, min_size=1, max_size=most_atoms))
    atoms = tuple(QueryAtom(f"R{i}", schema) for i, schema in enumerate(drawn))
    query = Query(atoms, frozenset()).full
    shown = frozenset() if full else draw(st.frozensets(st.sampled_from("ABCDE")))
    return query if full else Query(atoms, shown & query.free)


def w(query: Query) -> Fraction:
    return fractional_hypertree_width(query).value


# ── covers ───────────────────────────────────────────────────────────────────────────────────────


@given(query=queries(), data=st.data())
def test_a_cover_proves_itself(query: Query, data: st.DataObject) -> None:
    """A cover and a packing with equal sums are both optimal (weak duality)."""
    bag = frozenset(data.draw(st.sets(st.sampled_from(query.variables)))) if query.variables else frozenset()
    edges = [frozenset(atom.variables) for atom in query.atoms]
    cover = fractional_cover(edges, bag)
    assert all(x >= 0 for x in (*cover.weights, *cover.packing.values()))
    assert cover.packing.keys() == bag
    for v in bag:
        assert sum(x for edge, x in zip(edges, cover.weights, strict=True) if v in edge) >= 1
    for edge in edges:
        assert sum(cover.packing[v] for v in edge & bag) <= 1
    assert cover.number == sum(cover.weights) == sum(cover.packing.values())


@few
@given(
    edges=st.lists(st.integers(1, 255), min_size=1, max_size=8).map(
        lambda edges: [*edges, 0b1001_0110, 0b0110_1001]
    )
)
def test_floats_and_integers_agree(edges: list[int]) -> None:
    """HiGHS, read as fractions, and the simplex over integers find the same optimum."""
    weights, packing = simplex(edges, 8, [1] * len(edges))
    assert proves(edges, 8, weights, packing)
    assert proves(edges, 8, *highs(edges, 8))
    assert sum(highs(edges, 8)[0]) == sum(weights)


# ── classes ──────────────────────────────────────────────────────────────────────────────────────


@given(query=queries(full=False))
def test_the_classes_contain_each_other(query: Query) -> None:
    assert is_acyclic(query) or not is_hierarchical(query)
    assert is_free_connex(query) or not is_q_hierarchical(query)
    assert is_free_connex(query.full) == is_acyclic(query)
    assert is_q_hierarchical(query.full) == is_hierarchical(query)


@given(query=queries())
def test_what_remains_is_a_cycle(query: Query) -> None:
    """Its variables meet around, and each is left out by some remaining atom."""
    ears = ear_removal(query)
    assert bool(ears.remaining) == bool(ears.cycle)
    schemas = [frozenset(query.atoms[i].variables) for i in ears.remaining]
    assert not any(schema.issuperset(ears.cycle) for schema in schemas if ears.cycle)
    for one, next_one in zip(ears.cycle, ears.cycle[1:] + ears.cycle[:1], strict=True):
        assert any({one, next_one} <= schema for schema in schemas)
    assert all(name in classify(query)[1] for name in ears.cycle)


# ── widths ───────────────────────────────────────────────────────────────────────────────────────


@given(query=queries())
def test_the_width_is_that_of_the_best_elimination_order(query: Query) -> None:
    found = fractional_hypertree_width(query)
    assert found.exact
    found.decomposition.check(query)
    assert found.value == found.decomposition.width == width_of(query, found.decomposition.bags)
    assert found.value == min(from_elimination(query, order).width for order in permutations(query.variables))


@given(query=queries(full=False))
def test_the_free_connex_width_is_that_of_the_best_order_with_bound_variables_first(query: Query) -> None:
    found = free_connex_width(query)
    found.decomposition.check(query)
    bound = [v for v in query.variables if v not in query.free]
    free = [v for v in query.variables if v in query.free]
    orders = [(*one, *other) for one in permutations(bound) for other in permutations(free)]
    assert found.value == min(from_elimination(query, order).width for order in orders)
    assert found.value >= w(query)
    assert free_connex_width(query.full).value == w(query)
    assert (found.value == 1) == is_free_connex(query)
    top = [bag for bag in found.decomposition.bags if bag <= query.free]
    assert frozenset().union(*top) == query.free


@given(query=queries(), data=st.data())
def test_every_elimination_order_gives_a_decomposition(query: Query, data: st.DataObject) -> None:
    from_elimination(query, data.draw(st.permutations(query.variables))).check(query)


@given(query=queries())
def test_acyclic_is_width_one_is_a_join_tree(query: Query) -> None:
    tree = join_tree(query)
    assert is_acyclic(query) == (w(query) == 1) == (tree is not None)
    if tree is not None:
        tree.check(query)
        assert tree.width == 1
        assert {*tree.bags} <= {frozenset(atom.variables) for atom in query.atoms}


# ── the multivariate extension, Section 4.2 ──────────────────────────────────────────────────────


@few
@given(query=queries(most_atoms=4))
def test_the_multivariate_width_is_the_largest_of_all_components(query: Query) -> None:
    """No reduction is used here; and hierarchical is width 1."""
    found = multivariate_width(query)
    assert found.exact
    each = {order: w(hat) for order, hat in components(query)}
    assert found.value == max(each.values())
    assert found.worst is None or each[found.worst] == found.value
    assert found.worst is not None or set(each.values()) == {found.value}
    assert is_hierarchical(query) == (max(each.values()) == 1)


@given(query=queries())
def test_bounds_of_the_multivariate_width(query: Query) -> None:
    found = multivariate_width(query)
    assert found.exact
    assert w(query) <= found.value == found.lower <= w(query) + 1
    assert (found.value == 1) == is_hierarchical(query)
    assert found.value == 1 or found.value >= Fraction(3, 2)
    if found.worst is not None:
        assert sorted(found.worst) == list(range(len(query.atoms)))
        assert w(component(query, found.worst)) == found.value


@given(query=queries(full=False), data=st.data())
def test_names_and_order_change_nothing(query: Query, data: st.DataObject) -> None:
    names = dict(zip("ABCDE", data.draw(st.permutations("ABCDE")), strict=True))
    atoms = [
        QueryAtom(atom.relation, tuple(data.draw(st.permutations([names[v] for v in atom.variables]))))
        for atom in data.draw(st.permutations(query.atoms))
    ]
    other = Query(tuple(atoms), frozenset(names[v] for v in query.free))
    assert classify(other)[0] is classify(query)[0]
    assert (is_q_hierarchical(other), is_free_connex(other)) == (is_q_hierarchical(query), is_free_connex(query))
    assert w(other) == w(query)
    assert free_connex_width(other).value == free_connex_width(query).value
    assert multivariate_width(other).value == multivariate_width(query).value


@given(query=queries(most_atoms=4), data=st.data())
def test_an_atom_inside_another_or_without_variables_changes_no_static_width(
    query: Query, data: st.DataObject
) -> None:
    assume(query.variables)
    host = data.draw(st.sampled_from(query.atoms))
    inside = QueryAtom("S", host.variables[: data.draw(st.integers(0, 4))])
    more = Query((*query.atoms, inside), query.free)
    assert w(more) == w(query)
    assert multivariate_width(more).value >= multivariate_width(query).value
    if inside.variables in ((), host.variables):
        assert multivariate_width(more).value == multivariate_width(query).value

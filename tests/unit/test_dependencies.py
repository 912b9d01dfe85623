"""The order of evaluation: components of the predicate graph."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from everlog.core.program import (
    Aggregate,
    Atom,
    Column,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Subsumption,
    Variable,
)
from everlog.core.program.dependencies import Edge, Unit, components, cycle_through, edges, units

X = Variable("x")
NAMES = "abcdefgh"
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4))


def atom(name: str) -> Atom:
    return Atom(name, (X,))


def rule(head: str, *body: str) -> Rule:
    """`rule("p", "q", "!r", "#s")`: q positive, r negated, s inside an aggregate."""

    def literal(text: str) -> Literal:
        match text[0]:
            case "!":
                return Negation(atom(text[1:]))
            case "#":
                return Aggregate(Variable("n"), "count", None, (atom(text[1:]),), (), Kind.NUMBER)
            case _:
                return atom(text)

    return Rule(atom(head), tuple(map(literal, body)))


def program(names: str, *rules: Rule, subsumptions: tuple[Subsumption, ...] = (), eqrel: str = "") -> Program:
    column = Column("x", Kind.NUMBER)
    relations = {n: Relation(n, (column,) * (2 if n in eqrel else 1), n in eqrel) for n in names}
    return Program(relations, rules, subsumptions=subsumptions)


def groups(of: Program) -> list[str]:
    return ["".join(unit.relations) for unit in units(of)]


# ── edges and units ──────────────────────────────────────────────────────────────────────────


def test_an_edge_says_how_the_head_uses_the_body() -> None:
    of = program("pqrs", rule("p", "q", "!r", "#s"))
    assert list(edges(of)) == [Edge("p", "q", "positive"), Edge("p", "r", "negative"), Edge("p", "s", "aggregate")]


def test_a_subsumption_uses_the_atoms_of_its_body_positively() -> None:
    better = Subsumption(atom("p"), atom("p"), (atom("q"),))
    of = program("pq", subsumptions=(better,))
    assert list(edges(of)) == [Edge("p", "q", "positive")]
    assert units(of) == (Unit(("q",), (), False, ()), Unit(("p",), (), False, (better,)))


def test_what_a_unit_needs_comes_before_it_whatever_the_use() -> None:
    assert groups(program("pqrs", rule("p", "q"), rule("q", "!r"), rule("r", "#s"))) == ["s", "r", "q", "p"]


def test_units_that_do_not_need_each_other_come_in_order_of_declaration() -> None:
    assert groups(program("cab")) == ["c", "a", "b"]
    assert groups(program("pcab", rule("p", "b", "a", "c"))) == ["c", "a", "b", "p"]


def test_mutually_recursive_relations_are_one_unit_in_order_of_declaration() -> None:
    one, two, base = rule("q", "p"), rule("p", "q"), rule("p", "b")
    assert units(program("pqb", one, two, base)) == (
        Unit(("b",), (), False, ()),
        Unit(("p", "q"), (one, two, base), True, ()),
    )


def test_a_unit_is_recursive_by_a_positive_atom_of_its_own_or_as_an_equivalence() -> None:
    recursive = {
        u.relations[0]: u.recursive for u in units(program("pqe", rule("p", "p"), rule("q", "p"), eqrel="e"))
    }
    assert recursive == {"p": True, "q": False, "e": True}


def test_a_declared_relation_without_rules_is_a_unit_of_its_own() -> None:
    assert units(program("p")) == (Unit(("p",), (), False, ()),)


# ── components ───────────────────────────────────────────────────────────────────────────────


def test_a_chain_of_100_000_relations_needs_no_recursion() -> None:
    size = 100_000
    chain = {str(n): [str(n + 1)] for n in range(size)}
    assert components(chain) == [[str(n)] for n in range(size, -1, -1)]
    assert components(chain | {str(size): ["0"]}) == [[str(n) for n in range(size + 1)]]


def test_successors_may_be_a_set_or_a_generator_and_need_no_entry() -> None:
    assert components({"p": {"s", "r", "q"}}) == [["q"], ["r"], ["s"], ["p"]]
    assert components({"p": (name for name in "qp")}) == [["q"], ["p"]]


def reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        new = set(graph.get(todo.pop(), ())) - seen
        seen |= new
        todo += new
    return seen


@given(GRAPHS)
def test_two_nodes_share_a_component_exactly_when_they_reach_each_other(graph: dict[str, list[str]]) -> None:
    found = components(graph)
    nodes = {*graph, *(s for successors in graph.values() for s in successors)}
    assert sorted(node for group in found for node in group) == sorted(nodes)
    for group in found:
        reach = reachable(graph, group[0])
        assert set(group) == {node for node in reach if group[0] in reachable(graph, node)}


@given(GRAPHS)
def test_a_component_points_only_to_components_before_it(graph: dict[str, list[str]]) -> None:
    seen: set[str] = set()
    for group in components(graph):
        seen |= set(group)
        assert all(set(graph.get(node, ())) <= seen for node in group)


# ── cycles ───────────────────────────────────────────────────────────────────────────────────


def test_the_shortest_cycle_through_an_edge() -> None:
    graph = {"p": ["q", "r"], "q": ["s", "t"], "s": ["t"], "t": ["p"], "r": ["p"]}
    assert cycle_through(graph, "p", "q") == ["p", "q", "t", "p"]
    assert cycle_through(graph, "q", "s") == ["q", "s", "t", "p", "q"]


def test_an_edge_from_a_relation_to_itself_is_a_cycle() -> None:
    assert cycle_through({"p": ["q", "p"], "q": ["p"]}, "p", "p") == ["p", "p"]


def test_there_is_no_cycle_through_an_edge_that_leads_away_or_is_not_there() -> None:
    assert cycle_through({"p": ["q"], "q": []}, "p", "q") == []
    assert cycle_through({"p": ["r"], "q": ["p"]}, "p", "q") == []


@given(GRAPHS)
def test_a_cycle_follows_edges_and_exists_exactly_within_a_component(graph: dict[str, list[str]]) -> None:
    for start, successors in graph.items():
        for via in successors:
            cycle = cycle_through(graph, start, via)
            assert bool(cycle) == (start in reachable(graph, via))
            assert all(b in graph[a] for a, b in pairwise(cycle))
            assert not cycle or (cycle[:2] == [start, via] and cycle[-1] == start)

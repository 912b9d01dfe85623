"""networkx, for queries that are one of its graph algorithms."""

from __future__ import annotations

from typing import Any

from everlog.bench.competitors._graph import Algorithm, GraphLibrary
from everlog.bench.harness.workload import Case, Row, Side, Static, installed_version, only


def build(case: Case) -> Any:
    import networkx

    directed = case.query in ("closure", "negation")
    graph: Any = networkx.DiGraph() if directed else networkx.Graph()
    if case.query != "negation":
        graph.add_edges_from(case.rows("edge"))
        return graph
    graph.add_nodes_from(f for (f,) in case.rows("function"))
    graph.add_edges_from(case.rows("call"))
    graph.remove_nodes_from([f for (f,) in case.rows("off")])
    functions, roots = ({f for (f,) in case.rows(name)} for name in ("function", "root"))
    return graph, functions, roots & set(graph)


def closure(graph: Any) -> set[Row]:
    import networkx

    return {(x, y) for x, y in networkx.transitive_closure(graph, reflexive=False).edges()}


def components(graph: Any) -> set[Row]:
    import networkx

    return {(node, min(part)) for part in networkx.connected_components(graph) for node in part}


def triangles(graph: Any) -> set[Row]:
    import networkx

    out: set[Row] = set()
    for clique in networkx.enumerate_all_cliques(graph):  # smaller ones first
        if len(clique) > 3:
            break
        if len(clique) == 3:
            a, b, c = sorted(clique)
            out.add((a, b, c))
    return out


def negation(found: Any) -> set[Row]:
    import networkx

    graph, functions, roots = found
    reached = set(roots)
    for layer in networkx.bfs_layers(graph, list(roots)):
        reached.update(layer)
    return {(f,) for f in functions - reached}


ALGORITHMS: dict[str, tuple[str, Algorithm]] = {
    "closure": ("path", closure),
    "components": ("component", components),
    "triangles": ("triangle", triangles),
    "negation": ("dead", negation),
}


def _static(case: Case) -> Static:
    import networkx  # noqa: F401

    return GraphLibrary(case, ALGORITHMS, build)


_why = "not an algorithm on graphs"
SIDES = [Side("networkx", "networkx", installed_version("networkx"), _static, None, only(*ALGORITHMS, why=_why))]

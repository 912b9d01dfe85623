"""rustworkx, for queries that are one of its graph algorithms."""

from __future__ import annotations

from typing import Any

from everlog.bench.competitors._graph import Algorithm, GraphLibrary
from everlog.bench.harness.workload import Case, Row, Side, Static, installed_version, only


def build(case: Case) -> Any:
    """A graph whose nodes are our numbers: rustworkx numbers nodes in insertion order."""
    import rustworkx

    edges = case.rows("call" if case.query == "negation" else "edge")
    graph: Any = rustworkx.PyGraph() if case.query == "components" else rustworkx.PyDiGraph()
    if case.query != "negation":
        most = max(max(x, y) for x, y in edges)
        graph.add_nodes_from(range(most + 1))
        graph.add_edges_from_no_data(edges)
        return graph, {node for edge in edges for node in edge}
    functions, roots, off = ({f for (f,) in case.rows(name)} for name in ("function", "root", "off"))
    graph.add_nodes_from(range(max(functions) + 1))
    graph.add_edges_from_no_data(edges)
    graph.remove_nodes_from(list(off))
    start = graph.add_node(None)  # above all roots
    graph.add_edges_from_no_data([(start, root) for root in roots - off])
    return graph, functions, start


def closure(found: Any) -> set[Row]:
    """The descendants of each node; also the node itself if it is on a cycle."""
    import rustworkx

    graph, nodes = found
    out: set[Row] = set()
    for x in nodes:
        below: set[int] = rustworkx.descendants(graph, x)
        if any(y == x or y in below for y in graph.predecessor_indices(x)):
            below.add(x)
        out.update((x, y) for y in below)
    return out


def components(found: Any) -> set[Row]:
    import rustworkx

    graph, nodes = found
    parts = rustworkx.connected_components(graph)
    return {(node, min(part)) for part in parts for node in part if node in nodes}


def negation(found: Any) -> set[Row]:
    import rustworkx

    graph, functions, start = found
    return {(f,) for f in functions - rustworkx.descendants(graph, start)}


ALGORITHMS: dict[str, tuple[str, Algorithm]] = {
    "closure": ("path", closure),
    "components": ("component", components),
    "negation": ("dead", negation),
}


def _static(case: Case) -> Static:
    import rustworkx  # noqa: F401

    return GraphLibrary(case, ALGORITHMS, build)


_why = "not an algorithm that it has"
SIDES = [
    Side("rustworkx", "rustworkx", installed_version("rustworkx"), _static, None, only(*ALGORITHMS, why=_why))
]

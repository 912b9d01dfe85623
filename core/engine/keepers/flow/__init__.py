"""Recursion that carries a column along: sets flow along the steps of a graph.

| module | holds |
|---|---|
| `flowing` | the keeper |
| `flow_graph` | the steps of the graph |
| `condensation` | its strongly connected components, under inserted and deleted steps |
| `places` | the order of the components |
| `flow_pass`, `flow_wave` | the propagation of a change through the components |
"""

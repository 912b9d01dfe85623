"""Recursion that carries a column along: sets flow along the steps of a graph.

| module | holds |
|---|---|
| `flowing` | the keeper |
| `flow_graph` | the steps of the graph |
| `condensation` | its strongly connected components, under steps that come and go |
| `places` | the order of the components |
| `flow_pass`, `flow_wave` | one change on its way through the components |
"""

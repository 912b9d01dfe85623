"""Practical systems: the recursive queries of the paper with polynomial auxiliary relations,
written in Python.

| system | module | keeps beside the answer |
|---|---|---|
| `tc_witness`: transitive closure | `tc_witness` | a spanning tree for each source |
| `tc_algebra`: transitive closure, at most n² steps an update | `tc_algebra` | a matrix over a prime field |
| `tc_counts`: transitive closure of acyclic graphs | `tc_counts` | the number of paths of each pair |
| `same_generation_counts`, of acyclic graphs | `same_generation_counts` | the number of pairs of walks |
| `alternating_counters`: alternating paths | `alternating_paths` | counters, and supports |

`protocol` says what a system is; `fans` has sets of nodes, `acyclic` searches, `field_matrices`
matrices modulo a prime.
"""

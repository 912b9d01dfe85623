"""Practical systems: the paper's queries with polynomial auxiliaries, in Python.

| system | module | stores beside the answer |
|---|---|---|
| `tc_witness`: transitive closure | `tc_witness` | a spanning tree for each source |
| `tc_algebra`: transitive closure, n² an update | `tc_algebra` | a matrix over a prime field |
| `tc_counts`: transitive closure of acyclic graphs | `tc_counts` | path counts of each pair |
| `same_generation_counts`, of acyclic graphs | `same_generation_counts` | counts of walk pairs |
| `alternating_counters`: alternating paths | `alternating_paths` | counters, and supports |

`protocol` defines what a system is; `fans` has sets of nodes, `acyclic` searches, `field_matrices`
matrices modulo a prime.
"""

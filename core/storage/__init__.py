"""How facts are stored.

| module | holds |
|---|---|
| `table_shapes` | the three shapes of facts, and all that depends on them |
| `tables` | tables and their indexes |
| `equivalence` | the table of an `eqrel`: classes by union and find |
| `shared_values` | tables of closures, in which nodes of one component share a set |
| `lazy_index` | an index that a query uses for a while |
"""

"""How facts are stored.

| module | holds |
|---|---|
| `shape` | what a shape of facts can do; the types of facts |
| `table_shapes` | the three shapes |
| `tables` | tables and their indexes |
| `equivalence` | the table of an `eqrel`: classes by union and find |
| `shared_values` | tables of closures, in which nodes of one component share a set |
| `lazy_index` | an index that a query uses for a while |
"""

"""How facts are stored.

| module | holds |
|---|---|
| `tables` | tables, their shapes and indexes, and changes of them |
| `forms` | operations that depend on a table's shape |
| `equivalence` | the table of an `eqrel`: classes by union and find |
| `shared_fans` | tables of closures, in which nodes of one component share a set |
| `lazy_index` | an index that a query uses for a while |
"""

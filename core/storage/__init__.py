"""How facts are stored.

| module | holds |
|---|---|
| `shape` | the interface of a shape of facts; the types of facts |
| `table_shapes` | the three shapes |
| `tables` | tables and their indexes |
| `table_statistics` | rows, distinct and frequent values of a table, for the planner |
| `equivalence` | the table of an `eqrel`: classes by union and find |
| `shared_values` | tables of closures, in which the nodes of a component share a set |
| `ordered_totals` | values by their places in an order, with totals of intervals |
| `lazy_index` | an index that is built only after enough lookups |
"""

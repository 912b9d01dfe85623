"""Views of joins: structures that keep the answers of a conjunctive query under single-tuple
updates.

| module | strategy | keeps |
|---|---|---|
| `recomputed` | `recompute` (Naïve) | the relations; evaluates everything again |
| `first_order` | `delta` (Delta) | indexes; evaluates the rest of the query for one tuple |
| `view_tree` | `view_tree` (F-IVM) | counts along a variable order |
| `calibrated` | `calibrated` | bags of a decomposition that semijoins keep free of dead ends |
| `view` | | what they have in common, and the table of them |

`tries` holds tuples with their indexes, `generic_join` writes worst-case optimal joins as Python,
`leapfrog` does so in sorted order, `variable_orders` has variable orders.
"""

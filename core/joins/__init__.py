"""Views of joins: they keep the answers of a conjunctive query up to date, row by row.

| module | strategy | keeps |
|---|---|---|
| `recomputed` | `recompute` (Naïve) | the relations; evaluates everything again |
| `first_order` | `delta` (Delta) | indexes; evaluates the rest of the query for one tuple |
| `view_tree` | `view_tree` (F-IVM) | counts along a variable order |
| `calibrated` | `calibrated` | bags of a decomposition, without rows that are part of no answer |
| `factorized` | `factorized` | indexes; the rest for one tuple is searched bag by bag |
| `view` | | the protocol of all views |

`tries` holds rows with their indexes, `generic_join` writes worst-case optimal joins as Python,
`leapfrog` intersects sorted sets, `variable_orders` has variable orders.  README.md lists all.
"""

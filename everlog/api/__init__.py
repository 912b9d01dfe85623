"""The Python API: a living program, and how to change, query and watch it.

| module | holds |
|---|---|
| `database` | `Database`: open, change, watch; `readable` is the part shared with snapshots |
| `transactions`, `lifecycle` | steps, all or nothing; who may write at the moment |
| `rows`, `named_rows`, `tabular` | facts from Python: rows, dicts and dataclasses, tables |
| `matching` | deletes and updates by pattern, upserts by key |
| `queries`, `parameters`, `results` | queries, their parameters, and lazy results |
| `relation_view`, `dataframes` | a relation as a set; tables out |
| `changes`, `subscriptions`, `watching` | the changes of a step, for callbacks and `await` |
| `live`, `saved` | changes of the program; facts in a folder |
| `shared`, `fair_lock` | one database for several threads |
"""

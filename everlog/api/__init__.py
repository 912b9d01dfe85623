"""The Python API: a living program and what one does with it.

| module | holds |
|---|---|
| `database` | `Database`: open, change, watch; `readable` is what it shares with snapshots |
| `transactions`, `lifecycle` | steps, all or none; who may write at the moment |
| `rows`, `tabular`, `foreign_tables` | facts from Python: rows, tables, columns |
| `queries`, `parameters`, `results` | queries, values given beside them, results found as they are read |
| `relation_view`, `dataframes` | a relation as a set; tables out |
| `changes`, `subscriptions`, `watching` | what a step changed, told to callbacks and awaited |
| `live`, `saved` | rules that change; outputs |
| `shared`, `turns` | one database for several threads |
"""

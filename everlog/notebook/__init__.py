"""What notebooks show beyond tables: drawn proofs, the rule graph, tables that follow changes.

| module | holds |
|---|---|
| `drawn_proofs` | `db.why(…)` and `db.why_not(…)` as trees of boxes |
| `rule_graph` | `db.graph()` |
| `live_table` | `db["path"].live()` |
"""

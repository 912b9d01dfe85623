"""The engine room: what a program is, what it means, and how it is run.

A room imports only rooms above it in this table; `tests/test_architecture.py` says so.

| room | holds |
|---|---|
| `program/` | the checked program, values, functors, what a body means |
| `runtime/` | limits, signals, memory |
| `storage/` | tables, indexes, equivalences |
| `codegen/` | the order of joins; terms as Python |
| `ir/` | rules as plans: loops over rows, indexes and sets; plans as Python |
| `native/` | the compiled machine that runs them, where it was built |
| `evaluate/` | naive and semi-naive evaluation of whole programs |
| `dbsp/` | signed changes: the delta rules of a rule |
| `classify/` | classes, widths, certificates |
| `joins/` | views of joins, and the choice among them |
| `engine/` | living programs: `planning/`, `stepping/`, `keepers/` |
| `proofs/` | why a fact is there, and why another is not |
| `repairs/` | how to make a fact come or go |
"""

"""The papers' own objects, to the letter: what the engine's structures are compared with.

| module | holds |
|---|---|
| `zsets`, `streams` | DBSP: sets with signed weights, streams over a group, incremental forms |
| `lifespans`, `literal` | MVIVM: lifespans as nodes of a segment tree, and Algorithm 1 |
"""

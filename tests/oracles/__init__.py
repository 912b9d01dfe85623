"""The papers' own objects, to the letter, as oracles for the engine's structures.

| module | holds |
|---|---|
| `zsets`, `streams` | DBSP: sets with signed weights, streams over a group, incremental forms |
| `lifespans`, `literal` | MVIVM: lifespans as nodes of a segment tree, and Algorithm 1 |
| `join_steps` | the rows that an order of joins tries |
| `recomputing` | the executor that evaluates the whole program after each step |
"""

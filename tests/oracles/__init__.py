"""The papers' own objects, to the letter, as oracles for the engine's structures.

| module | holds |
|---|---|
| `zsets`, `streams` | DBSP: sets with signed weights, streams over a group, incremental forms |
| `lifespans`, `literal` | MVIVM: lifespans as nodes of a segment tree, and Algorithm 1 |
| `backward` | MVIVM: components of a query, evaluated by what maintains the query |
| `bags` | MVIVM: rows that are there several times |
"""

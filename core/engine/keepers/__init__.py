"""Keepers: how a unit's relations follow a change, one module for each strategy.

| module | keeps |
|---|---|
| `keeper` | the base class; `unit_strategies` is the table of keepers |
| `base` | base facts |
| `counted` | derivations per fact; `joined` replaces delta rules by a view of a join |
| `groups` | aggregates, with totals and multisets from `aggregates` |
| `intervals` | aggregates over a part of an order |
| `best` | maps to a least or greatest value |
| `growing` | recursion through sums, counts and lattices |
| `flow/` | recursion that carries a column along |
| `recursive/` | any other recursion: `ranked` on the compiled machine, `ranked_python` in Python |
| `merging` | equivalence relations that no rule of their own reads |
| `auxiliary` | recursion with a system of auxiliary relations |
| `views/` | relations that are declared `.view`: no facts |
| `recomputed` | nothing: the unit is evaluated again |
"""

"""Keepers: how a unit's relations follow a change, one module for each strategy.

| module | keeps |
|---|---|
| `keeper` | what all keepers are; `unit_strategies` is their table |
| `base` | base facts |
| `counted` | derivations per fact; `joined` puts a view of a join in the place of delta rules |
| `groups` | aggregates, with totals and multisets from `aggregates` |
| `flow/` | recursion that carries a column along |
| `recursive/` | any other recursion, by witnesses |
| `auxiliary` | recursion with a system of auxiliary relations |
| `recomputed` | nothing: the unit is evaluated again |
"""

"""Cyclic joins inside the tasks: a hypercube over the variables of a join.

| module | holds |
|---|---|
| `cyclic_joins` | which rules are such joins |
| `cubes` | the join in one round: each task joins the rows of one cell by the in-process engine |
| `cells` | which rows go to which cell |
"""

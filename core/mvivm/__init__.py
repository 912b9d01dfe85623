"""MVIVM: joins under inserts and deletes, by giving each tuple a lifespan.

| module | holds |
|---|---|
| `lifespans` | the segment tree over time: canonical partitions, time extension, Q̂σ instances |
| `literal` | Algorithm 1 of the paper, its delta version and its resets, to the letter: a reference |
| `generations` | the same as a partition of the live tuples by age, with residuals that are remembered |
"""

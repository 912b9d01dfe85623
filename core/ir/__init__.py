"""The small language between rules and the machine that runs them: loops over rows and indexes.

| module | holds |
|---|---|
| `operations` | the operations: scan, probe, exists, compare, let, add; and a plan made of them |
| `lowering` | one version of a rule, in a chosen order of joins, as a plan |
| `listing` | a plan as text |
"""

"""Recursion of any shape: ranks, and counts of derivations from facts of lower rank.

| module | holds |
|---|---|
| `ranked` | the algorithm, and the keeper on the compiled machine |
| `ranked_plans` | its rules, from each change and backwards |
| `forecast` | what a turn is expected to cost |
| `ranked_python` | the keeper in Python |
| `supports` | ranks and counts in Python |
| `turn_work` | what a turn in Python may cost until the unit is computed instead |
"""

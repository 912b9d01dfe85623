"""Recursion of any shape: ranks and counts of derivations, or one well-founded derivation per fact.

| module | holds |
|---|---|
| `ranked` | the keeper on the compiled machine: ranks and counts |
| `ranked_plans` | its rules, from each change and backwards |
| `witnessed` | the keeper in Python: a witness for each fact |
| `proofs` | where witnesses are kept |
| `turn_work` | what a turn may cost until the unit is computed instead |
| `ancestry` | whether a derivation rests on what it should prove |
"""

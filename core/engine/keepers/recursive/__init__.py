"""Recursion of any shape: one well-founded derivation per fact.

| module | holds |
|---|---|
| `witnessed` | the keeper |
| `proofs` | where witnesses are kept |
| `turn_work` | what a turn may cost until the unit is computed instead |
| `ancestry` | whether a derivation rests on what it should prove |
"""

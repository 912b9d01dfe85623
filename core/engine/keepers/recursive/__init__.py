"""Recursion of any shape: one well-founded derivation per fact.

| module | holds |
|---|---|
| `witnessed` | the keeper |
| `proofs` | where witnesses are kept |
| `ancestry` | whether a derivation rests on what it should prove |
"""

"""Tables of other programs as relations.

| module | holds |
|---|---|
| `foreign_tables` | tables of pandas, Polars, Arrow, numpy, and dicts, as columns |
| `inferred` | relations with inferred names, columns and kinds: `everlog.over` |
| `own_files` | files as tables: `everlog open`, `.open` |
"""

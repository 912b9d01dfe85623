"""Files of a program, and a `Database`, together with the Spark backend.

| module | holds |
|---|---|
| `evaluating` | a program's relations as DataFrames with the declared columns |
| `facts_in` | the inputs of a program as DataFrames |
| `outputs` | DataFrames to the outputs of a program |
| `handover` | from Spark's relations to a `Database`, and back |
"""

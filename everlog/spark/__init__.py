"""Between a program's files or a `Database` and the Spark backend.

| module | holds |
|---|---|
| `facts_in` | the inputs of a program as frames |
| `outputs` | frames to the outputs of a program |
| `handover` | relations computed by Spark, kept by a `Database`, and back |
"""

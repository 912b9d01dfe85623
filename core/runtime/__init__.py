"""The process that a step runs in.

| module | holds |
|---|---|
| `guards` | limits of a step, Ctrl-C, progress |
| `collector` | pauses of the garbage collector |
"""

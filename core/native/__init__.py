"""The compiled machine: plans over arrays of words.  Everything works without it, in Python.

| file | holds |
|---|---|
| `relation.c` | rows of words in order of arrival, a hash set over them, indexes |
| `fold.c` | what an aggregate takes in |
| `plan.c` | operations over registers, and the loop that runs them |
| `_machine.pyx` | both for Python: words from values and back, signals, limits |
| `words` | relations for code that may run without the machine |
| `availability` | whether the machine was built and is wanted |
| `coverage` | which rules it can run, and how functors and comparisons are compiled |
| `assembly` | a plan of `core.ir` as operations of the machine, and what its steps have counted |
"""

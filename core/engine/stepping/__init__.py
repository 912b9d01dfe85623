"""One step on its way through the units.

| module | holds |
|---|---|
| `store` | tables, changes, witnesses and group values; rules compiled and bound to them |
| `step` | turns, spreading, undo |
| `changes` | what a step tells |
| `saved_state` | what a unit keeps, as columns that a file can hold |
| `broken` | an engine that could not take a step back |
"""

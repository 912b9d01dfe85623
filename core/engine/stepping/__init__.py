"""One step through the units.

| module | holds |
|---|---|
| `store` | tables, changes, ranks and group values; rules compiled and bound to them |
| `work` | rules that count what they do |
| `word_table` | tables of what the compiled machine keeps |
| `step` | turns, spreading, undo |
| `changes` | the changes that a step reports |
| `found_changes` | changes of views, found when somebody reads them |
| `saved_state` | a unit's state as columns that a file can hold |
| `broken` | an engine that could not undo a step |
"""

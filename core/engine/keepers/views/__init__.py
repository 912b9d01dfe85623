"""Relations whose facts are not stored: `.view`.

| module | holds |
|---|---|
| `rule_reader` | a rule compiled for reading: all answers, some of them, a change |
| `rule_tree` | the join of a rule as counts along a variable order |
| `earlier` | tables as they were before the last step |
| `view_table` | the relation, for readers of tables |
| `view_keeper` | what follows a step, and tells what came and went |
"""

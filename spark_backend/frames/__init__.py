"""Rules as DataFrame plans.

| module | holds |
|---|---|
| `rule_frames` | a rule: its body, its head, and no row twice |
| `body_frames` | a body, literal by literal |
| `bindings` | a frame with a column for each variable |
| `partial` | conditions that may fail |
| `expressions`, `functors`, `workers` | terms and comparisons as columns, or by Python |
| `marks` | errors of a rule on their way through Java |
| `totals` | aggregates |
"""

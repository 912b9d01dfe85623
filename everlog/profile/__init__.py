"""`everlog run -p FILE`: where the time of a run went, by unit, rule and step.

| module | holds |
|---|---|
| `recording` | what is recorded during a run, as an object for JSON |
| `steps` | time and work of each step, beside what was promised |
| `profile_page` | the same as one HTML page, without scripts |
"""

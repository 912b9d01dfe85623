"""Whole programs, evaluated once, with no state kept.

| module | holds |
|---|---|
| `reference` | naive evaluation: the meaning of a program, and the oracle of every test |
| `seminaive` | compiled rules in rounds over what is new |
| `rounds` | the loop of rounds, shared with living units |
| `profile` | time and facts of each unit, round and rule, where they are asked for |
| `machines` | which units the compiled machine runs, and why Python runs the others |
| `run_relations` | the relations of a run on either machine, each converted once |
| `native_rounds` | the rounds of a unit on the compiled machine |
| `native_task` | a rule on the compiled machine, planned anew when it tries more than expected |
| `grouped_bodies` | the bodies of aggregates as relations, joined once for all groups |
| `on_demand` | the answers of one query, without computing the rest |
| `shown_plans` | plans for readers: order, index, rows expected, tried and kept |
| `listed_plans` | plans and machines as text, for `explain --ir` |
| `value_columns` | which column of a binary relation is its value column |
| `flow`, `ordered` | recursion that needs no rounds, or visits each key once |
| `growing_rounds` | rounds over running totals and joined values |
| `best_first` | maps to a least or greatest value, settled in the order of values |
| `choice_domains`, `subsume`, `counters` | what `choice-domain`, `<=` and `autoinc()` mean |
"""

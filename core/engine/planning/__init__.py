"""Before any data: which strategy keeps each unit, and its cost.

| module | holds |
|---|---|
| `normal` | rules rewritten so that every change reaches them through one relation |
| `existence` | hidden variables as auxiliary relations, where that costs no more |
| `kept_parts` | rules that read relations which are kept, instead of a part of their body |
| `flow_rules` | which recursion carries a column along |
| `ranked_rules` | which recursion the compiled machine keeps |
| `systems` | the protocol of systems of auxiliary relations |
| `demand_parts` | relations on demand, and the strategies of their parts |
| `view_rules` | how relations that are declared `.view` are read |
| `plan` | which strategy keeps which unit, and why |
| `told_rules` | rules for readers: what the planner made in words |
| `costs` | the cost of one update, for `explain` |
"""

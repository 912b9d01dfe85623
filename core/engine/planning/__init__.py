"""Before any data: how each unit is kept, and what that costs.

| module | holds |
|---|---|
| `normal` | rules rewritten so that every change reaches them through one relation |
| `flow_rules` | which recursion carries a column along |
| `systems` | the protocol of systems of auxiliary relations |
| `plan` | which strategy keeps which unit, and why |
| `costs` | what one update costs, for `explain` |
"""

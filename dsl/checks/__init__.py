"""From a syntax tree to a `core.Program`: each stage answers one question, and `dsl.check` runs
them.

| module | holds |
|---|---|
| `components` | `.comp` and `.init` gone: a flat list of statements with dotted names |
| `types`, `declarations`, `directives` | what is declared |
| `name_checks`, `clauses`, `inline` | rules to flat clauses: one head, no `;`, nothing inlined |
| `scopes` | which variables are grounded, and which an aggregate shares |
| `inference`, `kinds` | what terms hold, and what does not fit |
| `head_aggregates` | aggregates in heads, moved into bodies or made subsumptions |
| `own_totals` | sums that read their own recursion: their tests as relations |
| `monotone` | values that go through recursion are used in one direction |
| `stratify` | no relation depends on its own absence |
| `lower` | flat clauses to core rules |
| `join_orders` | the orders that `.plan` gives, as places in the bodies of core rules |
| `query_check` | a query as the body of a rule, whose head its variables make |
| `auxiliaries` | relations of systems that rules ask for |
"""

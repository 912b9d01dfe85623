"""The living engine: every view follows inserts and deletes, in process.

| room or module | holds |
|---|---|
| `planning/` | which strategy keeps each unit, and its cost |
| `stepping/` | one step through the units |
| `keepers/` | the strategies, a module for each |
| `network` | all keepers, their readers, and their survival of a change of rules |
| `fused`, `ways` | single updates, compiled to one function |
| `watch` | rules that move to another view of their join |
| `engine` | small and large steps, changes of rules |
| `net_change` | updates checked, and their net change |
| `reads` | what an engine answers |
| `sleeping` | an engine that reads stored rows, until something needs more |
| `compiled_query` | compiled queries |
| `demands` | who asks for what of relations on demand |
| `usage`, `advice` | who reads what; which relations are worth their memory |
| `explain`, `statistics`, `told_statistics` | plan, delta rules and measurements, for readers |
"""

from everlog.core.engine.engine import Engine
from everlog.core.engine.keepers.unit_strategies import STRATEGIES
from everlog.core.engine.planning.plan import Plan, make_plan
from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.engine.reads import LastStep
from everlog.core.engine.statistics import Statistics
from everlog.core.runtime.guards import LimitExceeded, Limits, Progress

__all__ = [
    "STRATEGIES",
    "Engine",
    "LastStep",
    "LimitExceeded",
    "Limits",
    "NoSuchStrategy",
    "Plan",
    "Progress",
    "Statistics",
    "make_plan",
]

"""The living engine: every view follows inserts and deletes, in process.

| room or module | holds |
|---|---|
| `planning/` | how each unit is kept, and what that costs |
| `stepping/` | one step on its way through the units |
| `keepers/` | the strategies, a module for each |
| `network` | all keepers, who listens to whom, what survives a change of rules |
| `fused`, `unrolled`, `ways` | single updates, written out as one function |
| `watch` | rules that move to another view of their join |
| `engine` | steps small and large, reading, other rules |
| `compiled_query` | queries, compiled |
| `explain`, `statistics` | the plan, the delta rules and what they took, for readers |
"""

from everlog.core.engine.engine import Engine, Witness
from everlog.core.engine.executor import Incremental
from everlog.core.engine.keepers.unit_strategies import STRATEGIES
from everlog.core.engine.planning.plan import NoSuchStrategy, Plan, make_plan
from everlog.core.engine.statistics import Statistics
from everlog.core.runtime.guards import LimitExceeded, Limits, Progress

__all__ = [
    "STRATEGIES",
    "Engine",
    "Incremental",
    "LimitExceeded",
    "Limits",
    "NoSuchStrategy",
    "Plan",
    "Progress",
    "Statistics",
    "Witness",
    "make_plan",
]

"""The living engine: every view follows inserts and deletes, in process.

==============  =================================================================================
`normal`        rules rewritten so that every change reaches them through one relation
`plan`          which strategy maintains which unit, and why
`store`         tables, changes, witnesses and group values; rules compiled and bound to them
`keeper`        what a strategy is; `given`, `counted`, `groups`, `flowing`, `witnessed`,
                `recomputed` are the strategies, `strategies` is their table
`flow_rules`    which recursion carries a column along; `condensation` keeps its components
`proofs`        where witnesses are kept; `ancestry` follows them up
`step`          one step on its way: turns, spreading, undo
`unrolled`      small steps on one relation, written out as one function; `fused`, row by row
`network`       all keepers, who listens to whom, what survives a change of rules
`engine`        steps small and large, reading, proofs, other rules
`explain`       the plan, the delta rules and their Python, for readers
==============  =================================================================================
"""

from everlog.core.engine.engine import Engine, Witness
from everlog.core.engine.executor import Incremental
from everlog.core.engine.plan import STRATEGIES, NoSuchStrategy, Plan, make_plan
from everlog.core.engine.statistics import Statistics
from everlog.core.guards import LimitExceeded, Limits, Progress

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

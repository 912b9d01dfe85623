"""Signed changes after DBSP: the algebra from which the delta rules of the engine are derived.

==============  =================================================================================
`zsets`         sets with signed weights: an abelian group; `distinct`, joins, counts and sums
`streams`       streams over a group: delay, D, I, feedback, incremental forms, recursion
`derive`        the delta rules of a rule, by the bilinear theorem: `delta_rules`
==============  =================================================================================

`zsets` and `streams` state the theory so that it runs; `tests/laws/test_dbsp.py` has every
proposition as a property.  `derive` is the part that an engine calls.

Source: Budiu, Chajed, McSherry, Ryzhyk, Tannen, DBSP: Automatic Incremental View Maintenance for
Rich Query Languages, PVLDB 16(7), 2023.
"""

from everlog.core.dbsp.derive import DeltaRule, delta_name, delta_rule, delta_rules, each_delta_rule
from everlog.core.dbsp.streams import Stream
from everlog.core.dbsp.zsets import ZSet

__all__ = ["DeltaRule", "Stream", "ZSet", "delta_name", "delta_rule", "delta_rules", "each_delta_rule"]

"""Signed changes after DBSP: the delta rules of a rule, by the bilinear theorem.

`derive` is the part that an engine calls.  The theory itself, Z-sets and streams, is in
`tests/oracles`, and `tests/laws/test_dbsp.py` has every proposition as a property.

Source: Budiu, Chajed, McSherry, Ryzhyk, Tannen, DBSP: Automatic Incremental View Maintenance for
Rich Query Languages, PVLDB 16(7), 2023.
"""

from everlog.core.dbsp.derive import DeltaRule, delta_name, delta_rules, each_delta_rule

__all__ = ["DeltaRule", "delta_name", "delta_rules", "each_delta_rule"]

"""Workloads, one file each: seeded data, program, updates, answer, sizes.

A file has one `WORKLOAD` (bench.harness.workload).  `query` names the query: workloads with the
same rules over other data have the same query, and competitors implement queries.  A file that
begins with `_` is shared by others.
"""

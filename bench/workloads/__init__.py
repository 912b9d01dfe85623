"""One file each: seeded data, the program, where updates come from, what counts as the answer,
sizes.

A file has one `WORKLOAD` (bench.harness.model).  `query` names what is asked: workloads with the
same rules over other data have the same query, and competitors know queries.  A file that begins
with `_` is shared by others.
"""

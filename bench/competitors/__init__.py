"""Other systems, one file each: how they run the queries of the workloads.

A file has `SIDES`, each of them a `Side` (bench.harness.workload): its version, or why it is
missing; which queries it supports; and how it starts, to compute once (`Static`) or to follow
updates (`Living`).  Libraries are imported when a side starts.  A file that begins with `_` is
shared by others.
"""

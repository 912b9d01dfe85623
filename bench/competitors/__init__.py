"""One file each: how another system is asked the queries of the workloads.

A file has `SIDES`, each of them a `Side` (bench.harness.model): its version, or why it is not here;
which queries it serves; and how it is started, to compute once (`Static`) or to follow updates
(`Living`).  Libraries are imported when a side is started.  A file that begins with `_` is shared
by others.
"""

"""The same programs on Spark.

spark_session       a session with settings for Datalog; `java` finds a Java, `errors` explains
                    failures, `shipping` sends this package to executors
column_types        the Spark type of each kind; rows through Arrow; `loads` reads and writes
plan                the strategy of each unit; `rule_frames`, `body_frames`, `expressions` and
                    `totals` make DataFrame plans
evaluate            a whole program; `decomposed`, `iterate` and `in_process` run recursion
executor            the protocol of `core.program.executor`
batches             maintains results on Spark; `propagation`, `deltas`, `parquet_state`
"""

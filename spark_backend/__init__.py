"""Programs past one machine: the same rules on Spark.

==============  =================================================================================
`spark_session`       a Spark session set up for Datalog; `java` finds a Java, `errors` says what went wrong,
                `shipping` sends this package to executors
`column_types`       which Spark type holds which kind; rows by Arrow; `loads` reads and writes them anywhere
`plan`          which unit runs how; `rule_frames`, `body_frames`, `expressions`, `totals` make DataFrame plans
`evaluate`      a whole program; `decomposed`, `iterate` and `in_process` are its ways through recursion
`executor`      the protocol of `core.program.executor` on top
`batches`       changes of results that live on Spark; `deltas`, `parquet_state`
==============  =================================================================================
"""

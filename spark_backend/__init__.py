"""The same programs on Spark.

| module | holds |
|---|---|
| `spark_session`, `java`, `shipping`, `errors`, `interrupts` | a session for Datalog |
| `settings`, `spark_types`, `frame_gc` | settings; types of Spark; dropped frames |
| `column_types`, `inputs`, `loads` | which type holds which kind; facts to frames and back |
| `plan` | which unit runs how |
| `frames` | rules as DataFrame plans |
| `cyclic`, `tasks` | cyclic joins, and our own engine inside the tasks |
| `evaluate` | a whole program |
| `decomposed`, `iterate`, `best_rounds`, `in_process` | its recursion |
| `executor` | the protocol of `core.program.executor` on top |
| `batches` | changes of results that live on Spark |
"""

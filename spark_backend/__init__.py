"""The same programs on Spark.

| module | holds |
|---|---|
| `spark_session`, `java`, `shipping`, `errors`, `interrupts` | a session that is set up for Datalog |
| `settings`, `spark_types`, `frame_gc` | what can be set; types of Spark; frames that were dropped |
| `column_types`, `inputs`, `loads` | which type holds which kind; facts to frames and back |
| `plan` | which unit runs how |
| `frames` | rules as DataFrame plans |
| `cyclic`, `tasks` | cyclic joins, and our own engine inside the tasks |
| `evaluate`, `decomposed`, `iterate`, `in_process` | a whole program, and its ways through recursion |
| `executor` | the protocol of `core.program.executor` on top |
| `batches` | changes of results that live on Spark |
"""

"""Results that live on Spark, kept current by batches of changes.

| module | holds |
|---|---|
| `spark_state` | the state of a program in a folder, and its batches |
| `propagation` | one batch on its way through the units |
| `deltas` | the change of a rule, by the changes of what it reads |
| `parquet_state` | the folder: tables as Parquet, and one rename for each batch |
"""

from everlog.spark_backend.batches.spark_state import Applied, SparkState

__all__ = ["Applied", "SparkState"]

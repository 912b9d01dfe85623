"""The names of Spark's own types, for those who may not import pyspark: DataFrame and SparkSession."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession
else:
    DataFrame = SparkSession = Any

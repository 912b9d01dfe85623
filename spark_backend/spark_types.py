"""Spark's DataFrame and SparkSession as type names, without importing pyspark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession
else:
    DataFrame = SparkSession = Any

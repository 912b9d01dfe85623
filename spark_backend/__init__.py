"""Bulk loads and whole programs on Spark: arrives with issue 6."""

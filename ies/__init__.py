"""Incremental evaluation systems after Libkin and Wong: arrives with issue 5."""

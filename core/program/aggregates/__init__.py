"""Aggregates that decide which rules have a meaning: through recursion, and over orders."""

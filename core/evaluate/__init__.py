"""Whole programs, evaluated once, with no state kept.

[README.md](README.md) lists the modules.
"""

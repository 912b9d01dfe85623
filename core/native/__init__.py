"""The compiled machine: plans over arrays of words.  Everything works without it, in Python.

[README.md](README.md) lists the files in reading order.
"""

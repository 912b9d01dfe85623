"""The Python API: a living program, and how to change, query and watch it."""

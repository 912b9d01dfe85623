"""Units on the compiled machine.

[README.md](../README.md) lists the modules.
"""

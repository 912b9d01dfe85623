"""Parts of bodies that are computed first, as relations of their own.

[README.md](../README.md) lists the modules.
"""

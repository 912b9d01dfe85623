"""Rules as plans: loops over rows and indexes, sets of values, and an action at the bottom.

[README.md](README.md) lists the modules in reading order.
"""

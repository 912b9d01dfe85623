"""What a run tells its readers: plans, rows tried and kept, time.

[README.md](../README.md) lists the modules.
"""

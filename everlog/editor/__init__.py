"""The language server: what editors show of a program while it is written.

See README.md for the modules in reading order.  Needs the extra `editor`.
"""

"""What all code for rules needs: the order of joins, terms as expressions, names and lines.

[README.md](README.md) lists the modules in reading order.
"""

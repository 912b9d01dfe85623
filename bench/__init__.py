"""Benchmarks that compare systems side by side, as ratios within one run.

Machines are noisy, so each benchmark prints ratios, not absolute times.

python -m bench              everything; --small: a quick check that it runs
python -m bench closure      one of them
"""

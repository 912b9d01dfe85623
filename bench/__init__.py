"""Measurements side by side: each prints ratios from one run, for these machines are noisy.

python -m bench              everything; --small: to see that it runs
python -m bench closure      one of them
"""

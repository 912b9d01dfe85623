"""Incremental evaluation systems after Libkin and Wong: recursive views kept with auxiliary
relations.

nrc/         the calculus: types, terms, text, checker, evaluator
system.py    what a system is; making.py, running.py, properties.py: made, run, looked at
systems/     the paper's systems and others, one `.nrc` file each
encodings/   flatten (Theorem 9) and binarize (Proposition 12): from system to system
practical/   the same queries with polynomial auxiliaries, in Python
sql/         flat systems as tables and triggers
shapes.py    recursive rules that a system can keep; offers.py: systems as the engine asks for them
catalogue.py every system by its name
"""

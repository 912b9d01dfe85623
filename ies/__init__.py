"""Incremental evaluation systems after Libkin and Wong: views with auxiliaries.

An incremental evaluation system maintains a recursive view with the help of auxiliary relations.

nrc/             the calculus: types, terms, text, checker, evaluator
system.py        the data of a system; validation.py, running.py, properties.py work on it
systems/         the paper's systems and others, one `.nrc` file each
encodings/       flatten (Theorem 9) and binarize (Proposition 12): from system to system
practical/       the same queries with polynomial auxiliaries, in Python
sql/             flat systems as tables and triggers
rule_shapes.py   finds recursive rules that a system can maintain; offers.py: systems for the engine
registry.py      every system by its name
"""

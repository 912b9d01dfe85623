"""Helpers for tests of programs, with hypothesis.

>>> from hypothesis import strategies as st
>>> from everlog import compile_text
>>> from everlog.functors import bind
>>> text = ".type B = number .functor both(a:B, b:B):B .lattice B<> { Lub -> @both(_, _) }"
>>> program = bind(compile_text(text + " .decl r(x:B<>) r(1)."), {"both": lambda a, b: a | b})
>>> obeys_lattice_laws(program, "B", st.integers(0, 7))()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everlog.core.program import Program, Value
from everlog.core.program.aggregates.folded import broken_folds, folds_of
from everlog.core.program.aggregates.lattice_laws import broken_functors, broken_laws


def obeys_lattice_laws(program: Program, lattice: str, values: Any) -> Callable[[], None]:
    """A test: three values of a strategy never break a law of a lattice of the program.

    It also tries the functors that take such values through a recursion.
    """
    from hypothesis import given

    found = {each.name: each for relation in program.relations.values() for _, each in relation.lattices}
    if lattice not in found:
        raise ValueError(f"no relation of the program has a column of a lattice `{lattice}`")

    @given(values, values, values)
    def test(a: Value, b: Value, c: Value) -> None:
        tried = list(dict.fromkeys((a, b, c)))
        broken = [*broken_laws(found[lattice], program.functors, tried)]
        broken += broken_functors(program, {lattice: tried})
        assert not broken, broken[0]

    return test


def obeys_aggregate_laws(program: Program, function: str, targets: Any) -> Callable[[], None]:
    """A test: the order of three targets of a strategy never matters to `@@function`.

    >>> from hypothesis import strategies as st
    >>> from everlog import compile_text
    >>> from everlog.functors import bind
    >>> text = ".functor both(a:number, b:number):number .decl r(x:number) .decl s(x:number) r(5)."
    >>> program = compile_text(text + " s(v) :- v = @@both x : 0, { r(x) }.")
    >>> program = bind(program, {"both": lambda a, b: a | b})
    >>> obeys_aggregate_laws(program, "both", st.integers(0, 9))()
    """
    from hypothesis import given

    if function not in dict(folds_of(program)):
        raise ValueError(f"no rule of the program has an aggregate `@@{function}`")

    @given(targets, targets, targets)
    def test(a: Value, b: Value, c: Value) -> None:
        tried = list(dict.fromkeys((a, b, c)))
        broken = [law for _, laws in broken_folds(program, {function: tried}) for law in laws]
        assert not broken, broken[0]

    return test

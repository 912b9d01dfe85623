"""The cyclic join of a rule: its atoms, their tests, and implied tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from attrs import frozen

from everlog.core.classify.classes import is_acyclic
from everlog.core.classify.query import query_of
from everlog.core.program import (
    Atom,
    Comparison,
    Constant,
    Kind,
    Literal,
    Rule,
    Term,
    Variable,
    computed_arguments,
    variables_of,
)
from everlog.core.program.bodies import rule_may_fail, variables_of_literal

MOST_ATOMS = 60  # each is a bit of a mask
_ORDERS = ("<", "<=", ">", ">=")


@frozen
class CyclicJoin:
    """A cyclic join: its atoms, tests, implied tests, and the rest of the body."""

    atoms: tuple[Atom, ...]
    tests: tuple[Comparison, ...]
    implied: tuple[Comparison, ...]
    rest: tuple[Literal, ...]
    shown: frozenset[Variable]  # variables of the head and the rest


def cyclic_join(rule: Rule) -> CyclicJoin | None:
    """The join of a rule, if it is cyclic and its atoms have no computed arguments.

    A rule that may fail is excluded: an error must not depend on the order of literals.
    """
    atoms = tuple(literal for literal in rule.body if isinstance(literal, Atom))
    if not 3 <= len(atoms) <= MOST_ATOMS or computed_arguments(rule.body):
        return None
    if is_acyclic(query_of(rule)) or rule_may_fail(rule):
        return None
    bound = {arg for atom in atoms for arg in atom.args if isinstance(arg, Variable)}
    tests = tuple(one for one in rule.body if isinstance(one, Comparison) and _is_test(one, bound))
    taken = {id(literal) for literal in (*atoms, *tests)}
    rest = tuple(literal for literal in rule.body if id(literal) not in taken)
    outside = {v for arg in rule.head.args for v in variables_of(arg)} | {
        v for one in rest for v in variables_of_literal(one)
    }
    return CyclicJoin(atoms, tests, tuple(implied(tests)), rest, frozenset(outside & bound))


def implied(tests: Iterable[Comparison]) -> Iterator[Comparison]:
    """The comparisons that follow by transitivity; they may filter other atoms.

    >>> x, y, z = map(Variable, "xyz")
    >>> tests = [Comparison("<", x, y, Kind.NUMBER), Comparison(">=", z, y, Kind.NUMBER)]
    >>> [str(test) for test in implied(tests)]
    ['x < z']
    """
    strict: dict[tuple[Term, Term, Kind], bool] = {}
    for test in tests:
        if test.op in _ORDERS:
            ends = (test.left, test.right) if test.op in ("<", "<=") else (test.right, test.left)
            strict[*ends, test.kind] = strict.get((*ends, test.kind), False) or len(test.op) == 1
    given = dict(strict)
    for middle in dict.fromkeys(end for _, end, _ in given):
        for (a, b, kind), one in list(strict.items()):
            for (c, d, other), two in list(strict.items()):
                if b == middle == c and a != d and kind == other:
                    strict[a, d, kind] = strict.get((a, d, kind), False) or one or two
    for (left, right, kind), less in strict.items():
        if (left, right, kind) not in given and isinstance(left, Variable) and isinstance(right, Variable):
            yield Comparison("<" if less else "<=", left, right, kind)


def _is_test(test: Comparison, bound: Collection[Variable]) -> bool:
    """Whether it compares variables of the atoms; Spark evaluates computed ones."""
    return all(isinstance(side, Constant) or side in bound for side in (test.left, test.right))

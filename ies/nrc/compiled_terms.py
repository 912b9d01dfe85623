"""Values of terms, fast: a term is compiled once to a Python function.

`ies.nrc.codegen` writes the source of the function.  A term that is nested too deeply for Python's
compiler is evaluated by `ies.nrc.meaning`, which gives the same values.  Where `meaning` has a
value, so has this function.  If a division by zero is in a part that need not be computed, this
function may have a value and `meaning` none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from everlog.ies.nrc.arithmetic import divided, modular, plain
from everlog.ies.nrc.code_writer import Lines
from everlog.ies.nrc.codegen import Generator
from everlog.ies.nrc.indexes import index, probe
from everlog.ies.nrc.meaning import meaning
from everlog.ies.nrc.terms import Definition, Term
from everlog.ies.nrc.types import Value

_RUNTIME: dict[str, Any] = {"divided": divided, "modular": modular, "plain": plain, "index": index, "probe": probe}
_RUNTIME |= {"NONE": frozenset(), "INFINITE": inf, "bisect_left": bisect_left, "bisect_right": bisect_right}
_MAX_INDENT = 90  # Python's tokenizer allows 100


def compile_term(
    term: Term, parameters: Sequence[str], definitions: Mapping[str, Definition] | None = None
) -> Callable[..., Value]:
    """A function of the parameters, by position.

    Sets are frozensets, and integral rationals are ints.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> after = compile_term(parse_term("{y | (x, y) in R, x = a}"), ["R", "a"])
    >>> sorted(after(frozenset({(1, 2), (1, 3), (2, 4)}), 1))
    [2, 3]
    """
    generator = Generator(definitions or {})
    lines = list(_indented(generator.function(term, tuple(parameters)), 0))
    if max(len(line) - len(line.lstrip(" ")) for line in lines) <= _MAX_INDENT:
        namespace: dict[str, Any] = {**_RUNTIME, **generator.constants}
        try:
            exec(compile("\n".join(lines), "<term>", "exec"), namespace)  # our own text, without a user's words
        except SyntaxError as error:
            if "too many statically nested blocks" not in str(error):
                raise
        else:
            run: Callable[..., Value] = namespace["run"]
            return run
    names = tuple(parameters)
    return lambda *values: meaning(term, dict(zip(names, values, strict=True)), definitions)


def evaluate(
    term: Term, environment: Mapping[str, Value], definitions: Mapping[str, Definition] | None = None
) -> Value:
    """The value of a term; to evaluate one repeatedly, compile it.

    >>> from everlog.ies.nrc.parser import parse_term
    >>> evaluate(parse_term("sum{| x | x in X |} / 2"), {"X": frozenset({1, 2})})
    Fraction(3, 2)
    """
    return compile_term(term, tuple(environment), definitions)(*environment.values())


def source_of(term: Term, parameters: Sequence[str], definitions: Mapping[str, Definition] | None = None) -> str:
    """The Python source that a term is compiled to, for inspection."""
    return "\n".join(_indented(Generator(definitions or {}).function(term, tuple(parameters)), 0))


def _indented(lines: Lines, depth: int) -> Iterator[str]:
    for line in lines:
        if isinstance(line, str):
            yield " " * depth + line
        else:
            yield from _indented(line or ["pass"], depth + 1)

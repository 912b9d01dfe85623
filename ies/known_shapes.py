"""The shapes that systems maintain, as Datalog programs.

They are transitive closure, same generation and alternating paths.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

from everlog.ies.rule_shapes import Shape

CLOSURE, SAME_GENERATION, ALTERNATING = "transitive closure", "same generation", "alternating paths"

_CLOSURE = ".decl edge(x:number, y:number)  .decl path(x:number, y:number)  path(x, y) :- edge(x, y).\n"
_CLOSURE_STEPS = (
    "path(x, z) :- path(x, y), edge(y, z).",
    "path(x, z) :- edge(x, y), path(y, z).",
    "path(x, z) :- path(x, y), path(y, z).",
)
_GENERATION = ".decl edge(x:number, y:number)  .decl sg(x:number, y:number)\n"
_STEP = "sg(x, y) :- edge(a, x), sg(a, b), edge(b, y)"
_REFLEXIVE = "sg(x, x) :- edge(x, _).  sg(x, x) :- edge(_, x)."
_PARENT = "sg(x, y) :- edge(p, x), edge(p, y)"
# A variant says which pairs (x, x) of the paper's relation it has: ALL, those BELOW an edge, or
# NONE.  The other pairs are the same in all variants: x != y are at the ends of two walks of one
# length from one node, and after the last moment at which they are at one node they are at
# different ones.  So `x != y` in the step removes none of them, even where there are no pairs (x,
# x) to start from, and no (x, x) that another rule derives anyway.  `x != y` in the rule for
# siblings alone is not a variant: then the step still derives (x, x) from two parents a != b of one
# generation, and passes it on; the answer does not tell which (x, x) these are.
ALL, BELOW, NONE = "all", "below", "none"
_GENERATIONS = (
    (f"{_STEP}.  {_REFLEXIVE}", ALL),
    (f"{_STEP}.  {_PARENT}.", BELOW),
    (f"{_STEP}, x != y.  {_REFLEXIVE}", ALL),
    (f"{_STEP}, x != y.  {_PARENT}.", BELOW),
    (f"{_STEP}, x != y.  {_PARENT}, x != y.", NONE),
)
# The successors of a universal node one after the other: "for all" would need negation inside the
# recursion.
_ALTERNATING = """.decl edge(x:number, y:number)  .decl universal(x:number)  .decl apath(x:number, y:number)
.decl place(x:number)  .decl first(x:number, z:number)  .decl last(x:number, z:number)
.decl next(x:number, z:number, w:number)  .decl upto(x:number, z:number, y:number)
place(x) :- edge(x, _).
place(y) :- edge(_, y).
place(x) :- universal(x).
first(x, z) :- edge(x, z), z = min w : { edge(x, w) }.
last(x, z) :- edge(x, z), z = max w : { edge(x, w) }.
next(x, z, w) :- edge(x, z), w = min v : { edge(x, v), v > z }.
apath(x, x) :- place(x).
apath(x, y) :- edge(x, z), !universal(x), apath(z, y).
upto(x, z, y) :- universal(x), first(x, z), apath(z, y).
upto(x, w, y) :- upto(x, z, y), next(x, z, w), apath(w, y).
apath(x, y) :- upto(x, z, y), last(x, z).
"""


@cache
def shapes_of(name: str) -> tuple[Shape, ...]:
    """The forms in which a query may be written."""
    match name:
        case "transitive closure":  # left-linear, right-linear, non-linear, and combinations
            chosen = [steps for n in (1, 2, 3) for steps in combinations(_CLOSURE_STEPS, n)]
            return tuple(_shape(_CLOSURE + "\n".join(steps), "path") for steps in chosen)
        case "same generation":
            return tuple(_shape(_GENERATION + rules, "sg") for rules, _ in _GENERATIONS)
        case "alternating paths":
            return (_shape(_ALTERNATING, "apath"),)
    raise KeyError(name)


def diagonal(variant: int) -> str:
    """The pairs (x, x) that a variant of same generation has: ALL, BELOW or NONE.

    >>> [diagonal(variant) for variant in range(len(shapes_of("same generation")))]
    ['all', 'below', 'all', 'below', 'none']
    """
    return _GENERATIONS[variant][1]


def _shape(text: str, answer: str) -> Shape:
    from everlog.dsl.check import compile_text  # loaded lazily: few programs name a system

    return Shape(compile_text(text), answer)

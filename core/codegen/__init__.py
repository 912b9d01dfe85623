"""A rule to straight-line Python over indexes, innermost variable set-at-a-time.

For each rule, and for each body atom that may be read as a *delta* (only what is new), one Python
function is generated: nested loops over the indexes it needs, and at the bottom one operation on
sets.  The variable at the bottom, the *set variable*, is never looped over: every atom that has it
gives the set of its values, and `&`, `-` and `|` combine them in C.  For

    path(x, z) :- path(x, y), edge(y, z).

with Δpath kept as {y: {x, …}} this is `for y, S in Δ.items(): for z in edge[y]: new[z] |= S`.

A loop over a variable that only leads from one atom to the next is a union of sets instead, and
any other loop runs only over values that the atoms after it have at all.

The order of the body is chosen greedily: tests and equalities as soon as their variables are
bound, then the atom that is expected to give the fewest matches.

==============  =================================================================================
`body`          a rule body made ready; which variable can be the set variable
`agenda`        what is left of a body while it is being ordered
`expressions`   terms and comparisons as Python expressions
`writer`        the mechanics: lines, names, indexes, loops
`atoms`         one atom: the index it asks for, and how its matches are run through
`joins`         a whole body: the order, the tests, the set at the bottom
`rule_code`         heads and aggregates; `compile_rule`, `compile_late`
==============  =================================================================================
"""

from everlog.core.codegen.body import settable
from everlog.core.codegen.rule_code import compile_late, compile_rule
from everlog.core.codegen.writer import Access, Compiled

__all__ = ["Access", "Compiled", "compile_late", "compile_rule", "settable"]

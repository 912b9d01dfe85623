"""Rules as Python functions over indexes, the innermost variable set at a time.

For each rule, and for each body atom that may be read as a *delta* (only new facts), one Python
function is generated: nested loops over indexes, and at the bottom one operation on sets.  The
variable at the bottom, the *set variable*, is never looped over: every atom that has it contributes
the set of its values, and `&`, `-` and `|` combine them in C.  For

    path(x, z) :- path(x, y), edge(y, z).

with Δpath stored as {y: {x, …}} this is `for y, S in Δ.items(): for z in edge[y]: new[z] |= S`.

A variable that only connects one atom to the next becomes a union of sets instead of a loop, and
any other loop visits only values that the atoms after it have.

[README.md](README.md) lists the modules in reading order.
"""

from everlog.core.codegen.body import settable
from everlog.core.codegen.rule_code import compile_late, compile_rule
from everlog.core.codegen.writer import Access, Compiled

__all__ = ["Access", "Compiled", "compile_late", "compile_rule", "settable"]

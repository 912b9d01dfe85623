"""The words of the language as plain strings, each with its grammar terminal.

Colouring and completion need these words before the rest of the language is loaded, so they have a
module of their own.
"""

from __future__ import annotations


def words(type: str, listed: str) -> dict[str, str]:
    """A table of words, each with its terminal.

    >>> words("UNOP", "bnot lnot")
    {'bnot': 'UNOP', 'lnot': 'UNOP'}
    """
    return dict.fromkeys(listed.split(), type)


KEYWORDS: dict[str, str] = (
    words("BUILTIN", "cat ord range strlen substr to_float to_number to_string to_unsigned")
    | words("BUILTIN", "itof itou utoi utof ftoi ftou")
    | words("AGGREGATE", "count sum mean min max")
    | words("QUALIFIER", "input output printsize overridable eqrel inline no_inline magic no_magic")
    | words("QUALIFIER", "brie btree btree_delete")
    | words("BINOP", "band bor bxor bshl bshr bshru land lor lxor")
    | words("UNOP", "bnot lnot")
    | words("STRINGTEST", "match contains")
    | words("TRUTH", "true false")
    | {"autoinc": "AUTOINC", "recursive_iteration_cnt": "ITERATION", "as": "AS", "nil": "NIL"}
    | {"debug_delta": "DEBUG_DELTA", "stateful": "STATEFUL"}
)

DIRECTIVES: dict[str, str] = (
    words("DIRECTIVE", ".input .output .printsize .limitsize .insert_only .view")
    | {".decl": "DECL", ".type": "TYPE", ".functor": "FUNCTOR", ".pragma": "PRAGMA", ".plan": "PLAN"}
    | {".strategy": "STRATEGY"}
    | {".comp": "COMPONENT", ".init": "INIT", ".override": "OVERRIDE", ".lattice": "LATTICE"}
    | {".number_type": "NUMBER_TYPE", ".symbol_type": "SYMBOL_TYPE"}
)

# after `#`, on a preprocessor line
CONDITIONS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
PREPROCESSOR = (*CONDITIONS, "define", "undef", "include", "pragma", "line", "error", "warning")

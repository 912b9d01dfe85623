"""The checked program, and what every executor must agree on about it.

| module | holds |
|---|---|
| `program` | terms, literals, rules, relations: the narrow waist; exported by this package |
| `values` | 64-bit arithmetic, strings, conversions, as in Soufflé; `exact`, `patterns` help |
| `functors` | the table of built-in functors: one entry per name and kind |
| `bodies` | what a rule body means: which literals are ready, and when a failure counts |
| `dependencies` | which relation needs which, and the units in order; `strong` finds components |
| `demand` | programs that compute only what a query needs; `demand_constants` helps |
| `carried` | columns that recursive rules carry along, and the steps of their other columns |
| `joined_values` | relations whose facts of one key are joined into one: lattices |
| `growing`, `growth_uses` | sums and counts through recursion; which uses are sound |
| `lattice_laws` | the laws of lattices, tried on values |
| `ordered_groups` | aggregates over intervals of an order: ranks, windows, running totals |
| `best_values` | relations that are maps to a least or greatest value; which uses are monotone |
| `order` | the order of rows and values |
| `fact_rows` | rows from outside, checked against a relation |
| `shown` | rules in print, without the names that the checker makes |
| `executor` | the protocol of everything that runs a program |
"""

from everlog.core.program.program import (
    PARAMETERS,
    Aggregate,
    Atom,
    Call,
    Column,
    Comparison,
    Constant,
    Directive,
    Failure,
    Functor,
    Kind,
    Literal,
    Negation,
    Origin,
    Program,
    Range,
    Relation,
    Row,
    Rule,
    Subsumption,
    Term,
    Value,
    Variable,
    Wildcard,
    atoms_of,
    calls_of,
    computed_arguments,
    draws_numbers,
    flat_body,
    invents,
    quoted,
    variables_of,
    written_body,
)

__all__ = [
    "PARAMETERS",
    "Aggregate",
    "Atom",
    "Call",
    "Column",
    "Comparison",
    "Constant",
    "Directive",
    "Failure",
    "Functor",
    "Kind",
    "Literal",
    "Negation",
    "Origin",
    "Program",
    "Range",
    "Relation",
    "Row",
    "Rule",
    "Subsumption",
    "Term",
    "Value",
    "Variable",
    "Wildcard",
    "atoms_of",
    "calls_of",
    "computed_arguments",
    "draws_numbers",
    "flat_body",
    "invents",
    "quoted",
    "variables_of",
    "written_body",
]

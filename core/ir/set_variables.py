"""Which variables of a rule body can be its set variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlog.core import program as p
from everlog.core.program import Aggregate, Atom, Call, Comparison, Literal, Negation, Range, Rule, Variable
from everlog.core.program.bodies import variables_of_literal
from everlog.core.storage.shape import Shape

MAX_CANDIDATES = 6  # set variables to try for one rule


def set_variables(rule: Rule, shapes: Mapping[str, Shape]) -> list[Variable]:
    """The candidates, best first: variables of a head column, then unneeded ones."""
    head = rule.head
    shape = shapes[head.relation]
    in_head = [v for arg in head.args for v in p.variables_of(arg)]
    columns = reversed(shape.fact_columns)
    wanted = [a for c in columns if isinstance(a := head.args[c], Variable) and in_head.count(a) == 1]
    counts: dict[Variable, int] = {}
    for literal in rule.body:
        if isinstance(literal, Atom):
            for arg in literal.args:
                if isinstance(arg, Variable):
                    counts[arg] = counts.get(arg, 0) + 1
    unneeded = [v for v, n in sorted(counts.items(), key=lambda e: -e[1]) if v not in in_head]
    likely = [v for v in [*wanted, *unneeded] if v in counts][:MAX_CANDIDATES]
    return [v for v in likely if settable(v, rule.body)]


def settable(variable: Variable, body: Sequence[Literal]) -> bool:
    """Whether every literal that has the variable can work on the set of its values."""
    for literal in body:
        match literal:
            case Atom(args=args):  # computes nothing
                if args.count(variable) > 1:
                    return False
            case Negation(Atom(args=args)):
                if sum(v == variable for a in args for v in p.variables_of(a)) > 1:
                    return False
                if any(isinstance(a, Call) and variable in p.variables_of(a) for a in args):  # under `!`
                    return False
            case Comparison(op, left, right, _):
                inside = [t for t in (left, right) if variable in p.variables_of(t)]
                if inside and (len(inside) == 2 or inside[0] != variable or op == "="):
                    return False
            case Aggregate(result=result, outer=outer):
                if variable == result or variable in outer:
                    return False
            case Range():
                if variable in variables_of_literal(literal):
                    return False
    return True


def aggregated_sets(literal: Aggregate, body: Sequence[Literal]) -> list[Variable]:
    if literal.op == "count":
        candidates = [a for x in body if isinstance(x, Atom) for a in x.args if isinstance(a, Variable)]
    else:
        candidates = [literal.target] if isinstance(literal.target, Variable) else []
    in_atoms = {a for x in body if isinstance(x, Atom) for a in x.args}
    fresh = [v for v in dict.fromkeys(candidates) if v not in literal.outer and v in in_atoms]
    return [v for v in fresh[:MAX_CANDIDATES] if settable(v, body)]

"""Facts, literals and rules in the language's syntax, with values for variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Program,
    Range,
    Row,
    Rule,
    Subsumption,
    Term,
    Value,
    Variable,
    Wildcard,
    written_body,
)
from everlog.core.program.shown import shown_name


def fact_text(program: Program, relation: str, row: Row) -> str:
    """A fact as the language writes it.

    >>> from everlog.core.program import Column, Relation
    >>> columns = Column("x", Kind.NUMBER), Column("y", Kind.SYMBOL)
    >>> fact_text(Program({"p": Relation("p", columns)}), "p", (1, "a"))
    'p(1, "a")'
    """
    columns = program.relations[relation].columns
    values = (str(constant(value, column.kind)) for value, column in zip(row, columns, strict=True))
    return f"{relation}({', '.join(values)})"


def constant(value: Value, kind: Kind) -> Constant:
    """A value as a constant; of its own kind where `kind` does not fit."""
    if isinstance(value, str):
        return Constant(value, Kind.SYMBOL)
    if isinstance(value, float):
        return Constant(value, Kind.FLOAT)
    return Constant(value, kind if kind in (Kind.NUMBER, Kind.UNSIGNED) else Kind.NUMBER)


def rule_text(rule: Rule | Subsumption) -> str:
    """A rule's name, place and text; unknown parts are left out."""
    place = str(rule.origin) if rule.origin.file or rule.origin.line else ""
    if isinstance(rule, Subsumption):
        return f"{' '.join(rule.origin.text.split()) or rule}" + (f" at {place}" if place else "")
    name = " at ".join(part for part in (rule.name, place) if part)
    return f"{name}:  {rule.written}" if name else rule.written


# ── literals ─────────────────────────────────────────────────────────────────────────────────


def literal_text(program: Program, literal: Literal, binding: Mapping[str, Value]) -> str:
    """A literal with the values of its variables.

    >>> x, five = Variable("x"), Constant(5, Kind.NUMBER)
    >>> literal_text(Program({}), Comparison("<", x, five, Kind.NUMBER), {"x": 3})
    '3 < 5'
    """
    match literal:
        case Atom():
            return atom_text(program, literal, binding)
        case Negation(atom):
            return f"no fact {atom_text(program, atom, binding)}"
        case Comparison(op, left, right, kind):
            sides = term_text(left, kind, binding), term_text(right, kind, binding)
            if op.startswith("not_"):
                return f"!{op[4:]}({sides[0]}, {sides[1]})"
            return f"{op}({sides[0]}, {sides[1]})" if op.isalpha() else f"{sides[0]} {op} {sides[1]}"
        case Range(result, start, stop, step, kind):
            args = [term_text(t, kind, binding) for t in (start, stop, step) if t is not None]
            return f"{term_text(result, kind, binding)} in range({', '.join(args)})"
        case Aggregate(result, kind=kind):
            return f"{aggregate_text(program, literal, binding)} = {term_text(result, kind, binding)}"


def aggregate_text(program: Program, literal: Aggregate, binding: Mapping[str, Value]) -> str:
    """An aggregate without its result; its own variables keep their names."""
    outer = {variable.name: binding[variable.name] for variable in literal.outer if variable.name in binding}
    target = "" if literal.target is None else f" {term_text(literal.target, literal.kind, outer)}"
    parts = [
        ("!" if isinstance(inner, Negation) else "") + atom_text(program, atom, outer, keep=True)
        if isinstance(atom := inner.atom if isinstance(inner, Negation) else inner, Atom)
        else literal_text(program, inner, outer)
        for inner in written_body(literal.body)
    ]
    return literal.over(target, parts)


def atom_text(program: Program, atom: Atom, binding: Mapping[str, Value], keep: bool = False) -> str:
    """An atom; an unbound variable that occurs once is `_` unless `keep`."""
    columns = program.relations[atom.relation].columns
    often = Counter(arg for arg in atom.args if isinstance(arg, Variable))
    args = []
    for arg, column in zip(atom.args, columns, strict=True):
        lonely = isinstance(arg, Variable) and arg.name not in binding and often[arg] == 1
        args.append("_" if lonely and not keep else term_text(arg, column.kind, binding))
    return f"{atom.relation}({', '.join(args)})"


def term_text(term: Term, kind: Kind, binding: Mapping[str, Value]) -> str:
    text = str(_filled(term, kind, binding))
    infix = isinstance(term, Call) and text.startswith("(")
    return text[1:-1] if infix else text


def _filled(term: Term, kind: Kind, binding: Mapping[str, Value]) -> Term:
    """The term with values for variables."""
    match term:
        case Variable(name):
            return constant(binding[name], kind) if name in binding else Variable(shown_name(name))
        case Call(name, args, operand, result):
            return Call(name, tuple(_filled(arg, operand, binding) for arg in args), operand, result)
        case Constant() | Wildcard():
            return term

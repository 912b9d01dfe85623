"""Rules in print: variables as their author knows them.

The checker names wildcards, renames variables of inlined rules, and gives each aggregate a variable
for its result: `_@2`, `y@5`, `count@1`.  A text has no such names, so no message shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from everlog.core.program.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Literal,
    Negation,
    Range,
    Rule,
    Term,
    Variable,
    variables_of,
    written_body,
)


def shown_name(name: str) -> str:
    """A variable without the checker's additions.

    >>> shown_name("y@5"), shown_name("_@2"), shown_name("?0.1")
    ('y', '_', '_')
    """
    return "_" if name.startswith("?") else name.partition("@")[0] or "_"


def shown_rule(rule: Rule) -> Rule:
    """The rule with names that could stand in a text; different variables keep different names.

    >>> x, same = Variable("x@1"), Variable("x@2")
    >>> print(shown_rule(Rule(Atom("p", (x,)), (Atom("e", (x, same)),))))
    p(x) :- e(x, x').
    """
    names = distinct_names(_variables([rule.head, *written_body(rule.body)]))
    body = tuple(_named(literal, names) for literal in written_body(rule.body))
    return evolve(rule, head=_atom(rule.head, names), body=body)


def shown_body(body: Iterable[Literal]) -> list[Literal]:
    """Literals for print: as in `shown_rule`, and wildcards are wildcards again.

    >>> print(*shown_body([Atom("e", (Variable("x@1"), Variable("_@2"), Variable("_@3")))]))
    e(x, _, _)
    """
    body = list(body)
    names = distinct_names(_variables(body))
    names |= {name: "_" for name in names if shown_name(name) == "_"}
    return [_named(literal, names) for literal in body]


def shown_aggregate(aggregate: Aggregate) -> str:
    """What an aggregate computes, without the variable of its result."""
    (named,) = shown_body([aggregate])
    assert isinstance(named, Aggregate)
    return str(named).removeprefix(f"{named.result} = ")


def distinct_names(variables: Iterable[str]) -> dict[str, str]:
    """A name that a text could have for each variable, and no two the same.

    >>> distinct_names(["x", "x@2", "y@1"])
    {'x': 'x', 'x@2': "x'", 'y@1': 'y'}
    """
    variables = dict.fromkeys(variables)
    found = {name: name for name in variables if shown_name(name) == name}
    taken = set(found)
    for name in variables:
        shown = shown_name(name)
        while name not in found and shown in taken:
            shown += "'"
        taken.add(found.setdefault(name, shown))
    return found


def _variables(literals: Iterable[Literal]) -> list[str]:
    """The names of all variables, those inside of aggregates too."""
    found: list[str] = []
    for literal in literals:
        match literal:
            case Negation(atom):
                found += _variables([atom])
            case Aggregate(target=target, body=body):
                found += [literal.result.name, *(v.name for v in literal.outer)]
                found += [] if target is None else [v.name for v in variables_of(target)]
                found += _variables(written_body(body))
            case Atom(args=terms):
                found += [v.name for term in terms for v in variables_of(term)]
            case Comparison(left=left, right=right):
                found += [v.name for term in (left, right) for v in variables_of(term)]
            case Range():
                found += [v.name for term in (literal.result, *literal.bounds) for v in variables_of(term)]
    return found


def _named(literal: Literal, names: Mapping[str, str]) -> Literal:
    match literal:
        case Atom():
            return _atom(literal, names)
        case Negation(atom):
            return Negation(_atom(atom, names))
        case Comparison(left=left, right=right):
            return evolve(literal, left=_term(left, names), right=_term(right, names))
        case Range(start=start, stop=stop, step=step):
            return evolve(
                literal,
                result=_variable(literal.result, names),
                start=_term(start, names),
                stop=_term(stop, names),
                step=None if step is None else _term(step, names),
            )
        case Aggregate(target=target):
            return evolve(
                literal,
                result=_variable(literal.result, names),
                target=None if target is None else _term(target, names),
                body=tuple(_named(inner, names) for inner in written_body(literal.body)),
                outer=tuple(_variable(v, names) for v in literal.outer),
            )


def _atom(atom: Atom, names: Mapping[str, str]) -> Atom:
    return evolve(atom, args=tuple(_term(arg, names) for arg in atom.args))


def _variable(variable: Variable, names: Mapping[str, str]) -> Variable:
    return Variable(names[variable.name])


def _term(term: Term, names: Mapping[str, str]) -> Term:
    match term:
        case Variable():
            return _variable(term, names)
        case Call(args=args):
            return evolve(term, args=tuple(_term(arg, names) for arg in args))
        case _:
            return term

"""clingo: the program as answer-set rules, facts as text; its grounder computes.

Rules are translated from the checked program: variables begin with a capital, `not` for `!`,
aggregates over sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everlog.bench.harness.workload import Case, Row, Side, Static, installed_version


class Clingo:
    def __init__(self, case: Case) -> None:
        import clingo

        self.case = case
        self.facts = case.folder / "facts.lp"
        if not self.facts.exists():
            with self.facts.open("w") as file:
                for relation in case.base:
                    for row in case.rows(relation):
                        file.write(f"{relation}({','.join(map(str, row))}).\n")
        self.rules = as_asp(case.program)
        self.arity = {relation: _arity(case.program, relation) for relation in case.answers}
        self.control: Any = clingo.Control(["--warn=none"])

    def load(self) -> None:
        self.control.add("base", [], self.rules)
        self.control.load(str(self.facts))

    def solve(self) -> None:
        self.control.ground([("base", [])])
        self.control.solve()

    def size(self, relation: str) -> int:
        return sum(1 for _ in self.control.symbolic_atoms.by_signature(relation, self.arity[relation]))

    def answer(self, relation: str) -> Iterable[Row]:
        for atom in self.control.symbolic_atoms.by_signature(relation, self.arity[relation]):
            yield tuple(argument.number for argument in atom.symbol.arguments)

    def close(self) -> None:
        pass


def _arity(program: str, relation: str) -> int:
    from everlog import compile_text

    return compile_text(program).relations[relation].arity


def as_asp(program: str) -> str:
    """The rules of a program for clingo.

    >>> print(as_asp('''.decl e(x:number, y:number)  .decl p(x:number, k:number)
    ...   p(x, k) :- e(x, _), !e(x, x), k = count : { e(x, _) }.'''))
    #defined e/2.
    #defined p/2.
    p(V_x,V_count_1) :- e(V_x,_), not e(V_x,V_x), V_count_1 = #count { V___2 : e(V_x,V___2) }.
    """
    from everlog import compile_text

    checked = compile_text(program)
    lines = [f"#defined {name}/{relation.arity}." for name, relation in checked.relations.items()]
    for rule in checked.rules:
        lines.append(f"{_atom(rule.head)} :- {', '.join(map(_literal, rule.body))}.")
    return "\n".join(lines)


def _term(term: Any) -> str:
    from everlog.core.program import Constant, Variable, Wildcard

    match term:
        case Variable(name):
            return f"V_{name.replace('@', '_')}"
        case Constant(value):
            return str(value)
        case Wildcard():
            return "_"
    raise NotImplementedError(f"in clingo: {term}")


def _atom(atom: Any) -> str:
    return f"{atom.relation}({','.join(map(_term, atom.args))})"


def _literal(literal: Any) -> str:
    from everlog.core.program import Aggregate, Atom, Comparison, Negation

    match literal:
        case Atom():
            return _atom(literal)
        case Negation(atom):
            return f"not {_atom(atom)}"
        case Comparison(op=op, left=left, right=right):
            return f"{_term(left)} {op} {_term(right)}"
        case Aggregate(result=result, op=op, target=target, body=body):
            free = [_term(v) for v in _inner(literal)]
            first = [] if target is None else [_term(target)]
            elements = ",".join(dict.fromkeys(first + (free if op in ("count", "sum") else [])))
            if op == "sum":  # the summed term comes first, also if it is a variable of the body
                elements = ",".join([*first, *free])
            return f"{_term(result)} = #{op} {{ {elements} : {', '.join(map(_literal, body))} }}"
    raise NotImplementedError(f"in clingo: {literal}")


def _inner(aggregate: Any) -> list[Any]:
    """The variables that are bound inside."""
    from everlog.core.program import Variable, atoms_of

    seen = [term for atom, _ in atoms_of(aggregate.body) for term in atom.args if isinstance(term, Variable)]
    return [variable for variable in dict.fromkeys(seen) if variable not in aggregate.outer]


def _static(case: Case) -> Static:
    return Clingo(case)


SIDES = [Side("clingo", "clingo", installed_version("clingo"), _static)]

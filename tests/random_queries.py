"""Random queries of random programs."""

from __future__ import annotations

from typing import Any

from generators import VALUES
from hypothesis import strategies as st

from everlog.core.program import Atom, Column, Constant, Kind, Negation, Program, Rule, Term, Variable


def query_of(program: Program, data: st.DataObject) -> tuple[Rule, tuple[Column, ...]]:
    """A query of one or two atoms with constants, and perhaps a negated one."""
    names = sorted(program.relations)
    kinds: dict[str, Kind] = {}

    def atom(shared: bool) -> Atom:
        name = data.draw(st.sampled_from(names))
        args: list[Term] = []
        for column in program.relations[name].columns:
            known = sorted(n for n, kind in kinds.items() if kind is column.kind)
            how = data.draw(st.sampled_from(["constant", "new", "known"]))
            if how == "constant" or (shared and not known):
                args.append(Constant(data.draw(st.sampled_from(VALUES[column.kind.value])), column.kind))
            elif known and (shared or how == "known"):
                args.append(Variable(data.draw(st.sampled_from(known))))
            else:
                kinds[f"q{len(kinds)}"] = column.kind
                args.append(Variable(f"q{len(kinds) - 1}"))
        return Atom(name, tuple(args))

    body: list[Any] = [atom(False) for _ in range(data.draw(st.integers(1, 2)))]
    if data.draw(st.booleans()):
        body.append(Negation(atom(True)))
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    return Rule(Atom("?-", tuple(Variable(name) for name in kinds)), tuple(body), name="?-#1"), columns

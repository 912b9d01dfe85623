"""Whether a derivation rests on a suspect: witnesses, followed up to base facts.

When few facts lose their witness, most have another derivation, and all facts that rest on them can
stay.  But a derivation may rest on the very fact that it is to prove.  So its facts are followed up
along their witnesses: a derivation that ends in base facts is well-founded; one that reaches a fact
without a witness is not, for suspects have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from everlog.core.engine.keepers.recursive.proofs import Proofs, Witness
from everlog.core.ir.python_text import tuple_text
from everlog.core.ir.uses import hidden_variables
from everlog.core.program import Atom, Constant, Row, Rule, Value, Variable

Fact: TypeAlias = tuple[str, Row]
Premises: TypeAlias = Callable[[Row, Witness], tuple[Fact, ...]]

MOST_STEPS = 2_000  # witnesses to follow for one fact


class Ancestry:
    """The facts of one recursive unit that its witnesses used."""

    def __init__(self, rules: Iterable[Rule], numbers: Mapping[str, int], proofs: Mapping[str, Proofs]) -> None:
        self._proofs = proofs
        self.followed = 0  # witnesses, by the last call of `is_founded`
        self._premises: dict[int, Premises | None] = {}
        linear = True
        for rule in rules:
            premises = self._premises[numbers[rule.name]] = premises_of(rule, proofs.keys())
            inside = [x for x in rule.body if isinstance(x, Atom) and x.relation in proofs]
            linear = linear and premises is not None and len(inside) < 2
        self.is_founded = self._is_founded_chain if linear else self._is_founded_tree

    def _is_founded_chain(self, row: Row, witness: Witness) -> bool:
        """The same if no rule uses two facts of the unit: a single path, without cycles."""
        proofs, premises_by = self._proofs, self._premises
        for self.followed in range(MOST_STEPS):
            premises = premises_by[witness[0]] if witness else None
            above = premises(row, witness) if premises is not None else ()
            if not above:
                return True
            name, row = above[0]
            kept = proofs[name].get(row)
            if kept is None:
                return False
            witness = kept
        return False

    def _is_founded_tree(self, row: Row, witness: Witness) -> bool:
        """Whether a derivation rests on base facts alone, along the present witnesses."""
        seen: set[Fact] = set()
        stack = self._above(row, witness)
        self.followed = 0
        if stack is None:
            return False
        while stack:
            fact = stack.pop()
            if fact in seen:
                continue
            seen.add(fact)
            self.followed += 1
            kept = self._proofs[fact[0]].get(fact[1])
            above = None if kept is None or len(seen) > MOST_STEPS else self._above(fact[1], kept)
            if above is None:
                return False
            stack += above
        return True

    def _above(self, row: Row, witness: Witness) -> list[Fact] | None:
        """The facts of this unit that a derivation used; None if unknown."""
        if not witness:
            return []
        premises = self._premises[witness[0]]
        return None if premises is None else list(premises(row, witness))


def premises_of(rule: Rule, unit: Iterable[str]) -> Premises | None:
    """A function from a fact and its witness to the facts of the unit that it used.

    None if an argument of such a fact is computed, or in neither.

    >>> x, y, z = map(Variable, "xyz")
    >>> rule = Rule(Atom("path", (x, z)), (Atom("path", (x, y)), Atom("edge", (y, z))))
    >>> premises_of(rule, ["path"])((1, 3), (2, "y"))
    (('path', (1, 'y')),)
    """
    inside, hidden = set(unit), hidden_variables(rule)
    seen = {variable: f"witness[{n + 1}]" for n, variable in enumerate(hidden)}
    seen |= {arg: f"row[{n}]" for n, arg in enumerate(rule.head.args) if isinstance(arg, Variable)}
    values: list[Value] = []
    facts: list[str] = []
    for literal in rule.body:
        if isinstance(literal, Atom) and literal.relation in inside:
            args: list[str] = []
            for arg in literal.args:
                match arg:
                    case Variable() if arg in seen:
                        args.append(seen[arg])
                    case Constant(value=value):
                        args.append(f"values[{len(values)}]")
                        values.append(value)
                    case _:
                        return None
            facts.append(f"({literal.relation!r}, {tuple_text(args)})")
    premises: Premises = eval(f"lambda row, witness: {tuple_text(facts)}", {"values": values})  # our own text
    return premises

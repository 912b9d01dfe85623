"""Whether a proof leads through a suspect: the witnesses of a fact, followed up to what is given.

When few facts lose their witness, most have another derivation, and all that rests on them could
stay as it is.  But a derivation may rest on the very fact that it is to prove.  To know, its facts
are followed up along their witnesses: a way that ends in given facts is well-founded, one that
comes to a fact without a witness is not, for suspects have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from everlog.core.codegen.derivations import hidden_variables
from everlog.core.codegen.writer import tuple_text
from everlog.core.engine.keepers.recursive.proofs import Proofs, Witness
from everlog.core.program import Atom, Constant, Row, Rule, Value, Variable

Fact: TypeAlias = tuple[str, Row]
Premises: TypeAlias = Callable[[Row, Witness], tuple[Fact, ...]]

MOST_STEPS = 2_000  # that one fact is followed up


class Ancestry:
    """The facts of one recursive unit that its witnesses used."""

    def __init__(self, rules: Iterable[Rule], numbers: Mapping[str, int], proofs: Mapping[str, Proofs]) -> None:
        self._proofs = proofs
        self._premises: dict[int, Premises | None] = {}
        linear = True
        for rule in rules:
            premises = self._premises[numbers[rule.name]] = premises_of(rule, proofs.keys())
            inside = [x for x in rule.body if isinstance(x, Atom) and x.relation in proofs]
            linear = linear and premises is not None and len(inside) < 2
        self.is_founded = self._is_founded_chain if linear else self._is_founded_tree

    def _is_founded_chain(self, row: Row, witness: Witness) -> bool:
        """The same where no rule uses two facts of the unit: one way up, which cannot come back."""
        proofs, premises_by = self._proofs, self._premises
        for _ in range(MOST_STEPS):
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
        """Whether a derivation rests on given facts alone, along the witnesses that there are."""
        seen: set[Fact] = set()
        stack = self._above(row, witness)
        if stack is None:
            return False
        while stack:
            fact = stack.pop()
            if fact in seen:
                continue
            seen.add(fact)
            kept = self._proofs[fact[0]].get(fact[1])
            above = None if kept is None or len(seen) > MOST_STEPS else self._above(fact[1], kept)
            if above is None:
                return False
            stack += above
        return True

    def _above(self, row: Row, witness: Witness) -> list[Fact] | None:
        """The facts of this unit that a derivation used; None if that cannot be told."""
        if not witness:
            return []
        premises = self._premises[witness[0]]
        return None if premises is None else list(premises(row, witness))


def premises_of(rule: Rule, unit: Iterable[str]) -> Premises | None:
    """A function from a fact and its witness to the facts of the unit that the rule used.

    None if an argument of such a fact is computed, or stands in neither.

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

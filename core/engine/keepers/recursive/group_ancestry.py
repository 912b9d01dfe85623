"""Whether proofs lead through a suspect, for whole sets of facts at a time.

Where rules carry a column along, one witness stands for a set of facts (`GroupedProofs`): all the
`path(x, z)` that came from `path(x, y), edge(y, z)`.  Such a set is followed up as a whole: from
`z` to `y`, cut there by the witnesses that it meets, and so on up to given facts.  What comes to a
place without a witness on the way is not founded: see core.engine.keepers.recursive.ancestry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from everlog.core.codegen.writer import tuple_text
from everlog.core.engine.keepers.recursive.ancestry import Ancestry, Fact, argument_texts
from everlog.core.engine.keepers.recursive.proofs import GroupedProofs, Proofs
from everlog.core.engine.stepping.saved_state import Witness
from everlog.core.program import Atom, Rule, Value, Variable
from everlog.core.storage.table_shapes import PairShape, ValueSet

Place: TypeAlias = tuple[str, Value]  # a relation, and a key of it
Places: TypeAlias = Callable[[Value, Witness], tuple[Place, ...]]
Facts: TypeAlias = Callable[[Value, Witness], tuple[Fact, ...]]
Lifted: TypeAlias = tuple[Places, Facts]

MOST_GROUPS = 20_000  # that are met in following one set up


class GroupAncestry:
    """The facts of one recursive unit that its witnesses used, as sets."""

    def __init__(self, lifted: Mapping[int, Lifted], proofs: Mapping[str, Proofs], facts: Ancestry) -> None:
        self._lifted, self._proofs, self._facts = lifted, proofs, facts

    @classmethod
    def of(
        cls, rules: Iterable[Rule], numbers: Mapping[str, int], proofs: Mapping[str, Proofs], facts: Ancestry
    ) -> GroupAncestry | None:
        """None where some rule does not carry sets along."""
        lifted = {numbers[rule.name]: lifted_premises(rule, proofs) for rule in rules}
        known = {number: premises for number, premises in lifted.items() if premises is not None}
        return cls(known, proofs, facts) if len(known) == len(lifted) else None

    def founded(self, key: Value, witness: Witness, values: ValueSet) -> ValueSet:
        """Those of the values of a key whose derivation rests on given facts alone.

        Cost: one intersection for each witness that is met on the way up.
        """
        lost: ValueSet = set()
        known: dict[Fact, bool] = {}
        level: dict[Place, ValueSet] = {}
        left_to_meet = MOST_GROUPS
        if witness and not self._climb(key, witness, values, level, known):
            return set()
        while level:
            above: dict[Place, ValueSet] = {}
            for (name, key), followed in level.items():
                groups = self._proofs[name].data.get(key, {})
                left_to_meet -= len(groups)
                if left_to_meet < 0:
                    return set()
                left = len(followed)
                for kept, having in groups.items():
                    hit = followed & having
                    if hit:
                        if kept and not self._climb(key, kept, hit, above, known):
                            lost |= hit
                        left -= len(hit)
                        if not left:
                            break
                if left:
                    lost |= followed.difference(*groups.values())
            level = above
        return values - lost

    def _climb(
        self, key: Value, witness: Witness, values: ValueSet, above: dict[Place, ValueSet], known: dict[Fact, bool]
    ) -> bool:
        """Add the places that a derivation of these values used; False if none is founded."""
        assert witness, "a given fact has no derivation"
        places, facts = self._lifted[witness[0]]
        for fact in facts(key, witness):
            founded = known.get(fact)
            if founded is None:
                kept = self._proofs[fact[0]].get(fact[1])
                founded = known[fact] = kept is not None and self._facts.is_founded(fact[1], kept)
            if not founded:
                return False
        for place in places(key, witness):
            there = above.get(place)
            above[place] = values if there is None else there | values
        return True


def lifted_premises(rule: Rule, proofs: Mapping[str, Proofs]) -> Lifted | None:
    """Functions from a key and a witness to the places and facts that were used.

    None where what a rule used depends on the value in another way.

    >>> x, y, z = map(Variable, "xyz")
    >>> rule = Rule(Atom("path", (x, z)), (Atom("path", (x, y)), Atom("edge", (y, z))))
    >>> places, facts = lifted_premises(rule, {"path": GroupedProofs(PairShape(value=0), {})})
    >>> places("z", (2, "y")), facts("z", (2, "y"))
    ((('path', 'y'),), ())
    """
    proven = proofs[rule.head.relation]
    if not isinstance(proven, GroupedProofs):
        return None
    key, carried = rule.head.args[proven.shape.key], rule.head.args[proven.shape.value]
    shown = {key: "key"} if isinstance(key, Variable) and key != carried else {}
    values: list[Value] = []
    places: list[str] = []
    facts: list[str] = []
    for atom in rule.body:
        if not isinstance(atom, Atom) or atom.relation not in proofs:
            continue
        premise = proofs[atom.relation]
        carrying = isinstance(premise, GroupedProofs) and atom.args[premise.shape.value] == carried
        shape = premise.shape if carrying else None
        seen = {**shown, carried: "None"} if carrying and isinstance(carried, Variable) else shown
        if isinstance(shape, PairShape) and atom.args[shape.key] == carried:
            return None
        args = argument_texts(rule, atom, seen, values)
        if args is None:
            return None
        if isinstance(shape, PairShape):
            places.append(f"({atom.relation!r}, {args[shape.key]})")
        else:
            facts.append(f"({atom.relation!r}, {tuple_text(args)})")
    scope = {"values": values}
    return (
        eval(f"lambda key, witness: {tuple_text(places)}", scope),  # our own text, made above
        eval(f"lambda key, witness: {tuple_text(facts)}", scope),
    )

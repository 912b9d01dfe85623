"""Rules that read relations which are kept, instead of joining a part of their body again.

    two(a, c) :- edge(a, b), edge(b, c).
    q(z) :- edge(1, y), edge(y, z), z > 9.          is run as      q(z) :- two(1, z), z > 9.

The mapping of `core.program.containment` proves each replacement.  A rule reads only relations
whose rule stands before it in the text and that do not depend on it.  So no cycle comes of it, and
a rule that is added changes how it is run itself, and no other.

A relation is read so only while it holds the answers of its body and nothing else.  Facts of its
own, other rules, or a declaration as a view or on demand send its readers back to their own bodies.

A replacement pays where one update costs no more than before.  What the relation itself costs is
paid in any case.  What is left of the join meets, for one row, at most as many matches as the whole
join has values for the variables that are left: that exponent must not be larger than the one of
the rule as it was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from everlog.core.classify.query import Query, query_of
from everlog.core.engine.planning.demand_parts import on_demand
from everlog.core.engine.planning.existence import planned_exponent
from everlog.core.joins.exponents import update_exponent
from everlog.core.joins.join_strategies import DELTA
from everlog.core.joins.strategy_choice import wanted
from everlog.core.program import Aggregate, Atom, Program, Rule, atoms_of, draws_numbers
from everlog.core.program.containment import Covering, answering_rules, covered
from everlog.core.program.dependencies import edges, units


@frozen
class Reading:
    """A program whose rules read what is kept; the changed rules as they were written, by name."""

    program: Program
    written: Mapping[str, Rule] = field(factory=dict)
    coverings: Mapping[str, tuple[Covering, ...]] = field(factory=dict)


def reading_kept(program: Program, asked: Mapping[str, str], own: Collection[str] = ()) -> Reading:
    """The program in which rules read relations that hold the answers of parts of their bodies.

    `own` are relations that have facts of their own.  Rules with a strategy or an order that was
    asked for stay as they are.

    Cost: linear in the program, and in the pairs of a rule and a relation that fits a part of it.
    """
    known = [] if "*" in asked else _readable(program, asked, own)
    if not known:
        return Reading(program)
    places = {rule.name: place for place, rule in enumerate(program.rules)}
    needs = _Needs(program)
    by_rarest, fixed, recursive = _by_rarest(program, known), _fixed(program), _recursive(program)
    written, coverings, rules = dict[str, Rule](), dict[str, tuple[Covering, ...]](), list(program.rules)
    for place, rule in enumerate(program.rules):
        head = rule.head.relation
        if head in fixed or rule.orders or _strategy(rule, asked):
            continue
        usable = [
            view
            for relation in dict.fromkeys(x.relation for x in rule.body if isinstance(x, Atom))
            for view in by_rarest.get(relation, ())
            if places[view.name] < place
        ]
        found = list(_replaced(rule, usable, needs, head in recursive))
        if found:
            rules[place], written[rule.name] = found[-1][0], rule
            coverings[rule.name] = tuple(covering for _, covering in found)
    return Reading(evolve(program, rules=tuple(rules)), written, coverings)


def _replaced(
    rule: Rule, usable: Sequence[Rule], needs: _Needs, recursive: bool
) -> Iterator[tuple[Rule, Covering]]:
    """The rule after each replacement that pays; those of the largest bodies come first."""
    head = rule.head.relation
    for view in sorted(usable, key=lambda each: -len(each.body)):
        new, coverings = covered(rule, [view])
        if not coverings or needs.depends(view.head.relation, head):
            continue
        if recursive or _pays(rule, new):
            needs.add(head, view.head.relation)
            for covering in coverings:
                yield new, covering
            rule = new


def _pays(rule: Rule, new: Rule) -> bool:
    """Whether one update of a rule costs no more where it is run as `new`."""
    left, whole = query_of(new), query_of(rule)
    atoms = (evolve(a, variables=tuple(v for v in a.variables if v in left.variables)) for a in whole.atoms)
    join = Query(tuple(atoms), left.free)
    return update_exponent(DELTA, join, wanted(new).shown) <= planned_exponent(rule)


def _strategy(rule: Rule, asked: Mapping[str, str]) -> str:
    return asked.get(rule.name) or asked.get(rule.head.relation) or rule.strategy


def _readable(program: Program, asked: Mapping[str, str], own: Collection[str]) -> list[Rule]:
    """The rules of relations that are kept, and hold the answers of their bodies."""
    no = {*own, *on_demand(program, asked), *(directive.relation for directive in program.inputs)}
    return [
        rule
        for rule in answering_rules(program)
        if rule.head.relation not in no
        and not program.relations[rule.head.relation].view
        and len(rule.body) > 1
        and not _strategy(rule, asked)
    ]


def _by_rarest(program: Program, known: Sequence[Rule]) -> dict[str, list[Rule]]:
    """These rules by the relation of their body that the fewest rules read."""
    reads = Counter(name for rule in program.rules for name in {a.relation for a, _ in atoms_of(rule.body)})
    found: dict[str, list[Rule]] = {}
    for rule in known:
        names = [x.relation for x in rule.body if isinstance(x, Atom)]
        found.setdefault(min(names, key=lambda name: (reads[name], name)), []).append(rule)
    return found


def _fixed(program: Program) -> set[str]:
    """The relations whose rules stay as written; what some hold depends on their rounds."""
    found = {each.dominated.relation for each in program.subsumptions} | set(program.limits)
    for name, relation in program.relations.items():
        if relation.equivalence or relation.choices or relation.lattices or relation.auxiliary_of or relation.view:
            found.add(name)
    for unit in units(program):
        totals = unit.recursive and any(isinstance(x, Aggregate) for rule in unit.rules for x in rule.body)
        if totals or any(map(draws_numbers, unit.rules)) or not found.isdisjoint(unit.relations):
            found.update(unit.relations)
    return found


def _recursive(program: Program) -> set[str]:
    return {name for unit in units(program) if unit.recursive for name in unit.relations}


class _Needs:
    """Which relation reads which, with what was added since."""

    def __init__(self, program: Program) -> None:
        self._reads: dict[str, set[str]] = {}
        for edge in edges(program):
            self.add(edge.head, edge.body)

    def add(self, reader: str, relation: str) -> None:
        self._reads.setdefault(reader, set()).add(relation)

    def depends(self, relation: str, other: str) -> bool:
        """Whether a relation needs another, or is it."""
        seen, waiting = {relation}, [relation]
        while waiting and other not in seen:
            new = self._reads.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return other in seen

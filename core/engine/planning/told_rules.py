"""Rules for readers: parts that the planner made are told by what they hold.

The planner splits rules (`normal`, `flow_rules`): `r/0` is `r` without its second column,
`@exists1 of p#1` says whether atoms with hidden variables have a match, `@count1 of q#1` is what a
group counts.
No reader knows these names, so each is told in the words of the rule that it was made of:

    @exists1 of p#1(b) :- t(b, c), r/0(c).      is told as      exists { t(b, c), r(c, _) }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from everlog.core.classify.query import Query, QueryAtom
from everlog.core.engine.planning.plan import Plan
from everlog.core.program import (
    Aggregate,
    Atom,
    Literal,
    Negation,
    Relation,
    Rule,
    Wildcard,
    written_body,
)
from everlog.core.program.shown import shown_aggregate, shown_body, shown_rule

_WORDS = {"exists": "exists", "source": "where it begins:", "steps": "steps:"}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def is_made(relation: str) -> bool:
    """Whether the planner made a relation, and its name.

    >>> [is_made(name) for name in ("emp", "emp/0,1", "@sum1 of total#1")]
    [False, True, True]
    """
    return "/" in relation or relation.startswith("@")


@frozen
class Told:
    """How the rules of a plan are told.

    `made` has the rule of each made relation, `groups` what an aggregate computes; rules look
    those that are `best` up in the place of an atom.
    """

    made: Mapping[str, Rule]
    groups: Mapping[str, str]
    relations: Mapping[str, Relation]
    best: frozenset[str] = frozenset()

    @staticmethod
    def of(plan: Plan) -> Told:
        rules = (rule for unit in plan.units for rule in unit.unit.rules)
        made = {rule.head.relation: rule for rule in rules if is_made(rule.head.relation)}
        groups = {unit.group.name: unit.group.written for unit in plan.units if unit.group is not None}
        totals = [total for unit in plan.units if unit.growing is not None for total in unit.growing.totals]
        groups |= {name: total.written for total in totals for name in (total.totals, total.contributions)}
        best = frozenset(unit.group.name for unit in plan.units if unit.group is not None and unit.group.best)
        return Told(made, groups, plan.program.relations, best)

    def joined(self, rule: Rule) -> Rule:
        """The rule with look-ups of best values as atoms: they follow from the rest of a row."""
        return evolve(rule, body=tuple(map(self._joined, rule.body)))

    def _joined(self, literal: Literal) -> Literal:
        match literal:
            case Aggregate(body=(Atom(relation=name),), outer=outer) if name in self.best:
                return Atom(name, outer)
            case _:
                return literal

    def literal(self, literal: Literal) -> str:
        """A literal as its author knows it."""
        return self._body([literal])

    def part(self, rule: Rule) -> str:
        """The rule of a made relation, by what it holds."""
        name = rule.head.relation
        if name in self.groups:
            return self.groups[name]
        if "/" in name and not name.startswith("@"):
            base, columns = self._projected(name)
            return _without(base, [c for c in range(self.relations[base].arity) if c not in columns])
        return self._part(rule)

    def query(self, query: Query) -> Query:
        """The query with atoms that print as their author knows them."""
        return evolve(query, atoms=tuple(map(self._query_atom, query.atoms)))

    def _query_atom(self, atom: QueryAtom) -> QueryAtom:
        name = atom.relation
        if not is_made(name):
            return atom
        if not name.startswith("@"):
            return evolve(atom, relation=self._projected(name)[0])
        text = self._made_text(name)
        return evolve(atom, relation=text, shown=text)

    def _made_text(self, name: str) -> str:
        """A relation with a name of its own, in words."""
        return self.groups.get(name) or self._part(self.made[name])

    def _part(self, rule: Rule) -> str:
        name = rule.head.relation
        word = _WORDS.get(name[1:].partition(" ")[0].rstrip("0123456789"), "")
        if not word:
            word = f"the values of {', '.join(map(str, shown_rule(rule).head.args))}:"
        return f"{word} {{ {self._body(written_body(rule.body))} }}"

    def _body(self, body: Iterable[Literal]) -> str:
        return ", ".join(self._text(literal) for literal in shown_body(body))

    def _text(self, literal: Literal) -> str:
        match literal:
            case Atom(relation=name) as atom if is_made(name):
                return self._made_text(name) if name.startswith("@") else str(self._unprojected(atom))
            case Negation(Atom(relation=name) as atom) if is_made(name):
                return f"!{self._text(atom)}"
            case Aggregate(body=(Atom(relation=name), *_)) if name in self.groups:
                return self.groups[name]
            case Aggregate():
                return shown_aggregate(literal)
            case _:
                return str(literal)

    def _projected(self, name: str) -> tuple[str, list[int]]:
        """The relation that a made relation has columns of, and which.

        A name that a user chose has no `/`.
        """
        base, _, columns = name.rpartition("/")
        return base, [int(column) for column in columns.split(",") if column]

    def _unprojected(self, atom: Atom) -> Atom:
        base, columns = self._projected(atom.relation)
        args = dict(zip(columns, atom.args, strict=True))
        return Atom(base, tuple(args.get(c, Wildcard()) for c in range(self.relations[base].arity)))


def _without(relation: str, gone: list[int]) -> str:
    """
    >>> _without("r", [1]), _without("r", [0, 2])
    ('r without its second column', 'r without its first and third column')
    """
    names = [_ORDINALS[c] if c < len(_ORDINALS) else f"{c + 1}th" for c in gone]
    told = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{relation} without its {told} column"

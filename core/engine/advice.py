"""Which relations are worth their memory: advice from what was measured.

For each derived relation the adviser looks at who reads it (outputs, rules, queries by columns),
and at what it costs (bytes, seconds), and says to keep it, to ask for it on demand, to inline it
or to drop it.  For rules it finds joins that another relation already holds, and joins that several
rules have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from everlog.core.engine.engine import Engine
from everlog.core.engine.statistics import RelationStatistics, Statistics
from everlog.core.program import Atom, Literal, Program, Rule, Term, Variable, atoms_of
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.containment import Covering, answering_rules, covered, with_named_wildcards
from everlog.core.program.demand import closed
from everlog.core.program.live_demand import live_demand
from everlog.core.program.shown import shown_rule
from everlog.core.storage.shape import Columns

LEAST = 0.1  # of what a relation costs: less is not worth a change


@frozen
class Advice:
    """What to do with a relation, or for a rule.

    `action` is `keep`, `on demand`, `inline`, `drop`, `read` or `add`.  `bytes` and `seconds` are
    what it would save, at most.
    """

    name: str
    action: str
    why: str
    bytes: int = 0
    seconds: float = 0.0
    change: str = ""

    def lines(self, measure: str) -> Iterator[str]:
        """The advice for readers; `measure` is a command, with `{}` for one more flag."""
        yield f"{self.name}: {self.action}, {self.why}"
        if self.change:
            yield f"  change   {self.change}"
        if self.bytes or self.seconds:
            yield f"  gain     at most {_size(self.bytes)} and {self.seconds:.3f} s of the work so far"
        if self.action == "on demand":
            yield f"  measure  {measure.format(f' --demand {self.name}')}"
        elif self.action != "keep":
            yield f"  measure  {measure.format('')}, before and after the change"


def advise(engine: Engine, subscribed: Collection[str] = ()) -> list[Advice]:
    """Advice for every derived relation, then for rules, the largest gain first.

    `subscribed` are relations whose changes somebody hears of.
    """
    program, statistics = engine.program, engine.statistics()
    names = [n for n, relation in program.relations.items() if program.rules_of(n) and not relation.auxiliary_of]
    coverings = [each for each in _coverings(program) if each[0].name not in engine.plan.coverings]
    readable = {each.by.relation: f"{rule.name} could read it" for rule, _, found in coverings for each in found}
    for name, read in engine.plan.coverings.items():
        readable |= {each.by.relation: f"{name} reads it instead of a part of its body" for each in read}
    adviser = _Adviser(engine, statistics, frozenset(subscribed), readable)
    found = [adviser.of(name) for name in names]
    found += [*_read_instead(coverings, statistics), *_in_common(program, statistics)]
    return sorted(found, key=lambda each: (each.action == "keep", -each.bytes, -each.seconds))


class _Adviser:
    def __init__(
        self, engine: Engine, statistics: Statistics, subscribed: frozenset[str], readable: Mapping[str, str]
    ) -> None:
        """`readable` has relations that a rule may read instead of a part of its body."""
        self.engine, self.program, self.subscribed = engine, engine.program, subscribed
        self.readable = readable
        self.costs = {each.name: each for each in statistics.relations}
        self.outputs = {each.relation for each in (*self.program.outputs, *self.program.printsizes)}
        self.readers: dict[str, list[tuple[Rule, str]]] = {}  # rules whose results somebody needs
        read = {relation for relation, _ in engine.usage.reads}
        needed = closed(self.program, dict.fromkeys((*self.outputs, *subscribed, *read), ""))
        for rule in self.program.rules:
            for atom, use in atoms_of(rule.body):
                if atom.relation != rule.head.relation and rule.head.relation in needed:
                    self.readers.setdefault(atom.relation, []).append((rule, use))

    def of(self, name: str) -> Advice:
        if self.engine.demands.is_on_demand(name):
            return Advice(name, "keep", "it is on demand already")
        if name in self.outputs:
            return Advice(name, "keep", "it is an output")
        if name in self.subscribed:
            return Advice(name, "keep", "somebody hears of its changes")
        reads, rules = self.engine.usage.of(name), self.readers.get(name, [])
        if () in reads:
            return Advice(name, "keep", f"all of it was read, {_times(reads[()])}")
        if not reads and not rules:
            return self._unread(name)
        if rules:
            return self._read_by_rules(name, reads, rules)
        return self._on_demand(name, reads)

    def _unread(self, name: str) -> Advice:
        if name in self.readable:
            return Advice(name, "keep", self.readable[name])
        cost, why = self.cost(name), "nobody has read it, or what rules make of it"
        return Advice(name, "drop", why, cost.bytes, cost.seconds, f".drop {name}")

    def cost(self, name: str) -> RelationStatistics:
        return self.costs.get(name) or RelationStatistics(name, "", 0, 0, 0.0)

    def _read_by_rules(self, name: str, reads: dict[Columns, int], rules: Sequence[tuple[Rule, str]]) -> Advice:
        own = self.program.rules_of(name)
        (reader, use), cost = rules[0], self.cost(name)
        recursive = any(atom.relation == name for rule in own for atom, _ in atoms_of(rule.body))
        single = len(own) == len(rules) == 1 and not recursive and use == "positive"
        if single and not reads and not self.engine.given(name):
            why = f"only {reader.name} reads it"
            return Advice(name, "inline", why, cost.bytes, cost.seconds, f"declare {name} `inline`")
        return Advice(name, "keep", f"{', '.join(dict.fromkeys(rule.name for rule, _ in rules))} read it")

    def _on_demand(self, name: str, reads: dict[Columns, int]) -> Advice:
        """A relation that only queries read, by columns."""
        refused = live_demand(self.program, [name]).whole.get(name)
        asked = ", ".join(self._asked(name, columns, number) for columns, number in reads.items())
        if refused:
            return Advice(name, "keep", f"it was only asked for {asked}, but {refused}")
        share = min(1.0, sum(self._share(name, columns) for columns in reads))
        cost = self.cost(name)
        if 1 - share < LEAST:
            return Advice(name, "keep", f"most of it was asked for {asked}")
        why = f"it was only asked for {asked}: {share:.1%} of its facts"
        saved = 1 - share
        change = f"declare {name} `magic`"
        return Advice(name, "on demand", why, int(cost.bytes * saved), cost.seconds * saved, change)

    def _asked(self, name: str, columns: Columns, number: int) -> str:
        known = self.program.relations[name].columns
        return f"by {', '.join(known[column].name for column in columns)} {_times(number)}"

    def _share(self, name: str, columns: Columns) -> float:
        """The part of the facts that have values that were asked for."""
        values = self.engine.usage.values.get((name, columns), set())
        if None in values:  # by a join
            return 1.0
        table = self.engine.tables[name]
        mine = sum(tuple(row[column] for column in columns) in values for row in table.rows())
        return mine / max(1, len(table))


def _coverings(program: Program) -> Iterator[tuple[Rule, Rule, list[Covering]]]:
    """Rules with a part that another relation holds, as they could be, and why."""
    known = answering_rules(program)
    for rule in program.rules:
        others = [each for each in known if rule.head.relation not in closed(program, {each.head.relation: ""})]
        new, coverings = covered(rule, others)
        if coverings:
            yield rule, new, coverings


def _read_instead(
    coverings: Iterable[tuple[Rule, Rule, list[Covering]]], statistics: Statistics
) -> Iterator[Advice]:
    seconds = {rule.name: rule.seconds for rule in statistics.rules}
    for rule, new, found in coverings:
        why = "; ".join(f"{each.by.relation} holds a part of its body" for each in found)
        yield Advice(rule.name, "read", why, 0, seconds.get(rule.name, 0.0), f"write it as  {shown_rule(new)}")


def _in_common(program: Program, statistics: Statistics) -> Iterator[Advice]:
    """Joins of two atoms that several rules have: a relation of its own would hold them once."""
    seconds = {rule.name: rule.seconds for rule in statistics.rules}
    found: dict[tuple[Literal, ...], list[tuple[Rule, Rule]]] = {}
    for rule in program.rules:
        for join in {each.body: each for each in _joins(rule)}.values():
            found.setdefault(join.body, []).append((rule, join))
    known = {join.body for each in answering_rules(program) if len(each.body) == 2 for join in _joins(each)}
    for body, uses in found.items():
        if len(uses) > 1 and body not in known:
            spent = sorted(seconds.get(rule.name, 0.0) for rule, _ in uses)
            shown = dict.fromkeys(arg for _, join in uses for arg in join.head.args)
            head = Atom(uses[0][1].head.relation, tuple(sorted(shown, key=str)))
            why = f"{', '.join(rule.name for rule, _ in uses)} join the same two atoms"
            yield Advice("a relation", "add", why, 0, sum(spent[:-1]), f"such as  {shown_rule(Rule(head, body))}")


def _joins(rule: Rule) -> Iterator[Rule]:
    """The joins of two atoms in a body, as rules whose variables are named by their places."""
    body = with_named_wildcards(rule).body
    atoms = [literal for literal in body if isinstance(literal, Atom)]
    used = Counter(v for literal in (rule.head, *body) for v in set(variables_of_literal(literal)))
    for n, one in enumerate(atoms):
        for other in atoms[n + 1 :]:
            pair = sorted((one, other), key=lambda atom: atom.relation)
            first, second = (set(variables_of_literal(atom)) for atom in pair)
            if first & second and all(atom.relation != rule.head.relation for atom in pair):
                yield _named_join(pair, used)


def _named_join(pair: Sequence[Atom], used: Counter[Variable]) -> Rule:
    """The join of two atoms that shows the variables which occur elsewhere, too."""
    names: dict[Term, Variable] = {}
    for variable in (v for atom in pair for v in variables_of_literal(atom)):
        names.setdefault(variable, Variable(f"x{len(names) + 1}"))
    both = Counter(v for atom in pair for v in set(variables_of_literal(atom)))
    shown = tuple(name for v, name in names.items() if isinstance(v, Variable) and used[v] > both[v])
    head = Atom("_".join(atom.relation for atom in pair), shown)
    return Rule(head, tuple(Atom(a.relation, tuple(names.get(arg, arg) for arg in a.args)) for a in pair))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e3:.1f} kB"

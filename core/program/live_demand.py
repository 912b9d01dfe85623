"""Programs in which some relations hold only what somebody asks for.

A relation *on demand* has no rules of its own: its table has its base facts.  What is asked for of
it is held by *parts*, one for each adornment that occurs (`core.program.demand`):

    path?bf(x)            base facts: the values that queries and subscriptions ask for
    path^bf(x, y) :- path?bf(x), edge(x, y).
    path^bf(x, z) :- path^bf(x, y), edge(y, z).

Where rules only pass on what they are not asked for, as in `path(x, z) :- edge(x, y), path(y, z)`,
what a demand leads to is carried along with it (`LiveBuilder._carried`): each part of the way would
be asked for otherwise, and answered.

All other rules are as they were, but read the parts, and ask for what they read:

    path?bb(x, 5) :- start(x).
    ok(x) :- start(x), path^bb(x, 5).

So a demand that comes or goes is a fact that comes or goes, and whatever keeps the program current
keeps the parts current, too.

**Invariant:** `r^a` has exactly the facts of `r` whose bound columns are in `r?a`, and perhaps more
facts of `r`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

from everlog.core.program.bodies import names
from everlog.core.program.demand import Adorned, Builder, Passing, closed, special_relations
from everlog.core.program.demand_constants import is_alone, is_right_linear, own_atom
from everlog.core.program.dependencies import edges, units
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Constant,
    Literal,
    Negation,
    Program,
    Relation,
    Row,
    Rule,
    Variable,
    atoms_of,
    draws_numbers,
)

_OUTPUT = "it is an output, which needs all of it"


@frozen
class LiveDemand:
    """A program whose relations on demand are replaced by their parts.

    `parts` has them for each relation on demand; `whole` says why other relations that should be on
    demand are computed whole.  `always` has the values that rules ask for without a condition, by
    part.  `written` maps the name of a rule that a part has to the rule that it was made of.
    `carriers` maps what a demand leads to, where it is carried along, to its part.
    """

    program: Program
    parts: Mapping[str, tuple[Adorned, ...]]
    whole: Mapping[str, str]
    always: Mapping[Adorned, frozenset[Row]]
    written: Mapping[str, Rule]
    made: frozenset[str]
    user_program: Program
    carriers: Mapping[str, str]

    def lines(self, only: str | None = None) -> Iterator[str]:
        """How each relation is asked for, or why all of it is computed, for `explain`."""
        for name, parts in self.parts.items():
            if only in (None, name):
                asked = ", ".join(f"{part.name}" for part in parts)
                yield f"on demand: {name}, asked for as {asked or 'nothing yet'}"
        for name, why in self.whole.items():
            if only in (None, name):
                yield f"not on demand: {name}, since {why}"

    def asking(self, rule: Rule) -> tuple[list[tuple[Adorned, Rule]], Rule]:
        """What a query asks for, in this order, and the query over the parts.

        Each demand comes with a rule, whose head has the values that are asked for; its body reads
        parts that were asked for before.  A first atom that binds parameters stays first.
        """
        builder = LiveBuilder(self.user_program, {}, on_demand=frozenset(self.parts))
        first = rule.body[:1] if rule.body and isinstance(rule.body[0], Atom) else ()
        start, rest = Passing(), rule.body
        if first and first[0].relation not in self.user_program.relations:  # type: ignore[union-attr]
            start, rest = start.after(first[0]), rule.body[1:]
        else:
            first = ()
        body = builder.body(rest, start, None)
        found = [(builder.asked_by[made.head.relation], made) for made in builder.rules]
        return [(part, _on_tables(made)) for part, made in found], _on_tables(
            evolve(rule, body=(*first, *body), orders=())
        )


@frozen(eq=False)
class LiveBuilder(Builder):
    """As its base class, for relations that are asked for while the program runs."""

    on_demand: frozenset[str] = frozenset()
    asked_by: dict[str, Adorned] = field(factory=dict)
    carriers: dict[str, Relation] = field(factory=dict)
    carried: dict[str, str] = field(factory=dict)  # carrier → part
    home: dict[str, int] = field(factory=dict, init=False)  # relation → its unit

    def __attrs_post_init__(self) -> None:
        self.home.update((name, n) for n, unit in enumerate(units(self.program)) for name in unit.relations)

    def is_asked(self, relation: str) -> bool:
        return relation in self.on_demand

    def guards(self, asked: Adorned) -> bool:
        self.asked_by[asked.magic] = asked
        return True  # also where nothing is bound: nobody may ask for any of it

    def with_rules(self, part: Adorned) -> Iterator[tuple[Rule, Rule]]:
        """Add the rules of a part: each as it was, and as it is now."""
        rules = list(self.rules_of(part))
        bound = [n for n, mark in enumerate(part.adornment) if mark == "b"]
        alone = 0 < len(bound) < len(part.adornment) and is_alone(self.program, part.relation)
        linear = alone and is_right_linear(rules, bound) and any(map(own_atom, rules))
        if linear:
            self._begin_carrying(part)
        for rule in rules:
            name = f"{part.name}#{rule.name.rpartition('#')[2]}"
            named = evolve(rule, name=name, orders=(), strategy="")
            if linear:
                self._carried(named, part)
            else:
                self.adorned(named, part)
            yield rule, named

    def _begin_carrying(self, part: Adorned) -> None:
        """Declare the relation of what was asked for, and what that asks for."""
        name, asked = _carrier(part)
        columns = part.bound(self.program.relations[part.relation].columns)
        twice = tuple(evolve(c, name=f"{c.name}{n}") for n in (1, 2) for c in columns)
        self.carriers[name] = Relation(name, twice)
        self.carried[name] = part.name
        self.rules[Rule(Atom(name, (*asked, *asked)), (Atom(part.magic, asked),), name=f"{name}#0")] = None

    def _carried(self, rule: Rule, part: Adorned) -> None:
        """A rule that passes on what it is not asked for: demand is followed, not answers.

        path>bf(d, y) :- path>bf(d, x), edge(x, y).       path(x, z) :- edge(x, y), path(y, z).
        path^bf(d, z) :- path>bf(d, x), edge(x, z).       path(x, z) :- edge(x, z).
        """
        name, asked = _carrier(part)
        start = Atom(name, (*asked, *part.bound(rule.head.args)))
        own = own_atom(rule)
        rest = tuple(literal for literal in rule.body if literal is not own)
        body = (start, *self.body(rest, Passing((start,), frozenset(names(start.args))), start))
        if own is None:
            values = iter(asked)
            args = [
                next(values) if mark == "b" else arg
                for mark, arg in zip(part.adornment, rule.head.args, strict=True)
            ]
            head = Atom(part.name, tuple(args))
        else:
            head = Atom(name, (*asked, *part.bound(own.args)))
        self.rules[evolve(rule, head=head, body=body)] = None

    def marks(self, atom: Atom, passing: Passing, magic: Atom | None) -> str:
        """Where all of a recursive relation is asked for, its rules read all of it, too."""
        if magic is not None and not magic.args:
            asking = self.asked_by[magic.relation].relation
            if self.home[asking] == self.home[atom.relation]:
                return "f" * len(atom.args)
        return super().marks(atom, passing, magic)


def _carrier(part: Adorned) -> tuple[str, tuple[Variable, ...]]:
    asked = tuple(Variable(f"^asked{n}") for n in range(part.adornment.count("b")))
    return f"{part.relation}>{part.adornment}", asked


def live_demand(program: Program, names: Iterable[str], asked: Iterable[Adorned] = ()) -> LiveDemand:
    """The program with these relations on demand; `asked` are adornments that somebody needs."""
    wanted = [name for name in program.relations if name in set(names) and program.rules_of(name)]
    whole = {name: why for name, why in _whole(program).items() if name in wanted}
    while True:
        found = _built(program, [name for name in wanted if name not in whole], whole, asked)
        crossed = _crossing(found)
        if not crossed:
            return found
        why = "demand for it would go through its own negation or aggregate"
        whole |= dict.fromkeys(crossed, why)


def _whole(program: Program) -> dict[str, str]:
    """The relations that cannot be on demand, each with the reason."""
    found = dict(special_relations(program))
    for rule in program.rules:
        if draws_numbers(rule):
            found[rule.head.relation] = "numbers from autoinc() depend on the whole relation"
    found = closed(program, found)
    for directive in (*program.outputs, *program.printsizes):
        found.setdefault(directive.relation, _OUTPUT)
    for relation in program.relations.values():
        if relation.auxiliary_of:
            found.setdefault(relation.auxiliary_of, "auxiliary relations keep it")
    return found


def _built(program: Program, names: list[str], whole: dict[str, str], asked: Iterable[Adorned]) -> LiveDemand:
    fixed = closed(program, dict(special_relations(program)))  # these rules stay as they are
    builder = LiveBuilder(program, {}, on_demand=frozenset(names))
    rules: list[Rule] = []
    for rule in program.rules:
        if rule.head.relation not in builder.on_demand:
            body = rule.body
            if rule.head.relation not in fixed and _reads(rule, builder.on_demand):
                body = tuple(builder.body(body, Passing(), None))
            rules.append(rule if body == rule.body else evolve(rule, body=body, orders=()))
    for part in asked:
        arity = program.relations[part.relation].arity if part.relation in builder.on_demand else -1
        if arity == len(part.adornment):  # else another relation had the name
            builder.asked[part] = None
            builder.guards(part)
    written: dict[str, Rule] = {}
    done: set[Adorned] = set()
    while todo := [part for part in builder.asked if part not in done]:
        for part in todo:
            done.add(part)
            for rule, adorned in builder.with_rules(part):
                written[adorned.name] = rule
    always, asking = _constants(builder)
    parts = {name: tuple(part for part in builder.asked if part.relation == name) for name in names}
    made = {relation.name: relation for part in builder.asked for relation in _declared(program, part)}
    made |= builder.carriers
    running = evolve(
        program,
        relations={**program.relations, **made},
        rules=tuple(_on_tables(rule) for rule in (*rules, *asking)),
        facts=program.facts,
    )
    return LiveDemand(running, parts, whole, always, written, frozenset(made), program, builder.carried)


def _reads(rule: Rule, names: frozenset[str]) -> bool:
    return any(atom.relation in names for atom, _ in atoms_of(rule.body))


def _declared(program: Program, part: Adorned) -> tuple[Relation, Relation]:
    columns = program.relations[part.relation].columns
    return Relation(part.magic, part.bound(columns)), Relation(part.name, columns)


def _constants(builder: LiveBuilder) -> tuple[dict[Adorned, frozenset[Row]], list[Rule]]:
    """What is asked for without a condition, as values; and the other rules, with unique names."""
    always: dict[Adorned, frozenset[Row]] = {}
    rules: list[Rule] = []
    numbers: dict[str, int] = {}
    for rule in builder.rules:
        part = builder.asked_by.get(rule.head.relation)
        if part is None:
            rules.append(rule)
        elif not rule.body:
            values = tuple(arg.value for arg in rule.head.args if isinstance(arg, Constant))
            always[part] = always.get(part, frozenset()) | {values}
        else:
            number = numbers[rule.head.relation] = numbers.get(rule.head.relation, 0) + 1
            rules.append(evolve(rule, name=f"{rule.head.relation}#{number}"))
    return always, rules


def _on_tables(rule: Rule) -> Rule:
    """The rule with base facts of relations on demand read from their tables."""
    return evolve(rule, body=tuple(map(_on_table, rule.body)))


def _on_table(literal: Literal) -> Literal:
    match literal:
        case Atom(relation=name) if name.endswith("!"):
            return evolve(literal, relation=name[:-1])
        case Negation(atom) if atom.relation.endswith("!"):
            return Negation(evolve(atom, relation=atom.relation[:-1]))
        case Aggregate(body=inner):
            return evolve(literal, body=tuple(map(_on_table, inner)))
        case _:
            return literal


def _crossing(found: LiveDemand) -> set[str]:
    """The relations on demand that take part in a negation or an aggregate of their own unit."""
    program = found.program
    owner = {
        name: part.relation for parts in found.parts.values() for part in parts for name in (part.name, part.magic)
    }
    known = units(program)
    home = {name: number for number, unit in enumerate(known) for name in unit.relations}
    bad = {home[e.head] for e in edges(program) if e.use != "positive" and home[e.head] == home[e.body]}
    return {owner[name] for number in bad for name in known[number].relations if name in owner}

"""A second evaluation of a unit, by the reference, that records first derivations.

It tells two things that the final state does not: which number `autoinc()` gave to which binding,
and from which facts, dropped since, a fact was derived under subsumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from everlog.core.evaluate.reference import NaiveEvaluation, distinct
from everlog.core.program import Row, Rule, atoms_of, flat_body, written_body
from everlog.core.program.bodies import Binding, schedule
from everlog.core.program.dependencies import Unit, units
from everlog.core.program.order import ordered
from everlog.core.proofs.equivalences import Classes
from everlog.core.proofs.evidence import Evidence, Fact, draws, named_wildcards


class _OverTables(NaiveEvaluation):
    """Naive evaluation that finds lower relations in the tables of an engine."""

    def __init__(self, engine: Evidence) -> None:
        super().__init__(evolve(engine.program, facts={}))  # base facts come from the engine
        self._engine = engine

    def read(self, names: Iterable[str]) -> None:
        for name in set(names):
            self.facts[name] = ordered(self._engine.tables[name].rows())


class Numbering(_OverTables):
    """The numbers that `autoinc()` gave: one counter, rules in evaluation order."""

    def derivations(self, wanted: Rule) -> Iterator[tuple[Row, Binding]]:
        """The facts of a rule with the bindings that they come from."""
        for unit in units(self.program):
            for rule in unit.rules:
                if draws(rule.head.args, rule.body):
                    self.read(atom.relation for atom, _ in atoms_of(rule.body))
                    found = list(self._numbered(rule))
                    if rule is wanted:
                        yield from found
                        return

    def _numbered(self, rule: Rule) -> Iterator[tuple[Row, Binding]]:
        """As the reference numbers: distinct bindings in sorted order, head before body."""
        drawing = [literal for literal in rule.body if draws((), (literal,))]
        order, waiting = schedule([literal for literal in rule.body if literal not in drawing], set())
        for binding in distinct(self.extend(order, {})):
            head = [self.drawn(arg) for arg in rule.head.args]
            late = waiting + [self.drawn_comparison(literal) for literal in drawing]
            for wider in self.solve(late, binding):
                yield self.row(head, wider), wider


class Replay(_OverTables):
    """The rounds of one unit.

    `found` has the first derivation of every fact that was ever present (None: a base fact), from
    facts at the start of a round.  Pairs of an equivalence are in `classes`.
    """

    def __init__(self, engine: Evidence, unit: Unit) -> None:
        super().__init__(engine)
        self.found: dict[Fact, tuple[Rule, Binding] | None] = {}
        self.joins: dict[Fact, tuple[Fact, ...]] = {}  # facts joined of others of their key
        relations = self.program.relations
        self.classes = {name: Classes() for name in unit.relations if relations[name].equivalence}
        self.read(unit.reads - set(unit.relations))
        self.load(unit, {name: engine.given(name) for name in unit.relations})
        self.run(unit)

    def load(self, unit: Unit, inputs: Mapping[str, Iterable[Row]]) -> None:
        for name in unit.relations:
            for row in ordered(inputs[name]):
                self._note(name, row, None)
        super().load(unit, inputs)

    def settle(self, unit: Unit) -> None:
        parts: dict[Fact, list[Row]] = {}
        own = [(name, joined) for name, joined in self.joined.items() if name in unit.relations]
        for name, joined in own:
            for row in ordered(self.state[name]):
                parts.setdefault((name, joined.key_of(row)), []).append(row)
        super().settle(unit)
        for name, joined in own:
            for row in self.facts[name]:
                if (name, row) not in self.found:
                    of = parts[name, joined.key_of(row)]
                    self.joins.setdefault((name, row), tuple((name, one) for one in of))

    def derive(self, rule: Rule) -> set[Row]:
        named = flat_body(tuple(named_wildcards(written_body(rule.body))))
        out = set()
        for binding in self.solve(named, {}):
            row = self.row(rule.head.args, binding)
            out.add(row)
            self._note(rule.head.relation, row, (rule, binding))
        return out

    def derive_numbered(self, rule: Rule) -> set[Row]:
        out = set()
        for row, binding in Numbering(self._engine).derivations(rule):
            out.add(row)
            self._note(rule.head.relation, row, (rule, binding))
        return out

    def _note(self, relation: str, row: Row, how: tuple[Rule, Binding] | None) -> None:
        if relation in self.classes:
            if self.classes[relation].since(*row) is None:
                self.found[relation, row] = how
                self.classes[relation].join(row, tell=False)
        elif (relation, row) not in self.joins:
            self.found.setdefault((relation, row), how)

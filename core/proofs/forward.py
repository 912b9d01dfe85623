"""The facts of a recursive unit, each after the facts that it follows from.

If an engine names no last steps, a rule whose body holds is not enough: in a cycle every fact has
one that uses the next.  So the unit is derived once more, from its base facts up, over the present
tables.  Each fact that is found is joined with the rest of each body that it occurs in; if the
other facts of the unit in that body have been found too, the head is found.  Otherwise the same
body is tried again when they are.  No round is repeated, and the search stops at the fact asked
for.

There are exceptions.  Pairs of an equivalence also follow from each other; `Classes` knows from
which pairs, and since when.  And where subsumption dropped facts that had derived others, where a
total has grown since, or where values were joined, only `Replay` can explain the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from everlog.core.program import Aggregate, Atom, Literal, Row, Rule, Value, atoms_of, variables_of, written_body
from everlog.core.program.aggregates.growing import grows_through
from everlog.core.program.bodies import Binding
from everlog.core.program.dependencies import Unit
from everlog.core.program.order import ordered
from everlog.core.program.values import EvaluationError
from everlog.core.proofs.equivalences import Classes
from everlog.core.proofs.evidence import Evidence, Fact, draws, matched, named_wildcards
from everlog.core.proofs.first_derivations import Numbering, Replay
from everlog.core.proofs.proof import EQUIVALENCE, GIVEN, JOINED, RULE
from everlog.core.proofs.solve import Solver


@frozen
class Step:
    """The last step of a proof: rule and binding, a chain of pairs, or a base fact."""

    reason: str = GIVEN
    rule: Rule | None = None
    binding: Mapping[str, Value] = field(factory=dict)
    facts: tuple[Fact, ...] = ()


@frozen
class _Body:
    """A rule of the unit with its atoms of the unit; their wildcards have names."""

    rule: Rule
    literals: tuple[Literal, ...]
    own: tuple[Atom, ...]


class Forward:
    """Derivations of the facts of one unit, found on demand.

    Invariant: `_found` has a fact only after every fact of the unit that its derivation uses.
    """

    def __init__(self, engine: Evidence, unit: Unit, solver: Solver) -> None:
        self.engine, self.unit, self.solver = engine, unit, solver
        self._grows = needs_rounds(engine, unit)
        self._bodies = [] if self._grows else [self._body(rule) for rule in unit.rules]
        self._readers: dict[str, list[tuple[_Body, Atom]]] = {}
        for body in self._bodies:
            for atom in body.own:
                self._readers.setdefault(atom.relation, []).append((body, atom))
        relations = engine.program.relations
        self._classes = {name: Classes() for name in unit.relations if relations[name].equivalence}
        self._found: dict[Fact, tuple[Rule, Binding] | None] = {}
        self._queue: deque[Fact] = deque()
        self._progress = self._run()
        self._replay: Replay | None = None

    def step(self, fact: Fact) -> Step:
        """The last step of a proof of a fact of the unit."""
        if self._grows:
            return self._replayed(fact)
        relation, row = fact
        unread = relation in self._classes and relation not in self._readers
        while (unread or not self._has(fact)) and next(self._progress, None) is not None:
            pass  # for an equivalence that no rule reads, find all pairs: the shortest chain needs them
        if fact in self._found:
            how = self._found[fact]
            return Step() if how is None else Step(RULE, *how)
        if self._has(fact):
            classes = self._classes[relation]
            return _chain(classes, relation, row, None if unread else classes.since(*row))
        return self._replayed(fact)

    # ── the search ───────────────────────────────────────────────────────────────────────────

    def _run(self) -> Iterator[Fact]:
        for name in self.unit.relations:
            for row in ordered(self.engine.given(name)):
                yield from self._add(name, row, None)
        for body in self._bodies:
            if not body.own:
                for row, binding in self._instances(body):
                    yield from self._add(body.rule.head.relation, row, (body.rule, binding))
        while self._queue:
            relation, row = self._queue.popleft()
            for body, atom in self._readers[relation]:
                start = matched(atom.args, row)
                if isinstance(start, str):
                    continue
                for binding in self.solver.solve(body.literals, start):
                    if all(self._has((one.relation, self.solver.row(one.args, binding))) for one in body.own):
                        for head in self._head(body.rule, binding):
                            yield from self._add(body.rule.head.relation, head, (body.rule, binding))

    def _add(self, relation: str, row: Row, how: tuple[Rule, Binding] | None) -> Iterable[Fact]:
        """Record a derivation if it is the first of its fact; return the new fact."""
        fact = relation, row
        read = relation in self._readers
        if fact in self._found or not self.solver.has(relation, row) or (read and self._has(fact)):
            return ()
        self._found[fact] = how
        new = [row]
        if relation in self._classes:
            new = self._classes[relation].join(row, tell=read)
        if read:
            self._queue.extend((relation, one) for one in new)
        return (fact,)

    def _has(self, fact: Fact) -> bool:
        relation, row = fact
        if relation in self._classes:
            return self._classes[relation].since(*row) is not None
        return fact in self._found

    def _instances(self, body: _Body) -> Iterable[tuple[Row, Binding]]:
        if draws(body.rule.head.args, body.rule.body):
            yield from Numbering(self.engine).derivations(body.rule)
            return
        for binding in self.solver.solve(body.literals, {}):
            for row in self._head(body.rule, binding):
                yield row, binding

    def _head(self, rule: Rule, binding: Binding) -> Iterable[Row]:
        try:
            return (self.solver.row(rule.head.args, binding),)
        except EvaluationError:
            return ()

    def _body(self, rule: Rule) -> _Body:
        body = written_body(rule.body)
        literals = tuple(
            named if self._is_own(literal) else literal
            for literal, named in zip(body, named_wildcards(body), strict=True)
        )
        own = tuple(literal for literal in literals if isinstance(literal, Atom) and self._is_own(literal))
        assert len(own) == sum(atom.relation in self.unit.relations for atom, _ in atoms_of(rule.body))
        return _Body(rule, literals, own)

    def _is_own(self, literal: Literal) -> bool:
        return isinstance(literal, Atom) and literal.relation in self.unit.relations

    def _at_the_end(self, rule: Rule, binding: Mapping[str, Value]) -> Mapping[str, Value]:
        """A binding without totals that have grown since: they are computed anew."""
        own = self.unit.relations
        if not any(
            isinstance(x, Aggregate) and any(a.relation in own for a, _ in atoms_of(x.body)) for x in rule.body
        ):
            return binding
        literals = named_wildcards(written_body(rule.body))
        kept = {v.name for x in literals if isinstance(x, Atom) for a in x.args for v in variables_of(a)}
        return {name: value for name, value in binding.items() if name in kept}

    # ── facts that only the order of rounds explains ─────────────────────────────────────────

    def _replayed(self, fact: Fact) -> Step:
        if self._replay is None:
            self._replay = Replay(self.engine, self.unit)
        relation, row = fact
        if fact in self._replay.found:
            how = self._replay.found[fact]
            return Step() if how is None else Step(RULE, how[0], self._at_the_end(*how))
        if fact in self._replay.joins:
            return Step(JOINED, facts=self._replay.joins[fact])
        classes = self._replay.classes.get(relation)
        assert classes is not None, f"no derivation of {relation}{row}"
        return _chain(classes, relation, row, classes.since(*row))


def needs_rounds(engine: Evidence, unit: Unit) -> bool:
    """Whether only rounds tell what came first: totals grow, and values are joined."""
    relations = engine.program.relations
    return any(relations[name].lattices for name in unit.relations) or any(True for _ in grows_through(unit))


def _chain(classes: Classes, relation: str, row: Row, latest: int | None) -> Step:
    one, other = row
    return Step(EQUIVALENCE, facts=tuple((relation, pair) for pair in classes.chain(one, other, latest)))

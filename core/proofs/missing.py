"""Why a fact is not there: for each rule, how far it gets and what stops it.

A body is read as it is written, each literal as soon as it can be evaluated.  The longest prefix
with a match is shown, with one match; the literal after it is what is missing.  The solver decides
whether a prefix has a match, in its own order, so a long join is not enumerated.

A fact may also be derivable and yet absent: its key is taken (`choice-domain`), a better fact is
present (subsumption), the relation is full (`.limitsize`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from attrs import field, frozen

from everlog.core.program import Aggregate, Atom, Literal, Negation, Row, Rule, Value
from everlog.core.program.aggregates.best_values import best_map
from everlog.core.program.bodies import Binding
from everlog.core.program.values import EvaluationError
from everlog.core.proofs import render
from everlog.core.proofs.evidence import Evidence, Fact, Goal, checked, draws, goal_of
from everlog.core.proofs.notation import (
    aggregate_text,
    atom_text,
    constant,
    fact_text,
    literal_text,
    rule_text,
    term_text,
)
from everlog.core.proofs.proof import binding_data, rule_data
from everlog.core.proofs.solve import Solver, can_solve, names_in

OTHERS = 20  # other matches to check, to say that they stop at the same literal


@frozen(eq=False)
class Line:
    """A line below an attempt."""

    label: str
    remark: str = ""
    branches: tuple[render.Branch, ...] = field(default=(), init=False)

    def data(self) -> dict[str, object]:
        return {"text": self.label}


@frozen(eq=False)
class Attempt:
    """How far a rule gets with one binding, and what stops it, if anything does.

    `others` other matches of the part that holds stop at the same literal.
    """

    rule: Rule
    holds: tuple[str, ...] = ()
    stop: str = ""
    binding: Mapping[str, Value] = field(factory=dict)
    others: int = 0
    branches: tuple[Line, ...] = field(init=False, repr=False)

    @property
    def label(self) -> str:
        return rule_text(self.rule)

    @property
    def remark(self) -> str:
        return ""

    @branches.default
    def _lines(self) -> tuple[Line, ...]:
        also = ""
        if self.others:
            number = f"{OTHERS} or more" if self.others == OTHERS else str(self.others)
            also = f"the same for {number} other match{'' if number == '1' else 'es'}"
        last = Line(f"✗ {self.stop}", also) if self.stop else Line("the body holds")
        return (*(Line(f"✓ {text}") for text in self.holds), last)

    def data(self) -> dict[str, object]:
        return {
            "rule": rule_data(self.rule),
            "holds": list(self.holds),
            "stop": self.stop or None,
            "binding": binding_data(self.binding),
            "others": self.others,
        }


@frozen(eq=False, repr=False)
class WhyNot:
    """Why a fact is not there (or that it is): remarks, and an attempt per rule."""

    relation: str
    row: Row
    fact: str
    present: bool
    remarks: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    branches: tuple[render.Branch, ...] = field(init=False)

    def __repr__(self) -> str:
        return f"<WhyNot {self.label}>"

    @property
    def label(self) -> str:
        return f"{self.fact} is {'' if self.present else 'not '}there"

    @property
    def remark(self) -> str:
        return ""

    @branches.default
    def _lines(self) -> tuple[render.Branch, ...]:
        return (*(Line(text) for text in self.remarks), *self.attempts)

    def text(self, depth: int | None = render.DEPTH, lines: int | None = render.LINES) -> str:
        return render.as_text(self, depth, lines)

    def data(self) -> dict[str, object]:
        row = [render.json_value(value) for value in self.row]
        return {"fact": self.fact, "relation": self.relation, "row": row, "present": self.present}

    def to_json(self) -> dict[str, object]:
        attempts = [attempt.data() for attempt in self.attempts]
        return {**self.data(), "remarks": list(self.remarks), "attempts": attempts}

    def to_dot(self) -> str:
        return render.as_dot(self, f"why not {self.fact}")

    def __str__(self) -> str:
        return self.text()


def why_not(engine: Evidence, relation: str, row: Row) -> WhyNot:
    """Per rule of the relation, the first literal of its body without a match.

    >>> from everlog.core.engine import Engine
    >>> from everlog.dsl.check import compile_text
    >>> text = ".decl a(x:number)  .decl b(x:number)  a(1).  a(3).  b(x) :- a(x), x < 3."
    >>> print(why_not(Engine(compile_text(text)), "b", (3,)).text())
    b(3) is not there
    └── b#1 at <text>:1:  b(x) :- a(x), x < 3.
        ├── ✓ a(3)
        └── ✗ 3 < 3 is false
    """
    fact = checked(engine, relation, row)
    asked = _Asked(engine, fact)
    text = fact_text(engine.program, *fact)
    if asked.solver.has(*fact):
        return WhyNot(*fact, text, True, ("why gives a proof of it",))
    attempts = tuple(asked.attempt(goal_of(rule)) for rule in engine.program.rules_of(relation))
    remarks = tuple(asked.remarks(any(not attempt.stop for attempt in attempts)))
    return WhyNot(*fact, text, False, remarks, attempts)


def rules_that_hold(engine: Evidence, relation: str, row: Row) -> list[Rule]:
    """The rules whose bodies hold for a fact."""
    asked = _Asked(engine, checked(engine, relation, row))
    return [rule for rule in engine.program.rules_of(relation) if not asked.attempt(goal_of(rule)).stop]


class _Asked:
    """One question."""

    def __init__(self, engine: Evidence, fact: Fact) -> None:
        self.engine, self.program = engine, engine.program
        self.relation, self.row = fact
        self.solver = Solver(engine.program, engine.tables)

    # ── rules ────────────────────────────────────────────────────────────────────────────────

    def attempt(self, goal: Goal) -> Attempt:
        start = goal.binding(self.row)
        if isinstance(start, str):
            head = atom_text(self.program, goal.rule.head, {}, keep=True)
            return Attempt(goal.rule, stop=f"the head {head} does not match: {start}")
        order = _as_written(goal, start)
        held: Binding = start
        for count in range(1, len(order) + 1):
            found = self.solver.first(tuple(order[:count]), start)
            if found is None:
                before = tuple(order[: count - 1])
                return self._stopped(goal, before, order[count - 1], start, held)
            held = found
        holds = tuple(self._text(literal, held) for literal in order)
        if draws(goal.rule.head.args, goal.rule.body):
            return Attempt(goal.rule, holds, "autoinc() gave another number", held)
        return Attempt(goal.rule, holds, binding=held)

    def _stopped(
        self, goal: Goal, before: tuple[Literal, ...], literal: Literal, start: Binding, held: Binding
    ) -> Attempt:
        """The attempt that ends at a literal; says so if the literal never matches."""
        holds = tuple(self._text(one, held) for one in before)
        alone = isinstance(literal, Atom) and can_solve(literal, start)
        if alone and next(self.solver.matches(literal, start), None) is None:
            return Attempt(goal.rule, holds, self._reason(literal, start), held)
        shared = sorted(names_in(literal) & held.keys())
        others = set()
        for other in islice(self.solver.solve(before, start), 10 * OTHERS):
            others.add(tuple(other[name] for name in shared))
            if len(others) > OTHERS:
                break
        return Attempt(goal.rule, holds, self._reason(literal, held), held, max(len(others) - 1, 0))

    def _text(self, literal: Literal, binding: Binding) -> str:
        return literal_text(self.program, literal, binding)

    def _reason(self, literal: Literal, binding: Binding) -> str:
        """Why a literal has no match."""
        try:
            next(self.solver.matches_or_error(literal, binding), None)
            return self._reason_without_error(literal, binding)
        except EvaluationError as error:
            return f"{self._text(literal, binding)}: {error.message}"

    def _reason_without_error(self, literal: Literal, binding: Binding) -> str:
        match literal:
            case Atom():
                return f"no fact {self._text(literal, binding)}"
            case Negation(atom):
                row = next(self.solver.facts_of(atom, binding))
                return f"{fact_text(self.program, atom.relation, row)} is there"
            case Aggregate(result=result, kind=kind):
                text = aggregate_text(self.program, literal, binding)
                values = self.solver.aggregated(literal, binding)
                if not values:
                    return f"{text} is over nothing, and has no value"
                return f"{text} is {constant(values[0], kind)}, not {term_text(result, kind, binding)}"
            case _:
                return f"{self._text(literal, binding)} is false"

    # ── reasons that keep out a derivable fact ───────────────────────────────────────────────

    def remarks(self, derivable: bool) -> Iterator[str]:
        relation = self.program.relations[self.relation]
        base = self.row in self.engine.given(self.relation)
        if base:
            yield "it is given, but something keeps it out:"
        elif not self.program.rules_of(self.relation):
            yield f"it is not given, and no rule derives {self.relation}"
        if relation.equivalence:
            yield from self._classes()
        kept_out = [*self._taken(), *self._dominated()] or [*self._of_its_key()]
        yield from kept_out
        if kept_out or not (derivable or base):
            return
        if self.relation in self.program.limits:
            yield f"the recursion ended at .limitsize {self.relation}(n={self.program.limits[self.relation]})"
        elif relation.choices or any(s.dominated.relation == self.relation for s in self.program.subsumptions):
            yield "in the course of the evaluation another fact kept it out, which has been replaced since"

    def _classes(self) -> Iterator[str]:
        facts = self.engine.tables[self.relation].facts
        column = self.program.relations[self.relation].columns[0]
        absent = [value for value in dict.fromkeys(self.row) if value not in facts]
        for value in absent:
            yield f"{constant(value, column.kind)} is in no pair of {self.relation}"
        if not absent:
            yield "no chain of pairs leads from one to the other"

    def _taken(self) -> Iterator[str]:
        """Facts that have a key of this one."""
        relation = self.program.relations[self.relation]
        for columns in relation.choices:
            for row in self.solver.reader(self.relation).matching({c: self.row[c] for c in columns}):
                names = ", ".join(relation.columns[c].name for c in columns)
                yield f"choice-domain {names}: the key is taken by {fact_text(self.program, self.relation, row)}"

    def _of_its_key(self) -> Iterator[str]:
        """The fact that a map or a lattice has for the key of this one."""
        known, relation = best_map(self.program, self.relation), self.program.relations[self.relation]
        values = {column for column, _ in relation.lattices} if known is None else {known.column}
        key = {c: value for c, value in enumerate(self.row) if c not in values}
        for row in self.solver.reader(self.relation).matching(key) if values else ():
            text = fact_text(self.program, self.relation, row)
            yield f"its key has {text}, {'the best' if known else 'joined of all'} that is derived for it"

    def _dominated(self) -> Iterator[str]:
        """Facts that are better than this one, by a subsumption as it is written."""
        for subsumption in self.program.subsumptions:
            if subsumption.dominated.relation != self.relation or not subsumption.origin.text:
                continue
            goal = goal_of(Rule(subsumption.dominated, (subsumption.dominating, *subsumption.body)))
            start = goal.binding(self.row)
            found = None if isinstance(start, str) else self.solver.first(goal.body, start)
            if found is not None:
                row = self.solver.row(goal.atoms[0].args, found)
                yield f"dominated by {fact_text(self.program, self.relation, row)}:  {rule_text(subsumption)}"


def _as_written(goal: Goal, start: Binding) -> list[Literal]:
    """The body in its order, each literal once it can be evaluated; head terms first."""
    known = set(start)
    count = len([literal for literal in goal.literals if not draws((), (literal,))])
    rest = [*goal.body[count:], *goal.body[:count]]
    order: list[Literal] = []
    while ready := next((literal for literal in rest if can_solve(literal, known)), None):
        rest.remove(ready)
        order.append(ready)
        known |= names_in(ready)
    return order

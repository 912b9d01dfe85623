"""Naive evaluation: the meaning of a program, written to be obviously right.

Unit by unit, the evaluator asks every rule for all facts it derives from the state at the start of
a round, adds them, and repeats until a round changes nothing.  No deltas, no join orders: a body is
a list of literals, solved one after the other for every binding so far.  All other executors are
tested against this one, so it shares with them only what *defines* an answer: arithmetic, the order
of choices, which facts subsumption drops, when a failure counts (core.program.bodies).

Source: Abiteboul, Hull, Vianu, Foundations of Databases, 1995, chapters 12 and 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import assert_never

from attrs import evolve

from everlog.core import program as p
from everlog.core.evaluate.choice_domains import Chooser
from everlog.core.evaluate.subsume import dominance_rule, dominated
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Range,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)
from everlog.core.program.aggregates.best_values import check_ordered, only_maps
from everlog.core.program.aggregates.folded import folded
from everlog.core.program.aggregates.growing import as_joined_maps
from everlog.core.program.aggregates.joined_values import joined_by_lattices
from everlog.core.program.bodies import Binding, names, outcomes, schedule, sure_and_open
from everlog.core.program.dependencies import Unit, units
from everlog.core.program.functors import BUILTINS, COMPARISONS, as_kind, call_functor, one_nan, range_values
from everlog.core.program.order import ordered, rank
from everlog.core.program.values import MASK, EvaluationError, float_sum, wrap

same = COMPARISONS["="]


def evaluate(program: p.Program, inputs: Mapping[str, Iterable[Row]] | None = None) -> dict[str, frozenset[Row]]:
    """All relations of a program, from its own facts and `inputs`.

    >>> node, x, y, z = p.Column("n", Kind.NUMBER), Variable("x"), Variable("y"), Variable("z")
    >>> edge, step = Atom("edge", (x, y)), Atom("path", (y, z))
    >>> path = Rule(Atom("path", (x, y)), (edge,)), Rule(Atom("path", (x, z)), (edge, step))
    >>> relations = {name: p.Relation(name, (node, node)) for name in ("edge", "path")}
    >>> sorted(evaluate(p.Program(relations, path), {"edge": [(1, 2), (2, 3)]})["path"])
    [(1, 2), (1, 3), (2, 3)]
    """
    base = inputs or {}
    assert base.keys() <= program.relations.keys(), "inputs of undeclared relations"
    evaluation = NaiveEvaluation(program)
    for unit in units(program):
        evaluation.load(unit, base)
        evaluation.run(unit)
    return {name: frozenset(rows) for name, rows in evaluation.state.items()}


class NaiveEvaluation:
    """The state of one run.  Rules read `facts`: the sorted state at a round's start."""

    def __init__(self, program: p.Program) -> None:
        self.program = program
        self.state: dict[str, set[Row]] = {name: set() for name in program.relations}
        self.facts: dict[str, list[Row]] = {name: [] for name in program.relations}
        self.groups: dict[tuple[str, tuple[int, ...]], tuple[list[Row], dict[Row, list[Row]]]] = {}
        self.gone: dict[str, set[Row]] = {name: set() for name in program.relations}
        self.choosers = {name: Chooser(r) for name, r in program.relations.items() if r.choices}
        self.joined = {
            name: found
            for name, relation in program.relations.items()
            if (found := joined_by_lattices(relation, program.functors)) is not None
        }
        self.numbers = count()

    # ── rounds ───────────────────────────────────────────────────────────────────────────────

    def load(self, unit: Unit, inputs: Mapping[str, Iterable[Row]]) -> None:
        """Round 0: the facts that no rule derives."""
        for name in unit.relations:
            self.add(name, {*self.program.facts.get(name, ()), *map(tuple, inputs.get(name, ()))})
        self.settle(unit)

    def run(self, unit: Unit) -> None:
        """Rounds until nothing changes, or a size limit is reached."""
        for rule in unit.rules:  # first the rules that do not need the unit itself
            if not _needs(rule, unit):
                self.add(
                    rule.head.relation, self.derive_numbered(rule) if p.draws_numbers(rule) else self.derive(rule)
                )
        self.settle(unit)
        recursive = [rule for rule in unit.rules if _needs(rule, unit)]
        while recursive and not self.is_full(unit):
            before = [self.facts[name] for name in unit.relations]
            for rule in recursive:
                self.add(rule.head.relation, self.derive(rule))
            self.settle(unit)
            if before == [self.facts[name] for name in unit.relations]:
                return

    def add(self, name: str, rows: Iterable[Row]) -> None:
        admitted = self.choosers[name].admit(rows) if name in self.choosers else rows
        self.state[name].update(row for row in admitted if row not in self.gone[name])

    def settle(self, unit: Unit) -> None:
        """End a round: close equivalences, drop dominated facts, show rules the new state."""
        for name in unit.relations:
            if self.program.relations[name].equivalence:
                self.state[name] = closed(self.state[name])
            if name in self.joined:
                self.state[name] = set(self.joined[name].facts(self.state[name]).values())
            self.facts[name] = ordered(self.state[name])
        pairs: dict[str, set[Row]] = {}
        for subsumption in unit.subsumptions:
            with _blaming(subsumption):
                found = self.rows(dominance_rule(subsumption))
            pairs.setdefault(subsumption.dominated.relation, set()).update(found)
        for name in pairs:
            self.gone[name] |= dominated(pairs[name])
            self.state[name] -= self.gone[name]
            self.facts[name] = ordered(self.state[name])
        if unit.subsumptions:
            self.check_values(unit)

    def check_values(self, unit: Unit) -> None:
        """Raise an error for a value of a map that no order has."""
        maps = only_maps(self.program, unit)
        for known in maps.values() if isinstance(maps, dict) else ():
            for row in self.state[known.relation]:
                check_ordered(row[known.column], known.relation)
        joined = as_joined_maps(self.program, unit)
        for name, how in joined.joined.items() if joined is not None else ():
            how.check(self.facts[name])

    def is_full(self, unit: Unit) -> bool:
        limits = self.program.limits
        return any(name in limits and len(self.state[name]) >= limits[name] for name in unit.relations)

    # ── rules ────────────────────────────────────────────────────────────────────────────────

    def derive(self, rule: Rule) -> set[Row]:
        with _blaming(rule):
            return self.rows(rule)

    def rows(self, rule: Rule) -> set[Row]:
        return {self.row(rule.head.args, binding) for binding in self.solve(rule.body, {})}

    def row(self, args: Iterable[Term], binding: Binding) -> Row:
        return tuple(self.value(arg, binding) for arg in args)

    def derive_numbered(self, rule: Rule) -> set[Row]:
        """The facts of a rule with `autoinc()`, derived once per run.

        First it solves the literals that need no number.  Then each binding, in sorted order, draws
        a number for every `autoinc()`, head before body, and solves the rest with them.
        """
        drawing = [literal for literal in rule.body if p.draws_numbers(Rule(Atom("", ()), (literal,)))]
        order, waiting = schedule([literal for literal in rule.body if literal not in drawing], set())
        found: set[Row] = set()
        with _blaming(rule):
            for binding in distinct(self.solve(order, {})):
                head = [self.drawn(arg) for arg in rule.head.args]
                late = waiting + [self.drawn_comparison(literal) for literal in drawing]
                found |= {self.row(head, wider) for wider in self.solve(late, binding)}
        return found

    def drawn(self, term: Term) -> Term:
        """The term with the next numbers for each `autoinc()`, from left to right."""
        if not isinstance(term, Call):
            return term
        if term.name == "autoinc":
            return Constant(next(self.numbers), Kind.NUMBER)
        return evolve(term, args=tuple(self.drawn(arg) for arg in term.args))

    def drawn_comparison(self, literal: Literal) -> Literal:
        assert isinstance(literal, Comparison), f"autoinc() in {literal}"
        return evolve(literal, left=self.drawn(literal.left), right=self.drawn(literal.right))

    # ── bodies ───────────────────────────────────────────────────────────────────────────────

    def solve(self, body: Sequence[Literal], binding: Binding) -> Iterator[Binding]:
        """The extensions of a binding that satisfy all literals, or an open one's error."""
        order, conditions = sure_and_open(body, binding)
        for choice in self.extend(order, binding):
            for wider, error in outcomes(conditions, choice, self.matches):
                if error is not None:
                    raise error
                yield wider

    def extend(self, order: Sequence[Literal], binding: Binding) -> Iterator[Binding]:
        stack: list[Iterator[Binding]] = [iter((binding,))]  # no recursive calls: bodies may be long
        while stack:
            wider = next(stack[-1], None)
            if wider is None:
                stack.pop()
            elif len(stack) > len(order):
                yield wider
            else:
                stack.append(self.matches(order[len(stack) - 1], wider))

    def matches(self, literal: Literal, binding: Binding) -> Iterator[Binding]:
        """Every way to extend the binding so that one literal holds."""
        match literal:
            case Atom():
                yield from self.unified(literal, binding)
            case Negation(atom):
                if next(self.unified(atom, binding), None) is None:
                    yield binding
            case Comparison("=", Variable(name), other) if name not in binding:
                yield binding | {name: self.value(other, binding)}
            case Comparison("=", other, Variable(name)) if name not in binding:
                yield binding | {name: self.value(other, binding)}
            case Comparison(op, left, right):
                if COMPARISONS[op](self.value(left, binding), self.value(right, binding)):
                    yield binding
            case Range(result, start, stop, step):
                by = None if step is None else self.value(step, binding)
                within = range_values(self.value(start, binding), self.value(stop, binding), by)
                yield from _bound(result, within, binding)
            case Aggregate(result):
                yield from _bound(result, self.aggregated(literal, binding), binding)
            case _:
                assert_never(literal)

    def unified(self, atom: Atom, binding: Binding) -> Iterator[Binding]:
        """Every way to extend the binding so that the atom is one of the facts."""
        args = [(n, arg) for n, arg in enumerate(atom.args) if not isinstance(arg, Wildcard)]
        known = [(n, arg) for n, arg in args if names([arg]) <= binding.keys()]
        other = [pair for pair in args if pair not in known]
        columns = tuple(n for n, _ in known)
        for row in self.grouped(atom.relation, columns).get(self.row((arg for _, arg in known), binding), ()):
            wider = {arg.name: row[n] for n, arg in other if isinstance(arg, Variable)} | binding
            if all(same(self.value(arg, wider), row[n]) for n, arg in other):
                yield wider

    def grouped(self, name: str, columns: tuple[int, ...]) -> dict[Row, list[Row]]:
        """An index on the facts of a relation, kept while they are the same."""
        facts, groups = self.groups.get((name, columns), (None, {}))
        if facts is not self.facts[name]:
            groups = {}
            for row in self.facts[name]:
                groups.setdefault(tuple(row[n] for n in columns), []).append(row)
            self.groups[name, columns] = self.facts[name], groups
        return groups

    def aggregated(self, literal: Aggregate, binding: Binding) -> list[Value]:
        """The value of an aggregate; none for `min`, `max` and `mean` over nothing."""
        outer = {variable.name: binding[variable.name] for variable in literal.outer}
        found = distinct(self.solve(literal.body, outer))
        targets = [] if literal.target is None else [self.value(literal.target, inner) for inner in found]
        match literal.op:
            case "count":
                return [len(found)]
            case "sum":
                return [summed(targets, literal.kind)]
            case "mean":
                total = float(summed(targets, Kind.FLOAT))
                return [one_nan(total / len(targets))] if targets else []
            case "min":
                return [min(targets, key=rank)] if targets else []
            case "max":
                return [max(targets, key=rank)] if targets else []
            case op if literal.start is not None:
                return [folded(self.program.functors[op[1:]], literal.start.value, targets)]
        raise AssertionError(f"no such aggregate: {literal.op}")

    # ── terms ────────────────────────────────────────────────────────────────────────────────

    def value(self, term: Term, binding: Binding) -> Value:
        match term:
            case Variable(name):
                return binding[name]
            case Constant(value):
                return value
            case Call():
                return one_nan(self.called(term, self.row(term.args, binding)))
            case Wildcard():
                raise AssertionError("a wildcard has no value")

    def called(self, call: Call, args: Row) -> Value:
        if call.name.startswith("@"):
            return call_functor(self.program.functors[call.name[1:]], args)
        if call.name == "as":
            return as_kind(args[0], call.operand, call.kind)
        function = BUILTINS[call.name, call.operand].function
        result: Value = function(*args)
        return result


# ── parts that need no state ─────────────────────────────────────────────────────────────────


def _bound(result: Variable, values: Iterable[Value], binding: Binding) -> Iterator[Binding]:
    """The binding with `result` as each of the values, or compared with them."""
    if result.name not in binding:
        for value in values:
            yield binding | {result.name: value}
    elif binding[result.name] in values:
        yield binding


def distinct(bindings: Iterable[Binding]) -> list[Binding]:
    """Distinct bindings of the same variables, sorted by their values in name order."""
    found = {tuple(binding[name] for name in sorted(binding)): binding for binding in bindings}
    return [found[values] for values in ordered(found)]


def summed(values: Iterable[Value], kind: Kind) -> Value:
    """The sum in the arithmetic of a kind.

    >>> summed([2**63 - 1, 1], Kind.NUMBER), summed([2**64 - 1, 1], Kind.UNSIGNED)
    (-9223372036854775808, 0)
    """
    match kind:
        case Kind.NUMBER:
            return wrap(sum(map(int, values)))
        case Kind.UNSIGNED:
            return sum(map(int, values)) & MASK
        case Kind.FLOAT:
            return float_sum(list(map(float, values)))
        case Kind.SYMBOL:
            raise AssertionError("symbols have no sum")


def closed(rows: Iterable[Row]) -> set[Row]:
    """The smallest equivalence that contains these pairs, over their values.

    >>> sorted(closed([(1, 2)]))
    [(1, 1), (1, 2), (2, 1), (2, 2)]
    """
    members: dict[Value, set[Value]] = {}
    for one, other in rows:
        merged = members.get(one, {one}) | members.get(other, {other})
        members.update(dict.fromkeys(merged, merged))
    return {(one, other) for one, others in members.items() for other in others}


def _needs(rule: Rule, unit: Unit) -> bool:
    """Whether a rule reads a relation of its own unit."""
    return any(atom.relation in unit.relations for atom, _ in p.atoms_of(rule.body))


@contextmanager
def _blaming(rule: Rule | p.Subsumption) -> Iterator[None]:
    """Add the rule and its place to an error raised inside."""
    try:
        yield
    except EvaluationError as error:
        raise error.with_rule(
            rule.written if isinstance(rule, Rule) else str(rule), str(rule.origin)
        ) from error.__cause__

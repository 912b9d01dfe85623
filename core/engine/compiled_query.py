"""Queries of a running engine: bodies compiled to generators over its tables.

A query changes nothing, except that tables get the indexes it asks for.  The sizes of relations
decide the order of its joins; when they change much, it is compiled again.  Its answers are those
of the present state: an iteration must stop when the engine has made a step.

The parameters of a query are variables that its first atom binds.  That atom is compiled like a
change: its one fact, the values of the parameters, comes with each run.  So a query is compiled
once for all values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from attrs import evolve

from everlog.core.engine.engine import Engine
from everlog.core.engine.sleeping import SleepingEngine
from everlog.core.engine.stepping.store import Store
from everlog.core.engine.usage import columns_asked
from everlog.core.ir.compile import Compiled, compile_rule
from everlog.core.ir.uses import Action, Use
from everlog.core.program import PARAMETERS, Atom, Row, Rule, Wildcard, atoms_of
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.containment import Covering, covered
from everlog.core.program.demand import Adorned
from everlog.core.program.values import EvaluationError
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import is_other_size

T = TypeVar("T")
_ANSWERS = Use(Action.YIELD, lazy=True)


class CompiledQuery:
    """The alternatives of a query, compiled at the first run and when sizes changed.

    >>> from everlog.core.program.executor import Update
    >>> from everlog.core.program import Atom, Variable
    >>> from everlog.dsl.check import compile_text
    >>> engine = Engine(compile_text(".decl e(x:number, y:number)  e(1, 2).  e(2, 3).  e(2, 4)."))
    >>> x, y, z = map(Variable, "xyz")
    >>> rule = Rule(Atom("?-", (x, z)), (Atom("e", (x, y)), Atom("e", (y, z))))
    >>> sorted(CompiledQuery(engine, [rule]).answers())
    [(1, 3), (1, 4)]
    >>> rule = Rule(Atom("?-", (y,)), (Atom("$", (x,)), Atom("e", (x, y))))
    >>> from_x = CompiledQuery(engine, [rule])
    >>> sorted(from_x.answers((1,))), sorted(from_x.answers((2,)))
    ([(2,)], [(3,), (4,)])
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule]) -> None:
        self._engine, self._rules = engine, [_with_rows(rule) for rule in rules]
        self._written = list(rules)
        self._distinct = len(rules) < 2 and not any(may_repeat(_showing_parameters(rule)) for rule in rules)
        reads = dict.fromkeys(atom.relation for rule in rules for atom, _ in atoms_of(rule.body))
        self._reads = tuple(name for name in reads if name != PARAMETERS)
        self._asks = [each for rule in rules for each in columns_asked(rule) if each[0] != PARAMETERS]
        self._covering: list[Covering] = []  # relations that are read instead of parts of the bodies
        self._code: list[Compiled] = []
        self._sizes: dict[str, int] = {}

    def answers(self, parameters: Row = ()) -> Iterator[Row]:
        """The answers, each once, in no order; the first as soon as it is found.

        `parameters` are the values of the query's parameters, in the order of its first atom.

        Cost: that of the joins, as far as the caller iterates; missing indexes are built once
        lookups have cost as much.
        """
        usage = self._engine.usage
        for each in self._asks:
            usage.read(*each)
        if isinstance(self._engine, SleepingEngine):
            stored = self._engine.answers(self._written, parameters, lambda: self.answers(parameters))
            if stored is not None:
                return stored
        demands = self._engine.demands
        if any(map(demands.is_on_demand, self._reads)):
            return iter(demands.answers(self._written, parameters))
        if any(self._engine.given(each.by.relation) for each in self._covering):
            self._code = []  # it has facts of its own now
        store = self._engine.store_for(self._reads)
        tables = {name: store.tables[name] for name in self._reads}
        sizes = {name: table.about() for name, table in tables.items()}
        if not self._code or any(is_other_size(self._sizes[name], size) for name, size in sizes.items()):
            rules, covering = self._covered()
            compiled = [self._compiled(rule, store) for rule in rules]
            # together: a limit may interrupt at any time
            self._code, self._sizes, self._covering = compiled, sizes, covering
        runs: list[Iterator[Row]] = []
        values = parameters if len(parameters) == 1 else (_padded(parameters, 0),)
        for rule, code in zip(self._rules, self._code, strict=True):
            run: Any = code.bound_to(store.index)
            runs.append(_blaming(rule, run(values, None)))  # a generator
        found = runs[0] if len(runs) == 1 else chain.from_iterable(runs)
        return found if self._distinct else _once(found)

    def coverings(self) -> list[Covering]:
        """The parts of the query that are read from relations that hold their answers."""
        return self._covered()[1]

    def demands(self) -> list[tuple[Adorned, Atom]]:
        """What the query asks of relations on demand: the parts, and where the values come from."""
        live = self._engine.plan.demand
        if live is None:
            return []
        return [(part, made.head) for rule in self._written for part, made in live.asking(rule)[0]]

    def _covered(self) -> tuple[list[Rule], list[Covering]]:
        known = [rule for rule in self._engine.answering if not self._engine.given(rule.head.relation)]
        found = [covered(rule, known) for rule in self._rules]
        return [rule for rule, _ in found], [each for _, coverings in found for each in coverings]

    def _compiled(self, rule: Rule, store: Store) -> Compiled:
        first = _parameters(rule)
        shapes = store.shapes if first is None else {**store.shapes, PARAMETERS: shape_of(len(first.args))}
        functors, delta = self._engine.program.functors, None if first is None else 0
        return compile_rule(rule, delta, shapes, store.statistics(rule), functors, _ANSWERS, sets=False)


def may_repeat(rule: Rule) -> bool:
    """Whether two ways to make the body hold may give the same answer.

    >>> from everlog.core.program import Variable
    >>> x, y = Variable("x"), Variable("y")
    >>> head, body = Atom("q", (x,)), (Atom("e", (x, y)),)
    >>> may_repeat(Rule(head, body)), may_repeat(Rule(Atom("q", (y, x)), body))
    (True, False)
    """
    shown = set(rule.head.args)
    for literal in rule.body:
        if any(variable not in shown for variable in variables_of_literal(literal)):
            return True
        if isinstance(literal, Atom) and any(isinstance(arg, Wildcard) for arg in literal.args):
            return True
    return False


def _parameters(rule: Rule) -> Atom | None:
    """The atom that binds the parameters, if there are any."""
    first = rule.body[0] if rule.body else None
    return first if isinstance(first, Atom) and first.relation == PARAMETERS else None


def _padded(row: tuple[T, ...], filler: T) -> tuple[T, ...]:
    """Three columns instead of two: a pair, stored by key, would bind only one."""
    return (*row, filler) if len(row) == 2 else row


def _with_rows(rule: Rule) -> Rule:
    first = _parameters(rule)
    if first is None:
        return rule
    return evolve(rule, body=(Atom(PARAMETERS, _padded(first.args, Wildcard())), *rule.body[1:]))


def _showing_parameters(rule: Rule) -> Rule:
    """The rule with its parameters in the head: they are the same in all answers."""
    first = _parameters(rule)
    return rule if first is None else evolve(rule, head=Atom("", rule.head.args + first.args))


def _blaming(rule: Rule, found: Iterable[Row]) -> Iterator[Row]:
    """The answers; an error names the query."""
    try:
        yield from found
    except EvaluationError as error:
        raise error.with_rule(rule.written, str(rule.origin)) from error.__cause__


def _once(found: Iterable[Row]) -> Iterator[Row]:
    seen: set[Row] = set()
    add = seen.add
    for row in found:
        if row not in seen:
            add(row)
            yield row

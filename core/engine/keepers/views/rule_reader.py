"""A rule of a view, compiled for reading: it runs over the tables that are there.

All three ways are generators of the same code as queries have: the first answer comes when it is
found, and an answer that several matches give comes several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

from attrs import evolve

from everlog.core.engine.stepping.store import Store
from everlog.core.ir.compile import Compiled, Lookup, compile_rule
from everlog.core.ir.uses import Action, Use
from everlog.core.program import PARAMETERS, Atom, Comparison, Relation, Row, Rule, Term, Value, Variable
from everlog.core.storage.shape import Facts
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import is_other_size

Generating: TypeAlias = Callable[[Facts | None, None], Iterator[Row]]  # code that yields answers
ANSWERS = Use(Action.YIELD, lazy=True)


class RuleReader:
    """The rule has a variable for each `_`: an index of before knows whole rows only."""

    def __init__(self, store: Store, rule: Rule, relation: Relation) -> None:
        self.store, self.rule, self.relation = store, rule, relation
        self.atoms = [(n, x.relation) for n, x in enumerate(rule.body) if isinstance(x, Atom)]
        self._codes: dict[object, tuple[Compiled, dict[str, int]]] = {}

    def answers(self) -> Iterator[Row]:
        return self._run(None, self.rule, None, None, self.store.index)

    def having(self, bound: Mapping[int, Value], lookup: Lookup | None = None) -> Iterator[Row]:
        """The answers with these values in these columns."""
        columns = tuple(sorted(bound))
        rule, shape = self._asking(columns), shape_of(len(columns))
        values = shape.facts_of([tuple(bound[n] for n in columns)])
        return self._run(columns, rule, 0, values, lookup or self.store.index)

    def through(self, position: int, facts: Facts, lookup: Lookup | None = None) -> Iterator[Row]:
        """The answers of matches that have one of these facts at a position of the body."""
        return self._run(position, self.rule, position, facts, lookup or self.store.index)

    def _asking(self, columns: tuple[int, ...]) -> Rule:
        """The rule with an atom before it that binds columns of its head."""
        asked: list[Term] = []
        same = []
        for n in columns:
            arg = self.rule.head.args[n]
            if isinstance(arg, Variable):
                asked.append(arg)
            else:
                asked.append(Variable(f"${n}"))
                same.append(Comparison("=", asked[-1], arg, self.relation.columns[n].kind))
        return evolve(self.rule, body=(Atom(PARAMETERS, tuple(asked)), *self.rule.body, *same))

    def _run(
        self, name: object, rule: Rule, position: int | None, facts: Facts | None, lookup: Lookup
    ) -> Iterator[Row]:
        sizes = {relation: self.store.tables[relation].about() for _, relation in self.atoms}
        code, before = self._codes.get(name, (None, sizes))
        if code is None or any(is_other_size(before[relation], size) for relation, size in sizes.items()):
            code = self._compiled(rule, position)
            self._codes[name] = code, sizes
        return cast(Generating, code.bound_to(lookup))(facts, None)

    def _compiled(self, rule: Rule, position: int | None) -> Compiled:
        store, first = self.store, rule.body[0]
        shapes = store.shapes
        if isinstance(first, Atom) and first.relation == PARAMETERS:
            shapes = {**shapes, PARAMETERS: shape_of(len(first.args))}
        head = evolve(rule, head=Atom("?-", rule.head.args))
        return compile_rule(head, position, shapes, store.statistics(rule), store.functors, ANSWERS, sets=False)

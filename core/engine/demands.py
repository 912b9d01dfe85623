"""What is asked for of relations on demand, with counts; reads and queries of such relations.

A demand is a fact of the relation of what is asked for (`core.program.live_demand`).  The first
reader that asks for a value inserts it, and the last one that is done deletes it.  The engine
follows both like any step, except that it reports no changes and writes nothing to a file.  A query
asks, reads, and is done.  A subscription asks for as long as it lasts, and hears of the changes of
what it asked for.

A trial (`Engine.what_if`) cannot make steps.  There, a query starts from the base facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core.engine.stepping.changes import ToldChanges
from everlog.core.evaluate.on_demand import answers, demand_of
from everlog.core.program import (
    PARAMETERS,
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Kind,
    Range,
    Relation,
    Row,
    Rule,
    Value,
    Variable,
)
from everlog.core.program.demand import Adorned
from everlog.core.program.executor import Changes
from everlog.core.program.live_demand import LiveDemand
from everlog.core.storage.shape import Facts

if TYPE_CHECKING:
    from everlog.core.engine.engine import Engine


def part_of(relation: str, arity: int, bound: Mapping[int, Value]) -> tuple[Adorned, Row]:
    """The part of a relation that has values in these columns, and the values.

    >>> part, values = part_of("path", 2, {0: 7})
    >>> part.name, part.magic, values
    ('path^bf', 'path?bf', (7,))
    """
    adornment = "".join("b" if column in bound else "f" for column in range(arity))
    return Adorned(relation, adornment), tuple(bound[column] for column in sorted(bound))


def kinds_of(rule: Rule, relations: Mapping[str, Relation]) -> dict[Variable, Kind]:
    """The kinds of the variables of a body that its literals bind or compare."""
    found: dict[Variable, Kind] = {}
    for literal in rule.body:
        match literal:
            case Atom(relation, args) if relation in relations:
                columns = relations[relation].columns
                found |= {a: c.kind for a, c in zip(args, columns, strict=True) if isinstance(a, Variable)}
            case Comparison(left=left, right=right, kind=kind):
                found |= {term: kind for term in (left, right) if isinstance(term, Variable)}
            case Aggregate(result=result, kind=kind) | Range(result=result, kind=kind):
                found[result] = kind
            case _:
                pass
    return found


class Demands:
    """The demands of an engine.

    Invariant: between steps, the base facts of `part.magic` are the keys of `asked[part]`, and what
    rules ask for without a condition.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: dict[Adorned, dict[Row, int]] = {}  # part → values → how many ask for them
        self.watched: dict[Adorned, dict[Row, int]] = {}  # those whose changes are told

    @property
    def live(self) -> LiveDemand | None:
        return self._engine.plan.demand

    def is_on_demand(self, relation: str) -> bool:
        live = self.live
        return live is not None and relation in live.parts

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def prepare(self, parts: Iterable[Adorned]) -> None:
        """Plan these parts, if they are new."""
        new = [part for part in parts if part not in self.asked]
        if not new:
            return
        self.asked |= {part: {} for part in new}
        known = [part for parts in self._parts().values() for part in parts]
        if not set(new) <= set(known):
            try:
                self._engine.plan_again()
            except BaseException:
                for part in new:
                    del self.asked[part]
                raise

    def _parts(self) -> Mapping[str, tuple[Adorned, ...]]:
        return {} if self.live is None else self.live.parts

    def ask(self, part: Adorned, rows: Iterable[Row]) -> None:
        """Ask for facts with these values; `done` takes it back."""
        self.prepare([part])
        counts, wanted = self.asked[part], list(dict.fromkeys(rows))
        new = self._new(part, wanted)
        if new and self.is_on_demand(part.relation):
            self._engine.ask_for({part.magic: ([], new)})
        for row in wanted:  # last, since the step may fail
            counts[row] = counts.get(row, 0) + 1

    def done(self, part: Adorned, rows: Iterable[Row]) -> None:
        """Ask for these values no longer."""
        counts, gone = self.asked[part], []
        always = self._always(part)
        for row in dict.fromkeys(rows):
            counts[row] -= 1
            if not counts[row]:
                del counts[row]
                if row not in always:
                    gone.append(row)
        if gone and self.is_on_demand(part.relation):
            self._engine.ask_for({part.magic: (gone, [])})

    def _always(self, part: Adorned) -> frozenset[Row]:
        return frozenset() if self.live is None else self.live.always.get(part, frozenset())

    @contextmanager
    def asking(self, part: Adorned, rows: Sequence[Row]) -> Iterator[None]:
        self.ask(part, rows)
        try:
            yield
        finally:
            self.done(part, rows)

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def lookup(self, relation: str, bound: Mapping[int, Value]) -> list[Row]:
        """The facts of a relation on demand with these values in these columns."""
        engine = self._engine
        if engine.in_trial:
            return self._lookup_apart(relation, bound)
        part, values = part_of(relation, engine.program.relations[relation].arity, bound)
        self.prepare([part])
        if not self.is_on_demand(relation):  # this way to ask for it needs all of it
            return list(engine.lookup(relation, bound))
        return self._tried(part, [values], lambda: self._read(part, values, bound))

    def _read(self, part: Adorned, values: Row, bound: Mapping[int, Value]) -> list[Row]:
        """The facts of a part with these values, which are asked for."""
        table = self._engine.tables[part.name]
        if len(self._engine.tables[part.magic]) == 1:  # nobody asks for others
            return [row for row in table.rows() if part.bound(row) == values]
        return list(self._engine.lookup(part.name, bound))

    def _tried(self, part: Adorned, rows: Sequence[Row], find: Callable[[], list[Row]]) -> list[Row]:
        """What `find` finds while these values are asked for.

        The step that asks is only tried: to undo it is cheaper than another step.
        """
        new = self._new(part, rows)
        return self._engine.trial({part.magic: ([], new)}, lambda _: find()) if new else find()

    def _new(self, part: Adorned, rows: Iterable[Row]) -> list[Row]:
        """The values that nobody asks for yet."""
        counts, always = self.asked[part], self._always(part)
        return [row for row in dict.fromkeys(rows) if row not in counts and row not in always]

    def _lookup_apart(self, relation: str, bound: Mapping[int, Value]) -> list[Row]:
        columns = self._engine.program.relations[relation].columns
        head = tuple(Variable(f"c{n}") for n in range(len(columns)))
        args = tuple(Constant(bound[n], columns[n].kind) if n in bound else v for n, v in enumerate(head))
        free = [n for n in range(len(columns)) if n not in bound]
        rule = Rule(Atom("?-", tuple(head[n] for n in free)), (Atom(relation, args),), name="?-#1")
        rows = []
        for found in self._apart([rule], tuple(columns[n] for n in free)):
            values = dict(bound) | dict(zip(free, found, strict=True))
            rows.append(tuple(values[n] for n in range(len(columns))))
        return rows

    def _apart(self, rules: Sequence[Rule], columns: tuple[Column, ...]) -> Iterable[Row]:
        """The answers of a query from base facts alone."""
        engine = self._engine
        given = {name: engine.given(name) for name in engine.program.relations}
        demand = demand_of(engine.program, rules, columns)
        return answers(engine.program, demand, given, limits=engine.limits).relation(demand.goal)

    def _answers_apart(self, rules: Sequence[Rule], parameters: Row) -> list[Row]:
        relations = self._engine.program.relations
        kinds = kinds_of(rules[0], relations)
        columns = tuple(Column(str(arg), kinds[arg]) for arg in rules[0].head.args if isinstance(arg, Variable))
        plain = []
        for rule in rules:
            body = list(rule.body)
            first = body[0] if body else None
            if isinstance(first, Atom) and first.relation == PARAMETERS:
                known = kinds_of(rule, relations)
                body[:1] = [
                    Comparison("=", arg, Constant(value, known[arg]), known[arg])
                    for arg, value in zip(first.args, parameters, strict=True)
                    if isinstance(arg, Variable) and arg in known
                ]
            plain.append(evolve(rule, body=tuple(body)))
        return list(self._apart(plain, columns))

    def answers(self, rules: Sequence[Rule], parameters: Row) -> list[Row]:
        """The answers of a query that reads relations on demand."""
        from everlog.core.engine.compiled_query import CompiledQuery

        engine = self._engine
        if engine.in_trial:
            return self._answers_apart(rules, parameters)
        while True:
            asked = [([], rule) if self.live is None else self.live.asking(rule) for rule in rules]
            parts = {part for demands, _ in asked for part, _ in demands}
            if parts <= self.asked.keys():
                break
            self.prepare(parts)  # which may show that some relations have to be whole
        wanted = [each for demands, _ in asked for each in demands]
        query = CompiledQuery(engine, [rule for _, rule in asked])
        if not wanted:
            return list(query.answers(parameters))
        with ExitStack() as stack:
            for part, rule in wanted[:-1]:
                stack.enter_context(self.asking(part, self._values(rule, parameters)))
            part, rule = wanted[-1]
            return self._tried(part, self._values(rule, parameters), lambda: list(query.answers(parameters)))

    def _values(self, rule: Rule, parameters: Row) -> list[Row]:
        """The values that a query asks for, by the rule that says so."""
        from everlog.core.engine.compiled_query import CompiledQuery

        if not rule.body:
            return [tuple(arg.value for arg in rule.head.args if isinstance(arg, Constant))]
        return list(CompiledQuery(self._engine, [rule]).answers(parameters))

    # ── what is told ─────────────────────────────────────────────────────────────────────────

    def watch(self, relation: str, bound: Mapping[int, Value]) -> tuple[Adorned, Row]:
        """Ask for facts until `unwatch`; steps tell their changes."""
        part, values = part_of(relation, self._engine.program.relations[relation].arity, bound)
        self.ask(part, [values])
        counts = self.watched.setdefault(part, {})
        counts[values] = counts.get(values, 0) + 1
        return part, values

    def unwatch(self, part: Adorned, values: Row) -> None:
        counts = self.watched[part]
        counts[values] -= 1
        if not counts[values]:
            del counts[values]
        self.done(part, [values])

    def told(self, changes: Mapping[str, tuple[Facts, Facts]]) -> dict[str, dict[Row, int]]:
        """The changes of relations on demand that somebody watches.

        Cost: that of the changes of the parts that are watched.
        """
        found: dict[str, dict[Row, int]] = {}
        for part, rows in self.watched.items():
            change = changes.get(part.name)
            if change is None or not rows:
                continue
            signed = ToldChanges(self._engine.plan.shapes, {part.name: change})[part.name]
            mine = {row: sign for row, sign in signed.items() if part.bound(row) in rows}
            if mine:
                found.setdefault(part.relation, {}).update(mine)
        return found

    def of_rows(self, rows: Mapping[str, dict[Row, int]], declared: frozenset[str]) -> Changes:
        """The changes of a step, of which those of all relations and parts are rows already."""
        found = {name: change for name, change in rows.items() if name in declared}
        for part, values in self.watched.items():
            mine = {row: sign for row, sign in rows.get(part.name, {}).items() if part.bound(row) in values}
            if mine:
                found[part.relation] = found.get(part.relation, {}) | mine
        return found

    def watched_rows(self) -> dict[str, set[Row]]:
        """The facts that are watched now."""
        found: dict[str, set[Row]] = {}
        for part, values in self.watched.items():
            relation = self._engine.program.relations.get(part.relation)
            if values and relation is not None and relation.arity == len(part.adornment):
                rows = found.setdefault(part.relation, set())
                table = self._engine.tables[part.name if self.is_on_demand(part.relation) else part.relation]
                rows.update(row for row in table.rows() if part.bound(row) in values)
        return found


__all__ = ["Demands", "part_of"]

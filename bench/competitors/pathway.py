"""Pathway (differential dataflow): one input, committed by steps; one output.

The dataflow is made from the checked rules: a join for each further atom, recursion by `iterate`,
relations without duplicates by `groupby`.  Aggregates are written by hand.  Rows of all relations
go through one input, since a commit covers one input and a step may change several relations. All
answers come out of one table, with the input beside them: so every commit produces output and
signals its end, even if no answer changes.  A step is timed from its rows to that signal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from queue import Queue
from typing import Any

from everlog.bench.harness.workload import Case, Living, Row, Side, Told, Update, installed_version


class Pathway:
    def __init__(self, case: Case) -> None:
        os.environ.setdefault("PATHWAY_MONITORING_SERVER", "")
        import logging

        import pathway as pw

        logging.disable(logging.WARNING)
        self.pw: Any = pw
        self.case = case
        self.steps: Queue[list[Update] | None] = Queue()
        self.names = sorted(case.base)
        self.number = {name: n for n, name in enumerate(self.names)}
        self.width = max([*case.base.values(), *_arities(case)])
        self.told: dict[str, dict[Row, int]] = {}
        self.ended = threading.Event()
        self.state: dict[str, set[Row]] = {name: set() for name in case.answers}
        self.problem: BaseException | None = None
        self._build()

    # ── the dataflow ─────────────────────────────────────────────────────────────────────────

    def _build(self) -> None:
        pw = self.pw
        columns = {f"c{n}": pw.column_definition(dtype=int, primary_key=True) for n in range(self.width)}
        schema = pw.schema_builder({"relation": pw.column_definition(dtype=int, primary_key=True), **columns})
        steps, names, number, width = self.steps, self.names, self.number, self.width

        class Input(pw.io.python.ConnectorSubject):  # type: ignore[misc, name-defined]
            def run(self) -> None:
                tick = 0
                while (step := steps.get()) is not None:
                    if len(step) > 1:  # its net change may be empty, and then its end would not be signalled
                        zeros = {f"c{n}": 0 for n in range(1, width)}
                        self.next(relation=-1, c0=tick + 1, **zeros)
                        if tick:
                            self.delete(relation=-1, c0=tick, **zeros)
                        tick += 1
                    for relation, row, insert in step:
                        values = {f"c{n}": value for n, value in enumerate(row)}
                        values |= {f"c{n}": 0 for n in range(len(row), width)}
                        if insert:
                            self.next(relation=number[relation], **values)
                        else:
                            self.delete(relation=number[relation], **values)
                    self.commit()

        source = pw.io.python.read(Input(), schema=schema, autocommit_duration_ms=None)
        tables = {
            name: _selected(source.filter(source.relation == n), self.case.base[name])
            for n, name in enumerate(names)
        }
        tables |= dataflow(pw, self.case, tables)
        told = [self._tagged(source, -1)]
        told += [self._tagged(tables[name], n) for n, name in enumerate(self.case.answers)]
        pw.io.subscribe(pw.Table.concat_reindex(*told), on_change=self._change, on_time_end=self._end)

    def _tagged(self, table: Any, tag: int) -> Any:
        columns = {f"c{n}": self.pw.this[f"c{n}"] for n in range(_width(table))}
        columns |= {f"c{n}": 0 for n in range(_width(table), self.width)}
        return table.select(tag=tag, **columns)

    def _change(self, key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if row["tag"] < 0:
            return
        relation = self.case.answers[row["tag"]]
        values = tuple(row[f"c{n}"] for n in range(self.arity[relation]))
        rows = self.told.setdefault(relation, {})
        total = rows.get(values, 0) + (1 if is_addition else -1)
        if total:
            rows[values] = total
        else:
            del rows[values]

    def _end(self, time: int) -> None:
        self.ended.set()

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        self.arity = dict(zip(self.case.answers, _arities(self.case), strict=True))
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        self.step([(name, row, True) for name in self.names for row in self.case.rows(name)])

    def _run(self) -> None:
        try:
            self.pw.run(monitoring_level=self.pw.MonitoringLevel.NONE)
        except BaseException as problem:
            self.problem = problem
            self.ended.set()

    def step(self, updates: list[Update]) -> Told:
        self.told = {}
        self.ended.clear()
        self.steps.put(updates)
        self.ended.wait()
        if self.problem is not None:
            raise self.problem
        return self.told

    def follow(self, told: Told) -> None:
        """Add up the reported changes, to have an answer to compare; not timed."""
        for relation, rows in told.items():
            for row, sign in rows.items():
                (self.state[relation].add if sign > 0 else self.state[relation].discard)(row)

    def answer(self, relation: str) -> Iterable[Row]:
        return self.state[relation]

    def close(self) -> None:
        self.steps.put(None)


def _arities(case: Case) -> list[int]:
    from everlog import compile_text

    relations = compile_text(case.program).relations
    return [relations[name].arity for name in case.answers]


def _selected(table: Any, arity: int) -> Any:
    return table.select(**{f"c{n}": table[f"c{n}"] for n in range(arity)})


def _width(table: Any) -> int:
    """The number of columns without the tag of the relation."""
    return sum(name != "relation" for name in table.column_names())


# ── rules ────────────────────────────────────────────────────────────────────────────────────


def dataflow(pw: Any, case: Case, base: dict[str, Any]) -> dict[str, Any]:
    """A table for each relation that has rules."""
    from everlog import compile_text
    from everlog.core.program.dependencies import units

    checked = compile_text(case.program)
    tables = dict(base)
    for unit in units(checked):
        names = [name for name in unit.relations if name not in base]
        if not names:
            continue
        if names[0] in AGGREGATES:
            tables[names[0]] = AGGREGATES[names[0]](pw, tables)
        elif not unit.recursive:
            tables[names[0]] = _distinct(pw, [_rule(pw, rule, tables) for rule in unit.rules])
        else:
            tables |= _iterated(pw, unit.rules, names, tables)
    return tables


def _iterated(pw: Any, rules: Any, names: list[str], tables: dict[str, Any]) -> dict[str, Any]:
    from everlog.core.program import Atom

    def own(rule: Any) -> bool:
        return any(isinstance(part, Atom) and part.relation in names for part in rule.body)

    start: dict[str, Any] = {}
    for name in names:
        made = [_rule(pw, rule, tables) for rule in rules if rule.head.relation == name and not own(rule)]
        if not made:  # an empty table with the right columns
            width = next(len(rule.head.args) for rule in rules if rule.head.relation == name)
            some = next(table for table in tables.values() if _width(table) >= width)
            made = [_selected(some.filter(some.c0 != some.c0), width)]
        start[name] = _distinct(pw, made)
    outer = sorted({atom for rule in rules for atom in _read(rule)} - set(names))

    def once(**now: Any) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name in names:
            made = [_rule(pw, rule, now) for rule in rules if rule.head.relation == name and own(rule)]
            out[name] = _distinct(pw, [now[f"start_{name}"], *made])
        return out

    more = {f"start_{name}": start[name] for name in names} | {name: tables[name] for name in outer}
    result = pw.iterate(once, **{name: pw.iterate_universe(start[name]) for name in names}, **more)
    return {name: getattr(result, name) for name in names}


def _read(rule: Any) -> set[str]:
    from everlog.core.program import atoms_of

    return {atom.relation for atom, _ in atoms_of(rule.body)}


def _distinct(pw: Any, tables: list[Any]) -> Any:
    table = tables[0] if len(tables) == 1 else pw.Table.concat_reindex(*tables)
    columns = [table[name] for name in table.column_names()]
    return table.groupby(*columns).reduce(*columns)


def _rule(pw: Any, rule: Any, tables: dict[str, Any]) -> Any:
    """The body from left to right, then the head; columns are named by variables."""
    from everlog.core.program import Atom, Comparison, Negation

    now: Any = None
    atoms = [part for part in rule.body if isinstance(part, Atom)]
    for atom in atoms:
        right = _renamed(pw, atom, tables[atom.relation])
        if now is None:
            now = right
            continue
        shared = [name for name in right.column_names() if name in now.column_names()]
        joined = now.join(right, *[now[name] == right[name] for name in shared])
        kept = {name: now[name] for name in now.column_names()}
        kept |= {name: right[name] for name in right.column_names() if name not in shared}
        now = joined.select(**kept)
    for part in rule.body:
        match part:
            case Comparison(op=op, left=left, right=right):
                now = now.filter(_COMPARED[op](_value(now, left), _value(now, right)))
            case Negation(atom):
                now = _without(pw, now, atom, tables[atom.relation])
            case Atom():
                pass
            case _:
                raise NotImplementedError(f"in Pathway: {part}")
    return now.select(**{f"c{n}": _value(now, term) for n, term in enumerate(rule.head.args)})


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _value(table: Any, term: Any) -> Any:
    from everlog.core.program import Constant

    return term.value if isinstance(term, Constant) else table[f"v_{term.name}"]


def _renamed(pw: Any, atom: Any, table: Any) -> Any:
    from everlog.core.program import Variable

    named: dict[str, Any] = {}
    for column, term in enumerate(atom.args):
        if isinstance(term, Variable) and f"v_{term.name}" not in named:
            named[f"v_{term.name}"] = table[f"c{column}"]
    return table.select(**named)


def _without(pw: Any, now: Any, atom: Any, table: Any) -> Any:
    """An outer join that keeps the rows without a partner."""
    right = table.select(**{f"n{n}": table[f"c{n}"] for n in range(len(atom.args))}, there=True)
    on = [_value(now, term) == right[f"n{n}"] for n, term in enumerate(atom.args)]
    kept = {name: now[name] for name in now.column_names()}
    joined = now.join_left(right, *on).select(**kept, there=right.there)
    alone = joined.filter(joined.there.is_none())
    return alone.select(**{name: alone[name] for name in now.column_names()})


# ── aggregates, by hand ──────────────────────────────────────────────────────────────────────


def _n(pw: Any, tables: dict[str, Any]) -> Any:
    q = tables["q"]
    return q.groupby(q.c0).reduce(c0=q.c0, c1=pw.reducers.count())


def _total(pw: Any, tables: dict[str, Any]) -> Any:
    sale = tables["sale"]
    return sale.groupby(sale.c1).reduce(
        c0=sale.c1,
        c1=pw.reducers.count(),
        c2=pw.reducers.sum(sale.c2),
        c3=pw.reducers.min(sale.c2),
        c4=pw.reducers.max(sale.c2),
    )


def _component(pw: Any, tables: dict[str, Any]) -> Any:
    connected = tables["connected"]
    return connected.groupby(connected.c0).reduce(c0=connected.c0, c1=pw.reducers.min(connected.c1))


AGGREGATES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "n": _n,
    "total": _total,
    "component": _component,
}


def _living(case: Case) -> Living:
    return Pathway(case)


SIDES = [Side("pathway", "Pathway", installed_version("pathway"), None, _living, grows=True, own_process=True)]

"""The net change of a step: which base facts go and come, once every update is checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.planning.systems import Refused
from everlog.core.program import Program, Relation, Row
from everlog.core.program.executor import InsertOnly, NotABaseRelation, Update

Net: TypeAlias = Mapping[str, tuple[list[Row], list[Row]]]  # relation → base facts that go, that come


class BaseFacts:
    """What each relation of a program takes, and the net change of updates that it takes."""

    def __init__(self, program: Program, home: Mapping[str, Keeper]) -> None:
        self._relations, self._home = program.relations, home
        self.insert_only = frozenset(name for name, r in program.relations.items() if r.insert_only)
        self.refused = {name: why for name in program.relations if (why := home[name].refusal(name))}

    def inserted(self, rows: Mapping[str, Iterable[Row]]) -> Net:
        """The net change of inserts.  Cost: into an empty relation, no Python code runs per row."""
        net: dict[str, tuple[list[Row], list[Row]]] = {}
        for name, values in rows.items():
            relation = self._relation(name)
            new = list(dict.fromkeys(values))
            if new and name in self.refused:
                raise Refused(self.refused[name])
            if not set(map(len, new)) <= {relation.arity}:
                raise NotABaseRelation(self.misfit(name, next(r for r in new if len(r) != relation.arity)))
            keeper = self._home[name]
            if len(keeper.given_rows(name)):
                holds = keeper.holds
                new = [row for row in new if not holds(name, row)]
            if new:
                net[name] = [], new
        return net

    def net(self, updates: Sequence[Update]) -> Net:
        """The net effect of a step: for each relation the base facts that go and come."""
        last: dict[str, dict[Row, bool]] = {}
        for update in updates:
            name = update.relation
            rows = last.get(name)
            if rows is None:
                self._relation(name)
                if name in self.refused:
                    raise Refused(self.refused[name])
                rows = last[name] = {}
            if len(update.row) != self._relations[name].arity:
                raise NotABaseRelation(self.misfit(name, update.row))
            if not update.insert and name in self.insert_only:
                raise InsertOnly(name)
            rows[update.row] = update.insert
        net = {}
        for name, rows in last.items():
            holds = self._home[name].holds
            gone: list[Row] = []
            new: list[Row] = []
            for row, insert in rows.items():
                if insert is not holds(name, row):
                    (new if insert else gone).append(row)
            if gone or new:
                net[name] = gone, new
        return net

    def misfit(self, name: str, row: Row) -> str:
        """What is wrong with a row that has another number of columns."""
        relation = self._relations[name]
        return f"`{relation}` has {relation.arity} column(s), {len(row)} given"

    def _relation(self, name: str) -> Relation:
        relation = self._relations.get(name)
        if relation is None:
            raise NotABaseRelation(f"undefined relation `{name}`")
        return relation

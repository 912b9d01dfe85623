"""Queries of symbolic sets: tables to range over, conditions, SELECT.

`in`, `subset` and equality of sets become [NOT] EXISTS.  The writer records which tables are read,
and by which columns rows are looked up, to create indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from everlog.ies.nrc.types import columns as base_columns
from everlog.ies.sql.dialects import Dialect
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.symbolic_values import (
    ADD,
    COMPARE,
    Branch,
    From,
    Kind,
    Scalar,
    SetVal,
    Table,
    Tup,
    Val,
    conjunction,
    determined,
    disjunction,
    flat,
    kind_of,
    mentioned,
    negation,
    scalar,
    shape,
)


@define(eq=False)
class Queries:
    """Writes queries in one dialect."""

    dialect: Dialect
    in_trigger: bool = field(default=True, kw_only=True)
    read: set[str] = field(factory=set, kw_only=True)
    lookups: dict[str, set[frozenset[str]]] = field(factory=dict, kw_only=True)
    _aliases: int = field(default=0, init=False)

    # ── tables ───────────────────────────────────────────────────────────────────────────────────

    def fresh(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def table(self, table: Table) -> SetVal:
        def opened() -> list[Branch]:
            self.read.add(table.name)
            alias = self.fresh()
            kinds = tuple(map(kind_of, base_columns(table.row)))
            source = From(alias, self.dialect.quoted(table.name), table.columns, kinds, table)
            return [Branch((source,), (), self.cells(alias, table))]

        return SetVal(opened, table)

    def cells(self, alias: str, table: Table) -> Val:
        """A row of a table, under an alias."""
        kinds = map(kind_of, base_columns(table.row))
        made = (self.cell(alias, name, kind) for name, kind in zip(table.columns, kinds, strict=True))
        return shape(table.row, made)

    def cell(self, alias: str, name: str, kind: Kind) -> Scalar:
        column = (alias, name)
        text = f"{alias}.{self.dialect.quoted(name)}"
        return Scalar(text, kind, columns=frozenset((column,)), column=column)

    # ── conditions ───────────────────────────────────────────────────────────────────────────────

    def compared(self, sign: str, left: Val, right: Val) -> Scalar:
        a, b = (self.dialect.sure(scalar(one), self.in_trigger) for one in (left, right))
        if a.constant is not None and b.constant is not None and a.kind == "num":
            small, large = a.constant, b.constant
            assert not isinstance(small, str)
            assert not isinstance(large, str)
            holds = {"<": small < large, "<=": small <= large, "=": small == large}[sign]
            return self.dialect.constant(holds)
        if sign == "=" and a.text == b.text:
            return self.dialect.constant(True)
        if sign == "=" and "bool" in (a.kind, b.kind):
            for one, other in ((a, b), (b, a)):
                if one.constant is not None:
                    return other if one.constant else negation(other)
        text = f"{a.at(ADD)} {sign} {b.at(ADD)}"
        equals = (a, b) if sign == "=" else None
        return Scalar(text, "bool", COMPARE, a.columns | b.columns, heavy=a.heavy or b.heavy, equals=equals)

    def equal(self, left: Val, right: Val) -> Scalar:
        match left, right:
            case Scalar(), Scalar():
                return self.compared("=", left, right)
            case Tup(parts), Tup(others):
                return conjunction(map(self.equal, parts, others))
            case SetVal(), SetVal():
                return conjunction((self.subset(left, right), self.subset(right, left)))
            case _:
                raise SqlError("equality between values of different types; the system was not type-checked")

    def subset(self, left: SetVal, right: SetVal) -> Scalar:
        """Whether no element of the left is missing on the right."""
        each = left.open()
        return negation(self.any_of(with_condition(negation(self.member(one.head, right)), one) for one in each))

    def member(self, element: Val, of: SetVal) -> Scalar:
        """Whether an element is in a set.

        A set of joins that depends on nothing outside is best computed once, with IN; others are
        probed.
        """
        cells = flat(element)
        branches = of.open()
        joins = len(branches) > 1 or any(len(branch.froms) > 1 for branch in branches)
        if cells and mentioned(cells) and joins and any(branch.froms for branch in branches):
            heads = [flat(branch.head) for branch in branches]
            if None not in heads:
                query, free = self.select(branches, tuple(f"c{n}" for n in range(1, len(cells) + 1)))
                if not free:
                    cells = tuple(self.dialect.sure(cell, self.in_trigger) for cell in cells)
                    left = ", ".join(cell.text for cell in cells)
                    text = f"({left}) IN ({query})"
                    return Scalar(text, "bool", COMPARE, mentioned(cells), heavy=True)
        return self.any_of(with_condition(self.equal(branch.head, element), branch) for branch in of.open())

    def any_of(self, branches: Iterable[Branch]) -> Scalar:
        """Whether one of the branches has an element."""
        return disjunction(map(self.exists, branches))

    def exists(self, branch: Branch) -> Scalar:
        where = conjunction(branch.conditions)
        if not branch.froms or where.constant is False:
            return where
        rest, columns = self.clauses(branch.froms, where)
        return Scalar(f"EXISTS (SELECT 1{rest})", "bool", columns=columns, heavy=True)

    def before(self, these: Sequence[From], those: Sequence[From]) -> Scalar:
        """Whether the rows of these tables come before those, by their columns."""
        left = [self.cell(one.alias, name, "named") for one in these for name in one.columns]
        right = [self.cell(one.alias, name, "named") for one in those for name in one.columns]
        if not left:
            return self.dialect.constant(False)
        if len(left) == 1:
            text = f"{left[0].text} < {right[0].text}"
        else:
            text = f"({', '.join(c.text for c in left)}) < ({', '.join(c.text for c in right)})"
        return Scalar(text, "bool", COMPARE, mentioned(left) | mentioned(right))

    # ── queries ──────────────────────────────────────────────────────────────────────────────────

    def clauses(self, froms: Sequence[From], where: Scalar) -> tuple[str, frozenset[tuple[str, str]]]:
        """FROM and WHERE, and the columns of outer queries that they mention."""
        inner = {one.alias for one in froms}
        free = {column for column in where.columns if column[0] not in inner}
        for one in froms:
            free |= one.free
        self._looked_up(froms, where)
        text = " FROM " + ", ".join(f"{one.text} AS {one.alias}" for one in froms) if froms else ""
        return text + (f" WHERE {where.text}" if where.constant is not True else ""), frozenset(free)

    def select(self, branches: Iterable[Branch], names: Sequence[str]) -> tuple[str, frozenset[tuple[str, str]]]:
        """The query for a flat set, and the columns of outer queries that it mentions."""
        each: list[tuple[Branch, Scalar]] = []
        for branch in branches:
            where = conjunction(branch.conditions)
            if where.constant is not False:
                each.append((branch, where))
        texts: list[str] = []
        free: set[tuple[str, str]] = set()
        for branch, where in each:
            cells = flat(branch.head)
            if cells is None:
                raise SqlError("a set of sets cannot be stored in a flat table")
            cells = tuple(self.dialect.sure(cell, self.in_trigger) for cell in cells)
            rest, mentions = self.clauses(branch.froms, where)
            inner = {one.alias for one in branch.froms}
            free |= mentions | {column for column in mentioned(cells) if column[0] not in inner}
            once = len(each) > 1 or determined(branch.froms, where.parts or (where,), cells)
            heads = ", ".join(f"{c.text} AS {self.dialect.quoted(n)}" for c, n in zip(cells, names, strict=True))
            texts.append(f"SELECT {'' if once else 'DISTINCT '}{heads}{rest}")
        return "\nUNION\n".join(texts), frozenset(free)

    def _looked_up(self, froms: Sequence[From], where: Scalar) -> None:
        """Record by which columns each table is looked up."""
        for one in froms:
            if one.table is None:
                continue
            columns: set[str] = set()
            for condition in where.parts or (where,):
                if condition.equals is None:
                    continue
                for a, b in (condition.equals, condition.equals[::-1]):
                    outside = one.alias not in {alias for alias, _ in b.columns}
                    if a.column is not None and a.column[0] == one.alias and outside:
                        columns.add(a.column[1])
            if columns:
                self.lookups.setdefault(one.table.name, set()).add(frozenset(columns))


def with_condition(condition: Scalar, branch: Branch) -> Branch:
    return Branch(branch.froms, (*branch.conditions, condition), branch.head)

"""A translator that stores named values in tables, so that each is computed once.

Inlining is correct but repeats work.  A value that depends only on the update is stored while the
update runs, if it is named (by a binding, a `let` or a parameter) and used more than once: a flat
set as a table, a scalar as a table of one row, and a set of sets *shredded*: a table of the outer
rows, and for each inner set a table of its elements beside the columns of the outer row that it
depends on.

Source: Cheney, Lindley, Wadler, Query shredding, 2014 (here with the columns themselves as the
indices).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from everlog.ies.nrc import terms as nrc
from everlog.ies.nrc.terms import Term
from everlog.ies.nrc.types import Base, Product, Type, columns
from everlog.ies.nrc.walk import everywhere
from everlog.ies.sql.symbolic_values import (
    Branch,
    Column,
    Kind,
    Scalar,
    SetVal,
    Table,
    Tup,
    Val,
    conjunction,
    flat,
    mentioned,
)
from everlog.ies.sql.translate import Environment, Translator


@frozen
class Kept:
    """A query whose rows are stored under a name while the update runs."""

    table: Table
    query: str
    reads: frozenset[str]


@define(eq=False)
class Keeping(Translator):
    """A translator that stores closed sets and costly scalars in tables.

    The names of the tables begin with `prefix`.
    """

    prefix: str = field(default="", kw_only=True)
    stages: list[Kept] = field(factory=list, init=False)
    _taken: set[str] = field(factory=set, init=False)
    _known: dict[str, Table] = field(factory=dict, init=False)

    def stored(self, tables: Mapping[str, Table]) -> None:
        self.tables = {name: self.table(table) for name, table in tables.items()}
        self._taken = set(tables)

    def value(self, term: Term, env: Environment) -> Val:
        match term:
            case nrc.Let(nrc.Bind(name) as pattern, value, body):
                made = self.value(value, env)
                if occurrences(name, body) > isinstance(made, SetVal):
                    made = self.kept(name, made)
                return self.value(body, self.bound(pattern, made, env))
            case nrc.Call(function, arguments):
                definition = self.definitions[function]
                parameters: dict[str, Val] = {}
                for name, argument in zip(definition.parameters, arguments, strict=True):
                    parameters[name] = self.value(argument, env)
                    if occurrences(name, definition.body) > isinstance(parameters[name], SetVal):
                        parameters[name] = self.kept(name, parameters[name])
                return self.value(definition.body, {**self.tables, **parameters})
            case _:
                return super().value(term, env)

    def kept(self, name: str, value: Val, always: bool = False) -> Val:
        """The same value from a table, if it is a closed flat set or scalar query.

        A value that may fail (a division) is computed only where the text computes it, unless the
        text computes it `always`.
        """
        match value:
            case Tup(parts):
                return Tup(tuple(self.kept(f"{name}{n}", part, always) for n, part in enumerate(parts, 1)))
            case Scalar(heavy=True) if not value.columns:
                made = self._stored(name, lambda: [Branch((), (), value)], _type_of(value), always)
                if made is None:
                    return value
                column = f"(SELECT {self.dialect.quoted(made.columns[0])} FROM {self.dialect.quoted(made.name)})"
                return Scalar(column, value.kind)
            case SetVal(table=None):
                branches = value.open()
                if not any(branch.froms for branch in branches):
                    return value
                if any(flat(branch.head) is None for branch in branches):
                    return self._shredded(name, value, always)
                made = self._stored(name, value.open, _type_of(branches[0].head), always)
                return value if made is None else self.table(made)
            case _:
                return value

    # ── sets of sets ─────────────────────────────────────────────────────────────────────────────

    def _shredded(self, name: str, value: SetVal, always: bool) -> SetVal:
        """The same set of sets from tables: one of its rows, one per inner set.

        The number of a branch and the columns that its row depends on identify the elements of the
        row.
        """
        if self._open_ended(value):
            return value
        widths = self._widths(value.open())

        def outer_rows() -> list[Branch]:
            return [
                Branch(one.branch.froms, one.branch.conditions, Tup((*self._key(n, one, widths), *one.scalars)))
                for n, one in enumerate(map(self._outer, value.open()))
            ]

        def elements(place: int) -> Callable[[], list[Branch]]:
            def opened() -> list[Branch]:
                return [
                    Branch(
                        one.branch.froms + inner.froms,
                        one.branch.conditions + inner.conditions,
                        Tup((*self._key(n, one, widths), inner.head)),
                    )
                    for n, one in enumerate(map(self._outer, value.open()))
                    for inner in one.sets[place].open()
                ]

            return opened

        first = self._outer(value.open()[0])
        rows = self.kept(name, SetVal(outer_rows), always)
        if not isinstance(rows, SetVal) or rows.table is None:
            return value
        inside = [self.kept(f"{name}_in", SetVal(elements(place)), always) for place in range(len(first.sets))]
        size = 1 + sum(widths.values())

        def opened() -> list[Branch]:
            (branch,) = rows.open()
            assert isinstance(branch.head, Tup)
            key, scalars = branch.head.parts[:size], iter(branch.head.parts[size:])
            sets = iter([self._of(key, one) for one in inside])
            parts = (next(scalars) if isinstance(p, Scalar) else next(sets) for p in _parts(first.branch.head))
            return [Branch(branch.froms, branch.conditions, _again(first.branch.head, parts))]

        return SetVal(opened)

    def _of(self, key: Sequence[Val], elements: Val) -> SetVal:
        """The elements beside this key."""
        assert isinstance(elements, SetVal)

        def opened() -> list[Branch]:
            out: list[Branch] = []
            for branch in elements.open():
                assert isinstance(branch.head, Tup)
                *its, element = branch.head.parts
                same = conjunction(map(self.equal, its, key))
                if same.constant is not False:
                    out.append(Branch(branch.froms, (*branch.conditions, same), element))
            return out

        return SetVal(opened)

    def _outer(self, branch: Branch) -> _Outer:
        parts = _parts(branch.head)
        scalars = tuple(part for part in parts if isinstance(part, Scalar))
        sets = tuple(part for part in parts if isinstance(part, SetVal))
        used = {column for one in sets for column in self._free(one)}
        keys: dict[Kind, list[Scalar]] = {}
        for one in branch.froms:
            kinds = one.kinds
            for column, kind in zip(one.columns, kinds, strict=True):
                if (one.alias, column) in used:
                    keys.setdefault(kind, []).append(self.cell(one.alias, column, kind))
        return _Outer(branch, keys, scalars, sets)

    def _widths(self, branches: Sequence[Branch]) -> dict[Kind, int]:
        """The number of columns of each kind in a key, for the longest branch."""
        out: dict[Kind, int] = {}
        for one in map(self._outer, branches):
            for kind, cells in one.keys.items():
                out[kind] = max(out.get(kind, 0), len(cells))
        return dict(sorted(out.items()))

    def _key(self, number: int, one: _Outer, widths: Mapping[Kind, int]) -> list[Scalar]:
        out = [self.dialect.constant(number)]
        for kind, width in widths.items():
            cells = one.keys.get(kind, [])
            empty = self.dialect.constant(False if kind == "bool" else 0 if kind == "num" else "")
            out += [*cells, *[empty] * (width - len(cells))]
        return out

    def _free(self, value: Val) -> frozenset[Column]:
        """The columns of outer tables that a value mentions."""
        match value:
            case Scalar():
                return value.columns
            case Tup(parts):
                return frozenset().union(*map(self._free, parts))
            case SetVal():
                out: set[Column] = set()
                for branch in value.open():
                    inner = {one.alias for one in branch.froms}
                    found = self._free(branch.head) | mentioned(branch.conditions)
                    found |= {column for one in branch.froms for column in one.free}
                    out |= {column for column in found if column[0] not in inner}
                return frozenset(out)

    def _open_ended(self, value: SetVal) -> bool:
        return bool(self._free(value))

    # ── tables ───────────────────────────────────────────────────────────────────────────────────

    def _stored(self, name: str, opened: Callable[[], list[Branch]], row: Type, always: bool) -> Table | None:
        names = tuple(f"c{number}" for number in range(1, len(columns(row)) + 1))
        reads, self.read = self.read, set()
        query, free = self.select(opened(), names)
        read, self.read = frozenset(self.read), reads
        query = _renumbered(query)  # equal closed queries get equal text
        if free or not query or (_fails(query) and not always):
            return None
        if query not in self._known:
            plain = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
            wanted, number = f"{self.prefix}_{plain}", 1
            while wanted in self._taken:
                number += 1
                wanted = f"{self.prefix}_{plain}{number}"
            self._taken.add(wanted)
            self._known[query] = Table(wanted, names, row)
            self.stages.append(Kept(self._known[query], query, read))
        return self._known[query]


@frozen
class _Outer:
    """A branch of a set of sets: the columns it depends on, its scalars and sets."""

    branch: Branch
    keys: dict[Kind, list[Scalar]]
    scalars: tuple[Scalar, ...]
    sets: tuple[SetVal, ...]


def _parts(value: Val) -> list[Scalar | SetVal]:
    match value:
        case Tup(parts):
            return [one for part in parts for one in _parts(part)]
        case _:
            return [value]


def _again(value: Val, parts: Iterator[Val]) -> Val:
    """A value of the same shape with other scalars and sets."""
    match value:
        case Tup(inner):
            return Tup(tuple(_again(part, parts) for part in inner))
        case _:
            return next(parts)


def _renumbered(query: str) -> str:
    """A closed query with its aliases counted from t1; quoted text stays.

    >>> _renumbered("SELECT t7.x FROM edge AS t7 WHERE t7.y = 't7'")
    "SELECT t1.x FROM edge AS t1 WHERE t1.y = 't7'"
    """
    known: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        text = match.group()
        return known.setdefault(text, f"t{len(known) + 1}") if text[0] == "t" else text

    return re.sub(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|(?<!\.)\bt\d+\b""", renamed, query)


def _fails(query: str) -> bool:
    """Whether early evaluation could fail where the text tests a condition first."""
    return any(word in query for word in ("division", "everlog_divide(", "everlog_inverse("))


def _type_of(value: Val) -> Type:
    match value:
        case Scalar(kind=kind):
            return Base("node" if kind == "named" else kind)
        case Tup(parts):
            return Product(tuple(map(_type_of, parts)))
        case SetVal():
            raise AssertionError("only flat values are kept")


def occurrences(name: str, *terms: Term) -> int:
    """How often a variable occurs in some terms."""
    return sum(1 for term in terms for one in everywhere(term) if isinstance(one, nrc.Var) and one.name == name)

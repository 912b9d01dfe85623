"""An update as queries: temporary values, requirements, and changes of tables.

All queries read the old state.  The value of a binding is stored in a temporary table while the
update runs (ies.sql.keeping).  `relation := relation union e` and similar forms are split into
deleted and inserted rows, so that an update costs what it changes.

Source: Libkin and Wong, Section 3 (all functions see the old state).
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen

from everlog.ies.nrc import terms as nrc
from everlog.ies.nrc.terms import Definition, Term
from everlog.ies.nrc.types import columns
from everlog.ies.sql.column_names import tables
from everlog.ies.sql.dialects import Dialect
from everlog.ies.sql.keeping import Keeping, Kept, occurrences
from everlog.ies.sql.symbolic_values import Scalar, Table, kind_of, negation, shape
from everlog.ies.sql.translate import Environment, Translator
from everlog.ies.system import Becomes, Change, Differs, Event, System, Update
from everlog.ies.validation import definitions_of


@frozen
class Moved:
    """Rows deleted from a table (`gone`), inserted (`new`), or all of it (`next`)."""

    kind: str
    table: Table
    query: str
    reads: frozenset[str]

    @property
    def stage(self) -> str:
        return f"{self.table.name}_{self.kind}"


@frozen
class Plan:
    """One update: its queries in order, and the condition `guard` for any change."""

    event: Event
    table: Table
    guard: Scalar | None
    kept: tuple[Kept, ...]
    requirements: tuple[tuple[Scalar, str], ...]
    moved: tuple[Moved, ...]

    def before(self) -> list[Kept | tuple[Scalar, str]]:
        """Temporary values and requirements; each requirement as early as possible."""
        waiting = list(self.requirements)
        out: list[Kept | tuple[Scalar, str]] = []
        for number in range(len(self.kept) + 1):
            later = {one.table.name for one in self.kept[number:]}
            for requirement in [one for one in waiting if not any(name in one[0].text for name in later)]:
                out.append(requirement)
                waiting.remove(requirement)
            out += self.kept[number : number + 1]
        return out


@define(eq=False)
class Planner:
    """Plans the updates of one system; `lookups` collects columns to index."""

    system: System
    dialect: Dialect
    tables: dict[str, Table] = field(init=False)
    lookups: dict[str, set[frozenset[str]]] = field(factory=dict)
    _definitions: dict[str, Definition] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tables = tables(self.system)
        self._definitions = dict(definitions_of(self.system))

    def initial(self) -> dict[str, str]:
        """The query for each relation with an initial value."""
        out: dict[str, str] = {}
        for name, term in self.system.initial.items():
            writer = self._translator(in_trigger=False)
            table = self.tables[name]
            query, _ = writer.select(writer.set(term, writer.tables).open(), table.columns)
            if query:
                out[name] = query
        return out

    def plan(self, update: Update, row: Sequence[str], in_trigger: bool) -> Plan:
        """The plan of one update; `row` are the dialect's names of the updated cells."""
        prefix = f"{update.relation}_{update.event}"
        writer = Keeping(
            self.dialect, self._definitions, in_trigger=in_trigger, lookups=self.lookups, prefix=prefix
        )
        writer.stored(self.tables)
        table = self.tables[update.relation]
        kinds = map(kind_of, columns(table.row))
        updated = shape(table.row, (Scalar(text, kind) for text, kind in zip(row, kinds, strict=True)))
        env: Environment = writer.bound(update.tuple_, updated, writer.tables)
        there = writer.member(updated, writer.table(table))
        guard = (negation(there) if update.event == "insert" else there) if update.effective else None
        writer.read.clear()
        for number, (pattern, term) in enumerate(update.bindings):
            value = writer.value(term, env)
            uses = _uses(update, number)
            if uses:
                name = pattern.name if isinstance(pattern, nrc.Bind) else f"let{number}"
                value = writer.kept(name, value, always=True)
            env = writer.bound(pattern, value, env)
        requirements = tuple((writer.truth(one.condition, env), one.otherwise) for one in update.requirements)
        moved: list[Moved] = []
        for name, change in update.changes.items():
            for kind, term in _differences(name, change):
                writer.read.clear()
                query, _ = writer.select(writer.set(term, env).open(), self.tables[name].columns)
                if query or kind == "next":
                    moved.append(Moved(kind, self.tables[name], query, frozenset(writer.read)))
        return Plan(update.event, table, guard, tuple(writer.stages), requirements, tuple(moved))

    def _translator(self, in_trigger: bool) -> Translator:
        writer = Translator(self.dialect, self._definitions, in_trigger=in_trigger, lookups=self.lookups)
        writer.tables = {name: writer.table(table) for name, table in self.tables.items()}
        return writer


def _uses(update: Update, number: int) -> int:
    """How often the variables of a binding are used afterwards."""
    pattern, _ = update.bindings[number]
    later = [term for _, term in update.bindings[number + 1 :]]
    later += [one.condition for one in update.requirements]
    for change in update.changes.values():
        match change:
            case Becomes(value):
                later.append(value)
            case Differs(gone, new):
                later += [term for term in (gone, new) if term is not None]
    names = [pattern.name] if isinstance(pattern, nrc.Bind) else [b.name for b in _binds(pattern)]
    return sum(occurrences(name, *later) for name in names)


def _binds(pattern: nrc.Pattern) -> list[nrc.Bind]:
    match pattern:
        case nrc.Bind():
            return [pattern]
        case nrc.Parts(parts):
            return [bind for part in parts for bind in _binds(part)]


def _differences(name: str, change: Change) -> list[tuple[str, Term]]:
    """Deleted and inserted rows; or the next value, if the term has no such form."""
    match change:
        case Differs(gone, new):
            return [(kind, term) for kind, term in (("gone", gone), ("new", new)) if term is not None]
        case Becomes(nrc.Var(same)) if same == name:
            return []
        case Becomes(nrc.Union(nrc.Var(same), new)) if same == name:
            return [("new", new)]
        case Becomes(nrc.Minus(nrc.Var(same), gone)) if same == name:
            return [("gone", gone)]
        case Becomes(nrc.Union(nrc.Minus(nrc.Var(same), gone), new)) if same == name:
            return [("gone", gone), ("new", new)]
        case Becomes(value):
            return [("next", value)]

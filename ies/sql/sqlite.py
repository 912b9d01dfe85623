"""SQLite: BEFORE triggers on the input tables.

A BEFORE trigger sees the old input.  Values that several functions need, and values that must be
computed before a table changes but applied after, go to tables that are empty between updates;
everything else is one statement that reads and writes at once.  No statement relies on a conflict
clause that an outer `INSERT OR …` would replace.  A wrong type ends the statement before the
functions run, since OR IGNORE would skip the row but not them.  An UPDATE is a DELETE and an
INSERT, after which the row itself is left alone.

An INSERT OR REPLACE of a present row deletes it and inserts it again.  With PRAGMA
recursive_triggers the delete trigger runs in between, after the insert trigger found nothing to do.
So a table of one row records the progress of a replacement, and an AFTER trigger then deletes the
row once more, without effects, and inserts it as new.

Source: https://sqlite.org/lang_createtrigger.html.
"""

from __future__ import annotations

from collections.abc import Sequence

from everlog.ies.nrc.types import columns
from everlog.ies.sql.dialects import Dialect
from everlog.ies.sql.keeping import Kept
from everlog.ies.sql.script import Script, create, indented, indices, listed, names, same
from everlog.ies.sql.symbolic_values import Table, kind_of, negation
from everlog.ies.sql.update_plan import Moved, Plan, Planner
from everlog.ies.system import System


def write(system: System, dialect: Dialect) -> Script:
    planner = Planner(system, dialect)
    triggers: list[str] = []
    stages: dict[str, Table] = {}
    for stored in system.inputs:
        table = planner.tables[stored.name]
        for event in ("insert", "delete"):
            update = system.updates[event, stored.name]
            row = cells(dialect, table, "NEW" if event == "insert" else "OLD")
            plan = planner.plan(update, row, in_trigger=True)
            triggers.append(_trigger(dialect, plan, row, stages))
        triggers += around(dialect, table)
    schema = [create(dialect, table) for table in planner.tables.values()]
    schema += [scratch(dialect, table) for table in stages.values()]
    for stored in system.inputs:
        schema += replacement(dialect, planner.tables[stored.name])
    for table in (*planner.tables.values(), *stages.values()):
        schema += indices(dialect, table, planner.lookups.get(table.name, ()))
    for name, query in planner.initial().items():
        schema.append(f"INSERT INTO {dialect.quoted(name)}\n{query}")
    return Script("sqlite", f"{system.name}: {system.title}", (*schema, *triggers))


def cells(dialect: Dialect, table: Table, of: str) -> list[str]:
    return [f"{of}.{dialect.quoted(column)}" for column in table.columns]


def scratch(dialect: Dialect, table: Table) -> str:
    """A table that is empty between updates; typed, so that an index serves it."""
    typed = zip(map(dialect.quoted, table.columns), map(dialect.column_type, columns(table.row)), strict=True)
    listing = ", ".join(f"{name} {type_}" for name, type_ in typed)
    key = names(dialect, table)
    return f"CREATE TABLE {dialect.quoted(table.name)} ({listing}, PRIMARY KEY ({key})) WITHOUT ROWID"


def trigger(dialect: Dialect, event: str, table: Table, body: Sequence[str], when: str | None = None) -> str:
    """The trigger that does an update; a delete records that it ran, for `around`."""
    if event == "delete":
        old = cells(dialect, table, "OLD")
        body = [_went(dialect, table, old, _THERE, _GONE), *body]
        when = f"NOT {_is(dialect, table, old, _QUIET)}"
    return _written(dialect, f"before {event}", table, body, when)


def _written(
    dialect: Dialect, at: str, table: Table, body: Sequence[str], when: str | None, which: str = ""
) -> str:
    name = dialect.quoted(f"{table.name}_{at.replace(' ', '_')}{which}")
    lines = [f"CREATE TRIGGER {name} {at.upper()} ON {dialect.quoted(table.name)}"]
    lines += [f"WHEN {when}"] if when else []
    return "\n".join([*lines, "BEGIN", *(indented(f"{statement};") for statement in body), "END"])


def types_hold(dialect: Dialect, table: Table, row: Sequence[str]) -> str:
    """Raise an error unless the row is of the table's type."""
    wrong: list[str] = []
    for cell, base in zip(row, columns(table.row), strict=True):
        kind = kind_of(base)
        wanted = "text" if kind == "named" and dialect.node_type == "text" else "integer"
        wrong.append(f"typeof({cell}) <> '{wanted}'")
        if kind == "bool":
            wrong.append(f"{cell} NOT IN (0, 1)")
    types = ", ".join(dialect.column_type(base) for base in columns(table.row))
    message = dialect.message(f"{table.name}: a row of the type ({types}) is expected")
    return f"SELECT RAISE(ABORT, {message}) WHERE {' OR '.join(wrong)}"


# ── INSERT OR REPLACE, UPDATE ────────────────────────────────────────────────────────────────────

# The row being inserted was absent; was present; was present and is deleted since; is to be deleted
# without effects.
_ABSENT, _THERE, _GONE, _QUIET = range(4)


def replacement(dialect: Dialect, table: Table) -> list[str]:
    """The table with one row that records the progress of an insert."""
    name, step = _replacement(dialect, table)
    typed = zip(map(dialect.quoted, table.columns), map(dialect.column_type, columns(table.row)), strict=True)
    listing = ", ".join(f"{column} {type_}" for column, type_ in typed)
    return [f"CREATE TABLE {name} ({listing}, {step} INTEGER)", f"INSERT INTO {name} ({step}) VALUES ({_ABSENT})"]


def around(dialect: Dialect, table: Table) -> list[str]:
    """INSERT OR REPLACE of a present row does nothing; UPDATE is DELETE and INSERT."""
    name, new = dialect.quoted(table.name), cells(dialect, table, "NEW")
    replaced, step = _replacement(dialect, table)
    cells_ = ", ".join(f"{dialect.quoted(c)} = {cell}" for c, cell in zip(table.columns, new, strict=True))
    there = f"EXISTS (SELECT 1 FROM {name} WHERE {same(dialect, table, new)})"
    again = [
        _went(dialect, table, new, _GONE, _QUIET),
        f"DELETE FROM {name} WHERE {same(dialect, table, new)}",
        f"INSERT INTO {name} VALUES ({', '.join(new)})",
    ]
    note = f"UPDATE {replaced} SET {cells_}, {step} = {there}"
    return [
        _written(dialect, "before insert", table, [note], None, "_replacing"),
        _written(dialect, "after insert", table, again, _is(dialect, table, new, _GONE)),
        _update_trigger(dialect, table),
    ]


def _replacement(dialect: Dialect, table: Table) -> tuple[str, str]:
    step = "step"
    while step in table.columns:
        step += "_"
    return dialect.quoted(f"{table.name}_replacing"), step


def _is(dialect: Dialect, table: Table, row: Sequence[str], at: int) -> str:
    name, step = _replacement(dialect, table)
    return f"EXISTS (SELECT 1 FROM {name} WHERE {step} = {at} AND {same(dialect, table, row)})"


def _went(dialect: Dialect, table: Table, row: Sequence[str], at: int, to: int) -> str:
    name, step = _replacement(dialect, table)
    return f"UPDATE {name} SET {step} = {to} WHERE {step} = {at} AND {same(dialect, table, row)}"


def _update_trigger(dialect: Dialect, table: Table) -> str:
    name = dialect.quoted(table.name)
    old, new = cells(dialect, table, "OLD"), cells(dialect, table, "NEW")
    taken = dialect.message(f"{table.name}: the row is there already")
    differ = " OR ".join(f"{a} IS NOT {b}" for a, b in zip(old, new, strict=True))
    body = [
        f"SELECT RAISE(ABORT, {taken}) WHERE EXISTS (SELECT 1 FROM {name} WHERE {same(dialect, table, new)})",
        f"DELETE FROM {name} WHERE {same(dialect, table, old)}",
        f"INSERT INTO {name} VALUES ({', '.join(new)})",
        "SELECT RAISE(IGNORE)",
    ]
    return trigger(dialect, "update", table, body, differ)


def _trigger(dialect: Dialect, plan: Plan, row: Sequence[str], stages: dict[str, Table]) -> str:
    body = [types_hold(dialect, plan.table, row)] if plan.event == "insert" else []
    for one in plan.before():
        if isinstance(one, Kept):
            stages[one.table.name] = one.table
            body.append(f"INSERT INTO {dialect.quoted(one.table.name)}\n{one.query}")
        else:
            condition, message = one
            body.append(f"SELECT RAISE(ABORT, {dialect.message(message)}) WHERE {negation(condition).text}")
    used = [one.table.name for one in plan.kept]
    for step, moved in ordered(plan.moved):
        stage = Table(moved.stage, moved.table.columns, moved.table.row)
        if step == "stage":
            stages[stage.name] = stage
            used.append(stage.name)
            if moved.query:
                body.append(f"INSERT INTO {dialect.quoted(stage.name)}\n{moved.query}")
        else:
            source = f"SELECT * FROM {dialect.quoted(stage.name)}" if step == "apply" else moved.query
            body += applied(dialect, moved, source)
    body += [f"DELETE FROM {dialect.quoted(name)}" for name in used]
    guarded = plan.guard is not None and plan.event == "insert"
    when = plan.guard.text if guarded and plan.guard is not None else None
    return trigger(dialect, plan.event, plan.table, body or ["SELECT 1"], when)


def applied(dialect: Dialect, moved: Moved, source: str) -> list[str]:
    """The statements that apply a change to a table."""
    table, columns_ = dialect.quoted(moved.table.name), listed(dialect, moved.table)
    insert = f"INSERT INTO {table}\nSELECT * FROM (\n{indented(source)}\n) WHERE TRUE\nON CONFLICT DO NOTHING"
    match moved.kind:
        case "gone":
            return [f"DELETE FROM {table} WHERE {columns_} IN (\n{indented(source)}\n)"]
        case "new":
            return [insert]
        case _:
            return [f"DELETE FROM {table} WHERE {columns_} NOT IN (\n{indented(source)}\n)", insert]


def ordered(moved: Sequence[Moved]) -> list[tuple[str, Moved]]:
    """An order in which every query is computed before a table that it reads changes.

    A query is applied as it is computed (`direct`) if no query still to be computed reads its
    table. If there is none such, one is computed now (`stage`) and applied when all are computed
    (`apply`). Deletes of a table come before its inserts.
    """
    out: list[tuple[str, Moved]] = []
    waiting = list(moved)
    staged: list[Moved] = []
    while waiting:
        for one in waiting:
            others = [other for other in waiting if other is not one]
            reads = any(one.table.name in other.reads for other in others)
            after = one.kind == "new" and any(
                o.kind == "gone" and o.table == one.table for o in (*others, *staged)
            )
            if not reads and not after and one.kind != "next":
                out.append(("direct", one))
                waiting.remove(one)
                break
        else:
            one = next((w for w in waiting if w.kind == "next"), None) or next(
                (w for w in waiting if w.kind == "new"), waiting[0]
            )
            waiting.remove(one)
            staged.append(one)
            out.append(("stage", one))
    return out + [("apply", one) for one in sorted(staged, key=lambda one: one.kind != "gone")]

"""DuckDB and Spark, which have no triggers: the statements of one update.

The caller passes the cells of the updated row.  DuckDB takes them as variables (SET VARIABLE x = 1)
and does everything in one transaction, with temporary tables for values computed from the old
state.  Spark takes them as named parameters (:x).  Plain tables there can only be overwritten, and
not while they are read, so the next value of each table is first written beside it.  Spark has no
transaction over several tables: an interrupted update must be run again from the same row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlog.ies.nrc.types import columns
from everlog.ies.sql.dialects import Dialect
from everlog.ies.sql.keeping import Kept
from everlog.ies.sql.script import Script, create, indented, listed, names, same
from everlog.ies.sql.symbolic_values import Table
from everlog.ies.sql.update_plan import Moved, Plan, Planner
from everlog.ies.system import Event, System


def write(system: System, dialect: Dialect) -> Script:
    planner = Planner(system, dialect)
    updates: dict[tuple[Event, str], tuple[str, ...]] = {}
    staged: dict[str, Table] = {}
    events: tuple[Event, ...] = ("insert", "delete")
    for stored in system.inputs:
        table = planner.tables[stored.name]
        row = parameters(dialect, table)
        for event in events:
            plan = planner.plan(system.updates[event, stored.name], row, in_trigger=False)
            make = _duckdb if dialect.name == "duckdb" else _spark
            updates[event, stored.name] = tuple(make(dialect, plan, row, staged))
    schema = ["SET spark.sql.ansi.enabled = true"] if dialect.name == "spark" else []
    schema += [create(dialect, table) for table in planner.tables.values()]
    schema += [create(dialect, table) for table in staged.values()]
    for name, query in planner.initial().items():
        schema.append(f"INSERT INTO {dialect.quoted(name)}\n{query}")
    everything = "\n".join((*schema, *(text for texts in updates.values() for text in texts)))
    first = planner.tables[system.inputs[0].name].columns[0]
    note = (
        f"The cells of the row are variables: SET VARIABLE {first} = …; an error leaves a transaction to ROLLBACK."
        if dialect.name == "duckdb"
        else f"The cells of the row are named parameters: spark.sql(statement, args={{'{first}': …}})."
    )
    schema = [*dialect.functions(everything), *schema]
    return Script(dialect.name, f"{system.name}: {system.title}", tuple(schema), updates, (note,))


def parameters(dialect: Dialect, table: Table) -> list[str]:
    """The names of the cells of the updated row."""
    if dialect.name == "spark":
        return [f":{column}" for column in table.columns]
    types = [dialect.column_type(base) for base in columns(table.row)]
    return [f"getvariable('{name}')::{type_}" for name, type_ in zip(table.columns, types, strict=True)]


def _duckdb(dialect: Dialect, plan: Plan, row: Sequence[str], _staged: Mapping[str, Table]) -> list[str]:
    out = ["BEGIN TRANSACTION"]
    guard = plan.guard.text if plan.guard is not None else None
    used: list[str] = []

    def keep(name: str, query: str) -> None:
        used.append(dialect.quoted(name))
        out.append(f"CREATE OR REPLACE TEMP TABLE {used[-1]} AS\n{query}")

    for one in plan.before():
        if isinstance(one, Kept):
            keep(one.table.name, one.query)
            continue
        condition, message = one
        wrong = " AND ".join(f"({text})" for text in (guard, f"NOT ({condition.text})") if text)
        out.append(f"SELECT CASE WHEN {wrong} THEN error({dialect.message(message)}) END")
    # A guard reads the input, which changes last; a guarded change is not even computed.
    for moved in plan.moved:
        empty = f"SELECT * FROM {dialect.quoted(moved.table.name)} WHERE FALSE"
        query = moved.query or empty
        keep(moved.stage, query if guard is None else f"SELECT * FROM (\n{indented(query)}\n) WHERE {guard}")
    for moved in sorted(plan.moved, key=lambda one: one.kind == "new"):
        table, stage = dialect.quoted(moved.table.name), dialect.quoted(moved.stage)
        key = listed(dialect, moved.table)
        if moved.kind != "new":
            sign = "IN" if moved.kind == "gone" else "NOT IN"
            stays = [o for o in plan.moved if moved.kind == "gone" and o.kind == "new" and o.table == moved.table]
            text = f"DELETE FROM {table} WHERE {key} {sign} (SELECT {names(dialect, moved.table)} FROM {stage})"
            for other in stays:
                packed = names(dialect, moved.table)
                text += f" AND {key} NOT IN (SELECT {packed} FROM {dialect.quoted(other.stage)})"
            if moved.kind == "next" and guard is not None:
                text += f" AND {guard}"
            out.append(text)
        if moved.kind != "gone":
            out.append(f"INSERT INTO {table} SELECT * FROM {stage} ON CONFLICT DO NOTHING")
    table = dialect.quoted(plan.table.name)
    if plan.event == "insert":
        out.append(f"INSERT INTO {table} VALUES ({', '.join(row)}) ON CONFLICT DO NOTHING")
    else:
        out.append(f"DELETE FROM {table} WHERE {same(dialect, plan.table, row)}")
    out += [f"DROP TABLE {name}" for name in used]
    return [*out, "COMMIT"]


def _spark(dialect: Dialect, plan: Plan, row: Sequence[str], staged: dict[str, Table]) -> list[str]:
    out: list[str] = []
    guard = plan.guard.text if plan.guard is not None else "TRUE"
    for one in plan.before():
        if isinstance(one, Kept):
            kept = Table(one.table.name, one.table.columns, one.table.row)
            staged[kept.name] = kept
            out.append(f"INSERT OVERWRITE {dialect.quoted(kept.name)}\n{one.query}")
            continue
        condition, message = one
        out.append(f"SELECT raise_error({dialect.message(message)}) WHERE {guard} AND NOT ({condition.text})")
    after: dict[str, Table] = {}
    for table in {moved.table.name: moved.table for moved in plan.moved}.values():
        each = {moved.kind: moved for moved in plan.moved if moved.table == table}
        after[table.name] = stage = Table(f"{table.name}_after", table.columns, table.row)
        staged[stage.name] = stage
        out.append(f"INSERT OVERWRITE {dialect.quoted(stage.name)}\n{_next(dialect, table, each, guard)}")
    name = dialect.quoted(plan.table.name)
    stage = Table(f"{plan.table.name}_after", plan.table.columns, plan.table.row)
    staged[stage.name] = stage
    this = same(dialect, plan.table, row)
    rows = f"SELECT * FROM {name} WHERE NOT ({this})"
    if plan.event == "insert":
        rows += f"\nUNION ALL\nSELECT {', '.join(row)}"
    out.append(f"INSERT OVERWRITE {dialect.quoted(stage.name)}\n{rows}")
    after[plan.table.name] = stage
    for changed, written in after.items():
        out.append(f"INSERT OVERWRITE {dialect.quoted(changed)}\nSELECT * FROM {dialect.quoted(written.name)}")
    return out


def _next(dialect: Dialect, table: Table, each: Mapping[str, Moved], guard: str) -> str:
    """The query for the next value of a table."""
    name, key = dialect.quoted(table.name), names(dialect, table)
    if "next" in each:
        value = each["next"].query or f"SELECT * FROM {name} WHERE FALSE"
        moved = f"SELECT * FROM (\n{indented(value)}\n) WHERE {guard}"
        return moved if guard == "TRUE" else f"{moved}\nUNION\nSELECT * FROM {name} WHERE NOT ({guard})"
    out = f"SELECT * FROM {name}"
    if "gone" in each:
        gone = f"SELECT {key} FROM (\n{indented(each['gone'].query)}\n) WHERE {guard}"
        out += f"\nEXCEPT\n{gone}"
    if "new" in each:
        new = f"SELECT {key} FROM (\n{indented(each['new'].query)}\n) WHERE {guard}"
        out = f"({out})\nUNION\n{new}"
    return out

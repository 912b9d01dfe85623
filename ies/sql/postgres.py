"""PostgreSQL: trigger functions whose work is one statement.

All parts of one statement see the same state, so an update is one WITH whose parts compute the
changes from the old state and apply them; no table is needed in between.  A row that would be
deleted and inserted stays, since one statement moves a row once.  An advisory lock serializes two
transactions that update the input, and one whose snapshot may be older than its turn is refused.
TRUNCATE is refused.  The functions find their tables in the schema in which the script ran,
independent of the caller's search_path and `$user`.

Source: https://www.postgresql.org/docs/15/queries-with.html (data-modifying statements in WITH).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from zlib import crc32

from everlog.ies.sql.dialects import Dialect
from everlog.ies.sql.keeping import Kept
from everlog.ies.sql.script import Script, create, indented, indices, listed, same
from everlog.ies.sql.symbolic_values import Table, negation
from everlog.ies.sql.update_plan import Moved, Plan, Planner
from everlog.ies.system import System


def write(system: System, dialect: Dialect) -> Script:
    planner = Planner(system, dialect)
    triggers: list[str] = []
    for stored in system.inputs:
        table = planner.tables[stored.name]
        for event in ("insert", "delete"):
            update = system.updates[event, stored.name]
            row = cells(dialect, table, "NEW" if event == "insert" else "OLD")
            plan = planner.plan(update, row, in_trigger=True)
            triggers += function(dialect, event, table, _body(dialect, plan))
        triggers += around(dialect, system.name, table)
    stored_tables = list(planner.tables.values())
    schema = [create(dialect, table) for table in stored_tables]
    for table in stored_tables:
        schema += indices(dialect, table, planner.lookups.get(table.name, ()))
    for name, query in planner.initial().items():
        schema.append(f"INSERT INTO {dialect.quoted(name)}\n{query}")
    schema = [*dialect.functions("\n".join((*schema, *triggers))), *schema, *triggers]
    return Script("postgres", f"{system.name}: {system.title}", tuple(schema))


def cells(dialect: Dialect, table: Table, of: str) -> list[str]:
    return [f"{of}.{dialect.quoted(column)}" for column in table.columns]


def function(
    dialect: Dialect, event: str, table: Table, body: Sequence[str], declared: str = "", level: str = "ROW"
) -> list[str]:
    """A trigger function and its trigger; the function ends by passing the row."""
    name = dialect.quoted(f"{table.name}_before_{event}")
    lines = "\n".join(indented(f"{statement};") for statement in body)
    return [
        # compiling a query that runs for one row would take longer than the row
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SET jit = off AS "
        + dollar_quoted(f"\n{declared}BEGIN\n{lines}\nEND "),
        f"CREATE TRIGGER {name} BEFORE {event.upper()} ON {dialect.quoted(table.name)}\n"
        f"FOR EACH {level} EXECUTE FUNCTION {name}()",
    ]


def around(dialect: Dialect, system: str, table: Table) -> list[str]:
    """Serialized transactions, UPDATE as DELETE and INSERT, no TRUNCATE."""
    name = dialect.quoted(table.name)
    old = same(dialect, table, cells(dialect, table, "OLD"))
    new = ", ".join(cells(dialect, table, "NEW"))
    stale = dialect.message(f"{system} is maintained in transactions that are read committed or serializable")
    turn = dialect.quoted(f"{table.name}_before_all")
    update = function(
        dialect,
        "update",
        table,
        [
            "IF NEW = OLD THEN RETURN NEW; END IF",
            f"DELETE FROM {name} WHERE {old}",
            f"INSERT INTO {name} VALUES ({new})",
            "RETURN NULL",
        ],
    )
    refused = dialect.message(f"{table.name}: TRUNCATE is not maintained; DELETE is")
    truncate = function(
        dialect, "truncate", table, [f"RAISE EXCEPTION USING MESSAGE = {refused}"], level="STATEMENT"
    )
    return [
        *update,
        *truncate,
        f"CREATE FUNCTION {turn}() RETURNS trigger LANGUAGE plpgsql AS "
        + dollar_quoted(
            "\nBEGIN\n"
            f"  PERFORM pg_advisory_xact_lock({crc32(system.encode())});\n"
            "  IF current_setting('transaction_isolation') = 'repeatable read' THEN\n"
            f"    RAISE EXCEPTION USING MESSAGE = {stale};\n  END IF;\n  RETURN NULL;\nEND "
        ),
        f"CREATE TRIGGER {turn} BEFORE INSERT OR DELETE OR UPDATE ON {name}\n"
        f"FOR EACH STATEMENT EXECUTE FUNCTION {turn}()",
        _at_home(dialect, table),
    ]


def _at_home(dialect: Dialect, table: Table) -> str:
    """Set the search path of a table's functions: their schema, then temporary tables."""
    made = ", ".join(dialect.string(f"{table.name}_before_{e}") for e in ("insert", "delete", "update", "all"))
    return "DO " + dollar_quoted(
        "\nDECLARE\n  name TEXT;\n  home TEXT := current_schema();\nBEGIN\n"
        f"  FOREACH name IN ARRAY ARRAY[{made}] LOOP\n"
        "    EXECUTE format('ALTER FUNCTION %I.%I() SET search_path = %I, pg_temp', home, name, home);\n"
        "  END LOOP;\nEND "
    )


def _body(dialect: Dialect, plan: Plan) -> list[str]:
    row = "NEW" if plan.event == "insert" else "OLD"
    body: list[str] = []
    if plan.guard is not None and plan.event == "insert":
        body.append(f"IF {negation(plan.guard).text} THEN RETURN NEW; END IF")
    known: list[str] = []
    for one in plan.before():
        if isinstance(one, Kept):
            known.append(kept(dialect, one.table.name, one.table.columns, one.query))
            continue
        condition, message = one
        test = f"SELECT {negation(condition).text}"
        if known:
            test = "WITH\n" + indented(",\n".join(known)) + "\n" + test
        body.append(f"IF ({test}) THEN\n  RAISE EXCEPTION USING MESSAGE = {dialect.message(message)};\nEND IF")
    if plan.moved:
        body.append(_statement(dialect, plan.moved, known))
    return [*body, f"RETURN {row}"]


def kept(dialect: Dialect, name: str, columns: Sequence[str], query: str) -> str:
    listing = ", ".join(map(dialect.quoted, columns))
    return f"{dialect.quoted(name)}({listing}) AS MATERIALIZED (\n{indented(query)}\n)"


def _statement(dialect: Dialect, moved: Sequence[Moved], known: Sequence[str]) -> str:
    """One statement that applies all changes."""
    parts = list(known)
    parts += [kept(dialect, m.stage, m.table.columns, m.query or _nothing(dialect, m.table)) for m in moved]
    actions: list[tuple[str, str]] = []
    for one in moved:
        table, stage, columns = (
            dialect.quoted(one.table.name),
            dialect.quoted(one.stage),
            listed(dialect, one.table),
        )
        if one.kind == "gone":
            stays = [other for other in moved if other.kind == "new" and other.table == one.table]
            text = f"DELETE FROM {table} WHERE {columns} IN (SELECT * FROM {stage})"
            for other in stays:
                text += f"\nAND {columns} NOT IN (SELECT * FROM {dialect.quoted(other.stage)})"
            actions.append((f"{one.table.name}_left", text))
            continue
        if one.kind == "next":
            actions.append(
                (f"{one.table.name}_left", f"DELETE FROM {table} WHERE {columns} NOT IN (SELECT * FROM {stage})")
            )
        actions.append(
            (f"{one.table.name}_came", f"INSERT INTO {table} SELECT * FROM {stage} ON CONFLICT DO NOTHING")
        )
    parts += [f"{dialect.quoted(name)} AS (\n{indented(text)}\n)" for name, text in actions[:-1]]
    return "WITH\n" + indented(",\n".join(parts)) + "\n" + actions[-1][1]


def dollar_quoted(body: str) -> str:
    """The body of a function as a literal, with a tag that does not occur in it.

    >>> dollar_quoted("SELECT 1"), dollar_quoted("SELECT '$everlog$'")
    ('$everlog$SELECT 1$everlog$', "$everlog1$SELECT '$everlog$'$everlog1$")
    """
    tags = (f"$everlog{number or ''}$" for number in count())
    tag = next(tag for tag in tags if tag not in body)
    return f"{tag}{body}{tag}"


def _nothing(dialect: Dialect, table: Table) -> str:
    return f"SELECT * FROM {dialect.quoted(table.name)} WHERE FALSE"

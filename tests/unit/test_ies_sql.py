"""Systems as SQL, in real databases: tables agree with the calculus."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import postgres
import pytest
from attrs import evolve
from sql_databases import Duckdb, Postgres, Refused, Sqlite

from everlog.ies.files import system_of as read
from everlog.ies.nrc.types import columns
from everlog.ies.registry import system_of
from everlog.ies.running import NotPermissible, Running
from everlog.ies.sql import DIALECTS, Script, SqlError, script, sql_text
from everlog.ies.sql.dialects import DEFAULT_NODE, Dialect
from everlog.ies.system import System

FLAT = [
    "even",
    "linear_order",
    "max_outdegree_parity",
    "same_generation_counts",
    "tc_acyclic",
    "tc_algebra",
    "tc_counts",
    "binarize(tc_counts)",
    "flatten(tc_paths)",
    "flatten(alternating_paths)",
    "flatten(same_generation)",
    "binarize(flatten(tc_paths))",
]
CLOSURE = """WITH RECURSIVE closure(x, y) AS (
  SELECT x, y FROM edge UNION SELECT c.x, e.y FROM closure AS c JOIN edge AS e ON e.x = c.y
) SELECT x, y FROM closure"""


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    why = postgres.missing()
    if why is not None:
        pytest.skip(why)
    with postgres.server() as found:
        yield found


def replayed(database: Any, system: System, steps: int, nodes: int = 5, seed: int = 1) -> int:
    """Apply random updates to the database and the calculus; relations stay equal."""
    draw = random.Random(seed)
    running = Running(system, limit=None)
    refused = 0
    for step in range(steps):
        stored = draw.choice(system.inputs)
        width = len(columns(stored.type.element))
        row = tuple(draw.randrange(nodes) for _ in range(width))
        event = "insert" if draw.random() < 0.6 else "delete"
        expected = _permitted(getattr(running, event), stored.name, row if width > 1 else row[0])
        found = _permitted(getattr(database, event), stored.name, row)
        assert found == expected, f"step {step}, {event} {row}"
        refused += not expected
        for one in system.stored:
            # "" fills unused columns
            rows = {
                tuple(DEFAULT_NODE if cell == "" else cell for cell in each) for each in running.rows(one.name)
            }
            assert database.rows(one.name) == rows, f"{one.name} after step {step}, {event} {row}"
    return refused


def _permitted(update: Any, relation: str, row: Any) -> bool:
    try:
        update(relation, row)
    except (NotPermissible, Refused):
        return False
    return True


# ── every flat system, against the calculus ──────────────────────────────────────────────────────


@pytest.mark.parametrize("name", FLAT)
def test_sqlite_keeps_what_the_calculus_says(name: str) -> None:
    small = "flatten" in name
    system = system_of(name)
    refused = replayed(Sqlite(script(system, "sqlite")), system, 25 if small else 150, 3 if small else 5)
    assert refused > 0 or not any(update.requirements for update in system.updates.values()) or "algebra" in name


@pytest.mark.parametrize("name", FLAT)
def test_postgres_keeps_what_the_calculus_says(name: str, target: str) -> None:
    small = "flatten" in name
    system = system_of(name)
    replayed(Postgres(target, script(system, "postgres")), system, 6 if small else 40, 3 if small else 5)


@pytest.mark.parametrize("name", [name for name in FLAT if "flatten" not in name and name != "tc_algebra"])
def test_duckdb_keeps_what_the_calculus_says(name: str) -> None:
    pytest.importorskip("duckdb", reason="no duckdb (pip install everlog[sql])")
    system = system_of(name)
    replayed(Duckdb(script(system, "duckdb")), system, 12)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["flatten(tc_paths)", "tc_algebra", "binarize(tc_counts)"])
def test_duckdb_keeps_what_the_calculus_says_in_long_runs(name: str) -> None:
    pytest.importorskip("duckdb", reason="no duckdb (pip install everlog[sql])")
    system = system_of(name)
    replayed(Duckdb(script(system, "duckdb")), system, 20, 3)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["flatten(tc_sri)", "flatten(powerset_sri)", "flatten(same_generation_sri)"])
def test_sqlite_keeps_the_flat_forms_of_structural_recursion(name: str) -> None:
    system = system_of(name)
    replayed(Sqlite(script(system, "sqlite")), system, 12, 2 if "power" in name else 3)


def test_nodes_may_be_texts() -> None:
    database = Sqlite(script("tc_counts", "sqlite", node_type="text"))
    for row in [("a", "b"), ("b", "it's"), ("a", "c"), ("c", "it's")]:
        database.insert("edge", row)
    database.delete("edge", ("a", "b"))
    assert database.rows("ways") == {("a", "c", 1), ("c", "it's", 1), ("a", "it's", 1), ("b", "it's", 1)}


# ── closures, against the database's own recursive query ─────────────────────────────────────────


def closed(database: Any, steps: int, nodes: int, acyclic: bool, seed: int = 7) -> None:
    """Insert and delete random edges with plain SQL; the closure table stays right."""
    draw = random.Random(seed)
    for step in range(steps):
        row = (draw.randrange(nodes), draw.randrange(nodes))
        if acyclic and row[0] == row[1]:
            continue
        row = tuple(sorted(row)) if acyclic else row
        (database.insert if draw.random() < 0.5 else database.delete)("edge", row)
        assert database.rows("path") == set(database.connection.execute(CLOSURE).fetchall()), f"step {step}"


@pytest.mark.parametrize(("name", "steps"), [("tc_acyclic", 2000), ("tc_counts", 2000), ("tc_algebra", 300)])
def test_closure_in_sqlite_equals_its_own_recursive_query(name: str, steps: int) -> None:
    closed(Sqlite(script(name, "sqlite")), steps, 10 if name != "tc_algebra" else 6, name != "tc_algebra")


@pytest.mark.parametrize(("name", "steps"), [("tc_acyclic", 700), ("tc_counts", 700), ("tc_algebra", 100)])
def test_closure_in_postgres_equals_its_own_recursive_query(name: str, steps: int, target: str) -> None:
    closed(
        Postgres(target, script(name, "postgres")), steps, 8 if name != "tc_algebra" else 6, name != "tc_algebra"
    )


def witnessed(database: Any, steps: int, nodes: int, seed: int) -> None:
    """The closure is right, and each pair's witness leads back to an edge."""
    draw = random.Random(seed)
    share = 0.5
    for step in range(steps):
        if step % 100 == 0:
            share = draw.choice([0.3, 0.5, 0.7])  # sparse and dense by turns
        row = (draw.randrange(nodes), draw.randrange(nodes))
        (database.insert if draw.random() < share else database.delete)("edge", row)
        edges, path = database.rows("edge"), database.rows("path")
        assert path == set(database.connection.execute(CLOSURE).fetchall()), f"step {step}"
        assert database.columns("path_tree") == ["x", "y", "parent"]
        via = {(x, y): by for x, y, by in database.rows("path_tree")}
        assert via.keys() == path
        for x, y in path:
            for _ in range(nodes + 1):
                assert (via[x, y], y) in edges
                if via[x, y] == x:
                    break
                y = via[x, y]
            else:
                pytest.fail(f"the witnesses of source {x} go around, step {step}")


@pytest.mark.parametrize("nodes", [4, 9])
def test_witnesses_in_sqlite_keep_the_closure_and_are_well_founded(nodes: int) -> None:
    witnessed(Sqlite(script("tc_witness", "sqlite")), 1200, nodes, nodes)


def test_witnesses_in_postgres_keep_the_closure_and_are_well_founded(target: str) -> None:
    witnessed(Postgres(target, script("tc_witness", "postgres")), 1000, 7, 3)


@pytest.mark.deep
@pytest.mark.parametrize("nodes", [3, 12])
def test_witnesses_hold_in_long_runs(nodes: int, target: str) -> None:
    witnessed(Sqlite(script("tc_witness", "sqlite")), 6_000, nodes, nodes)
    witnessed(Postgres(target, script("tc_witness", "postgres")), 1_500, nodes, nodes)


# ── statements of users ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["tc_acyclic", "tc_counts", "tc_witness", "tc_algebra"])
@pytest.mark.parametrize("how", ["", "OR ABORT", "OR IGNORE", "OR REPLACE", "OR FAIL", "OR ROLLBACK"])
def test_conflict_clauses_around_a_sqlite_trigger_change_nothing(name: str, how: str) -> None:
    database = Sqlite(script(name, "sqlite"))
    for row in [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4)]:
        database.run(f"INSERT {how} INTO edge VALUES (?, ?)", row)
        assert database.rows("path") == set(database.run(CLOSURE))
    before = database.rows("path")
    for bad in [("a", 2), (None, 2), (1.5, 2), (1, 2)]:
        with suppress(Refused):
            database.run(f"INSERT {how} INTO edge VALUES (?, ?)", bad)
        assert database.rows("path") == before == set(database.run(CLOSURE)), bad


class Replacing(Sqlite):
    """Inserts with INSERT OR REPLACE, which deletes and reinserts an existing row."""

    def __init__(self, script_: Script, recursive: bool) -> None:
        super().__init__(script_)
        self.connection.execute(f"PRAGMA recursive_triggers = {recursive:d}")

    def insert(self, relation: str, row: tuple[Any, ...]) -> None:
        self.run(f'INSERT OR REPLACE INTO "{relation}" VALUES ({", ".join("?" * len(row))})', row)


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize(  # those whose auxiliaries do not depend on history
    "name", ["even", "max_outdegree_parity", "same_generation_counts", "tc_acyclic", "tc_counts"]
)
def test_a_row_that_is_replaced_stays(name: str, recursive: bool) -> None:
    system = system_of(name)
    replayed(Replacing(script(system, "sqlite"), recursive), system, 120, 3)


@pytest.mark.parametrize("recursive", [False, True])
def test_closures_stay_when_rows_are_replaced(recursive: bool) -> None:
    closed(Replacing(script("tc_algebra", "sqlite"), recursive), 200, 4, acyclic=False)
    witnessed(Replacing(script("tc_witness", "sqlite"), recursive), 400, 4, 5)


@pytest.mark.parametrize("name", ["tc_counts", "tc_witness"])
def test_an_insert_that_was_ignored_is_no_replacement(name: str) -> None:
    """An ignored insert has no effect on a later delete and insert."""
    database = Sqlite(script(name, "sqlite"))
    database.run("PRAGMA recursive_triggers = 1")
    for row in [(1, 2), (2, 3)]:
        database.insert("edge", row)
    database.run("INSERT OR IGNORE INTO edge VALUES (1, 2)")
    database.delete("edge", (1, 2))
    assert database.rows("path") == {(2, 3)}
    database.insert("edge", (1, 2))
    database.run("INSERT INTO edge VALUES (1, 2) ON CONFLICT DO UPDATE SET y = 4")
    assert database.rows("path") == {(1, 4), (2, 3)}
    with pytest.raises(Refused, match="UNIQUE"):
        database.run("INSERT INTO edge VALUES (2, 3)")
    database.run("INSERT OR REPLACE INTO edge VALUES (1, 4), (1, 2), (1, 4)")
    assert database.rows("path") == set(database.run(CLOSURE)) == {(1, 4), (1, 2), (1, 3), (2, 3)}


@pytest.mark.parametrize("name", ["tc_acyclic", "tc_counts", "tc_witness", "tc_algebra"])
def test_an_update_is_a_delete_and_an_insert(name: str, target: str) -> None:
    for database in (Sqlite(script(name, "sqlite")), Postgres(target, script(name, "postgres"))):
        for row in [(1, 2), (2, 3), (3, 4), (1, 5)]:
            database.insert("edge", row)
        database.run("UPDATE edge SET y = y + 10 WHERE x = 1")
        assert database.rows("edge") == {(1, 12), (2, 3), (3, 4), (1, 15)}
        assert database.rows("path") == set(database.connection.execute(CLOSURE).fetchall())
        database.run("UPDATE edge SET y = 12 WHERE x = 3")
        database.run("UPDATE edge SET y = y")
        assert database.rows("path") == {(1, 12), (1, 15), (2, 3), (2, 12), (3, 12)}
        database.run("DELETE FROM edge")
        assert database.rows("path") == set()


def test_updates_of_several_rows_are_one_statement_that_is_undone_as_a_whole() -> None:
    database = Sqlite(script("tc_acyclic", "sqlite"))
    database.run("INSERT INTO edge VALUES (1, 2), (2, 3)")
    with pytest.raises(Refused, match="closes a cycle"):
        database.run("INSERT INTO edge VALUES (3, 4), (4, 5), (5, 1)")
    assert database.rows("edge") == {(1, 2), (2, 3)}
    assert database.rows("path") == {(1, 2), (2, 3), (1, 3)}


def test_postgres_refuses_truncate_and_stale_snapshots(target: str) -> None:
    database = Postgres(target, script("tc_witness", "postgres"))
    database.insert("edge", (1, 2))
    with pytest.raises(Refused, match="TRUNCATE is not maintained"):
        database.run("TRUNCATE edge")
    database.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(Refused, match="read committed or serializable"):
        database.run("INSERT INTO edge VALUES (2, 3)")
    database.run("ROLLBACK")
    assert database.rows("path") == {(1, 2)}


@pytest.mark.parametrize("name", ["tc_acyclic", "tc_witness", "tc_algebra"])
def test_the_search_path_of_who_updates_is_no_matter_in_postgres(name: str, target: str) -> None:
    """Sessions with another search path still update the tables beside `edge`."""
    import psycopg

    text = sql_text(name, "postgres")
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute('DROP SCHEMA IF EXISTS "Here" CASCADE; DROP SCHEMA IF EXISTS there CASCADE')
        (user,) = connection.execute("SELECT current_user").fetchone() or ()
        connection.execute(f'DROP SCHEMA IF EXISTS "{user}" CASCADE; CREATE SCHEMA "Here"; CREATE SCHEMA there')
        connection.execute('SET search_path = "$user", "Here"')
        connection.execute(text)
        connection.execute("SET search_path = there")
        connection.execute(text)
        connection.execute(f'CREATE SCHEMA "{user}"; CREATE TABLE "{user}".path (x BIGINT, y BIGINT)')
    found = {}
    for path in ("pg_catalog", "there", '"$user", "Here"'):
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(f"SET search_path = {path}")
            connection.execute("CREATE TEMPORARY TABLE path (x BIGINT, y BIGINT)")
            connection.execute('INSERT INTO "Here".edge VALUES (1, 2), (2, 3), (3, 4), (4, 5)')
            connection.execute('DELETE FROM "Here".edge WHERE x = 3')
            connection.execute('UPDATE "Here".edge SET y = 6 WHERE x = 4')
            found[path] = connection.execute('SELECT * FROM "Here".path ORDER BY x, y').fetchall()
            for other in ("there.path", f'"{user}".path', "pg_temp.path"):
                assert connection.execute(f"SELECT * FROM {other}").fetchall() == []
            connection.execute('DELETE FROM "Here".edge')
    assert list(found.values()) == [[(1, 2), (1, 3), (2, 3), (4, 6)]] * 3
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "Here" CASCADE; DROP SCHEMA there CASCADE; DROP SCHEMA "{user}" CASCADE')


@pytest.mark.parametrize("name", ["tc_acyclic", "tc_witness"])
def test_transactions_in_postgres_take_turns(name: str, target: str) -> None:
    """Two transactions insert adjacent edges at once: the path over both is found."""
    from concurrent.futures import ThreadPoolExecutor

    import psycopg

    database = Postgres(target, script(name, "postgres"))

    def insert(first: int) -> None:
        with psycopg.connect(target, autocommit=True) as connection:
            for number in range(first, 40, 2):
                connection.execute("INSERT INTO edge VALUES (%s, %s)", (number, number + 1))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(insert, (0, 1)))
    assert len(database.rows("path")) == 40 * 41 // 2


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────

NUMBERS = """system numbers "arithmetic"
input r : {num}
answer a : {num * num}
on insert new x into r
  a := {(x, %s)}
on delete present x from r
  a := {}
"""


def numbers(term: str) -> System:
    return read(NUMBERS % term, "numbers.nrc")


@pytest.mark.parametrize(
    "term", ["x * x", "x + x", "0 - x - x", "sum{| y * y | y in {x} union r |}", "if x * x < 0 then 1 else 2"]
)
def test_an_overflow_in_sqlite_is_an_error_and_never_a_float(term: str) -> None:
    for how in ("INSERT", "INSERT OR IGNORE"):
        database = Sqlite(script(numbers(term), "sqlite"))
        database.run("INSERT INTO r VALUES (3)")
        before = database.rows("a")
        with pytest.raises(Refused, match="not a whole number of 64 bits"):
            database.run(f"{how} INTO r VALUES ({2**62 + 12345})")
        assert database.rows("a") == before


def test_postgres_has_large_numbers_and_exact_decimals(target: str) -> None:
    database = Postgres(target, script(numbers("x * x * x * x * x"), "postgres"))
    database.insert("r", (10**9,))
    assert database.rows("a") == {(10**9, 10**45)}
    database = Postgres(target, script(numbers("x / 8"), "postgres"))
    database.insert("r", (3,))
    assert {(a, float(b)) for a, b in database.rows("a")} == {(3, 0.375)}
    database = Postgres(target, script(numbers("1 / x"), "postgres"))
    with pytest.raises(Refused, match="no exact decimals"):
        database.insert("r", (3,))
    with pytest.raises(Refused, match="division by zero"):
        database.insert("r", (0,))
    assert database.rows("r") == set()


@pytest.mark.parametrize("make", [lambda s: Sqlite(script(s, "sqlite")), lambda s: Duckdb(script(s, "duckdb"))])
def test_a_quotient_is_whole_or_an_error(make: Any) -> None:
    database = make(numbers("x / 3"))
    database.insert("r", (12,))
    assert database.rows("a") == {(12, 4)}
    with pytest.raises(Refused, match="no exact fractions"):
        database.insert("r", (13,))
    database = make(numbers("12 / x"))
    with pytest.raises(Refused, match="division by zero"):
        database.insert("r", (0,))


@pytest.mark.parametrize("op", ["+", "-", "*", "/"])
def test_arithmetic_modulo_a_prime_is_that_of_the_calculus(op: str, target: str) -> None:
    system = numbers(f"(x {op}[2147483647] 2147483645) {op}[2147483647] (x + 5)")
    pytest.importorskip("duckdb", reason="no duckdb (pip install everlog[sql])")
    databases = (
        Sqlite(script(system, "sqlite")),
        Postgres(target, script(system, "postgres")),
        Duckdb(script(system, "duckdb")),
    )
    for number in (0, 1, 7, -3, 2147483646, 2**40 + 3):
        running = Running(system)
        running.insert("r", number)
        for database in databases:
            database.insert("r", (number,))
            assert database.rows("a") == set(running.view("a")), (number, type(database))


# ── constructs, one by one ───────────────────────────────────────────────────────────────────────

TERMS = """system terms "one construct"
input r : {node * num}
input s : {num}
answer a : %s
on insert new (x, n) into r
  a := %s
on delete present (x, n) from r
  a := %s
on insert new n into s
  a := %s
on delete present n from s
  a := %s
"""
NESTED = "{(x, {m | (y, m) in r, y = x}) | (x, _) in r}"  # group by: a set of sets on the way
CONSTRUCTS = {
    "union, minus": ("{num}", "{m | (_, m) in r} union s minus {k | k in s, k < 2}"),
    "intersect": ("{num}", "{m | (_, m) in r} intersect s"),
    "big union": ("{num}", "union{ union{ {m, m + k} | k in s } | (_, m) in r }"),
    "finite set": ("{num * bool}", "{(1, true), (2, 1 in s), (3, exists{ (_, m) in r, m = 2 })}"),
    "conditional sets": ("{num}", "if 1 in s then {k | k in s, k != 1} else {m | (_, m) in r}"),
    "conditional tuples": ("{num * num}", "{(if k < m then (k, m) else (m, k)) | k in s, (_, m) in r}"),
    "all": ("{num}", "{k | k in s, all{ k <= m | (_, m) in r }}"),
    "subset": ("{bool}", "{({m | (_, m) in r} subset s)}"),
    "equality of sets": ("{bool * bool}", "{({m | (_, m) in r} = s, s = {})}"),
    "sum over distinct": ("{num}", "{sum{| m | m in {m | (_, m) in r} |}}"),
    "sum of a row": ("{num}", "{sum{| m | (_, m) in r |}}"),
    "sum of outer columns": ("{num * num}", "{(k, sum{| k | (_, m) in r, m <= k |}) | k in s}"),
    "sum in a sum": ("{num}", "{sum{| k * sum{| j | j in {m | (_, m) in r, m < k} |} | k in s |}}"),
    "sum over several": ("{num}", "{sum{| k + m | k in s, m in {m | (_, m) in r, m != k}, k < 3 |}}"),
    "count": ("{num}", "{count(r), count(s union {m | (_, m) in r})}"),
    "let": ("{num}", "let T = {m | (_, m) in r} in {k | k in s, (k in T)} union {m + 10 | m in T}"),
    "nested sets": ("{num}", f"{{count(M) | (_, M) in {NESTED}}}"),
    "sum over sets": ("{num}", f"{{sum{{| count(M) | M in {{M | (_, M) in {NESTED}}} |}}}}"),
    "sets of sets compared": ("{bool}", f"{{{{M | (_, M) in {NESTED}}} = {{s}}}}"),
    "element of a set of sets": ("{bool}", f"{{(s in {{M | (_, M) in {NESTED}}})}}"),
    "projections": ("{num}", "{p.2 | p in r, q in r, p.1 = q.1, p.2 < q.2}"),
    "booleans": ("{bool}", "{(1 in s and not (2 in s)) or (3 in s) = (4 in s)}"),
    "pairs in pairs": (
        "{num * num}",
        "{(p.1, p.2) | ((k, m), p) in {((k, m), (m, k)) | k in s, (_, m) in r}, k < m}",
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct_means_in_sql_what_it_means_in_the_calculus(name: str, target: str) -> None:
    type_, term = CONSTRUCTS[name]
    system = read(TERMS % (type_, term, term, term, term), "terms.nrc")
    replayed(Sqlite(script(system, "sqlite")), system, 60, 4)
    replayed(Postgres(target, script(system, "postgres")), system, 12, 4)


@pytest.mark.parametrize("name", ["sum over several", "nested sets", "sum over sets", "equality of sets", "let"])
def test_constructs_in_duckdb(name: str) -> None:
    pytest.importorskip("duckdb", reason="no duckdb (pip install everlog[sql])")
    type_, term = CONSTRUCTS[name]
    system = read(TERMS % (type_, term, term, term, term), "terms.nrc")
    replayed(Duckdb(script(system, "duckdb")), system, 12, 4)


# ── texts and errors ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["tc_acyclic", "tc_counts", "even"])
def test_each_dialect_has_a_text(name: str, dialect: str) -> None:
    text = sql_text(name, dialect)
    assert text == sql_text(name, dialect), "the same each time"
    assert ("CREATE TRIGGER" in text) == (dialect in ("sqlite", "postgres"))
    assert "CREATE TABLE" in text


@pytest.mark.parametrize(
    ("system", "dialect", "node_type", "message"),
    [
        ("tc_paths", "sqlite", "integer", r"`paths` of tc_paths is nested .* `flatten\(tc_paths\)`"),
        ("tc_counts", "oracle", "integer", "no dialect `oracle`; there are sqlite, postgres, duckdb, spark"),
        ("tc_counts", "sqlite", "float", "no node type `float`; there are integer, text"),
        ("tc_witness", "duckdb", "integer", "written for sqlite and postgres, not for duckdb"),
        (
            "alternating_counters",
            "sqlite",
            "integer",
            r"in Python, .*; `flatten\(alternating_paths\)` keeps the same answer in SQL, .* grow exponentially$",
        ),
        (numbers("x / 2 + 1 / 3"), "postgres", "integer", "1/3 has no exact decimals"),
        (numbers("x + 1 / 2"), "sqlite", "integer", "1/2 is not a whole number"),
        (numbers("x *[4294967311] x"), "sqlite", "integer", "modulo 4294967311: sqlite .* less than 2\\^31"),
        (numbers('if exists{ y in {"a"}, y = "b" } then 1 else 2'), "sqlite", "integer", '"a" is text'),
    ],
)
def test_what_cannot_be_said_gets_an_error(system: Any, dialect: str, node_type: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        sql_text(system, dialect, node_type=node_type)


# ── texts of the author of a system ──────────────────────────────────────────────────────────

BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\0", "\ud800", "\u202e"]
HOSTILE = [
    "it's",
    '"',
    "`",
    "\\",
    "\\' --",
    "$everlog$; DROP TABLE r; --",
    "$$",
    "a\nb",
    "\r",
    "\u2028",
    "t1",
    "*/ ;",
]


def a_constant(text: str) -> System:
    """A system that compares nodes with a text, and adds it."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return read(f"""system marked "Whatever is there"
        input r : {{element}}  answer s : {{element}}
        on insert o into r  s += (if o = "{quoted}" then {{}} else {{"{quoted}", o}})
        on delete o from r  s -= {{o}}""")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", BREAKS)
def test_a_title_does_not_leave_its_comment(dialect: str, end: str) -> None:
    system = evolve(system_of("even"), title=f"Even{end}CREATE TABLE stolen (x); --{end}DROP TABLE r;")
    text = sql_text(system, dialect)
    mentions = [line for line in re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text) if "stolen" in line]
    assert len(mentions) == 1
    assert mentions[0].startswith("-- even: Even ")
    text.encode()
    if dialect == "sqlite":
        assert ("stolen",) not in Sqlite(script(system, dialect)).run("SELECT name FROM sqlite_master")


def check_constants(database: Any, text: str) -> None:
    """The database reads the text as the same value as the calculus."""
    database.insert("r", (text,))
    assert database.rows("s") == set()
    database.insert("r", ("other",))
    assert database.rows("s") == {(text,), ("other",)}


@pytest.mark.parametrize("text", HOSTILE)
def test_constants_of_a_system_are_values_in_sqlite(text: str) -> None:
    check_constants(Sqlite(script(a_constant(text), "sqlite", node_type="text")), text)


@pytest.mark.parametrize("text", HOSTILE)
def test_constants_of_a_system_are_values_in_postgres(target: str, text: str) -> None:
    check_constants(Postgres(target, script(a_constant(text), "postgres", node_type="text")), text)


@pytest.mark.parametrize("text", HOSTILE)
def test_constants_of_a_system_are_values_in_duckdb(text: str) -> None:
    import duckdb

    literal = Dialect("duckdb", "text").string(text)
    assert duckdb.connect().execute(f"SELECT {literal}").fetchall() == [(text,)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_database_can_hold_is_refused(dialect: str, text: str) -> None:
    with pytest.raises(SqlError, match="has a character that no database can hold"):
        Dialect(dialect, "text").string(text)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["a`b", 'a"b', "a b", "a`; DROP TABLE r; --"])
def test_a_name_does_not_leave_its_quotes(dialect: str, name: str) -> None:
    quote = "`" if dialect == "spark" else '"'
    quoted = Dialect(dialect, "text").quoted(name)
    assert quoted[0] == quoted[-1] == quote
    assert quoted[1:-1].replace(2 * quote, "") == name.replace(quote, "")

"""PostgreSQL as a live source and a sink: replication and triggers."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from following import PATHS, closure, event, following, wait_until
from postgres import missing, server

from everlog import Database, FactsError
from everlog.streams import follow
from everlog.streams.pgoutput import read_message
from everlog.streams.postgres_tables import Snapshot

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def url_of(target: str) -> str:
    parts = dict(part.split("=", 1) for part in target.split())
    return f"postgresql://postgres@/postgres?host={parts['host']}"


@pytest.fixture(scope="module")
def logical() -> Iterator[str]:
    with server("wal_level=logical") as target:
        yield url_of(target)


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """A server as it comes: it does not replicate."""
    with server() as target:
        yield url_of(target)


@pytest.fixture(params=["replication", "triggers"])
def via(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(logical: str) -> str:
    import psycopg

    with psycopg.connect(logical, autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        for (name,) in connection.execute("SELECT pubname FROM pg_publication").fetchall():
            connection.execute(f'DROP PUBLICATION "{name}"')
        connection.execute("DROP SCHEMA IF EXISTS public, shop CASCADE; CREATE SCHEMA public")
    return logical


@pytest.fixture
def sql(url: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


EDGES = "CREATE TABLE edge (x bigint, y bigint, PRIMARY KEY (x, y))"


def paths(sql: Any) -> set[Any]:
    """What the derived table has; it has each row once."""
    if sql.execute("SELECT to_regclass('path')").fetchone() == (None,):
        return {None}
    rows = sql.execute("SELECT x, y FROM path").fetchall()
    assert len(rows) == len(set(rows))
    return set(rows)


def edges(sql: Any) -> set[Any]:
    return set(sql.execute("SELECT x, y FROM edge").fetchall())


# ── it follows ───────────────────────────────────────────────────────────────────────────────


def test_a_row_changes_and_the_derived_table_follows(url: str, sql: Any, via: str, tmp_path: Path) -> None:
    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2), (2, 3)")
    with following(tmp_path, "--from", url, "--to", url, "--live", "--via", via) as process:
        wait_until(lambda: paths(sql) == {(1, 2), (2, 3), (1, 3)}, process)
        for statement in (
            "INSERT INTO edge VALUES (3, 4)",
            "UPDATE edge SET y = 7 WHERE x = 2; INSERT INTO edge VALUES (7, 1); DELETE FROM edge WHERE x = 3",
            "UPDATE edge SET x = x + 100, y = y + 100",
            "TRUNCATE edge; INSERT INTO edge VALUES (5, 5)",
            "DELETE FROM edge",
        ):
            sql.execute(statement)
            wait_until(lambda: paths(sql) == closure(edges(sql)), process)
        process.terminate()
        assert process.wait(30) == 0
    left = {name for (name,) in sql.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    assert left == {"edge", "path", "everlog_positions"}, "what was temporary is gone"
    assert sql.execute("SELECT count(*) FROM pg_replication_slots").fetchone() == (0,)


def test_a_server_that_does_not_replicate_is_followed_by_triggers(plain: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(plain, autocommit=True) as sql:
        sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2)")
        with following(tmp_path, "--from", plain, "--to", plain, "--live") as process:
            wait_until(lambda: paths(sql) == {(1, 2)}, process)
            sql.execute("INSERT INTO edge VALUES (2, 3)")
            wait_until(lambda: paths(sql) == {(1, 2), (2, 3), (1, 3)}, process)
            process.terminate()
            assert process.wait(30) == 0
            assert process.stderr is not None
            told = process.stderr.read().decode()
        assert "using triggers, since the server's wal_level is replica, not logical" in told
        database = Database.from_text(PATHS)
        with pytest.raises(FactsError, match="wal_level is replica, not logical"):
            follow(database, [plain], [], via="replication")


@pytest.mark.parametrize(
    ("role", "why"), [("LOGIN", "may not replicate"), ("LOGIN REPLICATION", "may not publish")]
)
def test_a_user_who_may_not_replicate_is_followed_by_triggers(url: str, sql: Any, role: str, why: str) -> None:
    sql.execute(f"CREATE ROLE guest {role}; GRANT ALL ON SCHEMA public TO guest")
    try:
        sql.execute(f"{EDGES}; ALTER TABLE edge OWNER TO guest; INSERT INTO edge VALUES (1, 2)")
        database, told = Database.from_text(PATHS), list[str]()
        guest = url.replace("postgres@", "guest@")
        follow(database, [guest], [], tell=told.append)
        assert f"using triggers, since this user {why}" in told[0]
        assert database.view("edge") == [(1, 2)]
        with pytest.raises(FactsError, match=why):
            follow(database, [guest], [], via="replication")
    finally:
        sql.execute("DROP OWNED BY guest CASCADE; DROP ROLE guest")


def test_a_transaction_is_one_step(url: str, sql: Any, via: str, tmp_path: Path) -> None:
    """Concurrent transactions are one step each, in an order right for each row."""
    import psycopg

    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 1)")
    with following(tmp_path, "--from", url, "--to", "out.jsonl", "--live", "--via", via) as process:
        told = tmp_path / "out.jsonl"
        wait_until(lambda: told.exists() and '"END"' in told.read_text(), process)
        with psycopg.connect(url) as first, psycopg.connect(url) as second:
            second.execute("INSERT INTO edge VALUES (20, 20)")  # has the lower number, and commits later
            first.execute("UPDATE edge SET y = 2 WHERE x = 1")
            first.execute("INSERT INTO edge VALUES (10, 10)")
            first.commit()
            second.execute("UPDATE edge SET y = 3 WHERE x = 1")
            second.commit()
        wait_until(lambda: '"x": 20' in told.read_text() and told.read_text().endswith("}}\n"), process)
    steps: list[list[Any]] = []
    for line in map(json.loads, told.read_text().splitlines()):
        if line.get("status") == "BEGIN":
            steps.append([])
        elif "op" in line:
            steps[-1].append((line["op"], *(line["after"] or line["before"]).values()))
    assert steps == [
        [("r", 1, 1)],
        [("d", 1, 1), ("c", 1, 2), ("c", 10, 10)],
        [("d", 1, 2), ("c", 1, 3), ("c", 20, 20)],
    ]


def test_changes_between_the_slot_and_the_snapshot_come_once(url: str, sql: Any, via: str, tmp_path: Path) -> None:
    """Another client writes while following begins: results are always right."""
    import psycopg

    sql.execute(EDGES)
    stop = threading.Event()

    def write() -> None:
        random = Random(3)
        with psycopg.connect(url, autocommit=True) as other:
            while not stop.is_set():
                x, y = random.randrange(12), random.randrange(12)
                if random.random() < 0.5:
                    other.execute("INSERT INTO edge VALUES (%s, %s) ON CONFLICT DO NOTHING", [x, y])
                else:
                    other.execute("DELETE FROM edge WHERE x = %s", [x])
                time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4):
            database = Database.from_text(PATHS)
            follow(database, [url], [url], via=via)
            assert set(database.view("path")) == closure(database.view("edge")) == paths(sql)
    finally:
        stop.set()
        writer.join()
    database = Database.from_text(PATHS)
    follow(database, [url], [url], via=via)
    assert set(database.view("edge")) == edges(sql)
    assert paths(sql) == closure(edges(sql))


@pytest.mark.parametrize("runs", [2, pytest.param(40, marks=pytest.mark.deep)])
def test_kills_lose_nothing_and_repeat_nothing(url: str, sql: Any, via: str, tmp_path: Path, runs: int) -> None:
    """The process is killed while another client writes; each new one continues.

    The derived table has a key of its own, so that a repeated row would be refused, and a log of
    all writes to it.
    """
    random = Random(11)
    sql.execute(
        f"{EDGES}; CREATE TABLE path (x bigint, y bigint, PRIMARY KEY (x, y));"
        "CREATE TABLE history (n bigserial, op text, x bigint, y bigint);"
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF TG_OP = 'INSERT' THEN INSERT INTO history (op, x, y) VALUES ('+', NEW.x, NEW.y);"
        " ELSE INSERT INTO history (op, x, y) VALUES ('-', OLD.x, OLD.y); END IF; RETURN NULL; END $$;"
        "CREATE TRIGGER note AFTER INSERT OR DELETE ON path FOR EACH ROW EXECUTE FUNCTION note()"
    )
    for run in range(runs):
        with following(tmp_path, "--from", url, "--to", url, "--live", "--via", via) as process:
            mark = 1000 + run
            sql.execute("INSERT INTO edge VALUES (%s, 0)", [mark])
            wait_until(lambda: (mark, 0) in paths(sql), process)  # noqa: B023
            for _ in range(60):
                x, y = random.randrange(12), random.randrange(12)
                if random.random() < 0.6:
                    sql.execute("INSERT INTO edge VALUES (%s, %s) ON CONFLICT DO NOTHING", [x, y])
                else:
                    sql.execute("DELETE FROM edge WHERE x = %s", [x])
            time.sleep(random.uniform(0, 0.2))
            process.send_signal(signal.SIGKILL)
            process.wait()
    with following(tmp_path, "--from", url, "--to", url, "--via", via) as process:
        assert process.wait(60) == 0
    assert paths(sql) == closure(edges(sql))
    rows: set[Any] = set()
    for op, x, y in sql.execute("SELECT op, x, y FROM history ORDER BY n").fetchall():
        assert ((x, y) in rows) == (op == "-")
        rows ^= {(x, y)}
    assert rows == paths(sql)


def test_a_database_in_a_file_has_each_transaction_once_through_kills(
    url: str, sql: Any, via: str, tmp_path: Path
) -> None:
    """Its steps are a snapshot and then the server's transactions, each exactly once."""
    random, there, transactions = Random(5), set[Any](), list[dict[Any, int]]()
    sql.execute(EDGES)
    arguments = ("--from", url, "--to", url, "--db", "steps.db", "--via", via)
    for run in range(2):
        with following(tmp_path, *arguments, "--live") as process:
            if run == 0:
                wait_until(lambda: paths(sql) == set(), process)
            for number in range(40):
                toggled = (
                    {(1000 + run, 0)}
                    if number == 0
                    else {(random.randrange(20), random.randrange(20)) for _ in "ab"}
                )
                with sql.transaction():
                    for x, y in toggled:
                        gone = sql.execute("DELETE FROM edge WHERE (x, y) = (%s, %s)", [x, y]).rowcount
                        if not gone:
                            sql.execute("INSERT INTO edge VALUES (%s, %s)", [x, y])
                transactions.append({edge: -1 if edge in there else 1 for edge in toggled})
                there ^= toggled
                if number == 0:
                    wait_until(lambda: (1000 + run, 0) in paths(sql), process)  # noqa: B023
            time.sleep(random.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
            process.wait()
    with following(tmp_path, *arguments) as process:
        assert process.wait(60) == 0
    assert paths(sql) == closure(edges(sql))
    with Database.open(tmp_path / "steps.db", read_only=True) as database:
        assert [dict(past.changes["edge"]) for past in database.history("edge")] == transactions
        assert set(database.view("edge")) == edges(sql) == there


def test_other_sources_and_postgres_as_a_sink(url: str, sql: Any, tmp_path: Path) -> None:
    """Reading a file again does not replay the past of the derived table."""
    sql.execute("CREATE TABLE path (x bigint, y bigint, PRIMARY KEY (x, y))")
    source = tmp_path / "in.jsonl"
    lines = [event("c", None, (1, 2)), event("c", None, (2, 3)), event("d", (1, 2)), event("c", None, (3, 4))]
    writes = []
    for count in range(5):
        source.write_text("".join(lines[:count]))
        follow(Database.from_text(PATHS), [str(source)], [url])
        writes.append(sql.execute("SELECT x, y, xmin::text FROM path ORDER BY 1, 2").fetchall())
    assert paths(sql) == {(2, 3), (3, 4), (2, 4)}
    assert writes[2][2] == writes[3][0] == writes[4][0], "a row that stays is never written again"


# ── tables ───────────────────────────────────────────────────────────────────────────────────

PERSON = """
.decl person(id:number, name:symbol, weight:float, hits:unsigned)
.decl heavy(name:symbol, hits:unsigned)
.output heavy
heavy(n, h) :- person(_, n, w, h), w > 100.
"""


def test_values_of_all_kinds_and_columns_beyond_the_relation(url: str, sql: Any, via: str, tmp_path: Path) -> None:
    sql.execute(
        'CREATE SCHEMA shop; CREATE TABLE shop."People" (born date, weight real NOT NULL, name text NOT NULL,'
        " id smallint PRIMARY KEY, hits numeric(20) NOT NULL)"
    )
    arguments = ("--from", url, "--to", url, "--live", "--via", via)
    tables = ("--table", "person=shop.People", "--table", "heavy=shop.heavy")
    with following(tmp_path, *arguments, *tables, program=PERSON) as process:
        wait_until(lambda: sql.execute("SELECT to_regclass('shop.heavy')").fetchone() != (None,), process)
        sql.execute(
            """INSERT INTO shop."People" (id, name, weight, hits) VALUES (1, 'Ada "é"', 'Infinity', 18446744073709551615),
            (2, E'tab\\tline\\n', 100.5, 0), (3, 'light', -1e30, 7), (4, '', 'NaN', 1)"""
        )
        wanted = {('Ada "é"', 18446744073709551615), ("tab\tline\n", 0)}
        wait_until(lambda: set(sql.execute("SELECT name, hits FROM shop.heavy")) == wanted, process)
        sql.execute("""UPDATE shop."People" SET born = now()""")  # no column of ours
        sql.execute(
            """UPDATE shop."People" SET weight = 101 WHERE id = 3; DELETE FROM shop."People" WHERE id = 1"""
        )
        wanted = {("light", 7), ("tab\tline\n", 0)}
        wait_until(lambda: set(sql.execute("SELECT name, hits FROM shop.heavy")) == wanted, process)


def test_a_large_value_that_does_not_change_is_kept(url: str, sql: Any, via: str, tmp_path: Path) -> None:
    program = ".decl note(id:number, text:symbol, n:number)  .decl told(n:number, text:symbol)  .output told  told(n, t) :- note(_, t, n)."
    sql.execute(
        "CREATE TABLE note (id int PRIMARY KEY, text text NOT NULL, n int NOT NULL); ALTER TABLE note ALTER text SET STORAGE EXTERNAL"
    )
    with following(tmp_path, "--from", url, "--to", url, "--live", "--via", via, program=program) as process:
        sql.execute("INSERT INTO note VALUES (1, repeat('long ', 10000), 1)")
        told = lambda: sql.execute("SELECT n, length(text) FROM told").fetchall()  # noqa: E731
        wait_until(lambda: sql.execute("SELECT to_regclass('told')").fetchone() != (None,), process)
        wait_until(lambda: told() == [(1, 50000)], process)
        sql.execute("UPDATE note SET n = 2")
        wait_until(lambda: told() == [(2, 50000)], process)
        sql.execute("UPDATE note SET id = 5, n = 3")
        wait_until(lambda: told() == [(3, 50000)], process)


def test_a_table_of_partitions_is_one_table(url: str, sql: Any, via: str) -> None:
    sql.execute(
        "CREATE TABLE edge (x bigint, y bigint, PRIMARY KEY (x, y)) PARTITION BY RANGE (x);"
        "CREATE TABLE low PARTITION OF edge FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE high PARTITION OF edge FOR VALUES FROM (10) TO (100); INSERT INTO edge VALUES (1, 20)"
    )
    database = Database.from_text(PATHS)
    follow(database, [url], [], via=via, slot="parts")
    sql.execute("INSERT INTO edge VALUES (20, 2); DELETE FROM low")
    follow(database, [url], [], via=via, slot="parts")
    assert database.view("path") == [(20, 2)]


def test_a_slot_of_its_own_name_keeps_changes_between_runs(url: str, sql: Any, via: str) -> None:
    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2)")
    database, told = Database.from_text(PATHS), list[str]()
    options = {"via": via, "slot": "mine", "tell": told.append}
    assert follow(database, [url], [], **options) == 1
    for n in range(3):
        sql.execute("INSERT INTO edge VALUES (%s, %s)", [10 + n, 11 + n])
    assert follow(database, [url], [], **options) == 3, "each transaction is a step: there was no second snapshot"
    assert set(database.view("path")) == closure(edges(sql))
    assert follow(database, [url], [], **options) == 0
    assert not told
    if via == "replication":
        sql.execute("SELECT pg_drop_replication_slot('everlog_mine')")
    else:
        sql.execute("DROP TRIGGER everlog_mine_rows ON edge")
    sql.execute("DELETE FROM edge WHERE x = 10")
    assert follow(database, [url], [], **options) == 1
    assert "all tables are compared" in told[0]
    assert set(database.view("edge")) == edges(sql)


def test_an_old_position_is_noticed(url: str, sql: Any, via: str) -> None:
    """A database restored from a copy has missed changes, and notices it."""
    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2)")
    old, new = Database.from_text(PATHS), Database.from_text(PATHS)
    options = {"via": via, "slot": "mine"}
    follow(old, [url], [], **options)
    new.apply([("edge", row, 1) for row in old.view("edge")], positions=old.positions)
    sql.execute("INSERT INTO edge VALUES (2, 3)")
    follow(new, [url], [], **options)
    sql.execute("INSERT INTO edge VALUES (3, 4)")
    told: list[str] = []
    follow(old, [url], [], tell=told.append, **options)
    assert "all tables are compared" in told[0]
    assert set(old.view("edge")) == edges(sql)


@pytest.mark.parametrize("others", [False, True])
def test_a_table_that_was_made_anew_between_runs_is_compared(url: str, sql: Any, via: str, others: bool) -> None:
    """Also if others have followed the new one in the meantime, and so published it."""
    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2)")
    database, told = Database.from_text(PATHS), list[str]()
    options = {"via": via, "slot": "mine", "tell": told.append}
    follow(database, [url], [], **options)
    sql.execute(f"DROP TABLE edge; {EDGES}; INSERT INTO edge VALUES (5, 6)")
    if others:
        follow(Database.from_text(PATHS), [url], [], via=via, slot="other")
    follow(database, [url], [], **options)
    assert "all tables are compared" in told[0]
    assert database.view("edge") == [(5, 6)]
    sql.execute("INSERT INTO edge VALUES (7, 8)")
    follow(database, [url], [], **options)
    assert database.view("edge") == [(5, 6), (7, 8)]


@pytest.mark.parametrize("others", [False, True])
def test_a_table_that_is_made_anew_while_following_is_reported(
    url: str, sql: Any, tmp_path: Path, others: bool
) -> None:
    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2)")
    with following(tmp_path, "--from", url, "--to", "out.jsonl", "--live", "--via", "replication") as process:
        told = tmp_path / "out.jsonl"
        wait_until(lambda: told.exists() and '"x": 1' in told.read_text(), process)
        sql.execute(f"DROP TABLE edge; {EDGES}; INSERT INTO edge VALUES (5, 6)")
        if others:
            follow(Database.from_text(PATHS), [url], [], via="replication")
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert b"start anew" in process.stderr.read()


def test_forget_removes_what_is_left(url: str, sql: Any, tmp_path: Path) -> None:
    sql.execute(EDGES)
    for via in ("replication", "triggers"):
        follow(Database.from_text(PATHS), [url], [], via=via, slot="left")
    with following(tmp_path, "--from", url, "--slot", "left", "--forget") as process:
        assert process.wait(30) == 0
    assert sql.execute("SELECT slot_name FROM pg_replication_slots").fetchall() == []
    assert sql.execute("SELECT pubname FROM pg_publication").fetchall() == []
    assert sql.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall() == []
    assert sql.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [("edge",)]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("SELECT", "there is no table for any relation of edge; name them with --table"),
        ("CREATE VIEW edge AS SELECT 1 AS x, 2 AS y", "public.edge is not a table"),
        ("CREATE TABLE edge (x int, y text PRIMARY KEY)", "the type `text` of `y` is not a number"),
        (
            "CREATE TABLE edge (x int PRIMARY KEY, z int)",
            "table public.edge has the columns x, z, which do not fit",
        ),
        ("CREATE TABLE edge (x int NOT NULL, y int NOT NULL)", "table public.edge has no primary key"),
        (
            "CREATE TABLE edge (x int NOT NULL, y int NOT NULL, id serial PRIMARY KEY)",
            "relation edge lacks the column `id` of the key",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_reported(url: str, sql: Any, via: str, made: str, message: str) -> None:
    sql.execute(made)
    with pytest.raises(FactsError) as caught:
        follow(Database.from_text(PATHS), [url], [], via=via)
    assert message in str(caught.value)


def test_a_table_without_a_primary_key_needs_a_name_for_one(url: str, sql: Any) -> None:
    sql.execute("CREATE TABLE edge (x int NOT NULL, y int NOT NULL); INSERT INTO edge VALUES (1, 2)")
    keys = {"edge": ["x"]}
    with pytest.raises(FactsError, match="does not say which row was changed"):
        follow(Database.from_text(PATHS), [url], [], keys=keys)
    database = Database.from_text(PATHS)
    for via in ("triggers", "replication"):
        sql.execute("ALTER TABLE edge REPLICA IDENTITY FULL")
        follow(database, [url], [], keys=keys, slot=via, via=via)
        sql.execute("UPDATE edge SET y = y + 1")
        follow(database, [url], [], keys=keys, slot=via, via=via)
    assert database.view("edge") == [(1, 4)]


def test_a_row_that_is_no_fact_stops_or_is_rejected(url: str, sql: Any, via: str, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE edge (x int PRIMARY KEY, y int); INSERT INTO edge VALUES (1, 2)")
    database = Database.from_text(PATHS)
    options = {"via": via, "slot": "mine"}
    told = r"column `y` of table public.edge may be NULL; .*--null edge.y=VALUE, .*--rejects FILE; or ALTER TABLE"
    with pytest.raises(FactsError, match=told):  # before the first row
        follow(database, [url], [], **options)
    assert database.view("edge") == []
    sql.execute("ALTER TABLE edge ALTER y SET NOT NULL")
    follow(database, [url], [], **options)
    sql.execute("ALTER TABLE edge ALTER y DROP NOT NULL; INSERT INTO edge VALUES (2, NULL)")
    sql.execute("INSERT INTO edge VALUES (3, 4)")
    with pytest.raises(FactsError, match=told):
        follow(database, [url], [], **options)
    assert database.view("edge") == [(1, 2)]
    follow(database, [url], [], rejects=tmp_path / "bad.jsonl", **options)
    assert database.view("edge") == [(1, 2), (3, 4)]
    (bad,) = map(json.loads, (tmp_path / "bad.jsonl").read_text().splitlines())
    assert bad["values"] == {"x": "2", "y": None}
    sql.execute("UPDATE edge SET y = 9 WHERE x = 2; UPDATE edge SET y = NULL WHERE x = 3")
    follow(database, [url], [], rejects=tmp_path / "bad.jsonl", **options)
    assert database.view("edge") == [(1, 2), (2, 9)]


def test_a_null_becomes_what_is_said(url: str, sql: Any, via: str) -> None:
    sql.execute("CREATE TABLE edge (x int PRIMARY KEY, y int); INSERT INTO edge VALUES (1, 2), (2, NULL)")
    database = Database.from_text(PATHS)
    options: dict[str, Any] = {"via": via, "slot": "mine", "nulls": {"edge.y": "-1"}}
    follow(database, [url], [], **options)
    assert database.view("edge") == [(1, 2), (2, -1)]
    sql.execute("INSERT INTO edge VALUES (3, NULL), (4, NULL)")
    sql.execute(
        "UPDATE edge SET y = 5 WHERE x = 2; UPDATE edge SET y = NULL WHERE x = 1; DELETE FROM edge WHERE x = 4"
    )
    follow(database, [url], [], **options)
    assert database.view("edge") == [(1, -1), (2, 5), (3, -1)]
    sql.execute("ALTER TABLE edge REPLICA IDENTITY FULL; DELETE FROM edge WHERE y IS NULL")
    follow(database, [url], [], **options)
    assert database.view("edge") == [(2, 5)]


def test_a_float_is_the_same_in_the_snapshot_and_in_changes(url: str, sql: Any, via: str) -> None:
    sql.execute("CREATE TABLE w (id int PRIMARY KEY, a real NOT NULL, b double precision NOT NULL)")
    sql.execute("INSERT INTO w VALUES (1, 0.1, 1152921504606846976), (2, 'NaN', '-Infinity')")
    database = Database.from_text(".decl w(id:number, a:float, b:float)")
    follow(database, [url], [], via=via, slot="mine")
    sql.execute("INSERT INTO w SELECT id + 2, a, b FROM w")
    follow(database, [url], [], via=via, slot="mine")
    rows = database.view("w")
    assert [repr(row[1:]) for row in rows[:2]] == [repr(row[1:]) for row in rows[2:]]
    assert rows[0][2] == 2.0**60


def test_a_column_that_goes_while_following_is_reported(url: str, sql: Any) -> None:
    sql.execute("CREATE TABLE edge (x int PRIMARY KEY, y int NOT NULL)")
    database = Database.from_text(PATHS)
    follow(database, [url], [], slot="mine", via="replication")
    sql.execute("ALTER TABLE edge RENAME y TO z; INSERT INTO edge VALUES (1, 2)")
    with pytest.raises(FactsError, match=r"table public.edge has the columns x, z, which do not fit"):
        follow(database, [url], [], slot="mine", via="replication")
    sql.execute("ALTER TABLE edge ADD y int NOT NULL DEFAULT 5; INSERT INTO edge VALUES (2, 2)")
    with pytest.raises(FactsError, match=r"table public.edge no longer has the column `y`"):
        follow(database, [url], [], slot="mine", via="replication")


def test_a_table_that_gets_another_name_while_following_is_reported(url: str, sql: Any, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE edge (x int PRIMARY KEY, y int NOT NULL)")
    with following(tmp_path, "--from", url, "--to", "out.jsonl", "--live", "--via", "replication") as process:
        wait_until(lambda: (tmp_path / "out.jsonl").exists(), process)
        sql.execute("INSERT INTO edge VALUES (1, 2)")
        wait_until(lambda: '"x": 1' in (tmp_path / "out.jsonl").read_text(), process)
        sql.execute("ALTER TABLE edge RENAME TO edges; INSERT INTO edges VALUES (2, 3)")
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert b"a followed table was renamed to public.edges" in process.stderr.read()


# ── sinks ────────────────────────────────────────────────────────────────────────────────────


def test_a_sink_repairs_a_table_that_another_client_changed(url: str, sql: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(event("c", None, (1, 2)) + event("c", None, (2, 3)))
    follow(Database.from_text(PATHS), [str(source)], [url])
    sql.execute("DELETE FROM path WHERE x = 2; INSERT INTO path VALUES (7, 7), (1, 2)")
    follow(Database.from_text(PATHS), [str(source)], [url])
    assert paths(sql) == {(1, 2), (2, 3), (1, 3)}


def test_symbols_floats_and_the_empty_row_are_followed(url: str, sql: Any, tmp_path: Path) -> None:
    program = ".decl v(a:symbol, b:float, c:unsigned)  .decl w(a:symbol, b:float, c:unsigned)  .decl any()  .output w, any  w(a, b, c) :- v(a, b, c).  any() :- v(_, _, _)."
    rows = [["é\n", "NaN", "18446744073709551615"], ["", "-Infinity", 0], ["x" * 9000, 0.1, 1], ["y", -0.0, 2]]
    events = [
        json.dumps({"op": "c", "after": dict(zip("abc", row, strict=True)), "source": {"table": "v"}})
        for row in rows
    ]
    gone = [
        json.dumps({"op": "d", "before": dict(zip("abc", row, strict=True)), "source": {"table": "v"}})
        for row in rows
    ]
    source = tmp_path / "in.jsonl"
    for lines, count in ((events, 4), (events + gone[:3], 1), (events + gone, 0)):
        source.write_text("\n".join(lines) + "\n")
        follow(Database.from_text(program), [str(source)], [url])
        assert sql.execute("SELECT count(*) FROM w").fetchone() == (count,)
        assert sql.execute('SELECT count(*) FROM "any"').fetchone() == (int(count > 0),)
    source.write_text("\n".join(events + gone + events) + "\n")
    database = Database.from_text(program)
    follow(database, [str(source)], [url])
    assert {(a, b, int(c)) for a, b, c in sql.execute("SELECT a, b::text, c FROM w")} == {
        ("é\n", "NaN", 2**64 - 1),
        ("", "-Infinity", 0),
        ("x" * 9000, "0.1", 1),
        ("y", "0", 2),
    }


def test_many_rows_go_by_copy(url: str, sql: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    tx = [event("c", None, (n, -1), tx="1") for n in range(3000)]
    source.write_text("".join(tx) + event("c", None, (5, -2)))
    follow(Database.from_text(PATHS), [str(source)], [url])
    assert len(paths(sql)) == 3001
    source.write_text("".join(tx) + event("t"))
    follow(Database.from_text(PATHS), [str(source)], [url])
    assert paths(sql) == set()


def test_one_writer_at_a_time(url: str, sql: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlog.streams.postgres_tables._ATTEMPTS", 2)
    sql.execute(EDGES)
    with following(tmp_path, "--from", url, "--to", url, "--live", "--slot", "mine") as process:
        wait_until(lambda: paths(sql) == set(), process)
        with pytest.raises(FactsError, match="another everlog writes to the table path; end it first"):
            follow(Database.from_text(PATHS), [str(tmp_path / "none")], [url])
        with pytest.raises(
            FactsError, match="another everlog follows as `everlog_mine`; choose another name with --slot"
        ):
            follow(Database.from_text(PATHS), [url], [], slot="mine")


def test_a_relation_is_not_written_to_the_table_that_it_is_read_from(url: str, sql: Any) -> None:
    sql.execute(f"{EDGES}; INSERT INTO edge VALUES (1, 2)")
    with pytest.raises(FactsError, match="relation edge would be written to the table that it is read from"):
        follow(Database.from_text(PATHS), [url], [url], relations=["edge"])


def test_a_server_that_goes_away_is_reported(tmp_path: Path) -> None:
    with server("wal_level=logical") as target:
        url = url_of(target)
        import psycopg

        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute(EDGES)
        process_of = following(tmp_path, "--from", url, "--to", "out.jsonl", "--live")
        process = process_of.__enter__()
        wait_until(lambda: (tmp_path / "out.jsonl").exists(), process)
    try:
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert b"error: postgresql://postgres@/postgres" in process.stderr.read()
    finally:
        process_of.__exit__(None, None, None)


# ── parts ────────────────────────────────────────────────────────────────────────────────────


def test_snapshots_see_what_they_see() -> None:
    snapshot = Snapshot.read("100:110:100,105")
    assert [xid for xid in range(95, 115) if snapshot.sees(xid)] == [
        *range(95, 100),
        *range(101, 105),
        *range(106, 110),
    ]
    later = Snapshot.read("105:112:105,110")
    assert later.covers(snapshot)
    assert not snapshot.covers(later)
    wrapped = Snapshot.read(f"{2**32 + 5}:{2**32 + 9}:{2**32 + 5}")  # 32-bit numbers have wrapped
    assert wrapped.sees(2**32 - 1)
    assert wrapped.sees(6)
    assert not wrapped.sees(5)
    assert not wrapped.sees(9)


def test_a_message_that_is_not_known_is_refused() -> None:
    assert read_message(b"Y\0\0\0\x01a\0b\0") is None
    with pytest.raises(ValueError, match="unknown kind 'S'"):
        read_message(b"S\0\0\0\0")
    with pytest.raises(ValueError, match="unknown form 'b'"):
        read_message(b"I\0\0\0\x01N\0\x01b\0\0\0\0")

"""SQL at the prompt: the Datalog that is offered means the same."""

from __future__ import annotations

import sqlite3
from io import StringIO

import pytest

from everlog import Database
from everlog.repl.loop import run_script
from everlog.repl.session import Session
from everlog.repl.sql_habit import in_datalog, looks_like_sql

PROGRAM = """
.decl emp(name:symbol, dept:symbol, salary:number)
.decl boss(name:symbol, boss:symbol)
"""
EMP = [("ann", "x", 3), ("bob", "x", 4), ("cy", "y", 5), ("it's", "y", 4)]
BOSS = [("ann", "bob"), ("bob", "cy"), ("cy", "cy")]


@pytest.fixture(scope="module")
def db() -> Database:
    return Database.from_text(PROGRAM, facts={"emp": EMP, "boss": BOSS})


@pytest.fixture(scope="module")
def sqlite() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table emp (name text, dept text, salary integer)")
    connection.execute("create table boss (name text, boss text)")
    connection.executemany("insert into emp values (?, ?, ?)", EMP)
    connection.executemany("insert into boss values (?, ?)", BOSS)
    return connection


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select name from emp where salary = 4", ["name"]),
        ("SELECT * FROM emp;", ["name", "dept", "salary"]),
        ("select name from emp where name = 'it''s' and salary < 5", None),
        ("select e.name, b.boss from emp e join boss b on e.name = b.name where e.salary < 4", ["name", "boss"]),
        ("select a.name, b.name from emp a, emp b where a.dept = b.dept and a.name != b.name", ["name", "b_name"]),
        ("select emp.name from emp, boss where emp.name = boss.boss and boss.name = 'ann'", ["name"]),
        ("select dept, count(*) from emp group by dept", ["dept", "n"]),
        ("select dept, sum(salary) as total from emp where salary > 3 group by dept", ["dept", "total"]),
        ("select count(*) from emp", ["n"]),
        ("select max(salary) from emp where dept = 'x'", ["max_salary"]),
        ("select dept, min(salary) from emp group by dept order by dept limit 10", ["dept", "min_salary"]),
    ],
)
def test_the_datalog_for_a_query_has_the_same_answers(
    db: Database, sqlite: sqlite3.Connection, sql: str, columns: list[str] | None
) -> None:
    assert looks_like_sql(sql)
    told, query = in_datalog(sql, db.relations).split("\n  ")
    assert told == "this is SQL; in Datalog it is"
    found = db.query(query)
    if columns is None:
        assert bool(found) == bool(sqlite.execute(sql).fetchall())
    else:
        places = [found.columns.index(name) for name in columns]
        answers = {tuple(row[place] for place in places) for row in found}
        assert answers == set(sqlite.execute(sql).fetchall())


@pytest.mark.parametrize(
    ("sql", "datalog"),
    [
        ("insert into emp values ('d', 'x', 3), ('e', 'y', -4)", '+emp("d", "x", 3). +emp("e", "y", -4).'),
        ("delete from emp where name = 'bob'", '-emp("bob", _, _).'),
        ("create table t (a int primary key, b varchar(20))", ".decl t(a:number, b:symbol)"),
        ("drop table emp", ".drop emp"),
        ("show tables", ".tables"),
        ("describe emp;", ".schema emp"),
    ],
)
def test_statements_and_what_to_type_instead(db: Database, sql: str, datalog: str) -> None:
    assert in_datalog(sql, db.relations).endswith(f"\n  {datalog}")


@pytest.mark.parametrize(
    "sql", ["select name from emp where salary = 3 or dept = 'x'", "select x from nope", "select"]
)
def test_what_is_not_translated_gets_a_hint(db: Database, sql: str) -> None:
    assert in_datalog(sql, db.relations).startswith("this is SQL; a query is the body of a rule here")


def test_the_prompt_answers_sql_and_keeps_its_own_words() -> None:
    out = StringIO()
    run_script(
        Session(out=out),
        [".decl e(x:number, y:number)", "select x from e where y = 3", "insert e(1, 3);", "select x", "e(x, 3)?"],
        "script",
    )
    told = out.getvalue()
    assert "script:2: error: this is SQL; in Datalog it is\n  ?- e(x, 3).\n" in told
    assert "+e(1, 3)." in told
    assert told.endswith("x\n-\n1\n(1 row)\n")

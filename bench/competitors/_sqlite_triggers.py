"""Triggers for SQLite that maintain a table, as a programmer would write them.

A query is a list of statements: tables for the answers, filled from the base tables, then triggers.
Further triggers write the changes of an answer to `told`; the caller reads and clears it at the end
of a step.  Recursive queries through several rules are left out: they are too complex to write by
hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from everlog.bench.competitors._sql import ANSWERS, CTES


def recording(table: str, number: int, columns: int, updates: bool = False) -> list[str]:
    """Triggers that record the inserted and deleted rows of an answer."""

    def told(of: str, sign: int) -> str:
        values = ", ".join(f"{of}.c{n}" for n in range(columns))
        names = ", ".join(f"c{n}" for n in range(columns))
        return f"INSERT INTO told (relation, {names}, sign) VALUES ({number}, {values}, {sign});"

    out = [
        f"CREATE TRIGGER {table}_comes AFTER INSERT ON {table} BEGIN {told('NEW', 1)} END",
        f"CREATE TRIGGER {table}_goes AFTER DELETE ON {table} BEGIN {told('OLD', -1)} END",
    ]
    if updates:
        body = f"{told('OLD', -1)} {told('NEW', 1)}"
        out.append(f"CREATE TRIGGER {table}_is_other AFTER UPDATE ON {table} BEGIN {body} END")
    return out


def keyed(table: str, columns: int, query: str, key: Sequence[int] | None = None) -> list[str]:
    """A table with a primary key, filled by a query."""
    names = ", ".join(f"c{n} INTEGER" for n in range(columns))
    keys = ", ".join(f"c{n}" for n in (range(columns) if key is None else key))
    return [
        f"CREATE TABLE {table} ({names}, PRIMARY KEY ({keys})) WITHOUT ROWID",
        f"INSERT INTO {table} {query}",
    ]


def _query_of(statement: str) -> str:
    """The query of `CREATE TABLE … AS query`."""
    return statement.split(" AS ", 1)[1]


# ── full joins: an answer is one combination of rows ─────────────────────────────────────────


def full_join(answer: str, head: str, atoms: Sequence[tuple[str, str]], query: str, where: str = "") -> list[str]:
    """Variables are single letters: head "abc", atoms ("r", "ab") and so on."""
    out = keyed(answer, len(head), query)
    for first, second in sorted({(head.index(v[0]), head.index(v[1])) for _, v in atoms}):
        out.append(f"CREATE INDEX {answer}_{first}{second} ON {answer} (c{first}, c{second})")
    for relation in dict.fromkeys(name for name, _ in atoms):
        comes, goes = "", ""
        for place, (name, variables) in enumerate(atoms):
            if name == relation:
                comes += _with_row(answer, head, atoms, place, where)
                on = " AND ".join(f"c{head.index(v)} = OLD.c{n}" for n, v in enumerate(variables))
                goes += f"DELETE FROM {answer} WHERE {on}; "
        out.append(f"CREATE TRIGGER {relation}_row_comes AFTER INSERT ON {relation} BEGIN {comes}END")
        out.append(f"CREATE TRIGGER {relation}_row_goes AFTER DELETE ON {relation} BEGIN {goes}END")
    return out + recording(answer, 0, len(head))


def _with_row(answer: str, head: str, atoms: Sequence[tuple[str, str]], place: int, where: str) -> str:
    """The answers that have the new row at one place of the join."""
    value = {v: f"NEW.c{n}" for n, v in enumerate(atoms[place][1])}
    tables: list[str] = []
    conditions = [] if not where else [where]
    rest = [n for n in range(len(atoms)) if n != place]
    while rest:  # next to what is bound
        at = next(n for n in rest if any(v in value for v in atoms[n][1]))
        rest.remove(at)
        name, variables = atoms[at]
        tables.append(f"{name} t{at}")
        for n, v in enumerate(variables):
            if v in value:
                conditions.append(f"t{at}.c{n} = {value[v]}")
            else:
                value[v] = f"t{at}.c{n}"
    condition = " AND ".join(conditions)
    for v, text in value.items():
        condition = condition.replace(f"<{v}>", text)
    columns = ", ".join(value[v] for v in head)
    return f"INSERT OR IGNORE INTO {answer} SELECT {columns} FROM {', '.join(tables)} WHERE {condition}; "


# ── the queries ──────────────────────────────────────────────────────────────────────────────

CLOSURE = [
    *keyed("path", 2, _query_of(CTES["closure"][0])),
    "CREATE INDEX path_back ON path (c1, c0)",
    "CREATE TABLE suspect (c0 INTEGER, c1 INTEGER, PRIMARY KEY (c0, c1)) WITHOUT ROWID",
    "CREATE TABLE saved (c0 INTEGER, c1 INTEGER, PRIMARY KEY (c0, c1)) WITHOUT ROWID",
    """CREATE TRIGGER edge_comes AFTER INSERT ON edge BEGIN
         INSERT OR IGNORE INTO path SELECT a.x, d.y FROM
           (SELECT NEW.c0 AS x UNION SELECT c0 FROM path WHERE c1 = NEW.c0) a,
           (SELECT NEW.c1 AS y UNION SELECT c1 FROM path WHERE c0 = NEW.c1) d;
       END""",
    # pairs that may have used the edge are suspects; a suspect is saved if an edge and a path that
    # is not suspect, or saved, derive it
    """CREATE TRIGGER edge_goes AFTER DELETE ON edge BEGIN
         INSERT INTO suspect SELECT p.c0, p.c1 FROM
           (SELECT OLD.c0 AS x UNION SELECT c0 FROM path WHERE c1 = OLD.c0) a
           JOIN path p ON p.c0 = a.x
           JOIN (SELECT OLD.c1 AS y UNION SELECT c1 FROM path WHERE c0 = OLD.c1) d ON d.y = p.c1;
         INSERT INTO saved SELECT s, t FROM (
           WITH RECURSIVE found(s, t) AS (
             SELECT u.c0, u.c1 FROM suspect u WHERE EXISTS (
               SELECT 1 FROM edge e WHERE e.c0 = u.c0 AND (e.c1 = u.c1 OR EXISTS (
                 SELECT 1 FROM path p WHERE p.c0 = e.c1 AND p.c1 = u.c1
                   AND NOT EXISTS (SELECT 1 FROM suspect w WHERE w.c0 = p.c0 AND w.c1 = p.c1))))
             UNION
             SELECT u.c0, u.c1 FROM found JOIN edge e ON e.c1 = found.s
               JOIN suspect u ON u.c0 = e.c0 AND u.c1 = found.t
           ) SELECT s, t FROM found);
         DELETE FROM path WHERE (c0, c1) IN (SELECT c0, c1 FROM suspect EXCEPT SELECT c0, c1 FROM saved);
         DELETE FROM suspect;
         DELETE FROM saved;
       END""",
    *recording("path", 0, 2),
]

COMPONENTS = [
    *keyed("component", 2, _query_of(CTES["components"][0]), key=[0]),
    "CREATE INDEX component_least ON component (c1, c0)",
    "CREATE TABLE part (side INTEGER, n INTEGER, PRIMARY KEY (side, n)) WITHOUT ROWID",
    """CREATE TRIGGER edge_comes AFTER INSERT ON edge BEGIN
         INSERT OR IGNORE INTO component VALUES (NEW.c0, NEW.c0), (NEW.c1, NEW.c1);
         UPDATE component SET c1 = (SELECT min(c1) FROM component WHERE c0 IN (NEW.c0, NEW.c1))
           WHERE c1 = (SELECT max(c1) FROM component WHERE c0 IN (NEW.c0, NEW.c1))
           AND c1 <> (SELECT min(c1) FROM component WHERE c0 IN (NEW.c0, NEW.c1));
       END""",
    """CREATE TRIGGER edge_goes AFTER DELETE ON edge BEGIN
         INSERT INTO part SELECT 0, n FROM (WITH RECURSIVE found(n) AS (
           SELECT OLD.c0 UNION SELECT e.c1 FROM found JOIN edge e ON e.c0 = found.n
           UNION SELECT e.c0 FROM found JOIN edge e ON e.c1 = found.n) SELECT n FROM found);
         INSERT INTO part SELECT 1, n FROM (WITH RECURSIVE found(n) AS (
           SELECT OLD.c1 UNION SELECT e.c1 FROM found JOIN edge e ON e.c0 = found.n
           UNION SELECT e.c0 FROM found JOIN edge e ON e.c1 = found.n) SELECT n FROM found);
         UPDATE component SET c1 = (SELECT min(n) FROM part WHERE side = 0)
           WHERE c0 IN (SELECT n FROM part WHERE side = 0) AND c1 <> (SELECT min(n) FROM part WHERE side = 0);
         UPDATE component SET c1 = (SELECT min(n) FROM part WHERE side = 1)
           WHERE c0 IN (SELECT n FROM part WHERE side = 1) AND c1 <> (SELECT min(n) FROM part WHERE side = 1);
         DELETE FROM component WHERE c0 IN (OLD.c0, OLD.c1) AND NOT EXISTS
           (SELECT 1 FROM edge WHERE edge.c0 = component.c0 OR edge.c1 = component.c0);
         DELETE FROM part;
       END""",
    *recording("component", 0, 2, updates=True),
]

JOIN_COUNT = [
    "CREATE TABLE q (c0 INTEGER, c1 INTEGER, k INTEGER, PRIMARY KEY (c0, c1)) WITHOUT ROWID",
    "INSERT INTO q SELECT r.c0, s.c1, count(*) FROM r JOIN s ON s.c0 = r.c1 GROUP BY r.c0, s.c1",
    "CREATE TABLE n (c0 INTEGER PRIMARY KEY, c1 INTEGER)",
    "INSERT INTO n SELECT c0, count(*) FROM q GROUP BY c0",
    """CREATE TRIGGER r_comes AFTER INSERT ON r BEGIN
         INSERT INTO q SELECT NEW.c0, s.c1, 1 FROM s WHERE s.c0 = NEW.c1
           ON CONFLICT (c0, c1) DO UPDATE SET k = k + 1;
       END""",
    """CREATE TRIGGER r_goes AFTER DELETE ON r BEGIN
         UPDATE q SET k = k - 1 WHERE c0 = OLD.c0 AND c1 IN (SELECT c1 FROM s WHERE c0 = OLD.c1);
         DELETE FROM q WHERE c0 = OLD.c0 AND c1 IN (SELECT c1 FROM s WHERE c0 = OLD.c1) AND k = 0;
       END""",
    """CREATE TRIGGER s_comes AFTER INSERT ON s BEGIN
         INSERT INTO q SELECT r.c0, NEW.c1, 1 FROM r WHERE r.c1 = NEW.c0
           ON CONFLICT (c0, c1) DO UPDATE SET k = k + 1;
       END""",
    """CREATE TRIGGER s_goes AFTER DELETE ON s BEGIN
         UPDATE q SET k = k - 1 WHERE c1 = OLD.c1 AND c0 IN (SELECT c0 FROM r WHERE c1 = OLD.c0);
         DELETE FROM q WHERE c1 = OLD.c1 AND c0 IN (SELECT c0 FROM r WHERE c1 = OLD.c0) AND k = 0;
       END""",
    """CREATE TRIGGER q_counts AFTER INSERT ON q BEGIN
         INSERT INTO n VALUES (NEW.c0, 1) ON CONFLICT (c0) DO UPDATE SET c1 = c1 + 1;
       END""",
    """CREATE TRIGGER q_counts_less AFTER DELETE ON q BEGIN
         UPDATE n SET c1 = c1 - 1 WHERE c0 = OLD.c0;
         DELETE FROM n WHERE c0 = OLD.c0 AND c1 = 0;
       END""",
    *recording("q", 0, 2),
    *recording("n", 1, 2, updates=True),
]

AGGREGATES = [
    *keyed("total", 5, _query_of(ANSWERS["aggregates"][0]), key=[0]),
    "CREATE INDEX sale_shop ON sale (c1, c2)",
    """CREATE TRIGGER sale_comes AFTER INSERT ON sale BEGIN
         INSERT INTO total VALUES (NEW.c1, 1, NEW.c2, NEW.c2, NEW.c2) ON CONFLICT (c0) DO UPDATE SET
           c1 = c1 + 1, c2 = c2 + NEW.c2, c3 = min(c3, NEW.c2), c4 = max(c4, NEW.c2);
       END""",
    """CREATE TRIGGER sale_goes AFTER DELETE ON sale BEGIN
         DELETE FROM total WHERE c0 = OLD.c1 AND c1 = 1;
         UPDATE total SET c1 = c1 - 1, c2 = c2 - OLD.c2,
           c3 = CASE WHEN c3 < OLD.c2 THEN c3 ELSE (SELECT min(c2) FROM sale WHERE c1 = OLD.c1) END,
           c4 = CASE WHEN c4 > OLD.c2 THEN c4 ELSE (SELECT max(c2) FROM sale WHERE c1 = OLD.c1) END
           WHERE c0 = OLD.c1;
       END""",
    *recording("total", 0, 5, updates=True),
]

TRIGGERS: dict[str, list[str]] = {
    "closure": CLOSURE,
    "components": COMPONENTS,
    "join_count": JOIN_COUNT,
    "aggregates": AGGREGATES,
    "triangles": full_join(
        "triangle", "abc", [("edge", "ab"), ("edge", "bc"), ("edge", "ac")], _query_of(ANSWERS["triangles"][0])
    ),
    "three_triangles": full_join(
        "q", "abc", [("r", "ab"), ("s", "bc"), ("t", "ac")], _query_of(ANSWERS["three_triangles"][0])
    ),
    "three_path": full_join(
        "q", "abcd", [("r", "ab"), ("s", "bc"), ("t", "cd")], _query_of(ANSWERS["three_path"][0])
    ),
    "four_cycles": full_join(
        "cycle",
        "abcd",
        [("edge", "ab"), ("edge", "bc"), ("edge", "cd"), ("edge", "da")],
        _query_of(ANSWERS["four_cycles"][0]),
        "<a> < <b> AND <a> < <c> AND <a> < <d>",
    ),
}

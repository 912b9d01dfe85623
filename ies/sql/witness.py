"""Transitive closure in SQL with one witness for each pair, written by hand.

`path_tree` gives for each pair (x, y) of `path` the node before y on a path: path(x, parent) and
edge(parent, y), or parent = x and the edge alone.  For each x these are the branches of a tree with
its root in x.

- Insert (u, v): every node that reaches u now reaches every node that v reaches, by the branches of
  v's own tree: one statement, no recursion. If u reached v already, nothing is new.
- Delete (u, v): the nodes below this edge in any tree are suspects.  A suspect with an edge from a
  trusted node is saved, and may save others; the rest is deleted.  A recursive query produces a row
  only after the row that it was made from, and the first row of a pair becomes its witness, so that
  no witness rests on itself.

SQLite has WITH RECURSIVE in subqueries of a trigger; PostgreSQL runs the same in a loop of plpgsql,
and each round saves the suspects that the previous round made safe.

The same system in Python is ies.practical.tc_witness.
"""

from __future__ import annotations

from everlog.ies.nrc.types import Base, Product
from everlog.ies.sql import postgres, sqlite
from everlog.ies.sql.dialects import Dialect
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.script import Script, create, indented
from everlog.ies.sql.symbolic_values import Table

NAME = "tc_witness"
TITLE = "tc_witness: Transitive closure of arbitrary graphs, one witness for each pair"

_PAIR = Product((Base("node"), Base("node")))
EDGE = Table("edge", ("x", "y"), _PAIR)
PATH = Table("path", ("x", "y"), _PAIR)
SUSPECT = Table("path_suspect", ("x", "y"), _PAIR)

# ── what both say ────────────────────────────────────────────────────────────────────────────────

# path(x, y) :- (path(x, u) or x = u), !path(x, v), (path(v, y) or y = v), !path(u, y), !path(x, y).
_NEW_PAIRS = """\
FROM (
    SELECT w.x FROM path_tree AS w
    WHERE w.y = NEW.x AND w.x <> NEW.x
      AND NOT EXISTS (SELECT 1 FROM path_tree AS o WHERE o.x = w.x AND o.y = NEW.y)
    UNION ALL SELECT NEW.x
  ) AS a CROSS JOIN (
    SELECT w.y, w.parent FROM path_tree AS w
    WHERE w.x = NEW.y AND w.y <> NEW.y
      AND NOT EXISTS (SELECT 1 FROM path_tree AS o WHERE o.x = NEW.x AND o.y = w.y)
    UNION ALL SELECT NEW.y, NEW.x
  ) AS d
WHERE NOT EXISTS (SELECT 1 FROM path_tree AS o WHERE o.x = a.x AND o.y = d.y)"""

_FIRST_SUSPECTS = "SELECT w.x, w.y FROM path_tree AS w WHERE w.y = OLD.y AND w.parent = OLD.x"

_NOT_THIS = "NOT (e.x = OLD.x AND e.y = OLD.y)"


def write(dialect: Dialect) -> Script:
    match dialect.name:
        case "sqlite":
            return Script("sqlite", TITLE, tuple(_sqlite(dialect)))
        case "postgres":
            return Script("postgres", TITLE, tuple(_postgres(dialect)))
        case other:
            raise SqlError(
                f"{NAME} needs triggers with recursion, so it is written for sqlite and postgres, not for {other}"
                "; `tc_algebra` keeps the same closure there"
            )


def _tables(dialect: Dialect) -> list[str]:
    node = dialect.column_type(Base("node"))
    return [
        create(dialect, EDGE),
        create(dialect, PATH),
        f"CREATE TABLE path_tree (\n  x {node} NOT NULL,\n  y {node} NOT NULL,\n  parent {node} NOT NULL,\n"
        f"  PRIMARY KEY (x, y)\n)" + " WITHOUT ROWID" * (dialect.name == "sqlite"),
        "CREATE INDEX edge_by_y ON edge (y, x)",
        "CREATE INDEX path_tree_by_y ON path_tree (y, parent, x)",
    ]


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────

# path_suspect(x, y) :- path_suspect(x, p), edge(p, y), path_tree(x, y, p), p != x.
_SQLITE_SUSPECTS = f"""\
INSERT INTO path_suspect
SELECT x, y FROM (
  WITH RECURSIVE suspect(x, y) AS (
    {_FIRST_SUSPECTS}
    UNION ALL
    SELECT s.x, w.y FROM suspect AS s CROSS JOIN edge AS e CROSS JOIN path_tree AS w
    WHERE e.x = s.y AND w.x = s.x AND w.y = e.y AND w.parent = s.y AND s.y <> s.x
  )
  SELECT x, y FROM suspect
)"""

_TRUSTED = "(e.x = s.x OR EXISTS (SELECT 1 FROM path_tree AS w WHERE w.x = s.x AND w.y = e.x))"

# Suspects with an edge from a trusted node.
_SQLITE_ROUND = [
    f"""\
INSERT INTO path_tree
SELECT s.x, s.y, min(e.x) FROM path_suspect AS s CROSS JOIN edge AS e
WHERE e.y = s.y AND {_NOT_THIS}
  AND {_TRUSTED}
GROUP BY s.x, s.y""",
    """\
DELETE FROM path_suspect
WHERE EXISTS (SELECT 1 FROM path_tree AS w WHERE w.x = path_suspect.x AND w.y = path_suspect.y)""",
]
# A round makes one row per pair, and shallow trees; the recursion makes a row for every path.  Most
# suspects are saved early.
_ROUNDS = 4

_SQLITE_REST = f"""\
INSERT INTO path_tree
SELECT x, y, parent FROM (
  WITH RECURSIVE saved(x, y, parent) AS (
    SELECT s.x, s.y, e.x FROM path_suspect AS s CROSS JOIN edge AS e
    WHERE e.y = s.y AND {_NOT_THIS}
      AND {_TRUSTED}
    UNION
    SELECT s.x, s.y, e.x FROM saved AS q CROSS JOIN edge AS e CROSS JOIN path_suspect AS s
    WHERE e.x = q.y AND {_NOT_THIS} AND s.x = q.x AND s.y = e.y
  )
  SELECT x, y, parent FROM saved
) WHERE TRUE
ON CONFLICT DO NOTHING"""


def _sqlite(dialect: Dialect) -> list[str]:
    new = sqlite.cells(dialect, EDGE, "NEW")
    pair = "SELECT 1 FROM path WHERE x = NEW.x AND y = NEW.y"
    insert = [
        sqlite.types_hold(dialect, EDGE, new),
        f"INSERT INTO path\nSELECT a.x, d.y\n{_NEW_PAIRS}",
        f"INSERT INTO path_tree\nSELECT a.x, d.y, d.parent\n{_NEW_PAIRS}",
    ]
    delete = [
        _SQLITE_SUSPECTS,
        "DELETE FROM path_tree WHERE (x, y) IN (SELECT x, y FROM path_suspect)",
        *(_SQLITE_ROUND * _ROUNDS),
        _SQLITE_REST,
        "DELETE FROM path WHERE (x, y) IN (\n  SELECT s.x, s.y FROM path_suspect AS s\n"
        "  WHERE NOT EXISTS (SELECT 1 FROM path_tree AS w WHERE w.x = s.x AND w.y = s.y)\n)",
        "DELETE FROM path_suspect",
    ]
    return [
        *_tables(dialect),
        sqlite.scratch(dialect, SUSPECT),
        *sqlite.replacement(dialect, EDGE),
        sqlite.trigger(dialect, "insert", EDGE, insert, f"NOT EXISTS ({pair})"),
        sqlite.trigger(dialect, "delete", EDGE, delete),
        *sqlite.around(dialect, EDGE),
    ]


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────

_POSTGRES_DELETE = [
    f"""\
WITH RECURSIVE suspect(x, y) AS (
  {_FIRST_SUSPECTS}
  UNION ALL
  SELECT s.x, w.y FROM suspect AS s JOIN edge AS e ON e.x = s.y
  JOIN path_tree AS w ON w.x = s.x AND w.y = e.y AND w.parent = s.y WHERE s.y <> s.x
)
SELECT array_agg(x), array_agg(y) INTO xs, ys FROM suspect""",
    "IF xs IS NULL THEN RETURN OLD; END IF",
    "DELETE FROM path_tree AS w USING unnest(xs, ys) AS s(x, y) WHERE w.x = s.x AND w.y = s.y",
    f"""\
LOOP
  INSERT INTO path_tree
  SELECT s.x, s.y, min(e.x) FROM unnest(xs, ys) AS s(x, y) JOIN edge AS e ON e.y = s.y
  LEFT JOIN path_tree AS w ON w.x = s.x AND w.y = e.x
  WHERE {_NOT_THIS} AND (e.x = s.x OR w.x IS NOT NULL)
  GROUP BY s.x, s.y;
  EXIT WHEN NOT FOUND;
  SELECT array_agg(s.x), array_agg(s.y) INTO xs, ys FROM unnest(xs, ys) AS s(x, y)
  LEFT JOIN path_tree AS w ON w.x = s.x AND w.y = s.y WHERE w.x IS NULL;
  EXIT WHEN xs IS NULL;
END LOOP""",
    "DELETE FROM path AS p USING unnest(xs, ys) AS s(x, y) WHERE p.x = s.x AND p.y = s.y",
    "RETURN OLD",
]


def _postgres(dialect: Dialect) -> list[str]:
    insert = [
        "IF EXISTS (SELECT 1 FROM path WHERE x = NEW.x AND y = NEW.y) THEN RETURN NEW; END IF",
        # both parts see the old state
        f"WITH new_pairs AS (\n  INSERT INTO path_tree\n  SELECT a.x, d.y, d.parent\n{indented(_NEW_PAIRS)}\n"
        "  RETURNING x, y\n)\nINSERT INTO path SELECT x, y FROM new_pairs",
        "RETURN NEW",
    ]
    node = dialect.column_type(Base("node"))
    return [
        *_tables(dialect),
        *postgres.function(dialect, "insert", EDGE, insert),
        *postgres.function(
            dialect, "delete", EDGE, _POSTGRES_DELETE, f"DECLARE\n  xs {node}[];\n  ys {node}[];\n"
        ),
        *postgres.around(dialect, NAME, EDGE),
    ]

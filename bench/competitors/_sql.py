"""The queries in SQL, for DuckDB and SQLite.

Columns are c0, c1, …; an answer is a table with its relation's name.  `ANSWERS` are queries without
recursion, `CTES` those that one recursive common table expression can express (linear, and one
relation).  For the others `rounds` does semi-naive evaluation by hand: rounds over tables for the
known rows, the rows of the last round, and the rows of this one.  Its SELECTs are made from the
checked rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Run = Callable[[str], Any]

ANSWERS: dict[str, tuple[str, ...]] = {
    "triangles": (
        """CREATE TABLE triangle AS SELECT x.c0, x.c1, y.c1 AS c2 FROM edge x
           JOIN edge y ON y.c0 = x.c1 JOIN edge z ON z.c0 = x.c0 AND z.c1 = y.c1""",
    ),
    "three_triangles": (
        """CREATE TABLE q AS SELECT r.c0, r.c1, s.c1 AS c2 FROM r
           JOIN s ON s.c0 = r.c1 JOIN t ON t.c0 = r.c0 AND t.c1 = s.c1""",
    ),
    "four_cycles": (
        """CREATE TABLE cycle AS SELECT w.c0, w.c1, x.c1 AS c2, y.c1 AS c3 FROM edge w
           JOIN edge x ON x.c0 = w.c1 JOIN edge y ON y.c0 = x.c1 JOIN edge z ON z.c0 = y.c1 AND z.c1 = w.c0
           WHERE w.c0 < w.c1 AND w.c0 < x.c1 AND w.c0 < y.c1""",
    ),
    "three_path": (
        """CREATE TABLE q AS SELECT r.c0, r.c1, s.c1 AS c2, t.c1 AS c3 FROM r
           JOIN s ON s.c0 = r.c1 JOIN t ON t.c0 = s.c1""",
    ),
    "join_count": (
        "CREATE TABLE q AS SELECT DISTINCT r.c0, s.c1 FROM r JOIN s ON s.c0 = r.c1",
        "CREATE TABLE n AS SELECT c0, count(*) AS c1 FROM q GROUP BY c0",
    ),
    "aggregates": (
        """CREATE TABLE total AS SELECT c1 AS c0, count(*) AS c1, CAST(sum(c2) AS BIGINT) AS c2, min(c2) AS c3,
           max(c2) AS c4 FROM sale GROUP BY sale.c1""",
    ),
}

CTES: dict[str, tuple[str, ...]] = {
    "closure": (
        """CREATE TABLE path AS WITH RECURSIVE found(c0, c1) AS (
             SELECT c0, c1 FROM edge
             UNION SELECT found.c0, edge.c1 FROM found JOIN edge ON edge.c0 = found.c1
           ) SELECT c0, c1 FROM found""",
    ),
    "same_generation": (
        """CREATE TABLE same_generation AS WITH RECURSIVE found(c0, c1) AS (
             SELECT x.c0, y.c0 FROM parent x JOIN parent y ON y.c1 = x.c1 WHERE x.c0 <> y.c0
             UNION SELECT x.c0, y.c0 FROM found JOIN parent x ON x.c1 = found.c0 JOIN parent y ON y.c1 = found.c1
               WHERE x.c0 <> y.c0
           ) SELECT c0, c1 FROM found""",
    ),
    "components": (
        """CREATE TABLE component AS WITH RECURSIVE
             sides(c0, c1) AS (SELECT c0, c1 FROM edge UNION SELECT c1, c0 FROM edge),
             found(c0, c1) AS (
               SELECT c0, c1 FROM sides
               UNION SELECT found.c0, sides.c1 FROM found JOIN sides ON sides.c0 = found.c1
             ) SELECT c0, min(c1) AS c1 FROM found GROUP BY c0""",
    ),
    "negation": (
        """CREATE TABLE dead AS WITH RECURSIVE reached(c0) AS (
             SELECT c0 FROM root WHERE c0 NOT IN (SELECT c0 FROM off)
             UNION SELECT call.c1 FROM reached JOIN call ON call.c0 = reached.c0
               WHERE call.c1 NOT IN (SELECT c0 FROM off)
           ) SELECT c0 FROM function WHERE c0 NOT IN (SELECT c0 FROM reached)""",
    ),
}


# ── rounds ───────────────────────────────────────────────────────────────────────────────────


def checked(program: str) -> Any:
    """The checked rules, before the clock starts."""
    from everlog import compile_text

    return compile_text(program)


def rounds(program: Any, base: Mapping[str, int], run: Run, keyed: bool) -> None:
    """Compute every relation of a program.

    `keyed` makes primary keys, for a database without hash joins.
    """
    from everlog.core.program.dependencies import units

    for unit in units(program):
        names = [name for name in unit.relations if name not in base]
        if not names:
            continue
        for name in names:
            for table in (name, f"{name}_now", f"{name}_new"):
                run(_create(table, program.relations[name].arity, keyed))
        first = [rule for rule in unit.rules if not unit.recursive or not _own(rule, names)]
        for rule in first:
            run(_insert(rule, {}, keyed))
        known = _settle(names, run, program.relations)
        while known and unit.recursive:
            for rule in unit.rules:
                for place in _own(rule, names):
                    run(_insert(rule, {place: "_now"}, keyed))
            known = _settle(names, run, program.relations)


def _create(table: str, arity: int, keyed: bool) -> str:
    columns = [f"c{n} BIGINT" for n in range(arity)]
    if not keyed:
        return f"CREATE TABLE {table} ({', '.join(columns)})"
    key = ", ".join(f"c{n}" for n in range(arity))
    return f"CREATE TABLE {table} ({', '.join(columns)}, PRIMARY KEY ({key})) WITHOUT ROWID"


def _insert(rule: Any, suffix: Mapping[int, str], keyed: bool) -> str:
    ignoring = " OR IGNORE" if keyed else ""
    return f"INSERT{ignoring} INTO {rule.head.relation}_new {select(rule, suffix)}"


def _settle(names: list[str], run: Run, relations: Mapping[str, Any]) -> bool:
    """The new rows that were not known, for the next round."""
    found = False
    for name in names:
        columns = [f"c{n}" for n in range(relations[name].arity)]
        same = " AND ".join(f"k.{c} = f.{c}" for c in columns)
        run(f"DELETE FROM {name}_now")
        run(
            f"INSERT INTO {name}_now SELECT DISTINCT * FROM {name}_new f"
            f" WHERE NOT EXISTS (SELECT 1 FROM {name} k WHERE {same})"
        )
        run(f"INSERT INTO {name} SELECT * FROM {name}_now")
        run(f"DELETE FROM {name}_new")
        found |= bool(run(f"SELECT count(*) FROM {name}_now").fetchone()[0])
    return found


def _own(rule: Any, names: list[str]) -> list[int]:
    """The places in a body of the relations that are being computed."""
    from everlog.core.program import Atom

    return [n for n, part in enumerate(rule.body) if isinstance(part, Atom) and part.relation in names]


def select(rule: Any, suffix: Mapping[int, str]) -> str:
    """A rule as a query; `suffix` names other tables for some places of the body."""
    from everlog.core.program import Atom, Comparison, Constant, Negation, Variable

    value: dict[str, str] = {}
    tables: list[str] = []
    where: list[str] = []

    def text(term: Any) -> str:
        return value[term.name] if isinstance(term, Variable) else str(term.value)

    for place, part in enumerate(rule.body):
        if isinstance(part, Atom):
            alias = f"t{place}"
            tables.append(f"{part.relation}{suffix.get(place, '')} {alias}")
            for column, term in enumerate(part.args):
                if isinstance(term, Constant) or (isinstance(term, Variable) and term.name in value):
                    where.append(f"{alias}.c{column} = {text(term)}")
                elif isinstance(term, Variable):
                    value[term.name] = f"{alias}.c{column}"
    for part in rule.body:
        match part:
            case Comparison(op=op, left=left, right=right):
                where.append(f"{text(left)} {'<>' if op == '!=' else op} {text(right)}")
            case Negation(atom):
                where.append(
                    f"NOT EXISTS (SELECT 1 FROM {atom.relation} n WHERE {' AND '.join(_same(atom, text))})"
                )
            case Atom():
                pass
            case _:
                raise NotImplementedError(f"in SQL: {part}")
    columns = ", ".join(f"{text(term)} AS c{n}" for n, term in enumerate(rule.head.args))
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT DISTINCT {columns} FROM {', '.join(tables)}{condition}"


def _same(atom: Any, text: Callable[[Any], str]) -> Iterator[str]:
    from everlog.core.program import Wildcard

    yield from (f"n.c{n} = {text(term)}" for n, term in enumerate(atom.args) if not isinstance(term, Wildcard))

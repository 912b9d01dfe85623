"""SQL typed by habit: recognized, and answered with the Datalog for it.

The prompt runs no SQL.  Who types `select name from emp where salary = 3` gets `?- emp(name, 3).`
to type instead.  Statements beyond the usual forms get a general hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from attrs import define, field, frozen

from everlog.core.program import Relation
from everlog.dsl.keywords import KEYWORDS

_SQL = re.compile(
    r"\s*(?:select\s+[\w*(\"']|insert\s+into\s|delete\s+from\s|update\s+\w+\s+set\s|create\s+(?:table|view)\s"
    r"|drop\s+table\s|with\s+(?:recursive\s+)?\w+\s|show\s+tables\b|desc(?:ribe)?\s+\w+\s*;?\s*$)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\s*('(?:[^']|'')*'|\"[^\"]*\"|<>|!=|<=|>=|\d+\.\d+|\w+|\S)")
_GENERAL = "this is SQL; a query is the body of a rule here, such as `?- emp(name, salary), salary > 3.`"
_AGGREGATES = {"count": "count", "sum": "sum", "min": "min", "max": "max", "avg": "mean"}
_KINDS = {"int": "number", "integer": "number", "bigint": "number", "smallint": "number", "boolean": "number"}
_KINDS |= {"real": "float", "float": "float", "double": "float", "numeric": "float", "decimal": "float"}
_CLAUSES = {"where", "group", "order", "limit", "join", "inner", "on", "having", "and", "union", "left", "as"}


class NotTranslated(Exception):
    """A statement is beyond the forms that are known here."""


def looks_like_sql(text: str) -> bool:
    """Whether a text is an SQL statement.

    >>> looks_like_sql("SELECT x FROM e"), looks_like_sql("select(x) :- e(x).")
    (True, False)
    """
    return _SQL.match(text) is not None


def in_datalog(text: str, relations: Mapping[str, Relation]) -> str:
    """The message for an SQL statement: what to type instead.

    >>> from everlog.core.program import Column, Kind
    >>> emp = Relation("emp", (Column("name", Kind.SYMBOL), Column("salary", Kind.NUMBER)))
    >>> print(in_datalog("select name from emp where salary = 3", {"emp": emp}))
    this is SQL; in Datalog it is
      ?- emp(name, 3).
    """
    with suppress(NotTranslated):
        lines = _Reader(_WORD.findall(text.strip().rstrip(";")), relations).statement()
        return "\n  ".join(["this is SQL; in Datalog it is", *lines])
    return _GENERAL


def _renamed(literal: str, names: set[str]) -> str:
    """A literal with `_name` for each of these variables, which a query does not show."""
    words = re.split(r'("(?:\\.|[^"\\])*"|\w+)', literal)
    return "".join(
        f"_{word}" if word in names and not after.startswith("(") else word
        for word, after in zip(words, [*words[1:], ""], strict=True)
    )


@frozen
class _Table:
    """A table in a FROM clause, and the terms of its columns."""

    name: str
    alias: str
    columns: tuple[str, ...]
    terms: dict[str, str] = field(factory=dict)

    def atom(self, used: Callable[[str], bool]) -> str:
        terms = (self.terms[column] for column in self.columns)
        return (
            f"{self.name}({', '.join(term if not term.isidentifier() or used(term) else '_' for term in terms)})"
        )


@define
class _Reader:
    """A reader of the words of one statement."""

    words: list[str]
    relations: Mapping[str, Relation]
    at: int = 0
    tables: list[_Table] = field(factory=list)
    tests: list[str] = field(factory=list)

    # ── words ────────────────────────────────────────────────────────────────────────────────

    def peek(self) -> str:
        return self.words[self.at].lower() if self.at < len(self.words) else ""

    def next(self) -> str:
        if self.at >= len(self.words):
            raise NotTranslated
        self.at += 1
        return self.words[self.at - 1]

    def take(self, *wanted: str) -> bool:
        if [word.lower() for word in self.words[self.at : self.at + len(wanted)]] != list(wanted):
            return False
        self.at += len(wanted)
        return True

    def need(self, *wanted: str) -> None:
        if not self.take(*wanted):
            raise NotTranslated

    def listed(self, read: Callable[[], str]) -> list[str]:
        found = [read()]
        while self.take(","):
            found.append(read())
        return found

    def ended(self) -> None:
        if self.at < len(self.words):
            raise NotTranslated

    # ── statements ───────────────────────────────────────────────────────────────────────────

    def statement(self) -> list[str]:
        match self.next().lower():
            case "select":
                lines = self.select()
            case "insert":
                lines = self.insert()
            case "delete":
                self.need("from")
                self.table()
                self.where()
                lines = [f"-{self.tables[0].atom(lambda term: False)}."]
                if self.tests:
                    raise NotTranslated
            case "create":
                lines = self.create()
            case "drop":
                self.need("table")
                lines = [f".drop {self.next()}"]
            case "show":
                self.need("tables")
                lines = [".tables"]
            case "desc" | "describe":
                lines = [f".schema {self.next()}"]
            case _:
                raise NotTranslated
        self.ended()
        return lines

    def select(self) -> list[str]:
        self.take("distinct")
        start = self.at
        while self.peek() != "from":  # columns make sense once the tables are known
            self.next()
        self.need("from")
        self.table()
        while self.take(",") or self.take("join") or self.take("inner", "join"):
            self.table()
            if self.take("on"):
                self.conditions()
        self.where()
        groups = self.listed(self.column) if self.take("group", "by") else []
        ordered = self.take("order", "by")
        while ordered and self.peek() not in ("", "limit"):
            self.next()
        if self.take("limit"):
            self.next()
        end, self.at = self.at, start
        terms, aggregates = self.targets(groups)
        self.need("from")
        self.at = end
        return [f"?- {self.body(terms, aggregates, groups)}."]

    def body(self, terms: list[str], aggregates: list[tuple[str, str, str]], groups: list[str]) -> str:
        shown = {term for term in terms if term.isidentifier()}
        if aggregates:
            shown |= set(groups)
        tested = " ".join(self.tests)

        def count(term: str) -> int:
            return sum(term == other for table in self.tables for other in table.terms.values())

        def used(term: str) -> bool:
            return term in shown or count(term) > 1 or re.search(rf"\b{term}\b", tested) is not None

        literals = [*(table.atom(used) for table in self.tables), *self.tests]
        if not aggregates:
            return ", ".join(literals)
        hidden = {term for table in self.tables for term in table.terms.values() if term.isidentifier()} - set(
            groups
        )
        literals = [_renamed(literal, hidden) for literal in literals]  # else they would be groups, too
        inner = {target for _, target, _ in aggregates if target}
        inside = [*(table.atom(lambda t: used(t) or t in inner) for table in self.tables), *self.tests]
        found = [
            f"{name} = {op}{f' {target}' if target else ''} : {{ {', '.join(inside)} }}"
            for op, target, name in aggregates
        ]
        return ", ".join([*(literals if groups else []), *found])

    def targets(self, groups: list[str]) -> tuple[list[str], list[tuple[str, str, str]]]:
        """The selected columns, and the aggregates with their targets and names."""
        terms: list[str] = []
        aggregates: list[tuple[str, str, str]] = []
        while True:
            if self.take("*"):
                terms += [table.terms[column] for table in self.tables for column in table.columns]
            elif self.peek() in _AGGREGATES and self.words[self.at + 1 : self.at + 2] == ["("]:
                op = _AGGREGATES[self.next().lower()]
                self.need("(")
                target = "" if self.take("*") else self.column()
                self.need(")")
                name = self.next() if self.take("as") else "n" if op == "count" else f"{op}_{target}"
                aggregates.append((op, "" if op == "count" else target, name))
            else:
                terms.append(self.column())
                if self.take("as"):
                    self.next()
            if not self.take(","):
                return terms, aggregates

    def insert(self) -> list[str]:
        self.need("into")
        name = self.next()
        self.need("values")
        lines = []
        while True:
            self.need("(")
            lines.append(f"+{name}({', '.join(self.listed(self.literal))}).")
            self.need(")")
            if not self.take(","):
                return [" ".join(lines)]

    def create(self) -> list[str]:
        self.need("table")
        name = self.next()
        self.need("(")

        def column() -> str:
            column, kind = self.next(), self.next().lower()
            depth = 0
            while depth or self.peek() not in (",", ")", ""):
                depth += {"(": 1, ")": -1}.get(self.next(), 0)
            return f"{column}:{_KINDS.get(kind, 'symbol')}"

        columns = self.listed(column)
        self.need(")")
        return [f".decl {name}({', '.join(columns)})"]

    # ── parts ────────────────────────────────────────────────────────────────────────────────

    def table(self) -> None:
        name = self.next()
        relation = self.relations.get(name)
        if relation is None:
            raise NotTranslated
        self.take("as")
        alias = self.next() if self.peek().isidentifier() and self.peek() not in _CLAUSES else name
        columns = tuple(column.name for column in relation.columns)
        taken = {term for other in self.tables for term in other.terms.values()}
        terms = {column: f"{alias}_{column}" if column in taken else column for column in columns}
        terms = {column: f"{term}_" if term in KEYWORDS else term for column, term in terms.items()}
        self.tables.append(_Table(name, alias, columns, terms))

    def where(self) -> None:
        if self.take("where"):
            self.conditions()

    def conditions(self) -> None:
        while True:
            self.condition()
            if not self.take("and"):
                return

    def condition(self) -> None:
        left = self.place()
        op = self.next()
        if self.peek().isidentifier():
            table, column = self.place()
            term = table.terms[column]
        else:
            term = self.literal()
        table, column = left
        mine = table.terms[column]
        if op == "=" and term.isidentifier():
            self.rename(term, mine)
        elif op == "=" and mine.isidentifier():
            self.rename(mine, term)
        elif op in ("<", ">", "<=", ">=", "!=", "<>", "="):
            self.tests.append(f"{mine} {'!=' if op == '<>' else op} {term}")
        else:
            raise NotTranslated

    def rename(self, before: str, after: str) -> None:
        for table in self.tables:
            table.terms.update({column: after for column, term in table.terms.items() if term == before})
        self.tests = [re.sub(rf"\b{before}\b", lambda _: after, test) for test in self.tests]

    def column(self) -> str:
        table, column = self.place()
        return table.terms[column]

    def place(self) -> tuple[_Table, str]:
        """A column, with or without its table."""
        first = self.next()
        if self.take("."):
            column = self.next()
            tables = [table for table in self.tables if table.alias == first and column in table.columns]
        else:
            column = first
            tables = [table for table in self.tables if column in table.columns]
        if len(tables) != 1:
            raise NotTranslated
        return tables[0], column

    def literal(self) -> str:
        sign = "-" if self.take("-") else ""
        word = self.next()
        if word.startswith("'"):
            text = word[1:-1].replace("''", "'").replace("\\", "\\\\").replace('"', '\\"')
            return f'"{text}"'
        if not word[0].isdigit():
            raise NotTranslated
        return sign + word

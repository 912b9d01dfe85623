"""DDlog's command language, so that old scripts run.

For example `start; insert E(1, 2), delete E(3, 4); commit dump_changes; dump P;`.  Statements end
with `;`, which is optional after `begin`, `start`, `commit`, `rollback` and `exit` on a line of
their own.  A fact is written `R(1, 2)`, `R{1, 2}` or `R{.to = 2, .from = 1}`; it is translated to
Datalog and checked like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from everlog.repl.table import CommandError

_ALONE = {"begin", "start", "commit", "rollback", "exit", "timestamp", "commit dump_changes", "profile"}
_UPDATES = {"insert": "+", "insert_or_update": "+", "delete": "-"}
_OTHERS = {"dump", "clear", "echo", "sleep", "log_level"}
_FIRST = re.compile(r"([a-z_]+)\b(?!\s*(?:\(|:-|\.\s*\w))")
_FACT = re.compile(r"\s*([?A-Za-z_][?\w.]*)\s*([({])")
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[({})\],[]|[^"({})\],[]+', re.DOTALL)
_FIELD = re.compile(r"\s*\.?\s*([?A-Za-z_][?\w]*)\s*=\s*(.*)", re.DOTALL)


@frozen
class Statement:
    """One statement: its word, and its arguments."""

    word: str
    rest: str


def is_statement(text: str) -> bool:
    """Whether a text begins with a word of DDlog; `delete(1).` is a Datalog fact.

    >>> is_statement("start;"), is_statement("insert Edge(1, 2);"), is_statement("delete(1, 2).")
    (True, True, False)
    """
    found = _FIRST.match(text)
    return found is not None and (found[1] in _OTHERS or found[1] in _UPDATES or found[1] in _ALONE)


def is_complete(text: str) -> bool:
    """Whether the last statement has its `;`, or needs none.

    >>> is_complete("start; insert Edge(1, 2),"), is_complete("commit")
    (False, True)
    """
    parts = _parts(text)
    return _is_alone(parts[-1]) or not parts[-1].strip()


def statements(text: str) -> Iterator[Statement]:
    """The statements of a text.

    >>> [(s.word, s.rest) for s in statements("start; insert Edge(1, 2); commit dump_changes;")]
    [('start', ''), ('insert', 'Edge(1, 2)'), ('commit', 'dump_changes')]
    """
    for part in _parts(text):
        if part.strip():
            word, _, rest = part.strip().rstrip(".").partition(" ")
            yield Statement(word, rest.strip())


def updates(statement: Statement, columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The lines `+fact.` and `-fact.` of `insert A(1), delete B(2)`.

    >>> statement = Statement("insert", "E{.to = 2, .from = 1}, delete F(3)")
    >>> list(updates(statement, {"E": ["from", "to"]}))
    ['+E(1, 2).', '-F(3).']
    """
    word, rest = statement.word, statement.rest
    while True:
        if word not in _UPDATES:
            raise CommandError(f"expected insert or delete, found `{word}`")
        name, fields, rest = _fact(rest)
        yield f"{_UPDATES[word]}{name}({', '.join(_by_position(name, fields, columns))})."
        rest = rest.strip()
        if not rest:
            return
        if not rest.startswith(","):
            raise CommandError(f"expected `,` or `;` before `{rest[:40]}`")
        word, _, rest = rest[1:].strip().partition(" ")


def _fact(text: str) -> tuple[str, list[str], str]:
    """The relation of a fact, its fields, and the rest of the text."""
    found = _FACT.match(text)
    if found is None:
        raise CommandError(f"expected a fact such as `Edge(1, 2)`, found `{text.strip()[:40]}`")
    fields, depth = [""], 0
    for token in _TOKEN.finditer(text, found.start(2)):
        mark = token[0]
        if mark in ("(", "{", "["):
            depth += 1
            if depth == 1:
                continue
        elif mark in (")", "}", "]"):
            depth -= 1
            if depth == 0:
                kept = [field.strip() for field in fields]
                return found[1], [] if kept == [""] else kept, text[token.end() :]
        elif mark == "," and depth == 1:
            fields.append("")
            continue
        fields[-1] += mark
    raise CommandError(f"a parenthesis is still open in `{text.strip()[:40]}`")


def _by_position(name: str, fields: list[str], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Named fields, in the order of the columns."""
    named = [_FIELD.fullmatch(field) if field.startswith(".") else None for field in fields]
    if not any(named) or name not in columns:
        return fields
    given = {found[1]: found[2].strip() for found in named if found is not None}
    if set(given) != set(columns[name]) or len(given) != len(fields):
        wanted = ", ".join(f".{column}" for column in columns[name])
        raise CommandError(f"`{name}` has the fields {wanted}")
    return [given[column] for column in columns[name]]


def _parts(text: str) -> list[str]:
    """Split a text at semicolons outside of symbols; comments begin with `#`."""
    parts = [""]
    for line in re.split(r"(?<=\n)", text):
        if line.lstrip().startswith("#"):
            continue
        for found in re.finditer(r'"(?:\\.|[^"\\])*"|;|[^";]+|"', line):
            if found[0] == ";":
                parts.append("")
            else:
                parts[-1] += found[0]
    return parts


def _is_alone(part: str) -> bool:
    return " ".join(part.rstrip(" .\n").split()) in _ALONE

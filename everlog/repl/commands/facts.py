"""Commands for facts in files: `.import`, `.export`."""

from __future__ import annotations

from io import StringIO
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Facts in files"


@command(
    ".import",
    "FILE REL [KEY=VALUE …]",
    "insert the facts of a file",
    THEME,
    words=(2, 20),
    completes=("file", "relation"),
)
def import_facts(session: Session, words: Words) -> None:
    """
    The name of the file determines the format: .csv, .tsv, .facts, .txt, .json, .jsonl, .parquet,
    .arrow, .sqlite, .duckdb, texts also with .gz or .zst; postgresql://host/database is a database.
    KEY=VALUE sets a parameter of `.input`: delimiter=; headers=true columns=2:0 IO=sqlite dbtable=t
    rejects=bad.jsonl.  Either all facts are inserted, as one step, or none.  `.import REL FILE`
    means the same.
    """
    from everlog.core.program.fact_rows import declared
    from everlog.files import read_facts
    from everlog.files.connect import to_read
    from everlog.repl.transactions import import_rows

    name, file = _in_order(session, words[1], words[0])
    relation = declared(session.db.relations, name)
    params = to_read(relation, expanduser(file), _parameters(words[2:]))
    import_rows(session, {relation.name: read_facts(relation, params, Path(), tell=session.screen.note)})


@command(
    ".export",
    "REL FILE [KEY=VALUE …]",
    "write the facts of a relation to a file",
    THEME,
    words=(2, 20),
    completes=("relation", "file"),
)
def export_facts(session: Session, words: Words) -> None:
    """
    The reverse of `.import`.  A .csv begins with the names of its columns, unless headers=false.
    The file is written completely, or stays as it was.
    """
    from everlog.core.program.fact_rows import declared
    from everlog.files import write_facts
    from everlog.files.connect import to_write
    from everlog.repl.modes import number_of

    name, file = _in_order(session, words[0], words[1])
    relation = declared(session.db.relations, name)
    params = to_write(relation, expanduser(file), _parameters(words[2:]))
    screen = StringIO()
    write_facts(relation, session.db.rows(relation.name), params, Path(), screen)
    session.screen.lines(screen.getvalue().splitlines())
    session.screen.line(f"{file}: {number_of(session.db.size(relation.name), 'fact')}")


def _in_order(session: Session, name: str, file: str) -> tuple[str, str]:
    """The relation and the file, which may come in either order."""
    relations = session.db.relations
    return (file, name) if name not in relations and file in relations else (name, file)


def _parameters(words: Words) -> dict[str, str]:
    from everlog.files import KNOWN_PARAMETERS

    out = {}
    for word in words:
        key, found, value = word.partition("=")
        if not found or key not in KNOWN_PARAMETERS:
            raise CommandError(f"unknown parameter `{word}`; use {', '.join(sorted(KNOWN_PARAMETERS))}")
        out[key] = value
    return out

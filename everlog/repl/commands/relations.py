"""Commands for relations: `.tables`, `.schema`, `.count`, `.dump`."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from everlog.repl.table import Words, command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlog.repl.session import Session

THEME = "Relations"


@command(".tables", "[PATTERN]", "the relations, their columns and sizes", THEME, completes=("relation",))
def tables(session: Session, words: Words) -> None:
    """
    PATTERN may contain `*` and `?`.  The last column is the strategy: `given` means base facts
    only.
    """
    from everlog.repl.modes import table_lines

    rows = []
    for name, relation in session.db.relations.items():
        if not words or fnmatchcase(name, words[0]):
            columns = str(relation)[len(name) + 1 : -1]
            rows.append([name, columns, str(session.db.kept(name)), session.db.strategy_of(name)])
    names = ["relation", "columns", "facts", "kept by"]
    lines = table_lines(session.screen, names, rows, [False, False, True, False])
    session.screen.lines(lines, paged=True, ready=session.screen.seen)


@command(".schema", "[REL]", "the declarations", THEME, completes=("relation",))
def schema(session: Session, words: Words) -> None:
    """
    Declarations and directives as statements of the language; with REL, those that name it.
    """
    declarations = [text for text in session.db.statements() if text.startswith(".")]
    if words:
        from everlog.core.program.fact_rows import declared

        name = re.compile(rf"(?<![\w?.]){re.escape(declared(session.db.relations, words[0]).name)}(?![\w?])")
        declarations = [text for text in declarations if name.search(text)]
    session.screen.lines(declarations, paged=True)


@command(".count", "[REL …]", "the number of facts in relations", THEME, words=(0, 1000), completes=("relation",))
def count(session: Session, words: Words) -> None:
    """
    Without REL, for all relations.
    """
    from everlog.core.program.fact_rows import declared

    for name in words:
        declared(session.db.relations, name)
    session.screen.lines(f"{name}: {session.db.size(name)}" for name in words or session.db.relations)


@command(
    ".dump",
    "[REL …]",
    "facts of relations, or everything as a program",
    THEME,
    words=(0, 1000),
    completes=("relation",),
)
def dump(session: Session, words: Words) -> None:
    """
    With REL, all of its facts, in the current mode.  Without, a program that recreates this
    database: declarations, rules and base facts.
    """
    from everlog.core.program.fact_rows import declared
    from everlog.repl.modes import show_rows

    relations = [declared(session.db.relations, name) for name in words]
    for relation in relations:
        show_rows(session.screen, relation, session.db.rows(relation.name), ordered=True)
    if not words:
        session.screen.lines(_program(session), paged=True)


def _program(session: Session) -> Iterator[str]:
    from everlog.dsl.fact_text import fact_text

    yield from session.db.statements()
    for name, relation in session.db.relations.items():
        for row in session.db.given(name):
            yield f"{fact_text(relation, row)}."

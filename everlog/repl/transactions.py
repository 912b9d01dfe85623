"""Steps at the prompt: applied at once, or at the `commit` of a transaction.

The session keeps the updates of an open transaction, which are checked as they are typed.  `commit`
applies them as one step.  If that fails or is cancelled in time, they are still there: the user can
correct and commit them, or roll back.  Queries see the state before the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import sleep, time
from typing import TYPE_CHECKING

from everlog.api.facts.rows import line_update
from everlog.api.matching import stays
from everlog.core.program.executor import InsertOnly, Update
from everlog.core.program.fact_rows import declared
from everlog.repl import ddlog
from everlog.repl.modes import number_of, show_rows
from everlog.repl.reports import NONE, print_changes, size_of
from everlog.repl.table import CommandError, find_command

if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.core.program import Row
    from everlog.repl.session import Session


def apply(session: Session, updates: Sequence[Update]) -> None:
    """Apply updates as one step and print its changes; in a transaction, collect them."""
    if session.pending is None:
        changes = session.db.apply(updates)
        if not changes and (note := _derived(session, updates)):
            session.screen.line(f"{NONE}: {note}")
        else:
            report_step(session, changes)
        return
    for update in updates:
        if not update.insert and session.db.relations[update.relation].insert_only:
            raise InsertOnly(update.relation)
    session.pending += updates


def _derived(session: Session, updates: Sequence[Update]) -> str:
    """The note about deleted facts that rules derive, so that they are still there."""
    deleted = [update for update in updates if not update.insert]
    if not deleted or not session.settings.changes:
        return ""
    relation = session.db.relations[deleted[0].relation]
    rows = [update.row for update in deleted if update.relation == relation.name]
    note = stays(session.db._engine, relation, rows)
    return f"{note}; `.why` proves it, `.how` finds what to delete instead" if note else ""


def report_step(session: Session, changes: Changes) -> None:
    if session.settings.changes:
        print_changes(session.screen, changes, session.watched)


def import_rows(session: Session, rows: Mapping[str, Iterable[Row]]) -> None:
    """Insert many rows; print how many were new and how many facts changed."""
    if session.pending is not None:
        session.pending += [Update(name, row) for name, found in rows.items() for row in found]
        return
    changes = session.db.insert_all(rows)
    for name, found in rows.items():
        session.screen.line(f"{name}: {number_of(len(list(found)), 'fact')} read, {len(changes[name])} new")
    others = size_of(changes) - sum(len(changes[name]) for name in rows)
    if others:
        session.screen.line(f"{others} changed in other relations")


# ── transactions ─────────────────────────────────────────────────────────────────────────────


def refuse_in_transaction(session: Session, what: str) -> None:
    if session.pending is not None:
        raise CommandError(f"a transaction is open: {what} after `commit` or `rollback`")


def begin(session: Session, quiet_commit: bool = False) -> None:
    if session.pending is not None:
        raise CommandError("a transaction is already open: end it with `commit` or `rollback`")
    session.pending, session.quiet_commit = [], quiet_commit


def commit(session: Session, dump_changes: bool = False) -> None:
    """Apply the open transaction as one step."""
    updates, before = _open(session), session.step
    try:
        changes = session.db.apply(updates)
    except KeyboardInterrupt:
        if session.step != before:  # Ctrl-C came too late: the step is complete
            session.pending = None
        raise
    quiet = session.quiet_commit and not dump_changes
    session.pending = None
    if quiet:
        session.screen.line(f"{size_of(changes)} changed" if changes else NONE)
    else:
        report_step(session, changes)


def rollback(session: Session) -> None:
    dropped = len(_open(session))
    session.pending = None
    session.screen.line(f"{number_of(dropped, 'update')} dropped")


def _open(session: Session) -> list[Update]:
    if session.pending is None:
        raise CommandError("no transaction is open: open one with `begin`")
    return session.pending


# ── DDlog's words ────────────────────────────────────────────────────────────────────────────


def run_ddlog(session: Session, text: str) -> None:
    """Run the statements of a text one after the other."""
    for statement in ddlog.statements(text):
        match statement.word, statement.rest:
            case "begin", "":
                begin(session)
            case "start", "":
                begin(session, quiet_commit=True)
            case "commit", "" | "dump_changes" as how:
                commit(session, dump_changes=bool(how))
            case "rollback", "":
                rollback(session)
            case (("insert" | "insert_or_update" | "delete"), _):
                apply(session, _updates(session, statement))
            case "dump", rest:
                dump(session, rest)
            case "clear", name:
                clear(session, name)
            case "echo", rest:
                session.screen.line(rest)
            case "sleep", milliseconds if milliseconds.isdecimal() and len(milliseconds) < 10:
                sleep(int(milliseconds) / 1000)
            case "timestamp", "":
                session.screen.line(f"Timestamp: {time():.9f}")
            case "profile", _:
                find_command(".prof").run(session, "")
            case "log_level", _:
                pass  # there is no log to configure
            case "exit", "":
                session.leave()
            case _:
                raise CommandError(f"`{statement.word} {statement.rest}`;  `.help ddlog` lists the statements")


def _updates(session: Session, statement: ddlog.Statement) -> list[Update]:
    relations = session.db.relations
    columns = {name: [column.name for column in relation.columns] for name, relation in relations.items()}
    return [line_update(relations, line) for line in ddlog.updates(statement, columns)]


def dump(session: Session, names: str) -> None:
    """Print the facts of one relation, or of all, as statements of the language."""
    relations = session.db.relations
    for name in names.replace(",", " ").split() or list(relations):
        show_rows(session.screen, declared(relations, name), session.db.rows(name), ordered=True, mode="dl")


def clear(session: Session, name: str) -> None:
    """Delete the base facts of a relation, including pending ones."""
    relation = declared(session.db.relations, name)
    given = dict.fromkeys(session.db.given(relation.name))
    for update in session.pending or ():
        if update.relation == relation.name:
            if update.insert:
                given[update.row] = None
            else:
                given.pop(update.row, None)
    apply(session, [Update(relation.name, row, insert=False) for row in given])

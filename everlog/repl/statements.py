"""Statements of the language at the prompt: rules, declarations, facts, queries.

Within one input, declarations and rules come first, checked together; then facts and queries, in
order.  Consecutive facts are one step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING

from everlog.api.database import Database
from everlog.api.facts.rows import line_update
from everlog.api.matching import is_pattern, matching, nothing_matches, pattern_in_text
from everlog.api.parameters import Given
from everlog.api.results import OrderedResult
from everlog.core.program import Column, Kind, Relation
from everlog.core.program.executor import Update
from everlog.dsl import ast
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.fact_text import cut, is_fact
from everlog.dsl.prompt_input import Reading, Typed
from everlog.repl import continuation
from everlog.repl.commands.parameters import parameters_for
from everlog.repl.modes import show_rows
from everlog.repl.open_database import functions_for, read_inputs, tell_missing
from everlog.repl.reports import cost_lines, note_state, print_changes, shown_rule
from everlog.repl.table import CommandError
from everlog.repl.transactions import apply, import_rows, refuse_in_transaction

if TYPE_CHECKING:
    from everlog.api.facts.rows import Pattern
    from everlog.core.program import Directive
    from everlog.dsl.query_text import ParsedQuery
    from everlog.repl.session import Session

ANSWER = "answer"  # the relation name for rows of a query, where one is needed
_KINDS = {ast.Number: "number", ast.Unsigned: "unsigned", ast.Float: "float", ast.String: "symbol"}
_VISIBLE = re.compile(r"[^\n]")


def run_statements(session: Session, text: str) -> None:
    """Run the statements of an input."""
    if continuation.has_macros(text):
        add(session, text)
        return
    reading = continuation.reading(text)
    if reading.report.errors:
        raise DatalogError(reading.report)
    if any(_what(typed) == "rule" for typed in reading.statements):
        add(session, _rules_of(text, reading.statements))
    for what, group in groupby(reading.statements, _what):
        match what:
            case "fact":
                _run_facts(session, reading, list(group))
            case "query":
                for typed in group:
                    ask(session, reading.query(typed))
            case "drop":
                for typed in group:
                    drop(session, text[typed.pos + 1 : typed.end])


def _what(typed: Typed) -> str:
    match typed.mark:
        case "?-":
            return "query"
        case "":
            return "fact" if is_fact(typed.statement) else "rule"
        case sign:
            meant = isinstance(typed.statement, ast.FactLine) or (
                isinstance(typed.statement, ast.Clause) and typed.statement.body is None
            )
            return "fact" if meant else "rule" if sign == "+" else "drop"


def _rules_of(text: str, statements: Iterable[Typed]) -> str:
    """The text with blanks instead of all but rules; places stay the same."""
    for typed in statements:
        end = typed.end if _what(typed) != "rule" else typed.pos + len(typed.mark)
        text = text[: typed.pos] + _VISIBLE.sub(" ", text[typed.pos : end]) + text[end:]
    return text.rstrip()


# ── rules and declarations ───────────────────────────────────────────────────────────────────


def add(session: Session, text: str) -> None:
    """Add statements; print the new relations, and the new rules with class and cost."""
    refuse_in_transaction(session, "add rules")
    db, screen = session.db, session.screen
    relations, rules, inputs = set(db.relations), set(db.rules), len(db.program.inputs)
    functors = functions_for(session, session.places.program) if ".functor" in text else None
    changes = db.add_rule(text, functors=functors)
    for warning in db.warnings(added=True):
        screen.note(warning)
    lines = [str(relation) for name, relation in db.relations.items() if name not in relations]
    lines += cost_lines(db, (name for name in db.rules if name not in rules))
    screen.lines(lines or ([] if changes else ["added"]), style="name")
    if changes and session.settings.changes:
        print_changes(screen, changes, session.watched)
    if len(db.program.inputs) > inputs:
        _read_inputs(session, db.program.inputs[inputs:])


def _read_inputs(session: Session, directives: Iterable[Directive]) -> None:
    """Read the files of new `.input` directives now."""
    rows, missing = read_inputs(directives, session.db.relations, session.places.facts)
    tell_missing(session, missing)
    if any(rows.values()):
        import_rows(session, rows)


def drop_rules(session: Session, names: Iterable[str]) -> None:
    for name in names:
        drop(session, name)


def drop(session: Session, name_or_text: str) -> None:
    """Drop a rule by its name, or a statement by its text."""
    refuse_in_transaction(session, "drop rules")
    text = session.db.rules.get(name_or_text.strip())
    changes = session.db.drop_rule(name_or_text)
    session.screen.line(f"dropped {name_or_text.strip() if text is None else shown_rule(name_or_text, text)}")
    if session.settings.changes and changes:
        print_changes(session.screen, changes, session.watched)


# ── facts ────────────────────────────────────────────────────────────────────────────────────


def updates_of(session: Session, text: str) -> list[Update]:
    """The updates of a text of facts such as `+edge(1, 2). -edge(2, _).`"""
    whole = text if text.rstrip().endswith(".") else f"{text}."
    reading = continuation.reading(whole)
    if reading.report.errors:
        raise DatalogError(reading.report)
    if any(_what(typed) != "fact" for typed in reading.statements):
        raise CommandError("only facts with `+` or `-` can be tried, not rules or queries")
    step, unmatched = _step_of(session, reading, reading.statements)
    for note in unmatched:
        session.screen.line(note)
    return step


def _run_facts(session: Session, reading: Reading, facts: list[Typed]) -> None:
    """Apply facts as one step; a delete may be a pattern."""
    step, unmatched = _step_of(session, reading, facts)
    for note in unmatched:
        session.screen.line(note)
    if step or not unmatched:
        apply(session, step)


def _step_of(session: Session, reading: Reading, facts: Sequence[Typed]) -> tuple[list[Update], list[str]]:
    """The updates of facts and patterns, and a note for each pattern that matches nothing."""
    step: list[Update] = []
    unmatched: list[str] = []
    for typed in facts:
        pattern = _pattern(session, reading, typed)
        if pattern is None:
            step.append(_update(session.db, reading, typed))
            continue
        rows = matching(session.db._writer, pattern, [*(session.pending or ()), *step])
        step += [Update(pattern.relation.name, row, insert=False) for row in rows]
        if not rows:
            unmatched.append(f"`{cut(_text(reading, typed))}`: {nothing_matches(session.db._engine, pattern)}")
    return step, unmatched


def _pattern(session: Session, reading: Reading, typed: Typed) -> Pattern | None:
    """The pattern of a typed delete, or None if it is a fact."""
    match typed.statement:
        case ast.Clause(heads=[ast.Atom(name=name) as atom]) if typed.mark == "-" and is_pattern(atom):
            if name in session.db.relations:
                return pattern_in_text(session.db.relations, _text(reading, typed)[1:])
    return None


def _text(reading: Reading, typed: Typed) -> str:
    return reading.source.text[typed.pos : typed.end]


def _update(db: Database, reading: Reading, typed: Typed) -> Update:
    """The update of a typed fact; the error for an undeclared relation has a hint."""
    text, name = reading.source.text[typed.pos : typed.end], _name(typed.statement)
    if name not in db.relations and name:
        close = get_close_matches(name, db.relations, 1)
        hint = f"did you mean `{close[0]}`?" if close else f"declare it first: {_declaration(typed.statement)}"
        raise CommandError(f"undefined relation `{cut(name)}`; {cut(hint, 200)}")
    return line_update(db.relations, text)


def _name(statement: ast.Statement) -> str:
    match statement:
        case ast.FactLine(name=name) | ast.Clause(heads=[ast.Atom(name=name)]):
            return name
    return ""


def _declaration(statement: ast.Statement) -> str:
    """A `.decl` that would fit a fact."""
    kinds = []
    match statement:
        case ast.FactLine(values=values):
            kinds = ["symbol" if isinstance(value, str) else "number" for value in values]
        case ast.Clause(heads=[ast.Atom(args=args)]):
            kinds = [_KINDS.get(type(arg), "number") for arg in args]
    columns = ", ".join(f"{letter}:{kind}" for letter, kind in zip(_letters(), kinds, strict=False))
    return f".decl {_name(statement)}({columns})"


def _letters() -> Iterator[str]:
    yield from "abcdefghijklmnopqrstuvwxyz"
    number = 1
    while True:
        yield f"c{number}"
        number += 1


# ── queries ──────────────────────────────────────────────────────────────────────────────────


def ask(session: Session, query: ParsedQuery) -> None:
    """Answer a query: the values of its variables, or whether it holds if it has none."""
    note_state(session)
    given = Given(parameters_for(session, query.parameters))
    found = session.db._queries.ask(query, given)
    if not found.columns:
        words = ("true", "false") if session.settings.mode == "json" else ("yes", "no")
        session.screen.line(words[0] if found else words[1])
        return
    columns = [Column(name, Kind(kind)) for name, kind in zip(found.columns, found.kinds, strict=True)]
    ordered = isinstance(found, OrderedResult)
    show_rows(session.screen, Relation(ANSWER, tuple(columns)), found, ordered=ordered)

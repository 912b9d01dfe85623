"""Commands for reasons: `.why`, `.why-not`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from everlog.dsl.query_text import parameters_of
from everlog.repl.commands.parameters import parameters_for
from everlog.repl.reports import note_state
from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.core.proofs import Proof, WhyNot
    from everlog.repl.session import Session

THEME = "Reasons"


@command(".why", "FACT", "a proof of a fact, down to base facts", THEME, words=None, completes=("fact",))
def why(session: Session, words: Words) -> None:
    """
    For example `.why path(1, 3)`.  In mode json, the proof is an object.
    """
    text = _fact(words, ".why")
    note_state(session)
    from everlog.core.proofs import NotDerived

    try:
        found = session.db.why(text, **parameters_for(session, parameters_of(text)))
    except NotDerived as problem:
        raise NotDerived(problem.fact, ".why-not") from None
    _show(session, found)


@command(
    ".why-not",
    "FACT",
    "what each rule lacks to derive a fact",
    THEME,
    words=None,
    completes=("fact",),
    aliases=(".why_not", ".whynot"),
)
def why_not(session: Session, words: Words) -> None:
    """
    For example `.why-not path(3, 1)`.
    """
    text = _fact(words, ".why-not")
    note_state(session)
    _show(session, session.db.why_not(text, **parameters_for(session, parameters_of(text))))


def _fact(words: Words, name: str) -> str:
    if not words:
        raise CommandError(f"usage: {name} FACT")
    return words[0].rstrip("?")


def _show(session: Session, found: Proof | WhyNot) -> None:
    if session.settings.mode == "json":
        session.screen.line(json.dumps(found.to_json(), ensure_ascii=False, indent=1))
    else:
        session.screen.lines(found.text().split("\n"), paged=True)

"""Commands for questions about steps that are not made: `.what-if`, `.how`, `.apply`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Steps that are not made"


@command(
    ".what-if",
    "+FACT. -FACT. …",
    "the changes that a step would cause",
    THEME,
    words=None,
    completes=("fact",),
    aliases=(".what_if", ".whatif"),
)
def what_if(session: Session, words: Words) -> None:
    """
    For example `.what-if -edge(2, 3).`, or several inserts and deletes as one step.  Nothing
    changes.  In a transaction, the answer includes its updates; there the step may be left out.
    """
    from everlog.repl.reports import print_changes
    from everlog.repl.statements import updates_of

    if not words and session.pending is None:
        raise CommandError("usage: .what-if +FACT. -FACT. …")
    step = updates_of(session, words[0]) if words else []
    print_changes(session.screen, session.db.what_if([*(session.pending or ()), *step]), whole=True)


@command(
    ".how",
    "±FACT [change REL, …] [keep ATOM, …]",
    "the least steps that make a fact come or go",
    THEME,
    words=None,
    completes=("fact",),
)
def how(session: Session, words: Words) -> None:
    """
    For example `.how -path(1, 3)`, or `.how +may("ann", "read") change member keep may(x, "edit")`.
    Answers with the fewest side effects come first; `.apply 1` makes the first.  By default any
    base fact may go, and facts may come into relations without rules; `change` names the relations
    that may change, and facts that match an atom after `keep` stay.
    """
    from everlog.repl.statements import updates_of
    from everlog.repl.transactions import refuse_in_transaction

    if not words:
        raise CommandError("usage: .how ±FACT [change REL, …] [keep ATOM, …]")
    refuse_in_transaction(session, "ask how")
    goal, conditions = split_conditions(words[0].rstrip("?"))
    goals = updates_of(session, goal)
    answers = session.db.how(goals, change=conditions.get("change"), keep=conditions.get("keep", []))
    session.answers = answers, session.db.changes
    if session.settings.mode == "json":
        session.screen.line(json.dumps(answers.to_json(), ensure_ascii=False, indent=1))
    else:
        session.screen.lines(answers.lines(), paged=True)


@command(".apply", "N", "make the step of an answer of .how", THEME, words=(1, 1))
def apply(session: Session, words: Words) -> None:
    """
    `.apply 1` makes the first answer of the last `.how`, if nothing has changed since.
    """
    from everlog.repl import transactions

    if session.answers is None:
        raise CommandError("there is no answer to apply: ask with `.how`")
    answers, last = session.answers
    if session.db.changes is not last:
        raise CommandError("the database has changed since `.how`: ask again")
    if not words[0].isdecimal() or not 1 <= int(words[0]) <= len(answers):
        raise CommandError(f"`.apply N` takes a number from 1 to {len(answers)}")
    transactions.apply(session, answers[int(words[0]) - 1].step)


_WORD = re.compile(r'"(?:\\.|[^"\\])*"|\b(change|keep)\b(?=\s+[?A-Za-z_])|[(),]|[^"(),\s]+|\s+', re.DOTALL)


def split_conditions(text: str) -> tuple[str, dict[str, list[str]]]:
    """The goal of `.how`, and the lists after `change` and `keep`.

    >>> split_conditions('-may("ann", "keep out") change member, group keep may(x, "read"), n(1)')
    ('-may("ann", "keep out")', {'change': ['member', 'group'], 'keep': ['may(x, "read")', 'n(1)']})
    """
    lists: dict[str, list[str]] = {"": [""]}
    current, depth = lists[""], 0
    for found in _WORD.finditer(text):
        word = found[0]
        depth += (word == "(") - (word == ")")
        if found[1] and not depth:
            current = lists.setdefault(found[1], [])
            current.append("")
        elif word == "," and not depth and current is not lists[""]:
            current.append("")
        else:
            current[-1] += word
    goal = lists.pop("")[0].strip()
    return goal, {name: [item.strip().rstrip(".") for item in items] for name, items in lists.items()}

"""Commands for rules: `.rules`, `.class`, `.plan`, `.code`, `.drop`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Rules"


@command(".rules", "[REL]", "the rules with their names", THEME, completes=("name",))
def rules(session: Session, words: Words) -> None:
    """
    With REL, those that derive it.  `-path#2.` drops a rule by its name.
    """
    named = session.db.rules
    chosen = named_rules(session, words[0]) if words else list(named)
    width = max(map(len, chosen), default=0)
    lines = (f"{name:<{width}}  {_one_line(named[name])}" for name in chosen)
    session.screen.lines(lines, paged=True)


def _one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text)


def named_rules(session: Session, name: str) -> list[str]:
    """The rules of a relation, or one rule."""
    from everlog.core.program.fact_rows import declared

    if name in session.db.rules:
        return [name]
    if "#" in name:
        raise CommandError(f"no rule is named `{name}`")
    relation = declared(session.db.relations, name).name
    return [rule.name for rule in session.db.program.rules if rule.head.relation == relation]


@command(".class", "[NAME]", "the class of each rule, and the cost of one update", THEME, completes=("name",))
def class_(session: Session, words: Words) -> None:
    """
    Hierarchical, acyclic, cyclic or recursive, the widths w and ŵ, and the cost with the strategy
    in use.  NAME is a rule or a relation; `.plan NAME` says why.
    """
    from everlog.repl.reports import cost_lines

    chosen = named_rules(session, words[0]) if words else list(session.db.rules)
    session.screen.lines(cost_lines(session.db, chosen), paged=True)


@command(
    ".plan", "[NAME | QUERY]", "how relations are maintained, and why", THEME, words=None, completes=("name",)
)
def plan(session: Session, words: Words) -> None:
    """
    For everything, or for one relation or rule, as `everlog explain` prints it; for one, also the
    order in which its atoms are joined with the facts that are there, and the rows expected.  For a
    query, such as `.plan edge(x, y), edge(y, z)`, which relations are read instead.  The language's
    own `.plan 0:(2,1)` belongs on the line of its rule.
    """
    if words and "(" in words[0] and ":(" not in words[0]:
        session.screen.lines(session.db.explain(words[0].rstrip("?.")).split("\n"), paged=True)
        return
    if words and ":" in words[0]:
        raise CommandError("a `.plan` of the language belongs on the line of its rule")
    name = words[0] if words else None
    lines = session.db.explain(name).split("\n")
    session.screen.lines(chain(lines, plan_lines(session, name) if name is not None else ()), paged=True)


def plan_lines(session: Session, name: str) -> Iterator[str]:
    """How the rules of a name join the facts that are there, or what they do instead."""
    for number, plan in enumerate(session.db.plans(name)):
        if not number:
            yield "joins, with the facts that are there:"
        yield from (f"  {line}" for line in plan.lines())


@command(".code", "[NAME] [deltas]", "the Python code of rules", THEME, words=(0, 2), completes=("name", "deltas"))
def code(session: Session, words: Words) -> None:
    """
    For all rules, or one relation or rule; with `deltas`, the code that propagates changes.
    """
    from everlog.core.engine.explain import explain_delta_code
    from everlog.core.evaluate.seminaive import explain_code

    deltas = words[-1:] == ["deltas"]
    names = words[:-1] if deltas else words
    name = names[0] if names else None
    if name is not None and not named_rules(session, name):
        raise CommandError(f"`{name}` has no rules")
    if deltas:
        text = explain_delta_code(session.db.program, session.strategies, name)
    else:
        text = explain_code(session.db.program, name)
    session.screen.lines(text.split("\n"), paged=True)


@command(
    ".drop",
    "NAME",
    "drop a rule, or a relation with everything of its own",
    THEME,
    words=(1, 1),
    completes=("name",),
)
def drop(session: Session, words: Words) -> None:
    """
    A rule such as `path#2`, or a relation with its declaration, rules, facts and directives; no
    other statement may use it.
    """
    from everlog.repl.statements import drop as drop_rule
    from everlog.repl.transactions import refuse_in_transaction, report_step

    refuse_in_transaction(session, "drop it")
    if "#" in words[0]:
        drop_rule(session, words[0])
        return
    changes = session.db.drop_relation(words[0])
    session.screen.line(f"dropped {words[0]}")
    if changes:
        report_step(session, changes)
    session.watched = {text: seen for text, seen in session.watched.items() if seen.relation.name != words[0]}

"""Commands for the prompt itself: `.help`, `.quit`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from everlog.core.program.values import integer
from everlog.repl.table import ALIASES, CommandError, Words, command, commands, find_command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "The prompt"

LINES = """\
Type Datalog, without a prefix:
  .decl edge(x:number, y:number)          adds a declaration or a rule, and prints its class and cost
  path(x, y) :- edge(x, y).               -path#2. drops a rule
  edge(1, 2).                             inserts a fact, as does +edge(1, 2). ; -edge(1, 2). deletes it
  ?- path(1, x), x > 3.                   a query of any conjunction; path(1, x)? is a query too
  begin … commit | rollback               updates as one step

Commands:"""

DDLOG = """\
start; insert R(1, 2), delete R{.x = 3, .y = 4}; commit; commit dump_changes; rollback;
dump; dump R; clear R; echo TEXT; sleep MILLISECONDS; timestamp; profile; exit;
`start;` is `begin`, but its `commit;` only counts the changes."""


@command(".help", "[CMD]", "this text, or the help of a command", THEME, completes=("command",))
def help_(session: Session, words: Words) -> None:
    """
    `.help ddlog` lists the statements of DDlog.
    """
    if words and words[0] == "ddlog":
        session.screen.line(DDLOG)
    elif words:
        found = find_command(words[0] if words[0].startswith(".") else f".{words[0]}")
        session.screen.line(found.call, "head")
        also = [alias for alias, name in ALIASES.items() if name == found.name]
        details = [found.summary, found.details, f"also: {', '.join(also)}" if also else ""]
        session.screen.lines(text for text in details if text)
    else:
        session.screen.lines(_all(), paged=True)


def _all() -> list[str]:
    lines = LINES.split("\n")
    width = max(len(each.call) for each in commands().values()) + 2
    for theme, group in groupby(commands().values(), lambda each: each.theme):
        lines.append(f" {theme}")
        lines += [f"  {each.call:<{width}}{each.summary}" for each in group]
    return [*lines, "", ".help CMD says more.  Ctrl-C cancels what is running, Ctrl-D leaves, Tab completes."]


@command(".quit", "[STATUS]", "leave", THEME, aliases=(".exit", ".q"))
def quit_(session: Session, words: Words) -> None:
    """
    The same as Ctrl-D.  STATUS is the exit status, by default 0.
    """
    if words and not (words[0].isdecimal() and integer(words[0]) < 256):
        raise CommandError(f"invalid status `{words[0]}`; use a number up to 255")
    session.leave(int(words[0]) if words else 0)

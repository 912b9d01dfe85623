"""The table of commands: each is one function, with its texts for `.help` and Tab.

Importing a module of commands registers them: `@command(…)` puts a function into `COMMANDS`.  To
add commands, write such a module and name it in `MODULES`; nothing else has to change.

    @command(".count", "[REL]", "the number of facts", "Relations", completes=("relation",))
    def count(session: Session, words: Words) -> None: ...
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from everlog.dsl.keywords import DIRECTIVES

if TYPE_CHECKING:
    from everlog.repl.session import Session

MODULES = [
    "everlog.repl.commands.programs",
    "everlog.repl.commands.relations",
    "everlog.repl.commands.facts",
    "everlog.repl.commands.durable",
    "everlog.repl.commands.rules",
    "everlog.repl.commands.reasons",
    "everlog.repl.commands.questions",
    "everlog.repl.commands.parameters",
    "everlog.repl.commands.changes",
    "everlog.repl.commands.output",
    "everlog.repl.commands.measuring",
    "everlog.repl.commands.help",
]

Words: TypeAlias = list[str]


class CommandError(Exception):
    """A command cannot be run; the message says why, and nothing has changed."""


@frozen
class Command:
    """A command of the prompt.

    `words` is the minimal and maximal number of words; None: the rest of the line as one.

    `completes` says what each word may be (`file`, `relation`, `rule`, `fact`, `name`, `command`,
    `setting`, or words separated by `|`); the last entry holds for all further words.
    """

    name: str
    usage: str
    summary: str
    theme: str
    function: Callable[[Session, Words], None]
    words: tuple[int, int] | None
    completes: tuple[str, ...]

    @property
    def call(self) -> str:
        return f"{self.name} {self.usage}".rstrip()

    @property
    def details(self) -> str:
        """The help text beyond the summary."""
        return cleandoc(self.function.__doc__ or "")

    def run(self, session: Session, argument: str) -> None:
        self.function(session, self._split(argument))

    def _split(self, argument: str) -> Words:
        if self.words is None:
            return [argument] if argument else []
        words = split_words(argument)
        least, most = self.words
        if not least <= len(words) <= most:
            raise CommandError(f"usage: {self.call}")
        return words


COMMANDS: dict[str, Command] = {}
TRANSACTION_WORDS = ("begin", "commit", "rollback")  # statements, not commands
ALIASES: dict[str, str] = {}


def command(
    name: str,
    usage: str,
    summary: str,
    theme: str,
    *,
    words: tuple[int, int] | None = (0, 1),
    completes: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[[Session, Words], None]], Callable[[Session, Words], None]]:
    """Register a function as a command."""

    def put(function: Callable[[Session, Words], None]) -> Callable[[Session, Words], None]:
        COMMANDS[name] = Command(name, usage, summary, theme, function, words, completes)
        ALIASES.update(dict.fromkeys(aliases, name))
        return function

    return put


def commands() -> dict[str, Command]:
    """The whole table, in the order of `MODULES`, whichever was imported first."""
    _load()
    place = {module: number for number, module in enumerate(MODULES)}
    return dict(sorted(COMMANDS.items(), key=lambda item: place.get(item[1].function.__module__, len(place))))


@lru_cache(maxsize=1)
def _load() -> None:
    for module in MODULES:
        import_module(module)


def is_command(name: str) -> bool:
    """Whether a word such as `.tables` is the name of a command, written out."""
    return name in commands() or name in ALIASES


def find_command(name: str) -> Command:
    """The command with this name, or the only one that begins with it.

    >>> find_command(".tab").name, find_command(".exit").name
    ('.tables', '.quit')
    """
    table = commands()
    name = ALIASES.get(name, name)
    if name in table:
        return table[name]
    begun = [known for known in table if known.startswith(name)]
    if len(begun) == 1:
        return table[begun[0]]
    if begun:
        raise CommandError(f"`{name}` is ambiguous: {_listed(begun)}")
    if name.removeprefix(".") in TRANSACTION_WORDS:
        raise CommandError(f"no command `{name}`; write `{name[1:]}` without the dot")
    close = get_close_matches(name, [*DIRECTIVES, *table, *ALIASES], 1)
    hint = f"did you mean `{close[0]}`?" if close else "`.help` lists the commands"
    raise CommandError(f"no command `{name[:40]}`; {hint}")


def split_words(text: str) -> Words:
    """The words of a line; quotes keep a word with blanks together.

    >>> split_words('"my facts.csv" edge')
    ['my facts.csv', 'edge']
    """
    try:
        return shlex.split(text)
    except ValueError as problem:
        raise CommandError(f"{str(problem).lower()} in `{text}`") from None


def _listed(names: list[str]) -> str:
    return f"{', '.join(f'`{name}`' for name in names[:-1])} or `{names[-1]}`"

"""Completion with Tab: commands, arguments, relations, rules, columns of an atom."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.repl.continuation import OF_THE_LANGUAGE
from everlog.repl.settings import SETTINGS
from everlog.repl.table import ALIASES, TRANSACTION_WORDS, CommandError, commands, find_command

if TYPE_CHECKING:
    from everlog.repl.session import Session

_COMMAND = re.compile(r"\s*(\.[\w-]*)$")
_ARGUMENTS = re.compile(r"\s*(\.[A-Za-z][\w-]*)\s+(.*)$", re.DOTALL)
_WORD = re.compile(r"[?\w.#]*$")
_DROP = re.compile(r"(?:^|[.\n])\s*-\s*[?\w.#]*$")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_WORDS = [*KEYWORDS, "choice-domain"]
_STARTS = [*TRANSACTION_WORDS, "?-"]


@frozen
class Candidate:
    """A completion that replaces the last `length` characters, and its description."""

    text: str
    length: int
    what: str = ""


def candidates(session: Session, text: str) -> Iterator[Candidate]:
    """The completions of a text that ends at the cursor.

    >>> from everlog.repl.session import Session
    >>> [c.text for c in candidates(Session(), ".wa")]
    ['.watch']
    >>> [c.text for c in candidates(Session(), ".mode j")]
    ['json']
    """
    begun = _COMMAND.match(text)
    if begun is not None:
        yield from _matching(_dotted(), begun[1])
        return
    arguments = _ARGUMENTS.match(text)
    if arguments is not None and arguments[1] not in OF_THE_LANGUAGE - {".output"}:
        yield from _arguments(session, arguments[1], arguments[2])
        return
    yield from _statement(session, text)


def _matching(choices: Iterable[tuple[str, str]], prefix: str) -> Iterator[Candidate]:
    return (Candidate(text, len(prefix), what) for text, what in choices if text.startswith(prefix))


def _dotted() -> Iterator[tuple[str, str]]:
    """All words that begin with a dot."""
    for each in commands().values():
        yield each.name, each.summary
    for word in DIRECTIVES:
        if word not in commands():
            yield word, "directive"


# ── commands ─────────────────────────────────────────────────────────────────────────────────


def _arguments(session: Session, name: str, argument: str) -> Iterator[Candidate]:
    try:
        found = find_command(name)
    except CommandError:
        return
    if not found.completes:
        return
    words = argument.split() if not argument or argument[-1].isspace() else argument.split()[:-1]
    prefix = "" if not argument or argument[-1].isspace() else argument.split()[-1]
    what = found.completes[min(len(words), len(found.completes) - 1)]
    if found.name == ".output":  # the directive of the same name
        yield from _matching(_choices(session, "relation"), prefix)
    match what:
        case "file":
            yield from _files(prefix)
        case "fact":
            yield from _statement(session, argument)
        case "value":
            setting = SETTINGS.get(words[0])
            if setting is not None and len(words) == 1:
                yield from _matching(((word, "") for word in setting.choices.split("|") if word.islower()), prefix)
        case _:
            yield from _matching(_choices(session, what), prefix)


def _choices(session: Session, what: str) -> Iterator[tuple[str, str]]:
    if what in ("relation", "name"):
        yield from ((name, str(relation)) for name, relation in session.relations.items())
    if what == "name" and session.relations:
        yield from session.db.rules.items()
    match what:
        case "command":
            yield from ((each.name, each.summary) for each in commands().values())
            yield from ((alias, f"{name}") for alias, name in ALIASES.items())
        case "setting":
            yield from ((setting.name, setting.meaning) for setting in SETTINGS.values())
        case "watched":
            yield from ((text, "") for text in session.watched)
        case "relation" | "name":
            pass
        case _:
            yield from ((word, "") for word in what.split("|"))


def _files(prefix: str) -> Iterator[Candidate]:
    folder, base = os.path.split(prefix)
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(base) and (base.startswith(".") or not entry.name.startswith(".")):
            yield Candidate(entry.name + ("/" if entry.is_dir() else ""), len(base))


# ── statements ───────────────────────────────────────────────────────────────────────────────


def _statement(session: Session, text: str) -> Iterator[Candidate]:
    if '"' in _STRING.sub("", text):
        return  # inside a symbol
    prefix = _WORD.search(text)[0]  # type: ignore[index]  # it matches the empty text
    if _DROP.search(text) and session.relations:
        yield from _matching(((f"{name}.", text) for name, text in session.db.rules.items()), prefix)
    inside = atom_around(text[: len(text) - len(prefix)])
    if inside is not None and inside[0] in session.relations:
        relation = session.relations[inside[0]]
        if inside[1] < relation.arity:
            column = relation.columns[inside[1]]
            kind = f"column {inside[1] + 1} of {relation.name}: {column.type_name or column.kind}"
            yield from _matching([(column.name, kind)], prefix)
            variables = _variables(text[: len(text) - len(prefix)]) - {column.name}
            yield from _matching(((name, "variable") for name in sorted(variables)), prefix)
        return
    yield from _matching(((f"{name}(", str(relation)) for name, relation in session.relations.items()), prefix)
    if prefix:
        starts = _STARTS if text.strip() == prefix else []
        yield from _matching(((word, "") for word in [*starts, *_WORDS]), prefix)


def atom_around(text: str) -> tuple[str, int] | None:
    """The atom that is open at the end of a text, and the number of its argument.

    >>> atom_around("path(x, y), edge(1, "), atom_around("path(f(x, 2"), atom_around("path(x, y), ")
    (('edge', 1), ('f', 1), None)
    """
    text = _STRING.sub(lambda found: " " * len(found[0]), text)
    depth = commas = 0
    for at in range(len(text) - 1, -1, -1):
        char = text[at]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth == 0:
                name = re.search(r"[?\w.]+$", text[:at].rstrip())
                return (name[0], commas) if name and char == "(" else None
            depth -= 1
        elif char == "," and depth == 0:
            commas += 1
    return None


def _variables(text: str) -> set[str]:
    """The names in a text that can be variables."""
    names = re.findall(r"[?A-Za-z_][?\w]*(?!\s*[(\w])", _STRING.sub(" ", text))
    return {name for name in names if name not in KEYWORDS and name != "_"}

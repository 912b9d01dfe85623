"""What can be set at the prompt: a name, a value, what it may be, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from everlog.repl.table import CommandError

MODES = ("table", "csv", "json", "dl")


@frozen
class Setting:
    """`read` makes a value of a word, or raises ValueError; `choices` is what `.help` and Tab say."""

    name: str
    choices: str
    meaning: str
    read: Callable[[str], Any]


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError
    return text == "on"


def _mode(text: str) -> str:
    if text not in MODES:
        raise ValueError
    return text


def _rows(text: str) -> int | None:
    number = None if text == "all" else int(text)
    if number is not None and number < 1:
        raise ValueError
    return number


def _pager(text: str) -> bool | str:
    return _switch(text) if text in ("on", "off") else text


SETTINGS = {
    setting.name: setting
    for setting in [
        Setting("mode", "|".join(MODES), "how rows are written", _mode),
        Setting("maxrows", "N|all", "rows that an answer shows at most", _rows),
        Setting("headers", "on|off", "names of the columns above rows", _switch),
        Setting("changes", "on|off", "tell what each step changed", _switch),
        Setting("timer", "on|off", "tell how long each line took", _switch),
        Setting("progress", "on|off", "tell on the terminal what a long step is doing", _switch),
        Setting("pager", "on|off|COMMAND", "pause after each page, or send long answers to a program", _pager),
        Setting("colour", "on|off", "colours, on a terminal", _switch),
        Setting("bail", "on|off", "end a script at its first error", _switch),
    ]
}
_OTHER_NAMES = {"color": "colour"}


class Settings:
    """The values, as attributes are read and by `change` are written.

    >>> settings = Settings(terminal=False)
    >>> settings.change("mode", "csv")
    >>> settings.mode, settings.shown("maxrows")
    ('csv', 'all')
    """

    mode: str
    maxrows: int | None
    headers: bool
    changes: bool
    timer: bool
    progress: bool
    pager: bool | str
    colour: bool
    bail: bool

    def __init__(self, terminal: bool, colour: bool = False) -> None:
        self.mode, self.headers, self.changes, self.timer, self.bail = "table", True, True, False, False
        self.maxrows = 1000 if terminal else None
        self.progress = self.pager = terminal
        self.colour = colour and terminal

    def change(self, name: str, value: str) -> None:
        setting = find_setting(name)
        try:
            setattr(self, setting.name, setting.read(value))
        except ValueError:
            raise CommandError(f"`{setting.name}` is {setting.choices}, not `{value}`") from None

    def shown(self, name: str) -> str:
        value = getattr(self, name)
        if value is None:
            return "all"
        return ("on" if value else "off") if isinstance(value, bool) else str(value)


def find_setting(name: str) -> Setting:
    found = SETTINGS.get(_OTHER_NAMES.get(name, name))
    if found is None:
        raise CommandError(f"no setting `{name}`; there are {', '.join(SETTINGS)}")
    return found

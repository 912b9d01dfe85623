"""The settings of the prompt: name, allowed values, meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from everlog.repl.table import CommandError

MODES = ("table", "csv", "json", "dl")


@frozen
class Setting:
    """A setting of the prompt.

    `read` converts a word or raises ValueError; `choices` is for `.help` and Tab.
    """

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
        Setting("mode", "|".join(MODES), "output format of rows", _mode),
        Setting("maxrows", "N|all", "maximal number of rows in an answer", _rows),
        Setting("headers", "on|off", "column names above rows", _switch),
        Setting("changes", "on|off", "print the changes of each step", _switch),
        Setting("timer", "on|off", "print the time of each line", _switch),
        Setting("progress", "on|off", "show the progress of a long step on the terminal", _switch),
        Setting("pager", "on|off|COMMAND", "pause after each page, or send long answers to a program", _pager),
        Setting("colour", "on|off", "colours, on a terminal", _switch),
        Setting("bail", "on|off", "stop a script at its first error", _switch),
    ]
}
_OTHER_NAMES = {"color": "colour"}


class Settings:
    """The values, read as attributes and changed with `change`.

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
            raise CommandError(f"invalid value `{value}` for `{setting.name}`; use {setting.choices}") from None

    def shown(self, name: str) -> str:
        value = getattr(self, name)
        if value is None:
            return "all"
        return ("on" if value else "off") if isinstance(value, bool) else str(value)


def find_setting(name: str) -> Setting:
    found = SETTINGS.get(_OTHER_NAMES.get(name, name))
    if found is None:
        raise CommandError(f"no setting `{name}`; the settings are {', '.join(SETTINGS)}")
    return found

"""The programs that ship with everlog: their folders and header comments.

A program is a folder of `everlog.programs`.  It holds `NAME.dl`, whose first comment says what the
program answers, with remarks under `Why:`, `Class:`, `Facts:` and `Limits:`; `facts/`, its data;
`updates.txt`, a stream of steps; `NAME.dlt`, its specification; and perhaps a script that generates
other facts.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from attrs import frozen

MAKERS = ("make.py", "extract.py")
_REMARK = re.compile(r"([A-Z][a-z]+):\s+(.*)")


class NoSuchProgram(ValueError):
    """No program of that name ships with everlog."""


@frozen
class Shipped:
    """One program: its folder, and the description and remarks of its header."""

    folder: Path
    what: str
    remarks: dict[str, str]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def title(self) -> str:
        """The first sentence of the description."""
        return re.split(r"(?<=[.?])\s", self.what)[0]

    @property
    def program(self) -> Path:
        return self.folder / f"{self.name}.dl"

    @property
    def facts(self) -> Path:
        return self.folder / "facts"

    @property
    def updates(self) -> Path:
        return self.folder / "updates.txt"

    @property
    def maker(self) -> Path | None:
        """The script that generates facts, if there is one."""
        return next((self.folder / name for name in MAKERS if (self.folder / name).is_file()), None)


def shipped_folder() -> Path:
    """The folder that holds all programs, in the repository or installed."""
    return Path(str(files("everlog.programs")))


def names() -> list[str]:
    """The names of the programs, sorted.

    >>> "transitive_closure" in names()
    True
    """
    return sorted(path.parent.name for path in shipped_folder().glob("*/*.dl") if path.stem == path.parent.name)


def shipped(name: str) -> Shipped:
    """Find a program by its name.

    >>> shipped("transitive_closure").title
    'What can be reached from where.'
    >>> shipped("wordnets")
    Traceback (most recent call last):
    everlog.shipped.NoSuchProgram: no program `wordnets`; did you mean `wordnet`?
    """
    known = names()
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known)}"
        raise NoSuchProgram(f"no program `{name}`; {hint}")
    folder = shipped_folder() / name
    what, remarks = read_header((folder / f"{name}.dl").read_text(encoding="utf-8"))
    return Shipped(folder, what, remarks)


def read_header(text: str) -> tuple[str, dict[str, str]]:
    """Parse a program's first comment: its first paragraph, and its remarks by name.

    >>> read_header('''// Who is
    ... // where?
    ... //
    ... // Why:    to know,
    ... //         at any time
    ... // Class:  recursive
    ... .decl a(x:number)
    ... // Not: this''')
    ('Who is where?', {'Why': 'to know, at any time', 'Class': 'recursive'})
    """
    parts: dict[str, list[str]] = {"": []}
    at = ""
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        words = line.removeprefix("//").strip()
        if found := _REMARK.fullmatch(words):
            at = found[1]
            parts[at] = [found[2]]
        elif words:
            parts[at].append(words)
    what, *remarks = ((name, " ".join(" ".join(words).split())) for name, words in parts.items())
    return what[1], dict(remarks)

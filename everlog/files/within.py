"""Limits on the directives of texts that the operator has not written.

A program may say `.output r(filename="/any/path")`, and `.input r(IO=postgres, url=…)`.  Users who
run their own program mean that.  A text that came over HTTP, or that a database file holds, is not
trusted: it says what is written, and the operator says where.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from everlog.core.program import Directive
from everlog.files.formats import FILE_NAMES, IN_FOLDER, LAYOUT_PARAMETERS, format_of
from everlog.files.text_values import FactsError


def named_place(params: Mapping[str, str]) -> str | None:
    """The first parameter that names a file, a database or standard input; else None.

    >>> named_place({"IO": "file", "delimiter": ","}), named_place({"filename": "x.csv"})
    (None, 'filename="x.csv"')
    >>> named_place({"IO": "sqlite"})
    'IO="sqlite"'
    """
    for key, value in params.items():
        if key not in LAYOUT_PARAMETERS or (key == "IO" and value not in IN_FOLDER):
            return f'{key}="{value[:80]}"'
    return None


def require_within(
    directives: Iterable[Directive], trusted: Collection[Directive], folder: str, kind: str, flag: str
) -> None:
    """Raise FactsError if an untrusted directive leads out of a folder.

    A database is always outside.
    """
    for directive in directives:
        if directive in trusted:
            continue
        place = _outside(directive, Path(folder))
        if place is not None:
            raise FactsError(
                f"the database file has `.{kind} {directive.relation}({place})`, which is not within"
                f" {folder}, the folder of {flag}: write the directive into the program that you run,"
                " or drop it from the database"
            )


def _outside(directive: Directive, folder: Path) -> str | None:
    """The parameter that leads out of a folder."""
    params = directive.params
    names = {key: params[key] for key in FILE_NAMES if key in params}
    others = {key: value for key, value in params.items() if key not in names}
    if format_of(params) not in IN_FOLDER:
        others["IO"] = format_of(params)
    place = named_place(others)
    if place is not None:
        return place
    top = os.path.realpath(folder)
    for key, name in names.items():
        try:
            real = os.path.realpath(folder / name)
        except ValueError:  # a zero byte
            real = ""
        if os.path.commonpath([top, real or os.sep]) != top or real == top:
            return f'{key}="{name[:80]}"'
    return None

r"""The base facts of a database in a folder, one file per relation.

A relation goes to `NAME.facts`, tab separated, which `everlog run -F` and Soufflé read as well.  If
a symbol has a tab, a line break or another control character, it goes to `NAME.json`.  All files
are written under temporary names and renamed at the end: a failure (a full disk, a read-only
folder) leaves everything as it was.  Only a crash between two renames can leave files of two saves
side by side, each of them complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from io import StringIO
from pathlib import Path
from uuid import uuid4

from everlog.core.program import Kind, Relation, Row
from everlog.files import FactsError, read_facts, write_facts
from everlog.files.location import reason

_CONTROL = re.compile(r"[\x00-\x1f]")
_WAYS: Mapping[str, Mapping[str, str]] = {".facts": {}, ".json": {"IO": "jsonfile"}}  # suffix → parameters


def save_facts(folder: Path, relations: Mapping[str, Relation], facts: Mapping[str, Collection[Row]]) -> None:
    """Write the facts of every relation; after FactsError nothing has changed."""
    moves: list[tuple[Path, Path]] = []
    stale: list[Path] = []
    mark = uuid4().hex
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, relation in relations.items():
            suffix = ".json" if _needs_json(relation, facts[name]) else ".facts"
            temporary = f".everlog-{mark}-{len(moves)}.tmp"
            moves.append((folder / temporary, folder / f"{name}{suffix}"))
            write_facts(relation, facts[name], {**_WAYS[suffix], "filename": temporary}, folder, StringIO())
            stale += [folder / f"{name}{other}" for other in (".facts", ".facts.gz", ".json") if other != suffix]
        for _, path in moves:
            if path.is_dir():
                raise FactsError(f"cannot save to {path}: it is a folder")
        for temporary_path, path in moves:
            os.replace(temporary_path, path)
        for path in stale:
            path.unlink(missing_ok=True)
    except OSError as problem:
        raise FactsError(f"cannot save to {folder}: {reason(problem)}") from None
    finally:
        for temporary_path, _ in moves:
            temporary_path.unlink(missing_ok=True)


def load_facts(folder: Path, relations: Mapping[str, Relation]) -> dict[str, list[Row]]:
    """The facts of the relations that have a file in the folder."""
    if not folder.is_dir():
        raise FactsError(f"cannot load from {folder}: there is no such folder")
    found = {}
    for name, relation in relations.items():
        for suffix, params in _WAYS.items():
            files = (folder / f"{name}{suffix}", folder / f"{name}{suffix}.gz")
            if any(file.is_file() for file in files):
                found[name] = read_facts(relation, {**params, "filename": files[0].name}, folder)
                break
    return found


def _needs_json(relation: Relation, rows: Collection[Row]) -> bool:
    symbols = [i for i, column in enumerate(relation.columns) if column.kind is Kind.SYMBOL]
    return any(_CONTROL.search(str(row[i])) for i in symbols for row in rows)

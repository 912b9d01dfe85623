"""A program's initial facts: from `.input` directives, or rows from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from everlog.api.rows import checked_rows
from everlog.core.program import Program, Row
from everlog.core.program.fact_rows import declared
from everlog.files import read_facts

Facts: TypeAlias = Path | str | Mapping[str, Any]  # a folder of `.input` files, or rows and tables by relation


def read_inputs(
    program: Program,
    folder: Path,
    missing_ok: bool = False,
    tell: Callable[[str], object] | None = None,
    reading: Callable[[str, int, int], None] | None = None,
) -> dict[str, list[Row]]:
    """All rows of all `.input` relations, from the files of a folder.

    Raises FactsError if a file is wrong.  `tell` receives messages about rejected rows, `reading`
    the relation being read, the number read so far, and the total.
    """
    rows: dict[str, list[Row]] = {}
    for number, directive in enumerate(program.inputs):
        if reading is not None:
            reading(directive.relation, number, len(program.inputs))
        relation = program.relations[directive.relation]
        found = read_facts(relation, directive.params, folder, missing_ok=missing_ok, stdin=sys.stdin, tell=tell)
        rows.setdefault(directive.relation, []).extend(found)
    return rows


def facts_to_begin_with(program: Program, facts: Facts) -> dict[str, list[Row]]:
    """Rows by relation, checked; raises FactError or FactsError if one is wrong."""
    if isinstance(facts, Path | str):
        return read_inputs(program, Path(facts))
    return {name: checked_rows(declared(program.relations, name), rows) for name, rows in facts.items()}

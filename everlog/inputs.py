"""The facts that the `.input` directives of a program name.

Reads: everlog.files.  Read by: everlog.database, everlog.commands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from everlog.core.program import Program, Row
from everlog.files import read_facts


def read_inputs(
    program: Program,
    folder: Path,
    missing_ok: bool = False,
    reading: Callable[[str, int, int], None] | None = None,
) -> dict[str, list[Row]]:
    """All rows of all `.input` relations, from the files of a folder; FactsError where one is wrong.

    `reading` hears which relation is being read, after how many of how many.
    """
    rows: dict[str, list[Row]] = {}
    for number, directive in enumerate(program.inputs):
        if reading is not None:
            reading(directive.relation, number, len(program.inputs))
        relation = program.relations[directive.relation]
        found = read_facts(relation, directive.params, folder, missing_ok=missing_ok, stdin=sys.stdin)
        rows.setdefault(directive.relation, []).extend(found)
    return rows

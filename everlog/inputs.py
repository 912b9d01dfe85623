"""The facts that the `.input` directives of a program name.

Reads: everlog.files.  Read by: everlog.database, everlog.commands.run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from everlog.core.program import Program, Row
from everlog.files import read_facts


def read_inputs(
    program: Program, folder: Path, missing_ok: bool = False, tell: Callable[[str], object] | None = None
) -> dict[str, list[Row]]:
    """All rows of all `.input` relations, from the files of a folder; FactsError where one is wrong.

    `tell` hears of rows that went to a file of rejects.
    """
    rows: dict[str, list[Row]] = {}
    for directive in program.inputs:
        relation = program.relations[directive.relation]
        found = read_facts(relation, directive.params, folder, missing_ok=missing_ok, stdin=sys.stdin, tell=tell)
        rows.setdefault(directive.relation, []).extend(found)
    return rows

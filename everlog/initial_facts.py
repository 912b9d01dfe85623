"""A program's initial facts: from `.input` directives, or rows from Python."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve

from everlog.api.facts.rows import checked_rows
from everlog.core.evaluate.machines import read_as_words
from everlog.core.native.availability import why_not
from everlog.core.native.words import new_symbols
from everlog.core.program import Program, Row
from everlog.core.program.fact_rows import declared
from everlog.files import read_facts
from everlog.files.formats import FORMATS, format_of
from everlog.files.location import Place

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


def read_for_run(
    program: Program,
    folder: Path,
    missing_ok: bool = False,
    tell: Callable[[str], object] | None = None,
    reading: Callable[[str, int, int], None] | None = None,
) -> dict[str, Iterable[Row]]:
    """The same for one evaluation: what only the compiled machine reads is read as words.

    A relation with several directives, or another format, is read as rows.
    """
    if why_not():
        return {**read_inputs(program, folder, missing_ok, tell, reading)}
    found: dict[str, Iterable[Row]] = {}
    wanted, symbols = read_as_words(program), new_symbols()
    times = Counter(directive.relation for directive in program.inputs)
    left = []
    for number, directive in enumerate(program.inputs):
        name, words = directive.relation, None
        if reading is not None:
            reading(name, number, len(program.inputs))
        read = FORMATS[format_of(directive.params)].words if name in wanted and times[name] == 1 else None
        if read is not None and "rejects" not in directive.params:
            words = read(Place(program.relations[name], directive.params, folder), symbols)
        if words is None:
            left.append(directive)
        else:
            found[name] = words
    return found | read_inputs(evolve(program, inputs=tuple(left)), folder, missing_ok, tell, reading)


def facts_to_begin_with(program: Program, facts: Facts) -> dict[str, list[Row]]:
    """Rows by relation, checked; raises FactError or FactsError if one is wrong."""
    if isinstance(facts, Path | str):
        return read_inputs(program, Path(facts))
    return {name: checked_rows(declared(program.relations, name), rows) for name, rows in facts.items()}

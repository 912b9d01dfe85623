"""Runs a program in a process of its own and answers one question about it.

    python -m everlog.editor.ask_program < question.json

The language server asks: a program may run for long, fill the memory or load functors, and none of
this may happen to the server.  The question has `text` and `file` of the program, `include_dirs`
and `macros`, and either `relation`, whose facts are printed, or `fact`, whose proof is.  Facts are
read from the folder of the program; output directives are not followed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from everlog.api.database import Database
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Limits
from everlog.dsl.check import diagnose
from everlog.dsl.fact_text import fact_text
from everlog.dsl.preprocess import preprocess_text
from everlog.editor.live_data import proof
from everlog.files.text_values import FactsError
from everlog.functors import FunctorError, bind_functors
from everlog.initial_facts import read_inputs

MOST_ROWS = 1_000
SECONDS = 20.0


def answer(question: Mapping[str, Any]) -> str:
    """The answer as text; what went wrong is an answer, too."""
    dirs = [Path(each) for each in question.get("include_dirs", [])]
    source, problems = preprocess_text(question["text"], question["file"], dirs, question.get("macros"))
    program, report = diagnose(source, problems)
    if program is None:
        return report.text(warnings=False)
    try:
        program = bind_functors(program, question["file"], [], [])
        notes: list[str] = []
        folder = Path(question["file"]).parent
        facts = read_inputs(program, folder, missing_ok=True, tell=notes.append)
        database = Database(program, facts=facts, limits=Limits(seconds=SECONDS))
    except (EvaluationError, FactsError, FunctorError) as problem:
        return f"error: {problem}"
    shown = proof(database, question["fact"]) if "fact" in question else _rows(database, question["relation"])
    return "\n".join([*(f"note: {note}" for note in notes), shown])


def _rows(database: Database, relation: str) -> str:
    if relation not in database.relations:
        return f"error: the program has no relation `{relation}`"
    view = database[relation]
    count = len(view)
    lines = [f"{relation}: {count:,} fact{'' if count == 1 else 's'}", ""]
    lines += [fact_text(database.relations[relation], row) for row in islice(view, MOST_ROWS)]
    return "\n".join([*lines, f"… and {count - MOST_ROWS:,} more"] if count > MOST_ROWS else lines)


if __name__ == "__main__":
    print(answer(json.load(sys.stdin)))

"""Marks in error texts that name the rule of an error, on its way through Java."""

from __future__ import annotations

import re

from everlog.core.program import Program
from everlog.core.program.values import EvaluationError

_MARK = re.compile(r"⟦everlog (\d+)⟧(.*?)⟦end⟧", re.DOTALL)


def marked(rule: int, message: str) -> str:
    return f"⟦everlog {rule}⟧{message}⟦end⟧"


def evaluation_error(program: Program, error: BaseException) -> EvaluationError | None:
    """The EvaluationError inside an exception of Spark, if any."""
    found = _MARK.search(str(error))
    if found is None:
        return None
    number = int(found[1])
    message = found[2]
    if number >= len(program.rules):
        return EvaluationError(message)
    rule = program.rules[number]
    return EvaluationError(message, rule.written, str(rule.origin))

"""Error answers: one form, with a code that programs can test.

    {"error": {"code": "bad-fact", "message": "undefined relation `edg`; did you mean `edge`?"}}

A user's mistake is 4xx, and says what to do.  An error of ours is 500 without details: its
traceback goes to the log of the service.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from everlog.api.live import RuleError
from everlog.core.engine.explain import NotInProgram
from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.program.executor import InsertOnly
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.core.proofs import NotDerived
from everlog.core.runtime.guards import Broken, LimitExceeded
from everlog.dsl.diagnostics import DatalogError
from everlog.functors import FunctorError
from everlog.store.errors import NoSuchStep, NotWritten, ReadOnly

# the first match counts: a QueryError is a DatalogError and a FactError
_KNOWN: tuple[tuple[type[Exception], int, str], ...] = (
    (DatalogError, 422, "mistakes"),
    (FactError, 422, "bad-fact"),
    (RuleError, 422, "bad-rule"),
    (NoSuchStrategy, 422, "bad-rule"),
    (FunctorError, 422, "functor"),
    (InsertOnly, 422, "insert-only"),
    (NotDerived, 404, "not-derived"),
    (NotInProgram, 404, "no-such-rule"),
    (LimitExceeded, 422, "limit-exceeded"),
    (EvaluationError, 422, "evaluation"),
    (NoSuchStep, 404, "no-such-step"),
    (ReadOnly, 409, "read-only"),
    (NotWritten, 507, "not-written"),
    (RecursionError, 422, "too-deep"),
    (MemoryError, 503, "out-of-memory"),
    (Broken, 500, "broken"),
)
CODES = (
    "bad-fact bad-json bad-parameter bad-request bad-rule body-too-large broken busy evaluation file-parameter"
    " forbidden functor host insert-only internal limit-exceeded media-type method mistakes no-such-relation"
    " no-such-result no-such-rule no-such-step not-derived not-durable not-found not-written out-of-memory"
    " read-only stopping timeout token too-deep too-many-subscribers"
).split()


LONGEST_MESSAGE = 2000  # characters
MOST_DIAGNOSTICS = 100  # of one text


class ApiError(Exception):
    """A request is refused."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        assert code in CODES
        self.status, self.code, self.message, self.more = status, code, clipped(message), more

    def body(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message, **self.more}}


def clipped(text: str) -> str:
    """A message of bounded length, since it may quote a text of a megabyte.

    >>> clipped("x" * 3000) == "x" * 1999 + "…"
    True
    """
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


def diagnostics(error: DatalogError) -> list[dict[str, Any]]:
    """The first errors of a text, each of bounded length."""
    found = error.report.as_json(MOST_DIAGNOSTICS)
    return [{key: clipped(v) if isinstance(v, str) else v for key, v in each.items()} for each in found]


def log_error(error: BaseException) -> None:
    """Write an error of ours to the log of the service."""
    print("error in the service:", file=sys.stderr)
    traceback.print_exception(error)


def error_answer(error: BaseException) -> ApiError:
    """The answer for an exception, which keeps no reference to its frames.

    >>> error_answer(FactError("undefined relation `edg`")).body()
    {'error': {'code': 'bad-fact', 'message': 'undefined relation `edg`'}}
    """
    if isinstance(error, ApiError):
        return ApiError(error.status, error.code, error.message, **error.more)
    for kind, status, code in _KNOWN:
        if isinstance(error, kind):
            if isinstance(error, DatalogError):
                found = diagnostics(error)
                first = next((d["message"] for d in found if d["severity"] == "error"), "the text has errors")
                return ApiError(status, code, first, diagnostics=found)
            return ApiError(status, code, str(error) or code)
    log_error(error)
    return ApiError(500, "internal", "an error inside the service; its log says more")

"""Errors of the calculus: codes of its diagnostics, and the evaluation error.

A `dsl.diagnostics.Report` holds all errors of a text that does not parse or check.  A checked term
can fail in one way only: it divides by zero.  That is a `CalculusError` with the place of the
division.
"""

from __future__ import annotations

MAX_DEPTH = 100  # levels of nesting of a term
MAX_CALLS = 5_000  # function calls that are inlined

CODES: dict[str, str] = {
    "NRC001": "an unexpected character",
    "NRC002": "a text that is never closed, or an unknown escape sequence",
    "NRC010": "an unexpected word",
    "NRC011": "nested too deeply",
    "NRC012": "a name that is bound or declared twice",
    "NRC013": "a modulus that is not prime, or not allowed here",
    "NRC014": "not exactly one generator",
    "NRC015": "a missing or repeated part of a system file",
    "NRC020": "an unknown name",
    "NRC021": "an unknown function, or a wrong number of arguments",
    "NRC022": "a recursive function",
    "NRC023": "too many function calls inside functions",
    "NRC030": "an unexpected type",
    "NRC031": "two types that must be equal, and are not",
    "NRC032": "a projection of a value that is not a tuple, or beyond its parts",
    "NRC033": "a pattern that does not fit its value",
    "NRC034": "an empty set of unknown type",
    "NRC050": "two relations of a system with one name",
    "NRC051": "an input or an answer that is nested",
    "NRC052": "an initial value for a relation that has none",
    "NRC053": "a missing function for an insert or a delete of an input",
    "NRC054": "an update of a relation that is not an input",
    "NRC055": "a function for a relation that an update cannot change",
    "NRC056": "a structural recursion over more or less than one input",
}


class CalculusError(ArithmeticError):
    """An evaluation without a value.

    `pos` and `end` are offsets in the text of the term, -1 if not known.
    """

    def __init__(self, message: str, pos: int = -1, end: int = -1) -> None:
        self.message, self.pos, self.end = message, pos, end
        super().__init__(message)

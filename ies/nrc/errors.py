"""Errors of the calculus: codes of its diagnostics, and the evaluation error.

A `dsl.diagnostics.Report` holds all errors of a text that does not parse or check.  A checked term
can fail in one way only: it divides by zero.  That is a `CalculusError` with the place of the
division.
"""

from __future__ import annotations

MAX_DEPTH = 100  # levels of nesting of a term
MAX_CALLS = 5_000  # function calls that are inlined

CODES: dict[str, str] = {
    "NRC001": "a character that begins no word",
    "NRC002": "a text that is never closed, or an unknown escape sequence in one",
    "NRC010": "a word that cannot stand where it stands",
    "NRC011": "nested too deeply",
    "NRC012": "a name that is bound or given twice",
    "NRC013": "the modulus is no prime number, or cannot stand there",
    "NRC014": "not one generator where one must stand",
    "NRC015": "a part that a system file must have, or may have once",
    "NRC020": "a name that is not known here",
    "NRC021": "a function that is not known, or called with a wrong number of arguments",
    "NRC022": "a function that is defined by itself",
    "NRC023": "functions that call functions too often",
    "NRC030": "a type that is not the one wanted",
    "NRC031": "two types that must be the same, and are not",
    "NRC032": "a projection of what is no tuple, or beyond its parts",
    "NRC033": "a pattern that does not fit its value",
    "NRC034": "an empty set whose type nothing says",
    "NRC050": "two relations of a system with one name",
    "NRC051": "an input or an answer that is nested",
    "NRC052": "an initial value of what has none",
    "NRC053": "an insert or a delete of an input that a system says nothing about",
    "NRC054": "an update of what is no input",
    "NRC055": "a function for what an update cannot change",
    "NRC056": "a structural recursion over other than one input",
}


class CalculusError(ArithmeticError):
    """An evaluation without a value.

    `pos` and `end` are offsets in the text of the term, -1 if not known.
    """

    def __init__(self, message: str, pos: int = -1, end: int = -1) -> None:
        self.message, self.pos, self.end = message, pos, end
        super().__init__(message)

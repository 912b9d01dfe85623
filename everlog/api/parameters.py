"""Values for the parameters of a query: `db.query("age($who, years)", who=name)`.

A value is passed beside the text and never becomes part of it.  It is checked like a fact from
Python, against the kind of its place, and reaches the engine as an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Kind, Value
from everlog.core.program.fact_rows import FactError, kind_of_value, value_of_kind

Read: TypeAlias = Callable[[Kind, object], object]


class ParameterError(FactError):
    """A parameter has no value, or one of the wrong kind."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"parameter `${name}`: {why}")
        self.name, self.why = name, why


def _as_it_is(kind: Kind, value: object) -> object:
    return value


@frozen
class Given:
    """The values of parameters, by name; `read` converts a value to its stored form.

    >>> Given({"who": "Ada"}).value("who", Kind.SYMBOL)
    'Ada'
    >>> Given({"who": "Ada"}).value("who", Kind.NUMBER)
    Traceback (most recent call last):
    everlog.api.parameters.ParameterError: parameter `$who`: 'Ada' is not a number
    """

    values: Mapping[str, object]
    read: Read = _as_it_is

    def value(self, name: str, kind: Kind) -> Value:
        """The value of a parameter, as this kind; ParameterError if it does not fit."""
        if name not in self.values:
            raise ParameterError(name, "it has no value")
        try:
            return value_of_kind(kind, self.read(kind, self.values[name]))
        except FactError as problem:
            raise ParameterError(name, str(problem)) from None

    @property
    def kinds(self) -> dict[str, Kind | None]:
        """The kind that each value has by itself."""
        return {name: kind_of_value(value) for name, value in self.values.items()}


NOTHING_GIVEN = Given({})


def given(values: Mapping[str, object]) -> Given:
    """These values, unconverted."""
    return Given(values) if values else NOTHING_GIVEN

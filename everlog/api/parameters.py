"""Values for the parameters of a query: `db.query("age($who, years)", who=name)`.

A value is given beside the text and never becomes a part of it.  It is checked by the rules for
facts from Python, against the kind of the place in which its parameter stands, and reaches the
engine as an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Kind, Value
from everlog.core.program.fact_rows import FactError, kind_of_value, value_of_kind

Read: TypeAlias = Callable[[Kind, object], object]


class ParameterError(FactError):
    """A parameter without a value, or with one that it cannot have: its name, and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"parameter `${name}`: {why}")
        self.name, self.why = name, why


def _as_it_is(kind: Kind, value: object) -> object:
    return value


@frozen
class Given:
    """The values of parameters, by name; `read` makes what is stored of what somebody sent.

    >>> Given({"who": "Ada"}).value("who", Kind.SYMBOL)
    'Ada'
    >>> Given({"who": "Ada"}).value("who", Kind.NUMBER)
    Traceback (most recent call last):
    everlog.api.parameters.ParameterError: parameter `$who`: 'Ada' is not a number
    """

    values: Mapping[str, object]
    read: Read = _as_it_is

    def value(self, name: str, kind: Kind) -> Value:
        """The value of a parameter in a place of this kind, or ParameterError."""
        if name not in self.values:
            raise ParameterError(name, "it has no value")
        try:
            return value_of_kind(kind, self.read(kind, self.values[name]))
        except FactError as problem:
            raise ParameterError(name, str(problem)) from None

    @property
    def kinds(self) -> dict[str, Kind | None]:
        """What each value is by itself."""
        return {name: kind_of_value(value) for name, value in self.values.items()}


NOTHING_GIVEN = Given({})


def given(values: Mapping[str, object]) -> Given:
    """These values, as they are."""
    return Given(values) if values else NOTHING_GIVEN

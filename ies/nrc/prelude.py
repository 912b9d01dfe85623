"""The functions of `prelude.nrc`, which every term may call.

They are closed: each calls only functions of the prelude, and these are inlined when it is read. So
a system may define a `count` of its own without changing the meaning of `avg`.  They have no place
in the user's text: an error inside one is reported at the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import evolve, fields, has

from everlog.ies.nrc import terms as t
from everlog.ies.nrc.parser import parse_definitions
from everlog.ies.nrc.walk import rebuilt


@lru_cache(maxsize=1)
def prelude() -> Mapping[str, t.Definition]:
    """The functions by name.

    >>> prelude()["count"].parameters
    ('X',)
    """
    path = Path(__file__).parent / "prelude.nrc"
    known: dict[str, t.Definition] = {}
    for definition in parse_definitions(path.read_text(encoding="utf-8"), path.name):
        body = unplaced(_closed(definition.body, known))
        known[definition.name] = t.Definition(definition.name, definition.parameters, body)
    return MappingProxyType(known)


def with_prelude(definitions: Iterable[t.Definition] = ()) -> dict[str, t.Definition]:
    """The prelude's functions and these, which override those of the same name.

    >>> own = t.Definition("count", ("X",), t.Const(0))
    >>> with_prelude([own])["count"].body
    Const(value=0)
    """
    return {**prelude(), **{definition.name: definition for definition in definitions}}


def unplaced(term: t.Term) -> t.Term:
    """The same term without places."""
    return _unplaced(term)  # type: ignore[no-any-return]


def _unplaced(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unplaced, value))
    if not has(type(value)) or not hasattr(value, "pos"):
        return value
    inner = {
        a.name: _unplaced(getattr(value, a.name)) for a in fields(type(value)) if a.name not in ("pos", "end")
    }
    return evolve(value, pos=-1, end=-1, **inner)


def _closed(term: t.Term, known: Mapping[str, t.Definition]) -> t.Term:
    """Calls become `let`: bodies of the prelude use only parameters; no capture."""
    term = rebuilt(term, lambda part: _closed(part, known))
    if not isinstance(term, t.Call):
        return term
    definition = known[term.function]
    if len(term.arguments) == 1:
        return t.Let(t.Bind(definition.parameters[0]), term.arguments[0], definition.body)
    parameters = tuple(t.Bind(name) for name in definition.parameters)
    return t.Let(t.Parts(parameters), t.Tuple(term.arguments), definition.body)

"""Parameters of queries at the prompt: `.param`, and the values for a query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.core.program import Value
    from everlog.repl.session import Session

THEME = "Parameters"
_USAGE = '.param NAME VALUE, where VALUE is a constant such as 5, 1.5 or "ann"'


@command(".param", "[NAME [VALUE | off]]", "set the parameter `$NAME`", THEME, words=None)
def param(session: Session, words: Words) -> None:
    """
    After `.param user "ann"`, `?- age($user, x).` uses that value, and so do `.why`, `.why-not` and
    `.watch`.  `.param user off` removes it; without a value it is printed, without a name all are.
    """
    from everlog.dsl.fact_text import read_constant

    name, _, text = (words[0] if words else "").partition(" ")
    name, text = name.removeprefix("$"), text.strip()
    if not name:
        session.screen.lines(map(_line, session.parameters.items()))
        return
    if not (name.isascii() and name.isidentifier()):
        raise CommandError(f"`{name}` is not a parameter name; usage: {_USAGE}")
    if text == "off":
        session.parameters.pop(name, None)
    elif text:
        value = read_constant(text)
        if value is None:
            raise CommandError(f"`{text}` is not a constant; usage: {_USAGE}")
        session.parameters[name] = value
    else:
        session.screen.line(_line((name, parameters_for(session, [name])[name])))


def _line(parameter: tuple[str, Value]) -> str:
    from everlog.core.program import Constant, Kind
    from everlog.core.program.fact_rows import kind_of_value

    name, value = parameter
    return f"${name} = {Constant(value, kind_of_value(value) or Kind.NUMBER)}"


def parameters_for(session: Session, names: Iterable[str]) -> dict[str, Value]:
    """The values of parameters, by name."""
    found = {}
    for name in names:
        if name not in session.parameters:
            raise CommandError(f"parameter `${name}` has no value; set one: .param {name} VALUE")
        found[name] = session.parameters[name]
    return found

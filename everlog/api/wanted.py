"""Which facts a subscription is about: all of a relation, or those that match an atom.

A relation on demand is computed for those who ask: a subscription asks for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from everlog.api.changes import Changes
from everlog.api.facts.rows import Pattern, pattern_of
from everlog.api.parameters import NOTHING_GIVEN
from everlog.api.transactions import Writer
from everlog.core.program.fact_rows import FactError, declared
from everlog.dsl.fact_text import cut
from everlog.dsl.query_text import parse_query

Release: TypeAlias = Callable[[], None]


def pattern_wanted(writer: Writer, text: str) -> Pattern:
    """The facts that a text names: `path`, or an atom such as `path(1, x)`."""
    if "(" not in text:
        return Pattern(declared(writer.relations, text))
    found = pattern_of(writer.relations, parse_query(text))
    if found.parameters:
        raise FactError(f"`{cut(text)}`: a subscription has no parameters")
    return found.filled(NOTHING_GIVEN)


class WantedFacts:
    """The facts that match a pattern; those of a relation on demand are asked for."""

    def __init__(self, writer: Writer, pattern: Pattern) -> None:
        self.pattern, self._writer = pattern, writer
        self._release: Release | None = ask_while(writer, pattern)

    def of(self, changes: Changes) -> Changes:
        pattern, name = self.pattern, self.pattern.relation.name
        if not pattern.bound and not pattern.equal:
            return changes
        mine = {row: sign for row, sign in changes[name].items() if pattern.matches(row)}
        return Changes({name: mine} if mine else {}, changes.relations)

    def end(self) -> None:
        if self._release is not None:
            self._release()
            self._release = None


def ask_while(writer: Writer, pattern: Pattern) -> Release | None:
    """Ask for facts of a relation on demand, until the result is called; None for others."""
    demands, name = writer.engine.demands, pattern.relation.name
    if not demands.is_on_demand(name):
        return None
    writer.require_no_transaction()
    part, values = writer.state.read(lambda: demands.watch(name, pattern.bound))

    def release() -> None:
        if name in writer.engine.program.relations:
            writer.state.read(lambda: demands.unwatch(part, values))

    return release

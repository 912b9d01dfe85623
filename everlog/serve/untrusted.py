"""Limits on texts that come over HTTP: they must not name files or databases.

A stored program outlives the service, and `everlog run --db` writes its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everlog.api.live import LiveText
from everlog.dsl import ast
from everlog.files.within import named_place
from everlog.serve.errors import ApiError


def refuse_places(live: LiveText) -> None:
    """Raise ApiError if the last added statements name a file or a database."""
    added = f"<added {live.added}>"
    statements = [s for s in live.statements(added=True) if live.source.locate(s.pos).file == added]
    for directive in _directives(statements):
        place = named_place(dict(directive.params))
        if place is not None:
            relation = ", ".join(name.name for name in directive.relations)
            raise ApiError(
                422,
                "file-parameter",
                f"`.{directive.kind} {relation}({place})`: a text that comes over HTTP cannot name files or"
                " databases; omit the parameter, or write the directive into the program that is served",
            )


def _directives(statements: Iterable[ast.Statement]) -> Iterator[ast.Directive]:
    for statement in statements:
        if isinstance(statement, ast.Directive):
            yield statement
        elif isinstance(statement, ast.Component):
            yield from _directives(statement.items)

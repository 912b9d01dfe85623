"""`order by` and `limit` at the end of a query: `path(1, x) order by x desc limit 10`.

The grammar has no such words: they stay names, as in Soufflé.  Where a body may end, two names
cannot follow it, so there the words are taken out of the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from everlog.dsl import ast
from everlog.dsl.diagnostics import Report
from everlog.dsl.parser import Parser


@frozen
class Key:
    """A variable to order by."""

    name: str
    descending: bool
    pos: int
    end: int


@frozen
class Ordering:
    """How many answers are asked for, and in which order."""

    keys: tuple[Key, ...] = ()
    limit: int | None = None


NONE = Ordering()


class OrderingReader:
    """Takes orderings out of tokens; `found` has each by the place where its query ends.

    >>> from everlog.dsl.query_text import parse_query
    >>> query = parse_query("edge(x, y), x > 3 order by y desc, x limit 10")
    >>> query.body, [key.name for key in query.ordering.keys], query.ordering.limit
    ('edge(x, y), x > 3', ['y', 'x'], 10)
    """

    def __init__(self, parser: Parser, report: Report) -> None:
        self.parser, self.report = parser, report
        self.found: dict[int, tuple[int, Ordering]] = {}  # end of the query → end of its body

    def without(self, tokens: Iterator[Any]) -> Iterator[Any]:
        last = 0
        for token in tokens:
            if _is(token, "order", "limit") and self._body_may_end():
                token = self._read(token, tokens, last)
            last = token.end
            yield token

    def _body_may_end(self) -> bool:
        """Behind a directive, which has no full stop, the next statement may begin."""
        accepts, states = self.parser.machine.accepts, self.parser.states
        return accepts(states, "DOT") and not accepts(states, "$END")

    def _read(self, token: Any, tokens: Iterator[Any], body_end: int) -> Any:
        """Read an ordering that begins with `token`; the token behind it."""
        words = [token]
        for following in tokens:
            words.append(following)
            if getattr(following, "type", "") in ("DOT", "$END", "FACT"):
                break
        ordering = _ordering(words[:-1])
        if ordering is None:
            wrong = "an ordering is `order by x desc, y limit 10`, with variables of the query"
            self.report.error(
                "DL010", wrong, ast.Name("", token.pos, words[-2].end if len(words) > 1 else token.end)
            )
            ordering = NONE
        self.found[words[-1].end] = body_end, ordering
        return words[-1]


def _is(token: Any, *names: str) -> bool:
    return isinstance(token, ast.Name) and token.name.lower() in names


def _ordering(words: list[Any]) -> Ordering | None:
    """The ordering that some tokens are; None if they are none."""
    keys: list[Key] = []
    at = 0
    if _is(words[0], "order"):
        if len(words) < 3 or not _is(words[1], "by"):
            return None
        at = 1
        while at == 1 or (at < len(words) and getattr(words[at], "type", "") == "COMMA"):
            at += 1
            if at >= len(words) or not isinstance(words[at], ast.Name):
                return None
            name = words[at]
            at += 1
            descending = at < len(words) and _is(words[at], "desc")
            at += at < len(words) and _is(words[at], "asc", "desc")
            keys.append(Key(name.name, descending, name.pos, name.end))
    if at == len(words):
        return Ordering(tuple(keys))
    if len(words) - at != 2 or not _is(words[at], "limit") or not isinstance(words[at + 1], ast.Number):
        return None
    text = words[at + 1].text
    if not text.isdigit() or len(text) > 15:
        return None
    return Ordering(tuple(keys), int(text))

"""What a tool needs: answers to requests of the service, and changes to wait for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

ROWS = 1000  # in one answer, which has to fit into the context of a model
MOST_SECONDS = 60.0  # that one call may wait for changes


class Refused(Exception):
    """A request has no answer; the message is for the agent, which can try again."""


class Answering(Protocol):
    """A database, or a service, that answers."""

    async def ask(self, operation: str, body: object = None, **query: object) -> dict[str, Any]:
        """The answer to an operation of the service, named as in its table of routes."""

    async def changes(self, relations: Collection[str], after: str | None, seconds: float) -> dict[str, Any]:
        """The steps after `after` that changed these relations (all if there are none).

        Waits for the first one, at most so long.  `after` in the answer is the place to go on from;
        `missed` says that the steps from there are not known any more.
        """


def refusal(error: Mapping[str, Any]) -> Refused:
    """The error of a service as text: its message, and each diagnostic with its place and hint.

    >>> found = {"code": "DL050", "line": 1, "message": "undefined relation `edg`"}
    >>> found["hint"] = "did you mean `edge`?"
    >>> print(refusal({"message": "undefined relation `edg`", "diagnostics": [found]}))
    DL050, line 1: undefined relation `edg`
      hint: did you mean `edge`?
    """
    lines = []
    for each in error.get("diagnostics", ()):
        place = f", line {each['line']}" if each.get("line") else ""
        lines.append(f"{each.get('code', 'error')}{place}: {each['message']}")
        lines += [f"  {key}: {each[key]}" for key in ("rule", "hint") if each.get(key)]
    return Refused("\n".join(lines) or str(error.get("message", "no answer")))

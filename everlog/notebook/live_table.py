"""A table in a notebook that follows its relation, in the cell where it was shown.

Steps may come far faster than anyone can read, so the table is drawn at most ten times a second:
later steps wait for the event loop of the notebook, which draws the last state.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from everlog.explain.markup import Html, element, together
from everlog.extras import optional
from everlog.html import relation_html

if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.api.relation_view import RelationView

_PAUSE = 0.1  # seconds between two drawings


class LiveTable:
    """The facts of a relation, drawn again after each step that changes them.

    It follows from the first time it is shown until `close`, or the end of the notebook.
    """

    def __init__(self, view: RelationView) -> None:
        self.view = view
        self._handle: Any = None
        self._subscription: Any = None
        self._drawn, self._waiting = 0.0, False
        self._told = ""

    def close(self) -> None:
        """Stop following; the last state stays."""
        if self._subscription is not None:
            self._subscription.cancel()
            self._subscription = None

    def _ipython_display_(self) -> None:
        display = optional("IPython.display", "jupyter", "a live table").display
        if self._subscription is None:
            self._subscription = self.view.subscribe(self._hear)
        self._handle = display(_Shown(self.html(), repr(self.view)), display_id=True)

    def html(self) -> Html:
        """The table now, with what the last step changed."""
        note = self._told or "follows changes"
        return together([Html(relation_html(self.view)), element("div", f"● {note}", style="color:#1e8449")])

    def _hear(self, changes: Changes) -> None:
        new, gone = len(changes.inserted(self.view.name)), len(changes.deleted(self.view.name))
        self._told = f"last step: {new} new, {gone} gone"
        if monotonic() - self._drawn >= _PAUSE:
            self._draw()
        elif not self._waiting:
            self._later()

    def _later(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no event loop, so nothing can be drawn later
            self._draw()
            return
        self._waiting = True
        loop.call_later(_PAUSE, self._draw)

    def _draw(self) -> None:
        self._drawn, self._waiting = monotonic(), False
        self._handle.update(_Shown(self.html(), repr(self.view)))


class _Shown:
    """A drawing of one state."""

    def __init__(self, html: str, plain: str) -> None:
        self._html, self._plain = html, plain

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._plain

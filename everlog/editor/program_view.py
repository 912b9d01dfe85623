"""A program seen from one document: places of the program as ranges of the protocol, and back."""

from __future__ import annotations

import os

from attrs import define
from lsprotocol import types as lsp

from everlog.editor.analysis import Analysis, Place
from everlog.editor.open_documents import Document, Documents
from everlog.editor.text_lines import column_at, units


@define(eq=False)
class ProgramView:
    """What the features read: an analysis, and the document that a request names."""

    documents: Documents
    document: Document
    analysis: Analysis
    encoding: str = "utf-16"

    def offset(self, position: lsp.Position) -> int | None:
        """The offset in the program of a position of the document."""
        return self.analysis.offset(self.place(position))

    def place(self, position: lsp.Position) -> Place:
        """The place of a position; one beyond the text is its end."""
        lines = self.document.lines
        if position.line >= len(lines):
            return Place(self.document.file, len(lines) - 1, len(lines[-1]))
        column = column_at(lines[position.line], position.character, self.encoding)
        return Place(self.document.file, position.line, column)

    def text_before(self, position: lsp.Position) -> str:
        """The document's text up to a position."""
        place = self.place(position)
        lines = self.document.lines
        return "\n".join([*lines[: place.line], lines[place.line][: place.column]])

    def location(self, pos: int, end: int) -> lsp.Location:
        """Where a range of the program stands."""
        start, stop = self.analysis.place(pos), self.analysis.place(max(pos, end))
        if stop.file != start.file or (stop.line, stop.column) < (start.line, start.column):
            stop = start
        lines = self.analysis.lines_of(start.file)
        span = lsp.Range(self._position(start, lines), self._position(stop, lines))
        return lsp.Location(self.documents.uri_of(start.file), span)

    def range_here(self, pos: int, end: int) -> lsp.Range | None:
        """The range in this document; None if it stands in another file."""
        file = self.analysis.source.locate(pos).file
        return self.location(pos, end).range if self.is_here(file) else None

    def is_here(self, file: str) -> bool:
        """Whether a file of the program is this document."""
        return file == self.document.file or os.path.normpath(file) == self.document.file

    def _position(self, place: Place, lines: list[str]) -> lsp.Position:
        line = lines[place.line] if place.line < len(lines) else ""
        return lsp.Position(place.line, units(line[: place.column], self.encoding))

    def range_of_text(self, line: int, start: int, end: int) -> lsp.Range:
        """Columns of a line of the document as a range."""
        text = self.document.lines[line]
        first, last = units(text[:start], self.encoding), units(text[:end], self.encoding)
        return lsp.Range(lsp.Position(line, first), lsp.Position(line, last))

    def whole(self) -> lsp.Range:
        """The range of the whole document."""
        last = len(self.document.lines) - 1
        return lsp.Range(lsp.Position(0, 0), lsp.Position(last, units(self.document.lines[last], self.encoding)))

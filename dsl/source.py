"""The text that the parser sees, and where each of its lines came from.

The preprocessor resolves macros and includes before parsing, so the parsed text is not the file. A
`Source` is that text with the original file and line of each of its lines.
"""

from __future__ import annotations

from bisect import bisect_right

from attrs import define, field, frozen


@frozen
class Location:
    """A place for people: file, line and column counted from 1, and the line's text."""

    file: str
    line: int
    column: int
    text: str


@define
class Source:
    """Text to parse, with the origin of each line.

    `origins[i]` is the file and line number of line i (counted from 0) of `text`; where it is
    empty, the text is the file itself.

    >>> source = Source("a\\nb c", "x.dl")
    >>> source.locate(4)
    Location(file='x.dl', line=2, column=3, text='b c')
    """

    text: str
    file: str = "<text>"
    origins: list[tuple[str, int]] = field(factory=list)
    _starts: list[int] = field(factory=list)

    def locate(self, offset: int) -> Location:
        """The file, line and column of an offset.

        Cost: logarithmic in the number of lines, after the first call.
        """
        if not self._starts:
            self._starts = [0]
            self._starts += [i + 1 for i, char in enumerate(self.text) if char == "\n"]
        offset = min(max(offset, 0), len(self.text))
        row = bisect_right(self._starts, offset) - 1
        start = self._starts[row]
        stop = self.text.find("\n", start)
        line = self.text[start : stop if stop >= 0 else len(self.text)]
        file, number = self.origins[row] if self.origins else (self.file, row + 1)
        return Location(file, number, offset - start + 1, line)

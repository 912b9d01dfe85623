"""How the lines of one delimited file are laid out, as the parameters of its directive say.

Reads: values, place.  Read by: delimited, bulk, rfc4180, typed.
"""

from __future__ import annotations

from attrs import frozen

from everlog.core.fact_rows import column_label, shown
from everlog.core.program import Column, Kind
from everlog.files.place import Place
from everlog.files.rejects import BadRow
from everlog.files.values import FactsError


@frozen
class Layout:
    """`sources[i]` is the position in the line, from 0, of what feeds column `i` of the relation.

    Invariants:
      I1  there is one source per column, and none is negative;
      I2  the delimiter is not empty, and has no quote in it where fields may be quoted.
    """

    file: str
    columns: tuple[Column, ...]
    sources: tuple[int, ...]
    delimiter: str
    rfc4180: bool
    headers: bool

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(column.kind for column in self.columns)

    @property
    def brackets(self) -> bool:
        """Whether delimiters inside `[…]` do not split: they would cut Soufflé's records."""
        return "," in self.delimiter and not self.rfc4180

    @property
    def width(self) -> int:
        """How many fields a line must have."""
        return max(self.sources, default=-1) + 1

    def bad_row(self, line: int, reason: str, values: object) -> BadRow:
        return BadRow(self.file, line, reason, values, "line")

    def label(self, index: int) -> str:
        return column_label(self.columns[index], self.sources[index] + 1)


def layout_of(place: Place, file: str) -> Layout:
    rfc4180 = place.flag("rfc4180")
    delimiter = place.params.get("delimiter", "," if rfc4180 else "\t")
    if not delimiter:
        raise FactsError(f"relation {place.relation.name}: the delimiter is empty")
    if rfc4180 and '"' in delimiter:
        raise FactsError(f"relation {place.relation.name}: with rfc4180=true a delimiter cannot contain a quote")
    sources = sources_of(place)
    return Layout(file, place.relation.columns, sources, delimiter, rfc4180, place.flag("headers"))


def sources_of(place: Place) -> tuple[int, ...]:
    """The parameter `columns="2:0"`, or every column from its own position."""
    arity = place.relation.arity
    text = place.params.get("columns", "")
    if not text:
        return tuple(range(arity))
    parts = text.split(":")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise FactsError(
            f"relation {place.relation.name}: columns={shown(text)} is not a list like '2:0' of positions from 0"
        )
    if len(parts) != arity:
        raise FactsError(
            f"relation {place.relation.name}: columns={shown(text)} names {len(parts)} columns,"
            f" but the relation has {arity}"
        )
    return tuple(map(int, parts))

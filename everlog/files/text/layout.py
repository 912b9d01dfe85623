"""The layout of a delimited file, from the parameters of its directive."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, cast

from attrs import frozen

from everlog.core.program import Column, Kind, Value
from everlog.core.program.fact_rows import column_label, shown, with_article
from everlog.files.location import Place
from everlog.files.rejects import BadRow
from everlog.files.text.encodings import UTF8
from everlog.files.text_values import PARSERS, FactsError

Fields: TypeAlias = list[str | None]  # None: an empty field that is a null


@frozen
class Layout:
    """How to split lines: column `i` of the relation is field `sources[i]`, from 0.

    Invariants:
      I1  there is one source per column, and none is negative;
      I2  the delimiter is not empty, and contains no quote if fields may be quoted.

    `headers` is `true`, `false`, `auto` (the first line decides), or empty if the parameter is not
    set.  `nulls` is the value of an empty field in each column, or None if that is an error; as a
    whole it is None if an empty field is an empty symbol, as in Soufflé.
    """

    file: str
    columns: tuple[Column, ...]
    sources: tuple[int, ...]
    delimiter: str
    rfc4180: bool
    headers: str
    encoding: str = UTF8
    nulls: tuple[Value | None, ...] | None = None
    names: str = ""  # the header from the parameter `attributeNames`
    fields: int | None = None  # the number of fields in each line, if a header determines it
    positions_given: bool = False  # by the parameter `columns`

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(column.kind for column in self.columns)

    @property
    def brackets(self) -> bool:
        """Whether delimiters inside `[…]` do not split, because they belong to records."""
        return "," in self.delimiter and not self.rfc4180

    @property
    def width(self) -> int:
        """The number of fields that a line must have."""
        return max(self.sources, default=-1) + 1

    @property
    def relation(self) -> str:
        """The columns, for messages.

        >>> str(Layout("f", (Column("x", Kind.NUMBER),), (0,), ",", False, "").relation)
        '(x:number)'
        """
        return f"({', '.join(f'{column.name}:{column.type_name or column.kind}' for column in self.columns)})"

    @property
    def parsers(self) -> list[tuple[int, Callable[[str | None], Value]]]:
        """For each column, its position and its parser, which raises ValueError."""
        if self.nulls is None:
            return [
                (source, cast(Callable[[str | None], Value], PARSERS[kind]))
                for source, kind in zip(self.sources, self.kinds, strict=True)
            ]
        return [
            (source, partial(_value_or_null, kind, null))
            for source, kind, null in zip(self.sources, self.kinds, self.nulls, strict=True)
        ]

    def bad_row(self, line: int, reason: str, values: object) -> BadRow:
        return BadRow(self.file, line, reason, values, "line")

    def label(self, index: int) -> str:
        return column_label(self.columns[index], self.sources[index] + 1)


def _value_or_null(kind: Kind, null: Value | None, field: str | None) -> Value:
    if field is not None:
        return PARSERS[kind](field)
    if null is None:
        empty = ' (the empty one is written "")' if kind is Kind.SYMBOL else ""
        raise ValueError(f"an empty field is not {with_article(kind)}{empty}; set null=VALUE to replace it")
    return null


HEADERS = ("true", "false", "auto")


def layout_of(place: Place, file: str) -> Layout:
    rfc4180 = place.flag("rfc4180")
    delimiter = place.params.get("delimiter", "," if rfc4180 else "\t")
    if not delimiter:
        raise FactsError(f"relation {place.relation.name}: the delimiter is empty")
    if rfc4180 and '"' in delimiter:
        raise FactsError(f"relation {place.relation.name}: with rfc4180=true a delimiter cannot contain a quote")
    headers = place.params.get("headers", "")
    if headers and headers not in HEADERS:
        raise FactsError(f"relation {place.relation.name}: headers={shown(headers)}: use {', '.join(HEADERS)}")
    return Layout(
        file=file,
        columns=place.relation.columns,
        sources=sources_of(place),
        delimiter=delimiter,
        rfc4180=rfc4180,
        headers=headers,
        encoding=place.params.get("encoding", UTF8),
        nulls=place.nulls if rfc4180 or "null" in place.params else None,
        names=place.params.get("attributeNames", ""),
        positions_given="columns" in place.params,
    )


def sources_of(place: Place) -> tuple[int, ...]:
    """The parameter `columns="2:0"`, or each column from its own position."""
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

"""The first line of a delimited file: the names of its columns, or a fact.

With `headers=true` the line has names, and columns are found by name, ignoring case; if the
relation has none of these names, but as many columns, by position.  Every line then has as many
fields as the header.  With `headers=false` the line is a fact.

With `headers=auto`, the default for a `.csv` from Python and at the prompt, the line decides.  If
it has the names of all columns, it is a header.  Otherwise it is a fact, if it has a value for a
column that is not a symbol.  If all columns are symbols, a header looks like a fact: then the user
has to say which it is.  (With tabs, as in Soufflé's files, a line without the names of all columns
is a fact.)

Without the parameter there is no header, as in Soufflé.  But if the delimiter is not a tab and the
first line has the names of all columns, the file is refused: a header must not become a fact.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from everlog.core.program import Kind
from everlog.core.program.fact_rows import shown
from everlog.files.text.layout import Layout
from everlog.files.text_values import FactsError, parse_float
from everlog.spark_backend.column_types import positions_by_name


def looks_at_first(layout: Layout) -> bool:
    """Whether the first line may be something else than a fact."""
    return layout.headers in ("true", "auto") or (not layout.headers and not _is_souffles(layout))


def _is_souffles(layout: Layout) -> bool:
    """Whether a file has Soufflé's default format."""
    return not layout.rfc4180 and "\t" in layout.delimiter


def settled(layout: Layout, fields: Sequence[str | None], is_quoted: bool) -> tuple[Layout, bool]:
    """The layout of the following lines, and whether the first line is a header.

    Raises FactsError if the line is ambiguous.  `is_quoted` says whether the line has a quote.
    """
    names = [(field or "").strip().strip('"').strip() for field in fields]
    if layout.headers == "true":
        return _by_name(layout, names), True
    is_named = _has_all_names(layout, names)
    is_fact = _is_fact(layout, fields)
    if not layout.headers:
        if is_named:
            raise _ambiguous(layout, names, "has the names of the columns")
        return layout, False
    if is_named and (not is_fact or (_all_symbols(layout) and not is_quoted)):
        return _by_name(layout, names), True
    if is_named:
        raise _ambiguous(layout, names, "has the names of the columns, and may be a fact")
    if not _is_souffles(layout) and (_all_symbols(layout) if is_fact else _lacks_numbers(layout, fields)):
        raise _ambiguous(layout, names, f"may be a header, but lacks some names of {layout.relation}")
    return layout, False


def _by_name(layout: Layout, names: list[str]) -> Layout:
    """The layout of lines below a header with these names."""
    if layout.names and layout.delimiter.join(names) == layout.names:
        return layout  # the header that `attributeNames` wrote
    if layout.positions_given:
        return evolve(layout, fields=len(names))
    positions = positions_by_name([column.name for column in layout.columns], names)
    if positions is None:
        raise FactsError(
            f"{layout.file}:1: the header has the columns {', '.join(names)}, which do not fit"
            f" {layout.relation}: use the relation's names (or the same number of columns with other names, which"
            ' are matched by position), or select columns with columns="2:0"'
        )
    return evolve(layout, sources=tuple(positions), fields=len(names))


def _has_all_names(layout: Layout, names: list[str]) -> bool:
    found = {name.lower() for name in names}
    return all(column.name.lower() in found for column in layout.columns)


def _is_fact(layout: Layout, fields: Sequence[str | None]) -> bool:
    try:
        for source, parse in layout.parsers:
            parse(fields[source])
    except (IndexError, ValueError):
        return False
    return True


def _all_symbols(layout: Layout) -> bool:
    return all(kind is Kind.SYMBOL for kind in layout.kinds)


def _lacks_numbers(layout: Layout, fields: Sequence[str | None]) -> bool:
    """Whether no field of a numeric column looks like a number."""
    if len(fields) < layout.width or _all_symbols(layout):
        return False
    wanted = [
        fields[source]
        for source, kind in zip(layout.sources, layout.kinds, strict=True)
        if kind is not Kind.SYMBOL
    ]
    return not any(map(_is_like_number, wanted))


def _is_like_number(field: str | None) -> bool:
    try:
        return not field or any(map(str.isdigit, field)) or parse_float(field) is not None
    except ValueError:
        return False


def _ambiguous(layout: Layout, names: list[str], what: str) -> FactsError:
    return FactsError(
        f"{layout.file}:1: the first line, {shown(layout.delimiter.join(names))}, {what}: set headers=true if"
        " it is a header, or headers=false if it is a fact"
    )

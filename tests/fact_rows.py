"""Relations and rows of every kind for tests of formats, with extreme values."""

from __future__ import annotations

from hypothesis import strategies as st

from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded

ANY_SYMBOL = st.one_of(
    st.text(max_size=6), st.binary(max_size=6).map(decoded), st.sampled_from(['"', ",", "\r\n"])
)
PLAIN_SYMBOL = ANY_SYMBOL.filter(lambda text: not set(text) & set("\t\n\r\x1f,;[]"))
TEXT_SYMBOL = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6
)  # PostgreSQL's


def relation(*kinds: Kind, name: str = "edge") -> Relation:
    return Relation(name, tuple(Column("xyzuvw"[i], kind) for i, kind in enumerate(kinds)))


def values_of(kind: Kind, symbols: st.SearchStrategy[str]) -> st.SearchStrategy[int | float | str]:
    match kind:
        case Kind.NUMBER:
            return st.integers(SIGNED_MIN, SIGNED_MAX)
        case Kind.UNSIGNED:
            return st.integers(0, MASK)
        case Kind.FLOAT:
            return st.floats().map(lambda value: value if value == value else NAN)
        case Kind.SYMBOL:
            return symbols


@st.composite
def relations_with_rows(
    draw: st.DrawFn, symbols: st.SearchStrategy[str], least: int = 1
) -> tuple[Relation, list[Row]]:
    """A relation and rows of it; one without columns has at most one row."""
    kinds = draw(st.lists(st.sampled_from(list(Kind)), min_size=least, max_size=4))
    rows = draw(st.lists(st.tuples(*(values_of(kind, symbols) for kind in kinds)), max_size=6 if kinds else 1))
    return relation(*kinds), rows


def types_of(of: Relation) -> list[type]:
    """What Python's values of the columns are."""
    return [{Kind.SYMBOL: str, Kind.FLOAT: float}.get(column.kind, int) for column in of.columns]

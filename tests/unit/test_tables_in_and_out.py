"""Tables of pandas, Polars, Arrow and numpy, in and out; and errors."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from math import isnan
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everlog import Database, FactError, MissingPackage, compile_text, evaluate
from everlog.core.native.availability import why_not
from everlog.core.program.values import NAN

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra `pandas`)")
pl = pytest.importorskip("polars", reason="polars is not installed (extra `polars`)")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `arrow`)")
np = pytest.importorskip("numpy", reason="numpy is not installed (extra `pandas`)")

PROGRAM = ".decl v(n:number, u:unsigned, f:float, s:symbol)  .decl e(x:number, y:number)  .decl flag()"
ROWS = [(-1, 2, 0.5, "a"), (3, 2**64 - 1, float("inf"), "é"), (4, 0, -0.0, "")]


@pytest.fixture
def db() -> Database:
    return Database.from_text(PROGRAM)


# ── there and back ───────────────────────────────────────────────────────────────────────────


class Stream:
    """A table of an unknown library."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


BACK: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda found: found.to_pandas(),
    "pandas with its own types": lambda found: found.to_pandas().convert_dtypes(),
    "pandas on Arrow": lambda found: found.to_pandas().convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": lambda found: found.to_pandas().astype({"s": "category"}),
    "pandas, another order": lambda found: found.to_pandas()[["s", "f", "u", "n"]].assign(extra=1),
    "pandas, other names": lambda found: found.to_pandas().set_axis(list("abcd"), axis=1),
    "pandas, numbers for names": lambda found: found.to_pandas().set_axis(range(4), axis=1),
    "polars": lambda found: found.to_polars(),
    "polars, lazy": lambda found: found.to_polars().lazy(),
    "polars categories": lambda found: found.to_polars().with_columns(pl.col("s").cast(pl.Categorical)),
    "arrow": lambda found: found.to_arrow(),
    "arrow, a batch": lambda found: found.to_arrow().combine_chunks().to_batches()[0],
    "arrow, a reader": lambda found: found.to_arrow().to_reader(),
    "arrow, a dictionary": lambda found: found.to_arrow().set_column(
        3, "s", found.to_arrow()["s"].dictionary_encode()
    ),
    "arrow, large": lambda found: found.to_arrow().cast(
        pa.schema([("n", pa.int64()), ("u", pa.uint64()), ("f", pa.float64()), ("s", pa.large_string())])
    ),
    "whatever speaks Arrow": lambda found: Stream(found.to_arrow()),
    "a dict of lists": lambda found: {k: list(v) for k, v in found.to_pandas().items()},
    "a dict of columns": lambda found: dict(found.to_polars().to_dict()),
    "rows": lambda found: found.rows(),
    "a result": lambda found: found,
}


@pytest.mark.parametrize("way", BACK)
def test_a_table_comes_back_as_it_went(db: Database, way: str) -> None:
    db.insert("v", ROWS)
    for found in (db.query("v(n, u, f, s)"), db["v"]):
        table = BACK[way](found)
        other = Database.from_text(PROGRAM, facts={"v": table})
        assert other.view("v") == db.view("v") == sorted(ROWS)
        assert repr(other.view("v")) == repr(db.view("v")), "no -0.0, and Python's own ints"


COPIED = compile_text(
    PROGRAM + " .decl w(n:number, u:unsigned, f:float, s:symbol)  w(n, u, f, s) :- v(n, u, f, s)."
)


@pytest.mark.parametrize("way", BACK)
def test_a_table_comes_back_from_an_evaluation_as_it_went(way: str) -> None:
    found = evaluate(COPIED, {"v": BACK[way](evaluate(COPIED, {"v": ROWS})["w"])})
    assert repr(found["w"].rows()) == repr(sorted((n, u, f + 0.0, s) for n, u, f, s in ROWS))
    assert len(found["w"]) == 3


CELLS = st.tuples(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    st.integers(0, 2**64 - 1) | st.integers(0, 3),
    st.floats() | st.sampled_from([NAN, -0.0, 2.0**60]),
    st.sampled_from(["", "a", "é", "z\n", "zz"]) | st.text(st.characters(codec="utf-8"), max_size=3),
)


@given(st.lists(CELLS, max_size=8))
@example([(0, 0, 0.0, "\udc80")])
def test_columns_of_words_are_the_columns_of_rows(rows: list[Any]) -> None:
    """Whatever is in them, sorted, each row once: by words in both directions, or by rows."""
    expected = Database.from_text(PROGRAM, facts={"v": rows})["v"]
    names = ("n", "u", "f", "s")
    table = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    arrays = dict(zip(names, ("int64", "uint64", "float64", "object"), strict=True))
    frame = pd.DataFrame({name: pd.Series(table[name], dtype=arrays[name]) for name in names})
    for given_table in (table, frame):
        found = evaluate(COPIED, {"v": given_table})
        if not why_not():
            assert {"v", "w"} <= set(found.relations.words), "Python has read the table"
        assert repr(found["w"].rows()) == repr(expected.rows())
        assert found["w"].to_arrow().equals(expected.to_arrow(), check_metadata=True) or any(
            map(isnan, table["f"])
        )
        assert repr(found["w"].to_arrow().to_pylist()) == repr(expected.to_arrow().to_pylist())
        if "\udc80" not in table["s"]:  # which is no text of Polars and pandas 3
            pd.testing.assert_frame_equal(found["w"].to_pandas(), expected.to_pandas())
            assert found["w"].to_polars().equals(expected.to_polars(), null_equal=True)


@pytest.mark.parametrize(
    "columns",
    [
        {"x": pa.array([1, None]), "y": pa.array([1, 2])},
        {"x": pa.array([1, 2**63], pa.uint64()), "y": pa.array([1, 2])},
        {"x": pa.array([1.5, 2.0]), "y": pa.array([1, 2])},
        {"x": pa.array(["1", "2"]), "y": pa.array([1, 2])},
        {"x": pd.Series([1, pd.NA], dtype="Int64"), "y": [1, 2]},
        {"x": np.array([1, 2, 3]), "y": [1, 2]},
        {"z": np.array([1, 2]), "y": [1, 2]},
        {"x": ["a", 2], "y": [1, 2]},
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_the_same_words(columns: dict[str, Any], db: Database) -> None:
    with pytest.raises(FactError) as rows:
        db.insert("e", columns)
    program = compile_text(PROGRAM + " .decl o(x:number)  o(x) :- e(x, y), e(y, x).")
    with pytest.raises(FactError) as words:
        evaluate(program, {"e": columns})
    assert str(words.value) == str(rows.value)


def test_a_relation_that_the_machine_keeps_becomes_a_table_of_what_is_there_now() -> None:
    """Of a recursive unit, after facts have gone, and for a result from before a step."""
    db = Database.from_text(
        ".decl e(x:symbol, y:symbol)  .decl d(x:symbol, y:symbol)  .decl any()"
        " d(x, y) :- e(x, y).  d(x, y) :- e(x, z), d(z, w), e(w, y), any().  any() :- d(_, _)."
    )
    db.insert("e", [(f"n{i}", f"n{j}") for i in range(12) for j in (i + 1, i * 5 % 12)])
    db.delete("e", [("n1", "n2"), ("n3", "n4")])
    rows, found = db.view("d"), db.query("d(x, y)")
    assert [tuple(row.values()) for row in db["d"].to_arrow().to_pylist()] == rows
    assert found.to_polars().rows() == rows
    assert len(db["any"].to_pandas()) == 1
    db.insert("e", ("n5", "another"))
    assert len(found.to_pandas()) == len(rows) < len(db["d"].to_pandas())


def test_nan_is_one_value_on_every_way(db: Database) -> None:
    db.insert("v", [(1, 1, float("nan"), "a"), (2, 1, NAN, "b")])
    for table in (
        db["v"].to_pandas(),
        db["v"].to_polars(),
        db["v"].to_arrow(),
        db["v"].to_pandas().to_dict("list"),
    ):
        other = Database.from_text(PROGRAM, facts={"v": table})
        assert all(row[2] is NAN for row in other.view("v"))
        assert other.query("v(x, _, z, _), v(y, _, z, _), x < y").rows() == [(1, NAN, 2)]


@given(st.lists(st.tuples(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1), st.floats(allow_nan=False), st.text(max_size=5)
), max_size=20))  # fmt: skip
def test_whatever_is_in_a_relation_survives_every_library(rows: list[tuple[int, int, float, str]]) -> None:
    db = Database.from_text(PROGRAM, facts={"v": [r for r in rows if r[3].isprintable()]})
    for table in (db["v"].to_pandas(), db["v"].to_polars(), db["v"].to_arrow()):
        assert Database.from_text(PROGRAM, facts={"v": table}).view("v") == db.view("v")


def test_types_of_columns_also_without_rows(db: Database) -> None:
    for _ in range(2):
        frame, lazy, table = db["v"].to_pandas(), db["v"].to_polars(), db["v"].to_arrow()
        assert [str(t) for t in frame.dtypes[:3]] == ["int64", "uint64", "float64"]
        assert str(frame.dtypes["s"]) in ("object", "str", "string")
        assert lazy.schema == {"n": pl.Int64, "u": pl.UInt64, "f": pl.Float64, "s": pl.String}
        assert [str(t) for t in table.schema.types] == ["int64", "uint64", "double", "string"]
        db.insert("v", ROWS)


def test_a_query_names_the_columns(db: Database) -> None:
    db.insert("e", [(1, 2), (2, 3)])
    frame = db.query("e(a, b), e(b, c), total = a + c").to_pandas()
    assert list(frame.columns) == ["a", "b", "c", "total"]
    assert frame.iloc[0].tolist() == [1, 2, 3, 4]
    assert pa.table(db.query("e(a, b), a > 1")).to_pylist() == [{"a": 2, "b": 3}]


def test_no_columns(db: Database) -> None:
    db.insert("flag", ())
    assert db["flag"].to_pandas().shape == (1, 0)
    assert db["flag"].to_arrow().num_columns == 0
    assert db["flag"].to_polars().width == 0
    with pytest.raises(FactError, match="0 column"):
        db.insert("flag", pd.DataFrame({"x": [1]}))


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"]
)
def test_integers_become_floats_that_are_equal_to_them(make: Callable[[Any], Any]) -> None:
    db = Database.from_text(".decl w(f:float)")
    db.insert("w", make({"f": [2**53, -(2**60), 7]}))
    assert db.view("w") == [(-(2.0**60),), (7.0,), (2.0**53,)]
    with pytest.raises(FactError, match=r"w: column 1 .* no float is exactly 9007199254740993; .*, in row 2 of"):
        db.insert("w", make({"f": [1, 2**53 + 1]}))
    assert db.size("w") == 3


def test_a_column_that_is_there_twice_is_refused(db: Database) -> None:
    with pytest.raises(FactError, match="several columns `x`"):
        db.insert("e", pd.DataFrame([[1, 2, 3]], columns=["x", "y", "x"]))


def test_symbols_that_are_no_utf8_go_by_bytes(db: Database) -> None:
    db.insert("v", (1, 1, 1.0, "\udcff!"))
    table = db["v"].to_arrow()
    assert table["s"].to_pylist() == [b"\xff!"]
    assert Database.from_text(PROGRAM, facts={"v": table}).view("v") == [(1, 1, 1.0, "\udcff!")]


def test_an_array_of_numpy(db: Database) -> None:
    db["e"] += np.array([[1, 2], [3, 4]], dtype="int32")
    db["e"] += {"x": np.array([5]), "y": [6]}
    assert db["e"].rows() == [(1, 2), (3, 4), (5, 6)]
    db["e"] -= np.array([[1, 2], [5, 6]])
    assert db["e"].rows() == [(3, 4)]
    with pytest.raises(FactError, match="float64"):
        db.insert("e", np.array([[0.5, 1.0]]))


@pytest.mark.parametrize("write", ["insert", "delete", "transaction", "facts", "assignment", "plus"])
def test_tables_are_taken_wherever_rows_are(db: Database, write: str) -> None:
    frame = pd.DataFrame({"y": [2, 3], "x": [1, 2]})
    if write == "insert":
        assert str(db.insert("e", frame)) == "+e(1, 2).\n+e(2, 3)."
    elif write == "delete":
        db.insert("e", [(1, 2), (2, 3), (3, 4)])
        db.delete("e", frame)
        assert db.view("e") == [(3, 4)]
        db["e"] = frame
    elif write == "transaction":
        with db.transaction() as tx:
            tx.insert("e", frame)
            tx.insert("e", frame)
    elif write == "facts":
        db = Database.from_text(PROGRAM, facts={"e": frame})
    elif write == "plus":
        db["e"] += frame
    else:
        db.insert("e", [(9, 9)])
        db["e"] = frame
    assert db.view("e") == [(1, 2), (2, 3)]


# ── what does not fit ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda: pd.DataFrame({"x": [1], "z": [2]}), "no column `y` of `e(x:number, y:number)`; it has `x`, `z`"),
        (lambda: pd.DataFrame({"a": [1]}), "has 2 column(s), the table 1: `a`"),
        (lambda: pd.DataFrame({"a": [1], "b": [2], "c": [3]}), "has 2 column(s), the table 3"),
        (lambda: pd.DataFrame({"x": [1.0], "y": [2]}), "column 1 (`x`:number) takes integers; column `x` of the table is of type float64"),
        (lambda: pd.DataFrame({"x": [True], "y": [2]}), "is of type bool"),
        (lambda: pd.DataFrame({"x": pd.Series(["1"], dtype="object"), "y": [2]}), "'1' is not a number, in row 1"),
        (lambda: pd.DataFrame({"x": pd.Series(["1"], dtype="string"), "y": [2]}), "is of type string"),
        (lambda: pd.DataFrame({"x": pd.Series([1, None], dtype="Int64"), "y": [2, 3]}), "has none in row 2"),
        (lambda: pd.DataFrame({"x": [1], "y": pd.Series([2**63], dtype="uint64")}), "out of range for a 64-bit number, in row 1"),
        (lambda: pd.DataFrame({"x": [1], "y": pd.to_datetime(["2024-01-01"])}), "datetime64"),
        (lambda: pl.DataFrame({"x": [1, None], "y": [2, 3]}), "has none in row 2"),
        (lambda: pl.DataFrame({"x": [[1]], "y": [2]}), "List(Int64)"),
        (lambda: pl.DataFrame({"x": [1], "y": [0.5]}), "is of type Float64"),
        (lambda: pa.table({"x": [1, 2], "y": [3, None]}), "has none in row 2"),
        (lambda: pa.table({"x": [1], "y": ["a"]}), "is of type string"),
        (lambda: {"x": [1, 2], "y": [3]}, "have different lengths: `x` has 2, `y` has 1"),
        (lambda: {"x": [1], "y": [None]}, "None is not a number, in row 1"),
        (lambda: pd.Series([1, 2]), "neither a table with columns"),
        (dict, "no columns"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit(db: Database, table: Callable[[], Any], message: str) -> None:
    db.insert("e", (7, 7))
    with pytest.raises(FactError) as caught:
        db.insert("e", table())
    assert message in str(caught.value)
    assert db.view("e") == [(7, 7)]


@pytest.mark.parametrize("column", ["u", "f", "s"])
def test_each_kind_refuses_what_it_cannot_hold(db: Database, column: str) -> None:
    good: dict[str, Any] = {"n": [1], "u": [1], "f": [1], "s": ["a"]}
    assert db.insert("v", pd.DataFrame(good))
    bad = {"u": [-1], "f": ["x"], "s": [1]}[column]
    for library in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(FactError, match=rf"`{column}`:"):
            db.insert("v", library(good | {column: bad}))
    assert db.view("v") == [(1, 1, 1.0, "a")]


def test_a_library_that_is_missing_is_named(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **options)

    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", without)
    result = db.query("e(x, y)")
    for convert, name in ((result.to_pandas, "pandas"), (result.to_polars, "polars"), (db["e"].to_arrow, "arrow")):
        with pytest.raises(MissingPackage, match=rf"pip install 'everlog\[{name}\]'"):
            convert()


# ── no loop for each row ─────────────────────────────────────────────────────────────────────


def test_no_value_of_a_typed_column_is_looked_at_in_python(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks are by column: the function that checks one value is never called."""
    import everlog.api.facts.tabular

    def refuse(*_: object) -> None:
        raise AssertionError("a single value was checked")

    monkeypatch.setattr(everlog.api.facts.tabular, "checked_value", refuse)
    rows = [(i, i + 1, i / 7, f"é{i}") for i in range(2000)]
    db.insert("v", rows)
    for table in (db["v"].to_pandas(), db["v"].to_polars(), db["v"].to_arrow()):
        other = Database.from_text(PROGRAM, facts={"v": table})
        assert other.size("v") == 2000

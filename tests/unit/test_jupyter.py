"""Datalog in notebooks: pieces of cells, escaped short HTML, a real notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from everlog import Database
from everlog.html import ROWS
from everlog.jupyter import pieces

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra `dev`)")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra `dev`)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra `dev`)")


# ── cells ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("", []),
        ("\n  \n", []),
        (".decl e(x:number)", [("program", ".decl e(x:number)")]),
        (".decl e(\n  x:number)\n+e(1).", [("program", ".decl e(\n  x:number)"), ("step", "+e(1).")]),
        ("p(x) :- e(x),\n  y = x\n  - 1,\n  q(y).", [("program", "p(x) :- e(x),\n  y = x\n  - 1,\n  q(y).")]),
        ("+e(1).\n+e(2).\n", [("step", "+e(1).\n+e(2).")]),
        ('+e("a?").\ne("?- b")?', [("step", '+e("a?").'), ("query", 'e("?- b")?')]),
        ("e(x),\n  x > 1?  // really?\n?- e(y).", [("query", "e(x),\n  x > 1?  // really?"), ("query", "?- e(y).")]),
        ("e(1). e(2).\n// only\n-e(1)", [("program", "e(1). e(2)."), ("step", "// only\n-e(1)")]),
        (".comp C {\n  .decl r(x:number)\n  r(1).\n}\n.init c = C", [
            ("program", ".comp C {\n  .decl r(x:number)\n  r(1).\n}\n.init c = C")]),
        ("e(x) :- ", [("program", "e(x) :- ")]),
    ],
)  # fmt: skip
def test_a_cell_is_cut_into_pieces(cell: str, expected: list[tuple[str, str]]) -> None:
    assert list(pieces(cell)) == expected


# ── HTML ─────────────────────────────────────────────────────────────────────────────────────


class Page(HTMLParser):
    """The cells of the tables of a page, and what else its text says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.tags[-1:] and self.tags[-1] in ("td", "th", "code") and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.rstrip("\n")


NASTY = '<script>alert("x")</script>'


@pytest.fixture
def db() -> Database:
    return Database.from_text(
        ".decl v(n:number, u:unsigned, f:float, s:symbol)  .decl w(s:symbol)  w(s) :- v(_, _, _, s).",
        facts={"v": [(1, 2, 0.5, NASTY), (2, 3, float("nan"), "a  b")]},
    )


def test_a_result_as_html_is_escaped(db: Database) -> None:
    page = Page(db.query("v(n, u, f, s), n > 0")._repr_html_())
    assert "script" not in page.tags
    assert page.rows == [["n", "u", "f", "s"], ["1", "2", "0.5", NASTY], ["2", "3", "nan", "a  b"]]
    assert "2 rows" in page.text


def test_a_relation_a_change_and_a_database_as_html(db: Database) -> None:
    page = Page(db["v"]._repr_html_())
    assert page.rows[1] == ["1", "2", "0.5", NASTY]
    assert "v(n:number, u:unsigned, f:float, s:symbol)" in page.text
    assert "2 facts" in page.text
    db.insert("v", (3, 4, 1.0, "new"))
    page = Page(db.delete("v", (1, 2, 0.5, NASTY))._repr_html_())
    assert ["−", "1", "2", "0.5", NASTY] in page.rows
    assert ["−", NASTY] in page.rows
    assert "script" not in page.tags
    assert "no change" in db.delete("v", (1, 2, 0.5, NASTY))._repr_html_()
    page = Page(db._repr_html_())
    assert ["v(n:number, u:unsigned, f:float, s:symbol)", "2", "0"] in page.rows
    assert ["w(s:symbol)", "2", "1"] in page.rows


def test_html_of_much_is_short(db: Database) -> None:
    looked: list[int] = []
    many = Database.from_text(
        ".functor look(number):number  .decl n(x:number)",
        functors={"look": lambda x: looked.append(x) or x},
        facts={"n": [(i,) for i in range(5000)]},
    )
    page = Page(many.query("n(x), @look(x) >= 0")._repr_html_())
    assert len(page.rows) == ROWS + 1
    assert len(looked) == ROWS + 1
    assert "more follow" in page.text
    page = Page(many["n"]._repr_html_())
    assert len(page.rows) == ROWS + 1
    assert f"5000 facts, {ROWS} of them shown" in page.text
    changes = many.delete("n", [(i,) for i in range(100)])
    page = Page(changes._repr_html_())
    assert len(page.rows) == ROWS + 1
    assert "100 gone, 0 new; 50 not shown" in page.text
    long = Database.from_text(".decl s(x:symbol)", facts={"s": [("x" * 10_000,)]})
    assert len(long["s"]._repr_html_()) < 1500


# ── a real notebook ──────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The outputs of the cells of a notebook, executed by a kernel of its own."""
    cells = [
        "%load_ext everlog",
        "%%datalog\n.decl edge(x:number, y:number)\n.decl path(x:number, y:number)\n"
        "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\nedge(1, 2).",
        "%%datalog\n+edge(2, 3).\n+edge(3, 4).\n\n?- path(1, x), x > 2.",
        "%datalog path(2, x)",
        "len(db['path']), db.query('edge(x, y)').columns",
        "%%datalog\npath(1, x), !pth(x)?",
        "db",
        "db.insert('edge', (4, 5))",
        "%%datalog other\n.decl n(x:number)\n+n(7).",
        "other['n'].rows(), len(db['edge'])",
        'start = 1; name = \'"x", y) ; secret(y) ; p("x\'',
        "%datalog path($start, x)",
        "%%datalog\nx = $name?",
        "%%datalog\npath($nothing, x)?",
        "%datalog n = count : { path($start, _) }",
        "number = 3",
        "%%datalog number\n.decl n(x:number)",
        "db.query('edge(x, y)').to_pandas()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    elsewhere = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}  # not where our sources are
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True, resources=elsewhere
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def _html(output: Any) -> Page:
    return Page(output["data"]["text/html"])


def test_a_notebook_runs(executed: list[Any]) -> None:
    loaded, program, step, line, python, wrong, shown, changes, other, both, *asked, _, no_database, frame = (
        executed
    )
    _, asked_line, asked_cell, no_variable, counted = asked
    assert asked_line[0]["data"]["text/plain"] == "[(2,), (3,), (4,), (5,)]"
    assert eval(asked_cell[0]["data"]["text/plain"]) == [('"x", y) ; secret(y) ; p("x',)]
    assert "the notebook has no variable `nothing`" in no_variable[0]["text"]
    assert counted[0]["data"]["text/plain"] == "[(4,)]"
    assert loaded == []
    assert ["+", "1", "2"] in _html(program[0]).rows
    told, found = step
    assert ["+", "1", "4"] in _html(told).rows
    assert _html(found).rows == [["x"], ["3"], ["4"]]
    assert found["data"]["text/plain"] == "[(3,), (4,)]"
    assert _html(line[0]).rows == [["x"], ["3"], ["4"]]
    assert python[0]["data"]["text/plain"] == "(6, ('x', 'y'))"
    assert "DL050" in wrong[0]["text"]
    assert "Traceback" not in wrong[0]["text"]
    assert ["path(x:number, y:number)", "6", "2"] in _html(shown[0]).rows
    assert ["+", "4", "5"] in _html(changes[0]).rows
    assert _html(other[0]).rows == [["", "x"], ["+", "7"]]
    assert both[0]["data"]["text/plain"] == "([(7,)], 4)"
    assert "not a Database" in no_database[0]["text"]
    assert "text/html" in frame[0]["data"]

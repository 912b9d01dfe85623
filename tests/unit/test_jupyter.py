"""Datalog in notebooks: pieces of cells, escaped short HTML, a real notebook."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, at_width, chromium

from everlog import Database
from everlog.html import ROWS
from everlog.jupyter import pieces
from everlog.notebook.drawn_proofs import MOST, nodes_of

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
        (".why p(1)\n.decl e(x:number)\n.graph\n.live e", [
            ("command", ".why p(1)"), ("program", ".decl e(x:number)"), ("command", ".graph"), ("command", ".live e")]),
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
        "%datalog .why path(1, 4)",
        "%%datalog\n.why-not path(5, 1)  // a remark\n.graph",
        "%datalog .why path(5, 1)",
        "%datalog .live path",
        "db.insert('edge', (5, 6)); None",
        "import asyncio\nfor i in range(6, 30): db.insert('edge', (i, i + 1))\nawait asyncio.sleep(0.5)",
        "db.why('path(1, 6)')",
        "%datalog .explain path",
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
        executed[:-8]
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


def test_a_notebook_draws_proofs_graphs_and_live_tables(executed: list[Any]) -> None:
    why, missing, absent, live, _, _, python, explained = executed[-8:]
    proof = _html(why[0])
    assert {"svg", "rect", "path"} <= set(proof.tags)
    assert "path(1, 4)" in proof.text
    assert "path#2" in proof.text
    assert why[0]["data"]["text/plain"].startswith("<Proof of path(1, 4)")
    nothing, graph = missing
    assert "path(5, 1) is not there" in _html(nothing).text
    assert "path reads path, edge" in _html(graph).text or "path reads edge" in _html(graph).text
    assert "`.why-not` says what is missing" in absent[0]["text"]
    table = _html(live[0])  # the cell where it was shown has the last state
    assert "435 facts, 50 of them shown" in table.text
    assert "last step: 29 new, 0 gone" in table.text
    assert "path(1, 6)" in _html(python[0]).text
    assert explained[0]["data"]["text/plain"].startswith("unit 1: path\n")


def test_a_drawn_proof_is_escaped_and_bounded() -> None:
    nasty = Database.from_text(".decl n(x:symbol)  .decl m(x:symbol)  m(x) :- n(x).", facts={"n": [(NASTY,)]})
    page = Page(nasty.why("m", (NASTY,))._repr_html_())
    assert "script" not in page.tags
    assert NASTY.replace('"', '\\"') in page.text
    long = Database.from_text(
        ".decl e(x:number)  .decl p(x:number)  p(0).  p(x + 1) :- p(x), e(x).",
        facts={"e": [(i,) for i in range(5000)]},
    )
    found = long.why("p(5000)")
    assert len(nodes_of(found)) <= MOST
    assert "more below" in "".join(node.note for node in nodes_of(found))
    assert len(found._repr_html_()) < 200_000
    assert len(long.why_not("p(6000)")._repr_html_()) < 200_000


def test_a_fact_that_is_used_twice_is_drawn_once() -> None:
    db = Database.from_text(
        ".decl a(x:number)  .decl b(x:number)  .decl c(x:number)  a(1).  b(x) :- a(x).  c(x) :- b(x), b(x), a(x)."
    )
    nodes = nodes_of(db.why("c(1)"))
    assert [(node.label, node.note) for node in nodes].count(("b(1)", "above")) == 1
    assert [node.kind for node in nodes if node.label == "a(1)"] == ["given", "given"]


def test_a_live_table_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[Any] = []

    class Handle:
        def update(self, thing: Any) -> None:
            updates.append(thing._repr_html_())

    import IPython.display

    monkeypatch.setattr(IPython.display, "display", lambda thing, display_id: Handle())
    db = Database.from_text(".decl n(x:number)")
    table = db["n"].live()
    table._ipython_display_()
    db.insert("n", (1,))
    assert "last step: 1 new, 0 gone" in updates[-1]
    table.close()
    table.close()
    db.insert("n", (2,))
    assert len(updates) == 1


def test_the_drawings_are_readable_in_a_browser(tmp_path: Path) -> None:
    db = Database.from_text(""".decl edge(x:number, y:number)  .decl path(x:number, y:number)
      path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z), x != z.  edge(1, 2).  edge(2, 3).  edge(3, 4).
      .decl ends(n:number)  ends(n) :- n = count : { path(_, x), !edge(x, _) }.""")
    shown = (db.why("path(1, 4)"), db.why_not("path(4, 1)"), db.graph(), db.why("ends(3)"))
    (tmp_path / "page.html").write_text(
        "<!doctype html><meta charset=utf-8>" + "".join(each._repr_html_() for each in shown)
    )
    with chromium() as browser:
        browser.get(f"file://{tmp_path / 'page.html'}")
        at_width(browser, 1000)
        assert browser.get_log("browser") == []
        assert min(browser.execute_script(CONTRASTS))[0] >= 4.5
        boxes = browser.execute_script(
            "return [...document.querySelectorAll('svg text')].map((t) => [t.getBBox().width,"
            " t.parentNode.querySelector('rect').getBBox().width])"
        )
        assert len(boxes) > 20
        assert all(text <= box for text, box in boxes)
        if picture := os.environ.get("PICTURE"):  # to be looked at
            browser.save_screenshot(picture)

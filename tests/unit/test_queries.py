"""The path of a query: how often its text is parsed, its rows are looked for, and sorted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from everlog import Database
from everlog.api import results
from everlog.api.queries import QueryError
from everlog.api.results import Result
from everlog.core.program import Row
from everlog.core.program.fact_rows import FactError
from everlog.dsl.parser import Parser
from everlog.dsl.prompt_input import read_typed
from everlog.dsl.query_text import parse_query
from everlog.jupyter import Magics
from everlog.repl.loop import run_input
from everlog.repl.session import Session
from everlog.serve.jobs.reading import Call
from everlog.serve.requests.routes import operations
from everlog.serve.service import Service

EDGES = ".decl edge(x:number, y:number)\nedge(1, 2).\nedge(2, 3)."
# an atom to look up, one that computes, a conjunction, an aggregate, alternatives, a syntax error,
# a wrong name
QUERIES = [
    "edge(1, x)",
    "edge(1, 2)",
    "edge(1 + 1, x)",
    "edge(1, x), edge(x, y)",
    "n = count : { edge(_, _) }",
    "edge(x, 2) ; edge(x, 3)",
    "edge(1, x",
    "egde(1, x), x > 2",
]


@contextmanager
def parses() -> Iterator[list[str]]:
    """The texts that the parser reads meanwhile."""
    seen: list[str] = []
    run = Parser.run

    def counted(self: Parser, *arguments: Any) -> Any:
        seen.append(self.source.text)
        return run(self, *arguments)

    with patch.object(Parser, "run", counted):
        yield seen


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_from_python_is_parsed_once(text: str) -> None:
    db = Database.from_text(EDGES)
    with parses() as seen:
        try:
            expected = db.query(text).rows()
        except ValueError:
            assert len(seen) == 1
            return
        assert len(seen) == 1
        assert db.query(text) == expected  # and not again
    assert len(seen) == 1


@pytest.mark.parametrize("text", ["edge($from, x)", "edge($from, x), x > 1", "edge($from, 2 + 0)"])
def test_a_query_with_parameters_is_parsed_once_for_all_values(text: str) -> None:
    db = Database.from_text(EDGES)
    with parses() as seen:
        for start in (1, 2, 3):
            db.query(text, **{"from": start}).rows()
    assert len(seen) == 1


@pytest.mark.parametrize("method", ["holds", "why", "why_not"])
def test_a_fact_that_is_asked_for_is_parsed_once(method: str) -> None:
    db = Database.from_text(EDGES)
    fact = "edge(3, $y)" if method == "why_not" else "edge(1, $y)"
    with parses() as seen:
        getattr(db, method)(fact, y=2)
    assert len(seen) == 1


@pytest.mark.parametrize("written", ["?- {}.", "{}?", "  ?- {} .  ", "// which\n?- {}."])
@pytest.mark.parametrize("text", QUERIES)
def test_a_query_at_the_prompt_is_parsed_once(text: str, written: str) -> None:
    """One parse serves completeness, whole facts and values of variables."""
    session = Session(out=StringIO())
    run_input(session, StringIO(EDGES))
    with parses() as seen:
        run_input(session, StringIO(written.format(text)))
    assert len(seen) == 1


def test_queries_that_share_a_line_are_parsed_together() -> None:
    out = StringIO()
    session = Session(out=out)
    run_input(session, StringIO(EDGES))
    with parses() as seen:
        run_input(session, StringIO("?- edge(1, 3). ?- edge(1, 2). ?- edge(1 + 1, y)."))
    assert len(seen) == 1
    assert out.getvalue().splitlines()[-6:] == ["no", "yes", "y", "-", "3", "(1 row)"]


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_over_http_is_parsed_once(text: str) -> None:
    service = Service(Database.from_text(EDGES))
    work = next(each.work for each in operations(service.bounds) if each.name == "query")
    assert work is not None
    with parses() as seen, suppress(ValueError):
        work(service, Call({}, {}, {"query": text}))
    assert len(seen) == 1


def test_a_query_of_a_notebook_is_parsed_once() -> None:
    shell = SimpleNamespace(user_ns={"db": Database.from_text(EDGES), "start": 1})
    with parses() as seen:
        assert Magics(shell).cell("edge($start, x), x < 9") == [(2,)]
    assert len(seen) == 1


def test_one_parsed_query_gives_rows_and_variables() -> None:
    db = Database.from_text(EDGES)
    query = parse_query("edge(x, 3)")
    rows, values = db._queries.ask(query, whole=True), db._queries.ask(query)
    assert (rows.columns, rows.rows()) == (("x", "y"), [(2, 3)])
    assert (values.columns, values.rows()) == (("x",), [(2,)])
    again = db._queries.ask(query, whole=True)
    assert (again.columns, again.rows()) == (("x", "y"), [(2, 3)])


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


class Search:
    """A result whose searches, rows and sorts are counted."""

    def __init__(self, db: Database, size: int) -> None:
        self.searches = self.rows = 0

        def find() -> Iterator[Row]:
            self.searches += 1
            for number in range(size):
                self.rows += 1
                yield (size - number, 0)

        self.result = Result(db._writer.state, db.relations["edge"].columns, find)


@pytest.mark.parametrize("collect", [list, tuple, set, lambda found: [*found]])
@pytest.mark.parametrize("size", [0, 3, results.KEPT + 5])
def test_a_list_of_a_result_costs_what_a_loop_costs(collect: Any, size: int) -> None:
    """One search, each row made once, and none of them sorted."""
    search = Search(Database.from_text(EDGES), size)
    with patch.object(results, "sorted_rows", side_effect=AssertionError):
        assert len(collect(search.result)) == size
    assert (search.searches, search.rows) == (1, size)


def test_what_was_counted_is_sorted_later_without_another_search() -> None:
    search = Search(Database.from_text(EDGES), 4)
    assert len(search.result) == 4
    assert list(search.result) == [(4, 0), (3, 0), (2, 0), (1, 0)]
    assert search.result.rows() == [(1, 0), (2, 0), (3, 0), (4, 0)]
    assert len(search.result) == 4
    assert search.searches == 1


def test_a_list_of_all_facts_makes_each_row_once() -> None:
    """The size of a relation is known: `list` asks for it, and then goes through the facts."""
    db = Database.from_text(EDGES)
    with (
        patch.object(results, "sorted_rows", side_effect=AssertionError),
        patch.object(db._engine, "rows", side_effect=AssertionError),
        patch.object(db._engine, "stream", wraps=db._engine.stream) as stream,
    ):
        assert sorted(list(db.query("edge(x, y)"))) == [(1, 2), (2, 3)]  # noqa: C414  # `list` is what is tested
    assert stream.call_count == 1


# ── order and limit ──────────────────────────────────────────────────────────────────────────


ORDERED = '.decl e(x:number, y:symbol)  e(1, "b").  e(2, "a").  e(3, "a").'


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("e(x, y) order by y, x desc", [(3, "a"), (2, "a"), (1, "b")]),
        ("?- e(x, _), x > 1 order by x desc limit 1.", [(3,)]),
        ('e(x, "a") ORDER BY x DESC LIMIT 1?', [(3,)]),
        ("e(x, y) limit 1", [(1, "b")]),
        ("e(x, y) limit 0", []),
        ("e(x, y) // limit 1", [(1, "b"), (2, "a"), (3, "a")]),
        ('e(x, "order by x limit 1")', []),
        ("e(order, limit) order by limit desc limit 1", [(1, "b")]),
    ],
)
def test_queries_have_an_order_and_a_limit(query: str, answers: list[tuple[Any, ...]]) -> None:
    found = Database.from_text(ORDERED).query(query)
    assert (found, list(found), found.rows(), len(found)) == (answers, answers, answers, len(answers))


def test_an_ordered_result_stays_as_it_was_asked() -> None:
    db = Database.from_text(ORDERED)
    found = db.query("e(x, y) order by x desc limit 2")
    db.insert("e", (9, "z"))
    assert found.rows() == [(3, "a"), (2, "a")]
    assert db.query("e(x, y) order by x desc limit 2").rows() == [(9, "z"), (3, "a")]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("e(x, y) order by z", "`z` is no variable of the query"),
        ("e(x, y) order x", "an ordering is"),
        ("e(x, y) limit x", "an ordering is"),
        ("e(x, y) limit 3 order by x", "an ordering is"),
    ],
)
def test_a_wrong_order_is_an_error_at_its_place(query: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        Database.from_text(ORDERED).query(query)


def test_only_queries_have_an_order() -> None:
    db = Database.from_text(ORDERED)
    with pytest.raises(FactError, match="no order and no limit"):
        db.delete("e(1, _) limit 1")
    typed = read_typed(".decl order(x:number)\n.output order\norder(1). limit(2).")
    assert not typed.report.errors
    assert read_typed("e(1, 2) limit 3.").report.errors


def test_a_page_has_the_order_of_the_query() -> None:
    service = Service(Database.from_text(ORDERED))
    work = next(each.work for each in operations(service.bounds) if each.name == "query")
    asked = {"query": "e(x, y) order by x desc limit 2", "limit": 1}
    answer = work(service, Call({}, {}, asked))
    assert (json.loads(bytes(answer["rows"])), answer["more"], answer["total"]) == ([[3, "a"]], True, 2)

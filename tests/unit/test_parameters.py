"""Parameters of queries: values beside the text, wherever a query can be asked."""

from __future__ import annotations

from io import StringIO
from unittest.mock import patch

import pytest

from everlog import Database, FactError, QueryError
from everlog.api.shared import SharedDatabase
from everlog.core.engine import compiled_query
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.query_text import parameters_of
from everlog.repl.loop import run_script
from everlog.repl.session import Session

PROGRAM = """
    .decl age(who:symbol, years:number)
    .decl edge(x:number, y:number)  .decl path(x:number, y:number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    .decl far(x:number) inline
    far(x) :- x > 3.
    age("ann", 40).  age("bob", 50).
    edge(1, 2).  edge(2, 3).  edge(3, 4).  edge(4, 5).
"""
INJECTION = 'x", years) ; age(_, years) ; age("x'


@pytest.fixture
def db() -> Database:
    return Database.from_text(PROGRAM)


def test_a_value_is_never_read_as_text(db: Database) -> None:
    """What an f-string lets through, a parameter does not."""
    assert len(db.query(f'age("{INJECTION}", years)')) == 2
    assert db.query("age($who, years)", who=INJECTION) == []
    assert db.query("age($who, years), true", who=INJECTION) == []
    assert not db.holds("age($who, 40)", who=INJECTION)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("age($who, years)", {"who": "ann"}, [(40,)]),
        ("age(who, $years)", {"years": 50}, [("bob",)]),
        ("?- age(who, years), years > $least.", {"least": 45}, [("bob", 50)]),
        ("path($from, x), path(x, $to)?", {"from": 1, "to": 4}, [(2,), (3,)]),
        ("path($from, x), path(x, $to), x != $not", {"from": 1, "to": 5, "not": 3}, [(2,), (4,)]),
        ("path(x, y), !edge($from, y), x = $from", {"from": 1}, [(1, 3), (1, 4), (1, 5)]),
        ("n = count : { path($from, _) }", {"from": 2}, [(3,)]),
        ("n = sum y + $more : { path($from, y) }", {"from": 4, "more": 10}, [(15,)]),
        ("n = count : { path(x, y), m = max z : { path(x, z), z < $z } }", {"z": 4}, [(7,)]),
        ("x = range($low, $high)", {"low": 1, "high": 3}, [(1,), (2,)]),
        ("edge($x + 1, y)", {"x": 1}, [(3,)]),
        ("edge(x, y), (x = $x ; y = $x)", {"x": 2}, [(1, 2), (2, 3)]),
        ("path($x, y), far(y) ; path(y, $x), far($x)", {"x": 4}, [(1,), (2,), (3,), (5,)]),
        ("age(who, _), match($pattern, who)", {"pattern": "a.*"}, [("ann",)]),
        ("$a = $b, edge($a, y)", {"a": 1, "b": 1}, [(2,)]),
        ("$a = $b, edge($a, y)", {"a": 1, "b": 2}, []),
        ("$a = 1, edge($a, y)", {"a": 1}, [(2,)]),
        ("x = $v", {"v": "a"}, [("a",)]),
        ("x = $v", {"v": 1.5}, [(1.5,)]),
        ("x = to_string($v)", {"v": 7}, [("7",)]),
        ("edge(x, $min), x = $count", {"min": 2, "count": 1}, [(1,)]),
    ],
)
def test_a_parameter_stands_wherever_a_constant_does(
    db: Database, text: str, values: dict[str, object], expected: list[object]
) -> None:
    assert db.query(text, **values) == expected
    assert SharedDatabase(db).query(text, **values) == expected


def test_any_name_can_be_a_parameter(db: Database) -> None:
    """Also those of the arguments of `query` and `holds`, and words of the language."""
    for name in ("self", "text", "relation", "row", "parameters", "count", "_", "__class__"):
        assert db.query(f"age(${name}, x), true", **{name: "ann"}) == [(40,)]
        assert db.holds(f"age(${name}, 40)", **{name: "ann"})


def test_facts_as_text_have_parameters(db: Database) -> None:
    assert db.holds("path($x, $y)", x=1, y=5)
    assert db.why("path($x, 3)", x=1).text() == db.why("path", (1, 3)).text()
    assert db.why_not("path($x, 1)", x=5).text() == db.why_not("path", (5, 1)).text()
    for wrong, values, message in [
        ("path($x, 3)", {}, r"parameter `\$x`: it has no value"),
        ("path($x, 3)", {"x": "1"}, r"parameter `\$x`: '1' is not a number"),
        ("path($x, 3)", {"x": 1, "y": 2}, r"`path\(\$x, 3\)` has no parameter `\$y`"),
    ]:
        with pytest.raises(FactError, match=message):
            db.holds(wrong, **values)
    with pytest.raises(FactError, match="parameters need a fact as text"):
        db.holds("path", (1, 3), x=1)


@pytest.mark.parametrize(
    ("text", "values", "messages"),
    [
        ("age($who, x)", {}, ["1: parameter `$who` has no value"]),
        ("age(w, x), x > $n", {}, ["1: parameter `$n` has no value"]),
        ("age($who, x)", {"how": 1}, ["1: the query has no parameter `$how`", "1: parameter `$who` has no value"]),
        ("age(who, x)", {"who": "ann"}, ["1: the query has no parameter `$who`"]),
        ("age($who, x)", {"who": 5}, ["1: parameter `$who`: 5 is not a symbol"]),
        ("age(w, x),\n  x > $n", {"n": "5"}, ["2: parameter `$n`: '5' is not a number"]),
        (
            "age(w, x),\n  x > $n",
            {"n": 2**63},
            [f"2: parameter `$n`: {2**63} is out of range for a 64-bit number"],
        ),
        ("age(w, $n), age($n, y)", {"n": 1}, ["1: parameter `$n` is a number and a symbol"]),
        ("age($n, x) ; age(w, $n), x = 1", {"n": 1}, ["1: parameter `$n` is a symbol and a number"]),
        ("x = to_string($v)", {"v": [1]}, ["1: parameter `$v`: its value is no str, int or float"]),
    ],
)
def test_what_is_wrong_with_a_parameter_is_reported_by_its_name(
    db: Database, text: str, values: dict[str, object], messages: list[str]
) -> None:
    with pytest.raises(QueryError) as caught:
        db.query(text, **values)
    report = caught.value.report
    assert [f"{report.source.locate(d.pos).line}: {d.message}" for d in report.errors] == messages


# ── the language ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("edge($x, 1).", ["DL120"]),
        ("edge(x, y) :- path(x, y), x = $from.", ["DL120"]),
        ("edge(x, n) :- path(x, _), n = count : { path($from, _) }.", ["DL120"]),
        ("edge(x, $x + 1) :- path(x, _).", ["DL120"]),
        ("edge(x, $Nil) :- path(x, _).", ["DL120"]),
        ("edge(x, $Branch(x)) :- path(x, _).", ["DL090"]),
        ("edge(x, $other.Branch (x)) :- path(x, _).", ["DL090"]),
        ("edge(x, $) :- age(_, x).", []),
        ("edge(x, $ + x) :- age(_, x).", []),
    ],
)
def test_a_program_has_no_parameters_and_keeps_its_other_dollars(statement: str, codes: list[str]) -> None:
    """`$` alone is Soufflé's counter, and `$Branch(…)` its constructor."""
    found: list[str] = []
    try:
        compile_text(PROGRAM + statement)
    except DatalogError as error:
        found = [d.code for d in error.report.errors]
    assert found == codes


def test_a_dollar_in_a_query_is_a_parameter_only_before_a_name(db: Database) -> None:
    assert parameters_of('p($a, "$b", $ , $C(x), $d.E(x), $f)  // $g') == ["a", "f"]
    for text, code in [("edge($, y)", "DL044"), ("edge($B(1), y)", "DL090"), ("edge($ x, y)", "DL010")]:
        with pytest.raises(QueryError) as caught:
            db.query(text)
        assert code in [d.code for d in caught.value.report.errors]


def test_inserted_facts_have_no_parameters(db: Database) -> None:
    for write in (db.insert, db.delete):
        with pytest.raises(FactError, match="a parameter stands in a query; a fact has the value itself"):
            write("edge($x, 2)")
    with pytest.raises(FactError, match="a parameter stands in a query"):
        db.apply("+edge($x, 2).")


# ── once for all values ──────────────────────────────────────────────────────────────────────


def test_a_query_is_read_and_compiled_once_for_all_values(db: Database) -> None:
    text = "path($from, x), x < $limit"
    assert db.query(text, **{"from": 1, "limit": 4}) == [(2,), (3,)]
    with (
        patch("everlog.api.queries.check_query", side_effect=AssertionError),
        patch.object(compiled_query, "compile_rule", side_effect=AssertionError),
    ):
        for start in range(1, 5):
            values = {"from": start, "limit": 5}
            assert db.query(text, **values) == [(x,) for x in range(start + 1, 5)]


def test_results_of_one_query_keep_their_own_values(db: Database) -> None:
    """They are found lazily, and may be asked for in any order."""
    first, second = (db.query("path($x, y), true", x=x) for x in (3, 1))
    atoms = [db.query("path($x, y)", x=x) for x in (4, 3)]
    assert (second.rows(), first.rows()) == ([(2,), (3,), (4,), (5,)], [(4,), (5,)])
    db.insert("edge", (5, 6))
    assert [result.rows() for result in atoms] == [[(5,)], [(4,), (5,)]]


def test_one_text_may_be_asked_with_values_of_several_types(db: Database) -> None:
    assert [db.query("x = $v", v=v).kinds for v in (1, "a", 1.0, 2)] == [
        ("number",),
        ("symbol",),
        ("float",),
        ("number",),
    ]


# ── at the prompt ────────────────────────────────────────────────────────────────────────────


def said(*lines: str) -> list[str]:
    """What the prompt answers to these lines, when it knows the program."""
    out = StringIO()
    session = Session(out=out)
    run_script(session, PROGRAM.split("\n"), "program")
    before = len(out.getvalue())
    run_script(session, lines, "script")
    return [line.strip() for line in out.getvalue()[before:].splitlines()]


def test_the_prompt_has_parameters_for_queries_and_reasons() -> None:
    answers = said('.param who "ann"', ".param $from 1", "age($who, x)?", "?- path($from, x), x > 4.", ".param")
    assert answers == ["x", "--", "40", "(1 row)", "x", "-", "5", "(1 row)", '$who = "ann"', "$from = 1"]
    assert said(".param x 1", ".why edge($x, 2)", ".param x off", ".param") == ["edge(1, 2)   given"]
    assert said(".param x 4", ".watch path($x, y)", "edge(5, 6).")[0] == "+path(4, 6)."
    assert said(".param x -1.5", ".param x", "y = $x?") == ["$x = -1.5", "y", "----", "-1.5", "(1 row)"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["age($who, x)?"], "error: parameter `$who` has no value; set one: .param who VALUE"),
        ([".why age($who, 40)"], "error: parameter `$who` has no value; set one: .param who VALUE"),
        ([".param who ann"], "error: `ann` is not a constant; usage: .param NAME VALUE"),
        (['.param who "ann", 5'], 'error: `"ann", 5` is not a constant; usage: .param NAME VALUE'),
        ([".param 5 5"], "error: `5` is not a parameter name; usage: .param NAME VALUE"),
        ([".param who 5", "age($who, x)?"], "error[DL120]: parameter `$who`: 5 is not a symbol"),
        (["+edge($x, 2)."], "error: `edge($x, 2).`: a parameter stands in a query; a fact has the value itself"),
    ],
)
def test_the_prompt_says_what_is_wrong_with_a_parameter(lines: list[str], told: str) -> None:
    assert said(*lines)[0].startswith(f"script:{len(lines)}: {told}")


class _Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("which", range(4))
def test_a_value_that_cannot_be_shown_is_refused_as_others_are(which: int) -> None:
    value: object = (10**5000, -(10**5000), [10**5000], _Unshowable())[which]
    db = Database.from_text('.decl edge(x:number, y:symbol)  edge(1, "a").')
    for ask in (db.query, db.holds, db.why):
        for text in ('edge($x, "a")', "edge(1, $x)"):
            with pytest.raises(FactError, match=r"cannot be shown|is out of range|parameter"):
                ask(text, x=value)
    with pytest.raises(FactError, match=r"cannot be shown|is out of range"):
        db.insert("edge", (value, "b"))
    assert db.view("edge") == [(1, "a")]

"""Systems for users: the catalogue, refusals, and properties."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from everlog.dsl.diagnostics import DatalogError, Report
from everlog.dsl.source import Source
from everlog.ies import files, registry
from everlog.ies.encodings.binarize import binarize
from everlog.ies.encodings.flatten import flatten
from everlog.ies.files import datalog, mismatches, parse_step, system_of
from everlog.ies.nrc.errors import CalculusError
from everlog.ies.nrc.parser import parse_system
from everlog.ies.nrc.value_text import fact_text
from everlog.ies.properties import Determinism, determinism, properties, storage, system_height, uses_aggregates
from everlog.ies.running import BadTuple, NotPermissible, Running, TooLarge
from everlog.ies.sri import law_broken
from everlog.ies.validation import definitions_of, make

WRITTEN = [name for name in registry.SYSTEMS if registry._is_written(name)]

# ── the catalogue ────────────────────────────────────────────────────────────────────────────────


def test_every_system_of_the_paper_is_there() -> None:
    paper = "even tc_paths alternating_paths same_generation linear_order max_outdegree_parity tc_acyclic"
    recursions = "tc_sri alternating_sri same_generation_sri powerset_sri"
    beyond = "tc_counts tc_algebra same_generation_counts"
    assert {*paper.split(), *recursions.split(), *beyond.split()} == set(WRITTEN)
    assert set(registry.SYSTEMS) == set(WRITTEN) | registry.PRACTICAL.keys()


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_says_what_it_keeps_and_its_examples_are_so(name: str) -> None:
    system = registry.system_of(name)
    assert system.name == name
    assert all((system.title, system.theorem, system.about, system.growth, system.cost, system.examples))
    assert all(stored.meaning for stored in system.auxiliaries)
    assert bool(system.query) == (name != "linear_order")
    assert not system.instead or system.instead in registry.SYSTEMS
    assert not system.exponential or system.instead or name == "powerset_sri"  # whose answer is exponential itself
    for example in system.examples:
        assert list(mismatches(system, example)) == []


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("encoding", registry.ENCODINGS)
def test_the_examples_hold_for_the_encodings_too(encoding: str, name: str) -> None:
    system = registry.system_of(f"{encoding}({name})")
    assert any(expected for example in system.examples for _, expected in example.steps)
    for example in system.examples:
        assert list(mismatches(system, example)) == []


def test_an_example_that_is_not_so_is_reported() -> None:
    text = """system same "What is there"
input r : {num}  answer s : {num}
on insert x into r  s += {x}
on delete x from r  s -= {x}
example
  +r(1).
  s = {2}
end"""
    system = system_of(text)
    assert list(mismatches(system, system.examples[0])) == ["after +r(1). s should be {2}, and is {1}"]


def test_to_load_one_system_reads_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = files.system_of

    def watched(text: str, file: str = "<text>") -> Any:
        read.append(file)
        return real(text, file)

    monkeypatch.setattr(files, "system_of", watched)
    registry.system_of.cache_clear()
    assert len(list(registry.SYSTEMS)) > 10
    assert read == []
    registry.system("flatten(tc_paths)")
    assert read == ["tc_paths.nrc"]
    assert registry.SYSTEMS["even"].title
    assert read == ["tc_paths.nrc", "even.nrc"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tc_path", "is it `tc_paths`"),
        ("nonsense", "there are alternating_counters, "),
        ("flatten(tc_path)", "is it `tc_paths`"),
        ("squash(tc_paths)", "no system is called"),
        ("flatten(tc_witness)", "written in Python"),
    ],
)
def test_a_name_that_is_not_there(name: str, message: str) -> None:
    with pytest.raises(registry.NoSuchSystem, match=message.replace("(", r"\(")):
        registry.system(name)


def test_a_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.nrc"
    path.write_text(
        'system mine "Mine" input r : {num} answer s : {num} on insert x into r s += {x} on delete x from r s -= {x}'
    )
    assert registry.system(str(path)).name == "mine"
    running = registry.running(f"flatten({path})")
    assert running.insert("r", (4,))["s"] == (frozenset(), frozenset({(4,)}))


@pytest.mark.parametrize("name", sorted(registry.SYSTEMS))
def test_every_system_runs_behind_one_protocol(name: str) -> None:
    """Rows are tuples, also of one column; changes are reported; `load` starts anew."""
    entry, running = registry.entry(name), registry.running(name)
    assert entry.title
    assert entry.kept or "no auxiliary" in entry.growth
    one = running.system.inputs[0]
    rows = {"even": ("a",), "powerset_sri": (3,), "alternating_sri": (0, "a", "b")}
    row = rows.get(name, ("a", "b"))
    changes = running.insert(one.name, row)
    assert list(map(list, changes[one.name])) == [[], [row]]
    assert running.insert(one.name, row) == {}
    answer = set(running.view(running.system.answer.name))
    assert all(isinstance(found, tuple) for found in answer)
    for kept in entry.kept:
        assert kept.name in running.sizes()
        assert not kept.flat or all(len(r) == kept.arity for r in running.view(kept.name))
    running.load({one.name: [row]})
    assert set(running.view(running.system.answer.name)) == answer
    running.delete(one.name, row)
    assert running.sizes()[one.name] == 0
    running.check()


def test_a_refused_load_leaves_everything() -> None:
    running = registry.running("tc_acyclic")
    running.load({"edge": [(1, 2)]})
    with pytest.raises(NotPermissible, match="cycle"):
        running.load({"edge": [(3, 4), (4, 3)]})
    assert running.view("path") == {(1, 2)}


HUBS = """system hubs "Sets of constants, some of which the text brings in"
input r : {node * colour}  answer s : {node * colour}  aux sets : {{node} * colour}
initially sets = {({0, "hub"}, "red")}
def meant(c) = if c = "red" then "hub" else 7
on insert (x, c) into r
  sets += {({x, meant(c)}, c), ({}, "red")}
  s := {(y, d) | (X, d) in sets, y in X} union {(x, c)}
on delete (x, c) from r
  sets -= {(X, d) | (X, d) in sets, (x in X)}
  s := {(y, d) | (X, d) in sets, x not in X, y in X}
"""


@pytest.mark.parametrize("encoding", [flatten, binarize])
def test_constants_of_the_text_are_in_the_maintained_orders(encoding: Any) -> None:
    """Texts and numbers of named types, in initial values and in called functions."""
    plain = system_of(HUBS)
    one, two = Running(plain), Running(encoding(plain))
    order = next(stored.name for stored in two.system.auxiliaries if stored.name.startswith("upto_node"))
    assert {x for x, y in two.view(order) if x == y} >= {0, 7, "hub"}
    for insert, row in [
        (1, ("a", "red")),
        (1, ("b", "blue")),
        (0, ("a", "red")),
        (1, (0, "red")),
        (0, ("b", "blue")),
    ]:
        for running in (one, two):
            (running.insert if insert else running.delete)("r", row)
        assert one.view("s") == two.view("s")
    two.check()


HIDING = """system hiding "Names that hide relations and the tuple, and names that encodings would like to use"
input edge : {node * node}  answer order_node : {node * node}
aux upto_node : {node * {node}}  aux row : {node * node * num}
def rank(O, a) = {(a, b) | b in O}
def before(x, y) = x = y
on insert new (next_row, row') into edge
  let old = order_node
  let order_node = {next_row, row'} union {x | (x, y) in order_node, before(x, y)}
  let edge = row union {(next_row, row', 1)}
  let (row', next_row) = (next_row, row')
  let row_1 = row
  upto_node += {(next_row, order_node)}
  row := edge
  order_node := {(x, y) | (x, S) in upto_node, y in S} union old union rank(order_node, row')
on delete present (x, y) from edge
  let upto_node = {(x', S) | (x', S) in upto_node, x' != x}
  let x = y
  upto_node -= {(x', S) | (x', S) in upto_node, (x in S)}
  row -= {(a, b, n) | (a, b, n) in row, b = x}
  order_node := {(a, b) | (a, S) in upto_node, b in S}
"""


@pytest.mark.parametrize("encoding", [flatten, binarize])
def test_encodings_catch_no_names(encoding: Any) -> None:
    plain = system_of(HIDING)
    one, two = Running(plain), Running(encoding(plain))
    steps = [(1, 2), (2, 1), (2, 2), (3, 1), (1, 2), (1, 1), (3, 3), (2, 1)]
    for number, edge in enumerate(steps):
        for running in (one, two):
            (running.delete if number in (4, 7) else running.insert)("edge", edge)
        assert one.view("order_node") == two.view("order_node")
        assert encoding is binarize or one.view("row") == two.view("row")
    assert len(one.view("order_node")) > 3


# ── making ───────────────────────────────────────────────────────────────────────────────────────

GOOD = """system s "S"
input edge : {node * node}
answer path : {node * node}
aux seen : {node * {node}}
on insert new (u, v) into edge
  let both = {u, v}
  seen += {(u, both)}
  path += {(u, v)}
on delete (u, v) from edge
  path -= {(u, v)}
"""


def test_the_system_that_the_mistakes_below_are_made_in_is_good() -> None:
    running = Running(system_of(GOOD))
    running.insert("edge", (1, 2))
    assert running.view("seen") == {(1, frozenset({1, 2}))}


@pytest.mark.parametrize(
    ("old", "new", "code", "place", "message"),
    [
        ("path += {(u, v)}", "path += {u}", "NRC030", "8:", "node * node"),
        ("seen += {(u, both)}", "seen += {(u, v)}", "NRC030", "7:", "{node}"),
        ("aux seen : {node * {node}}", "aux seen : {node * node}", "NRC030", "7:", "node"),
        ("let both = {u, v}", "let both = {u, true}", "NRC03", "6:", "bool"),
        ("let both = {u, v}", "let (both, x) = {u, v}", "NRC033", "6:", "2 parts"),
        ("let both = {u, v}", "let both = {u, w}", "NRC020", "6:", "w"),
        ("(u, v) from", "(u, v, w) from", "NRC033", "9:", "3 parts"),
        ("on delete (u, v) from edge\n  path -= {(u, v)}\n", "", "NRC053", "2:7", "delete"),
        ("path -= {(u, v)}", "edge -= {(u, v)}", "NRC055", "10:", "an input"),
        ("path -= {(u, v)}", "paths -= {(u, v)}", "NRC055", "10:", "no relation"),
        ("from edge", "from seen", "NRC054", "9:1", "seen"),
        ("answer path : {node * node}", "answer path : {node * {node}}", "NRC051", "3:8", "must be flat"),
        ("input edge : {node * node}", "input edge : {{node}}", "NRC051", "2:7", "must be flat"),
        ("on insert", "initially edge = {}\non insert", "NRC052", "5:", "begins empty"),
        ("on insert", "initially hue = {}\non insert", "NRC052", "5:", "no relation"),
        ("on insert", "initially seen = {1}\non insert", "NRC030", "5:", "node"),
        ("let both", 'require u else "no"\n  let both', "NRC030", "6:", "bool"),
        ("path -= {(u, v)}\n", "example\n  +edge(1, 2).\n  paths = {}\nend", "NRC020", "12:", "`paths`"),
        ("path -= {(u, v)}\n", "example\n  +edge(1, 2).\n  path = {1}\nend", "NRC030", "12:", "node * node"),
    ],
)
def test_a_mistake_is_reported_at_its_place(old: str, new: str, code: str, place: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(DatalogError) as caught:
        system_of(GOOD.replace(old, new, 1), "s.nrc")
    told = [item for item in caught.value.report.errors if item.code.startswith(code)]
    assert told, str(caught.value)
    assert any(message in item.message for item in told), str(caught.value)
    assert f"s.nrc:{place}" in str(caught.value)


def test_a_name_that_two_relations_have_is_reported_at_the_second() -> None:
    """The parser reports it in a file; a system derived from another may have it too."""
    text = GOOD.replace("aux seen", "aux path'")
    system = parse_system(text.replace("seen +=", "path' +="))
    twice = evolve(system, auxiliaries=(evolve(system.auxiliaries[0], name="path"),))
    with pytest.raises(DatalogError) as caught:
        make(twice, Report(Source(text, "s.nrc")))
    assert "NRC050" in {told.code for told in caught.value.report.errors}
    assert "s.nrc:4:5" in str(caught.value)
    assert "the first" in str(caught.value)


def test_all_mistakes_are_reported_at_once() -> None:
    wrong = GOOD.replace("path += {(u, v)}", "path += {u}").replace("path -= {(u, v)}", "path -= {v}")
    with pytest.raises(DatalogError) as caught:
        system_of(wrong)
    assert len(caught.value.report.errors) == 2


RECURSION = """system s "S"
input r : {num}
answer t : {num}
sri x, X => X union {x} from ({} : {num})
"""


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("X union {x}", "X union {X}", "NRC03"),
        ("from ({} : {num})", "from {}", "NRC034"),
        ("from ({} : {num})", "from 0", "NRC03"),
        ("answer t : {num}", "answer t : {num * num}", "NRC030"),
        ("input r : {num}", "input r : {num} input q : {num}", "NRC056:2:23"),
        ("answer t : {num}", "answer subsets : {num}", "NRC050:3:8"),
        ("input r : {num}", "input subsets : {num}", "NRC050:2:7"),
        ("X union {x}", "X union r", "NRC020"),
        ("from ({} : {num})", 'from ({} : {num}) require x else "no"', "NRC030"),
    ],
)
def test_mistakes_of_a_recursion(old: str, new: str, code: str) -> None:
    system_of(RECURSION)
    with pytest.raises(DatalogError) as caught:
        system_of(RECURSION.replace(old, new, 1))
    told, _, place = code.partition(":")
    assert any(item.code.startswith(told) for item in caught.value.report.errors), str(caught.value)
    assert f"<text>:{place}" in str(caught.value)


@pytest.mark.parametrize(
    ("step", "law"),
    [("{x + y | y in X union {0}}", "f(x, f(x, y))"), ("if X = {} then {x} else X", "f(x, f(y, z))")],
)
def test_a_step_that_breaks_a_law_is_found(step: str, law: str) -> None:
    system = parse_system(RECURSION.replace("X union {x}", step))
    assert system.sri is not None
    broken = law_broken(system.sri, definitions_of(system), [1, 2])
    assert broken is not None
    assert broken[0].startswith(law)


# ── running ──────────────────────────────────────────────────────────────────────────────────────


def test_too_large_names_the_growth_and_what_to_use() -> None:
    running = Running(registry.system_of("tc_paths"), limit=40)
    for edge in [(1, 2), (2, 3), (3, 4)]:
        running.insert("edge", edge)
    before = running.state()
    with pytest.raises(TooLarge) as caught:
        running.insert("edge", (4, 5))
    assert str(caught.value) == (
        "+edge(4, 5) refused: the auxiliary relations of tc_paths would hold 60 values, and the limit is 40; they grow "
        "exponentially: one row for each simple path and each simple cycle, each with its edges: up to about n! of them; "
        "use tc_witness, which keeps the same answer with polynomial auxiliaries. Nothing was changed."
    )
    assert running.state() == before
    assert (1, 4) in running.view("path")
    running.delete("edge", (2, 3))
    running.insert("edge", (4, 5))
    running.check()


def fill(running: Running) -> None:
    for number in range(12):
        running.insert("item", number)


def test_the_default_limit_stops_an_exponential_system_in_time() -> None:
    running = Running(registry.system_of("powerset_sri"))
    for number in range(7):
        running.insert("item", number)
    with pytest.raises(TooLarge, match="3\\^m sets in all"):
        fill(running)
    assert 7 <= running.sizes()["item"] < 12
    running.check()


def test_a_cycle_is_refused_with_its_reason() -> None:
    running = Running(registry.system_of("tc_counts"))
    running.insert("edge", ("a", "b"))
    with pytest.raises(NotPermissible) as caught:
        running.insert("edge", ("b", "a"))
    assert str(caught.value) == '+edge("b", "a") refused: the edge closes a cycle, and the graph must be acyclic'
    with pytest.raises(NotPermissible, match="self-loop"):
        running.insert("edge", ("c", "c"))
    assert running.view("ways") == {("a", "b", 1)}


def test_a_division_by_zero_changes_nothing() -> None:
    text = """system inverse "Inverses"
input r : {num}  answer s : {num}  aux t : {num}
on insert x into r  t += {x}  s += {1 / x}
on delete x from r  t -= {x}  s -= {1 / x}"""
    running = Running(system_of(text))
    running.insert("r", 4)
    before = running.state()
    with pytest.raises(CalculusError):
        running.insert("r", 0)
    assert running.state() == before


def test_a_state_goes_on_where_it_was() -> None:
    system = registry.system_of("tc_counts")
    running = Running(system)
    running.insert("edge", (1, 2))
    other = Running(system, state=running.state())
    other.insert("edge", (2, 3))
    assert other.view("ways") == {(1, 2, 1), (2, 3, 1), (1, 3, 1)}
    other.check()
    with pytest.raises(BadTuple, match="ways"):
        Running(system, state={**running.state(), "ways": [(1, 2)]})
    with pytest.raises(BadTuple, match="has the relations"):
        Running(system, state={"edge": []})


def test_an_update_binds_by_the_last_of_a_name() -> None:
    text = """system last "Last"
input r : {num}  answer s : {num}
on insert x into r  let x = x + 1  let x = x * 2  s += {x}
on delete x from r"""
    running = Running(system_of(text))
    assert running.insert("r", 3)["s"] == (frozenset(), frozenset({8}))


PRIME = 2**31 - 1


def test_an_unlucky_weight_is_passed_over() -> None:
    """A loop of weight 1/1 would make I - A singular; the next one is taken."""
    system = registry.system_of("tc_algebra")
    running = Running(system, state={**Running(system).state(), "next": [1]})
    running.insert("edge", (5, 5))
    assert running.view("path") == {(5, 5)}
    assert running.view("weights") == {(5, 5, pow(2, -1, PRIME))}
    assert running.view("next") == {3}
    running.delete("edge", (5, 5))
    assert running.view("path") == running.view("walks") == frozenset()


def test_a_delete_that_would_leave_a_singular_matrix_is_refused() -> None:
    """All weights are 1; without (2, 1) the loop alone makes I - A singular."""
    entries = [(1, 1, PRIME - 2), (1, 2, PRIME - 1), (2, 1, PRIME - 1), (2, 2, PRIME - 1)]
    edges = [(1, 1), (1, 2), (2, 1)]
    state = {
        "edge": edges,
        "path": [(x, y) for x, y, _ in entries],
        "walks": entries,
        "weights": [(x, y, 1) for x, y in edges],
        "next": [9],
    }
    running = Running(registry.system_of("tc_algebra"), state=state)
    before = running.state()
    with pytest.raises(NotPermissible, match="unlucky"):
        running.delete("edge", (2, 1))
    assert running.state() == before
    running.insert("edge", (1, 3))
    running.insert("edge", (3, 1))  # another cycle, and what is left has an inverse
    running.delete("edge", (2, 1))
    assert running.view("path") == {(1, 1), (1, 2), (1, 3), (3, 1), (3, 2), (3, 3)}


@pytest.mark.parametrize("row", [(float("nan"), 1), (1, float("nan"))])
def test_what_is_not_equal_to_itself_is_refused(row: Any) -> None:
    with pytest.raises(BadTuple, match="systems do not take NaN"):
        Running(registry.system_of("tc_paths")).insert("edge", row)


@pytest.mark.parametrize(
    ("row", "shown"), [((True, 2), "(true, 2)"), ((frozenset({1}), "b"), '({1}, "b")'), ((None, 1), "(None, 1)")]
)
def test_a_wrong_tuple_is_shown_as_the_calculus_writes_it(row: Any, shown: str) -> None:
    with pytest.raises(BadTuple) as caught:
        Running(registry.system_of("tc_paths")).insert("edge", row)
    assert str(caught.value) == f"{shown} is not a tuple of edge : {{node * node}}"


@pytest.mark.parametrize(
    "text",
    [
        "edge(1, 2).",
        "+edge",
        "+(1, 2).",
        "",
        "+edge(1, 2). -edge(1, 2)",
        "+edge().",
        "+edge(x, 2).",
        "+edge(1, 2",
        "+edge(1,, 2).",
        "+edge(1 2).",
        "+edge(1.5.2, 2).",
        "+edge(1/0, 2).",
        "+edge(1 + 1, 2).",
        "+edge({x | x in {1}}, 2).",
        '+edge("\\q", 2).',
        '+edge("a, 2).',
        f"+edge({'(' * 3000}1{')' * 3000}, 2).",
    ],
)
def test_a_line_that_is_not_an_update_is_reported_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="is not an update") as caught:
        parse_step(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("+r(1.5, 2).", (Fraction(3, 2), 2)),
        ("+r(-0.5)", Fraction(-1, 2)),
        ("+r(2.0, - 3).  // two and more, (really)", (2, -3)),
        ("+r(4/6, 4/2). -- fractions", (Fraction(2, 3), 2)),
        ('+r("a // b)", "(").//', ("a // b)", "(")),
        ('+r("say \\"hi\\"\\n", true).', ('say "hi"\n', True)),
        ("+r((1, 2), {1, (2, false)}, {}).", ((1, 2), frozenset({1, (2, False)}), frozenset())),
    ],
)
def test_values_of_an_update_are_exact_and_may_have_a_comment_behind_them(text: str, row: Any) -> None:
    found = parse_step(text)
    assert found == ("insert", "r", row)
    parts = found[2] if isinstance(found[2], tuple) else (found[2],)
    assert all(type(value) is not Fraction or value.denominator > 1 for value in parts)
    assert parse_step(f"+{fact_text('r', row)}.") == found


def test_datalog_declares_inputs_and_answer() -> None:
    text = datalog(registry.system_of("max_outdegree_parity"), "symbol")
    assert text.startswith(".type node <: symbol\n.decl edge(c1: node, c2: node)\n.decl parity(c1: number)\n")
    assert datalog(registry.system_of("linear_order")) == ""


# ── properties ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "language", "height"),
    [
        ("even", "space-free IES(NRC)", 1),
        ("tc_acyclic", "space-free IES(NRC)", 1),
        ("tc_paths", "IES(NRC)", 2),
        ("alternating_paths", "IES(NRC)", 2),
        ("same_generation", "IES(NRC^aggr)", 2),
        ("tc_sri", "IES(NRC)", 2),
        ("alternating_sri", "IES(NRC)", 3),
        ("same_generation_sri", "IES(NRC^aggr)", 2),
        ("powerset_sri", "IES(NRC^aggr)", 3),
        ("linear_order", "IES(SQL)_2", 1),
        ("max_outdegree_parity", "IES(SQL)_1", 1),
        ("tc_counts", "IES(SQL)_3", 1),
        ("tc_algebra", "IES(SQL)_3", 1),
        ("same_generation_counts", "IES(SQL)_4", 1),
        ("flatten(tc_paths)", "IES(SQL)_8", 2),
        ("binarize(tc_paths)", "IES(SQL)_2", 2),
        ("binarize(alternating_paths)", "IES(SQL)_2", 2),
        ("binarize(same_generation_counts)", "IES(SQL)_2", 1),
    ],
)
def test_properties_are_those_of_the_theorem(name: str, language: str, height: int) -> None:
    found = properties(registry.system_of(name), histories=2)
    assert (found.language, found.height) == (language, height)


def test_aggregates_are_found_in_what_is_called() -> None:
    text = """system s "S"
input r : {num}  answer t : {num}
def sized(X) = count(X)
on insert x into r  t := {y | y in {x}, sized(r) = sized(t)}
on delete x from r"""
    assert uses_aggregates(system_of(text))
    assert not uses_aggregates(system_of(text.replace("sized(r) = sized(t)", "r = t")))


def test_height_is_of_what_stands_inside_terms_too() -> None:
    text = """system s "S"
input r : {num}  answer t : {num}
on insert x into r  t := {y | Y in {{x}}, y in Y}
on delete x from r"""
    assert system_height(system_of(text)) == 2
    assert system_height(system_of(text.replace("{y | Y in {{x}}, y in Y}", "{x}"))) == 1


def test_determinism_says_how_much_was_tried() -> None:
    yes = properties(registry.system_of("max_outdegree_parity"), histories=6).deterministic
    assert str(yes) == "yes, as far as tried: 6 histories"
    no = properties(registry.system_of("linear_order"), histories=20).deterministic
    assert str(no).startswith("no: two histories of the same input leave different relations")
    assert no.differ is not None


@pytest.mark.parametrize(
    ("name", "arity", "deterministic"),
    [
        ("tc_witness", 3, False),
        ("tc_counts", 3, True),
        ("tc_algebra", 4, False),
        ("same_generation_counts", 3, True),
        ("alternating_counters", 3, True),
    ],
)
def test_systems_in_python_have_properties_too(name: str, arity: int, deterministic: bool) -> None:
    found = storage(registry.running(name))
    assert (found.space_free, found.flat, found.arity) == (False, True, arity)
    assert found.deterministic.holds == deterministic
    assert found.deterministic.histories > 1


def test_trying_ends_in_time_and_says_how_far_it_came() -> None:
    found = determinism(registry.system_of("tc_counts"), histories=10**9, seconds=0.05)
    assert found.holds
    assert 0 < found.histories < 100_000
    assert str(found) == f"yes, as far as tried: {found.histories} histories"
    assert str(determinism(registry.system_of("even"), seconds=-1)) == "yes, as far as tried: 2 histories"


DIVIDES = """system inverse "Inverses"
input r : {num}  answer s : {num}
on insert x into r  s += {1 / x}
on delete x from r  s -= {1 / x}
"""


def test_a_division_by_zero_is_a_history_that_is_not_taken() -> None:
    assert determinism(system_of(DIVIDES)).holds
    assert str(Determinism(0)).startswith("not known")


def test_functions_are_compiled_once_for_all_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = Running._compile

    def watched(self: Running, update: Any) -> Any:
        made.append(update)
        return real(self, update)

    monkeypatch.setattr(Running, "_compile", watched)
    determinism(registry.system_of("tc_counts"))
    assert len(made) == 2

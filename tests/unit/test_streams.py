"""Change events in and out: Debezium's lines, transactions, files, pipes, sockets."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fact_rows import ANY_SYMBOL, relations_with_rows
from following import PATHS, added_up, begin, closure, end, entries, event, events, following, wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog import Database, FactError, FactsError
from everlog.cli import main
from everlog.core.program import Kind, Program, Relation, Row
from everlog.files.rejects import abort
from everlog.streams import follow
from everlog.streams.debezium import Event, Marker, decode, event_value, row_changes, transaction_text
from everlog.streams.grouping import Grouper
from everlog.streams.lines import FileLines
from everlog.streams.model import UNCHANGED, RowChange, Transaction
from everlog.streams.naming import Naming
from everlog.streams.resolve import Resolver
from everlog.streams.sockets import address_of


def stream(folder: Path, *lines: str, name: str = "in.jsonl") -> str:
    (folder / name).write_text("".join(lines))
    return str(folder / name)


def followed(folder: Path, *lines: str, program: str = PATHS, **options: Any) -> Database:
    """A database that has followed a file of these lines; `out.jsonl` is its output."""
    database = Database.from_text(program)
    follow(database, [stream(folder, *lines)], [str(folder / "out.jsonl")], **options)
    return database


# ── events ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(case=relations_with_rows(ANY_SYMBOL, least=0), data=st.data())
def test_changes_come_back_from_their_lines(case: tuple[Relation, list[Row]], data: st.DataObject) -> None:
    relation, rows = case
    unique = list(dict.fromkeys(rows))
    cut = data.draw(st.integers(0, len(unique)))
    key = data.draw(st.sampled_from([(), tuple(range(relation.arity))[:1]]))
    changes = list(row_changes(relation, unique[:cut], unique[cut:], key))
    text = transaction_text("7", [(relation, change) for change in changes], {"a": "1"})
    first, *middle, last = [decode(line) for line in text.split("\n")[:-1]]
    assert first == Marker("7", True)
    assert isinstance(last, Marker)
    assert last.positions == {"a": "1"}
    assert sum(last.counts.values()) == len(changes)
    back = [entry.change for entry in middle if isinstance(entry, Event)]
    assert back == changes
    state = set(unique[:cut])
    for change in back:
        for values, there in ((change.before, False), (change.after, True)):
            if values is not None:
                row = tuple(event_value(c.kind, values[c.name]) for c in relation.columns)
                (state.add if there else state.discard)(row)
    assert state == set(unique[cut:])


def test_what_other_programs_write_is_understood() -> None:
    wrapped = {"schema": {}, "payload": json.loads(event("c", None, (1, 2), schema="public"))}
    found = decode(json.dumps(wrapped), 5)
    assert isinstance(found, Event)
    assert found.change == RowChange("public.edge", "c", None, {"x": 1, "y": 2}, 5)
    assert decode("null") is None
    assert decode('{"op": "m", "message": {}}') is None
    assert decode(end("5", edge=3)) == Marker("5", False, {"edge": 3}, event_count=3)
    assert event_value(Kind.UNSIGNED, "18446744073709551615") == 2**64 - 1
    assert event_value(Kind.FLOAT, "-Infinity") == float("-inf")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("7", "expected a change event with `op`, found 7"),
        ('{"op": "x"}', "unknown operation 'x'"),
        ('{"op": "c", "after": {}}', "a change event needs `source.table`"),
        ('{"op": "c", "source": {"table": "t"}}', "a change with op=c needs `after`"),
        ('{"op": "d", "source": {"table": "t"}, "before": [1]}', "`before` must be an object or null, not [1]"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_line_that_is_no_event_is_reported(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        decode(line)
    with pytest.raises(FactsError) as told:
        followed(tmp_path, event("c", None, (1, 2)), line + "\n")
    assert f"in.jsonl:2: {message}" in str(told.value)


def test_a_null_stops_the_stream_unless_it_has_a_value(tmp_path: Path) -> None:
    """The same stream and the same database go on, whichever way it is said."""
    changes = [event("c", None, (1, 2)), event("c", None, (3, None)), event("c", None, (5, 6))]
    source = stream(tmp_path, *changes)
    database = Database.from_text(PATHS)
    for _ in range(2):
        with pytest.raises(FactsError) as told:
            follow(database, [source], [])
    assert "in.jsonl:2: column 2 (`y`:number) is null; a fact has a value in every column" in str(told.value)
    assert "--null edge.y=VALUE, or write such rows to a file with --rejects FILE" in str(told.value)
    follow(database, [source], [], nulls={"edge": "-1"})
    assert database.view("edge") == [(1, 2), (3, -1), (5, 6)]
    other = Database.from_text(PATHS)
    follow(other, [source], [], rejects=tmp_path / "bad.jsonl")
    assert other.view("edge") == [(1, 2), (5, 6)]
    stream(tmp_path, *changes, event("u", (3, None), (3, 4)), event("d", (1, None), None))
    with pytest.raises(FactsError, match=r"in.jsonl:5: the change does not say what was there before"):
        follow(database, [source], [], nulls={"edge.y": "-1"})
    assert database.view("edge") == [(1, 2), (3, 4), (5, 6)]


def test_what_a_null_becomes_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    for key, value, message in [
        ("edge.z", "1", "has no column `z`"),
        ("edge.y", "none", "cannot become 'none': 'none' is not a number"),
        ("edge", "none", "null='none' fits no column"),
        ("edges.y", "1", "undefined relation `edges`"),
    ]:
        with pytest.raises((FactsError, FactError), match=message):
            follow(Database.from_text(PATHS), [str(tmp_path / "missing")], [], nulls={key: value})


def test_the_command_line_says_what_a_null_becomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(".decl edge(x:number, y:symbol)  .decl r(y:symbol)  .output r  r(y) :- edge(_, y).")
    Path("in.jsonl").write_text(event("c", None, (1, None)))
    assert main(["follow", "p.dl", "--from", "in.jsonl", "--to", "out.jsonl"]) == 1
    assert main(["follow", "p.dl", "--from", "in.jsonl", "--to", "out.jsonl", "--null", "edge.y="]) == 0
    assert '"after": {"y": ""}' in Path("out.jsonl").read_text()


def test_events_have_a_mark_floats_and_bytes_as_files_have(tmp_path: Path) -> None:
    program = ".decl edge(x:float, y:symbol)"
    assert followed(tmp_path, "\ufeff" + event("c", None, (1, "a")), program=program).view("edge") == [(1.0, "a")]
    for value, what in (("1e400", "too large"), (str(2**53 + 1), "no float is exactly")):
        with pytest.raises(FactsError, match=what):
            followed(tmp_path, event("c", None, (7, "a")).replace("7", value), program=program)
    (tmp_path / "in.jsonl").write_bytes(event("c", None, (1, "Z")).replace("Z", "\xe9").encode("latin-1"))
    with pytest.raises(FactsError, match=r"in.jsonl:1: the byte 0xe9 in .* is not UTF-8"):
        follow(Database.from_text(program), [str(tmp_path / "in.jsonl")], [])


# ── transactions ─────────────────────────────────────────────────────────────────────────────


def groups_of(text: str, start: int = 0, finished: Any = None) -> list[Any]:
    grouper = Grouper({"edge": "edge"}.get, finished or {})
    groups: list[Any] = []
    offset, number = start, text[:start].count("\n")
    for line in text[start:].splitlines(keepends=True):
        number += 1
        entry = decode(line, number)
        assert entry is not None
        groups += grouper.add(entry, offset, offset + len(line), number)
        offset += len(line)
    return [*groups, *grouper.finish(offset, number)]


def rows_of(group: Any) -> list[tuple[Any, ...]]:
    return [tuple((change.after or change.before).values()) for change in group.changes]


def test_markers_keep_a_transaction_together_though_others_come_in_between() -> None:
    text = begin("1") + event("c", None, (1, 1), tx="1") + begin("2") + event("c", None, (2, 1), tx="2")
    text += event("c", None, (1, 2), tx="1") + end("2", edge=1) + end("1", edge=2)
    assert [rows_of(group) for group in groups_of(text)] == [[(2, 1)], [(1, 1), (1, 2)]]


def test_an_end_that_comes_early_waits_for_the_events_it_counts() -> None:
    text = begin("1") + event("c", None, (1, 1), tx="1") + end("1", edge=2, other=5)
    assert groups_of(text) == []
    assert [rows_of(g) for g in groups_of(text + event("c", None, (1, 2), tx="1"))] == [[(1, 1), (1, 2)]]


def test_a_transaction_that_is_begun_again_is_reported_again_as_a_whole() -> None:
    text = begin("1") + event("c", None, (9, 9), tx="1") + begin("2") + event("c", None, (2, 1), tx="2")
    text += begin("1") + event("c", None, (1, 1), tx="1") + end("1", edge=1) + end("2", edge=1)
    assert [rows_of(group) for group in groups_of(text)] == [[(1, 1)], [(2, 1)]]


def test_without_markers_events_in_a_row_belong_together() -> None:
    text = "".join(event("c", None, (int(tx), n), tx=tx) for tx, n in [("1", 1), ("1", 2), ("2", 1), ("3", 1)])
    text += event("c", None, (9, 9)) + event("c", None, (8, 8))
    assert [rows_of(group) for group in groups_of(text)] == [
        [(1, 1), (1, 2)],
        [(2, 1)],
        [(3, 1)],
        [(9, 9)],
        [(8, 8)],
    ]


def test_the_rows_of_a_snapshot_are_one_transaction() -> None:
    text = event("r", None, (1, 1), snapshot="first") + event("r", None, (2, 2), snapshot="true")
    last = event("r", None, (3, 3), snapshot="last") + event("c", None, (4, 4))
    assert [len(group.changes) for group in groups_of(text + last)] == [3, 1]
    assert [len(group.changes) for group in groups_of(text + event("c", None, (4, 4)))] == [2, 1]


def test_an_incomplete_transaction_is_left_out_and_told(tmp_path: Path) -> None:
    told: list[str] = []
    text = event("c", None, (1, 2)), begin("7"), event("c", None, (5, 6), tx="7")
    assert followed(tmp_path, *text, tell=told.append).view("edge") == [(1, 2)]
    assert told == [f"{tmp_path}/in.jsonl ends within the transaction '7': its 1 change(s) are skipped"]


def test_a_transaction_whose_last_line_is_cut_has_not_ended(tmp_path: Path) -> None:
    told: list[str] = []
    text = (
        event("c", None, (1, 2), tx="1"),
        event("c", None, (3, 4), tx="2"),
        event("c", None, (5, 6), tx="2")[:-9],
    )
    assert followed(tmp_path, *text, tell=told.append).view("edge") == [(1, 2)]
    assert told == [f"{tmp_path}/in.jsonl ends within the transaction '2': its 1 change(s) are skipped"]


def test_a_line_that_does_not_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everlog.streams.lines.LONGEST", 100)
    monkeypatch.setattr("everlog.streams.lines._PIECE", 40)
    with pytest.raises(FactsError, match=r"in.jsonl:2: a line has more than"):
        followed(tmp_path, event("c", None, (1, 2)), "x" * 200)


@pytest.mark.parametrize("how", ["cut", "cut and longer again", "replaced"])
def test_a_file_that_is_not_only_added_to_is_noticed_while_it_is_read(tmp_path: Path, how: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(begin("1") + event("c", None, (1, 2), tx="1"))
    lines = FileLines(path, live=True)
    assert len(lines.take() or ()) == 2
    assert lines.take() == []
    with path.open("a") as more:
        more.write(end("1"))
    assert [line.number for line in lines.take() or ()] == [3]
    if how == "replaced":
        (tmp_path / "other").write_text(path.read_text())
        (tmp_path / "other").rename(path)
    else:
        path.write_text(begin("2") + (event("c", None, (3, 4), tx="2") + end("2")) * (9 if "again" in how else 0))
    with pytest.raises(FactsError, match="was cut or replaced while it was read"):
        lines.take()
    lines.close()


@st.composite
def interleaved(draw: st.DrawFn) -> str:
    """Transactions with markers, interleaved in any order, and some events without."""
    count = draw(st.integers(1, 4))
    queues = []
    for number in range(count):
        tx = f"t{number}"
        size = draw(st.integers(0, 3))
        changes = [event("c", None, (number, n), tx=tx) for n in range(size)]
        queues.append([begin(tx), *changes, end(tx, edge=size) if size else end(tx)])
    queues.append([event("c", None, (100, n)) for n in range(draw(st.integers(0, 3)))])
    lines = []
    while queues := [queue for queue in queues if queue]:
        lines.append(queues[draw(st.integers(0, len(queues) - 1))].pop(0))
    return "".join(lines)


@given(interleaved())
def test_whoever_goes_on_behind_a_transaction_gets_the_others_once(text: str) -> None:
    groups = groups_of(text)
    for number, group in enumerate(groups, start=1):
        rest = groups_of(text, group.offset, group.finished)
        assert [rows_of(g) for g in rest] == [rows_of(g) for g in groups[number:]]
        assert group.lines == text[: group.offset].count("\n")


def test_a_transaction_is_one_step(tmp_path: Path) -> None:
    """A row inserted and deleted in one transaction never appears."""
    lines = [begin("1"), event("c", None, (1, 2), tx="1"), event("c", None, (2, 3), tx="1")]
    lines += [event("d", (1, 2), tx="1"), end("1", edge=3), event("u", (2, 3), (2, 4))]
    database = followed(tmp_path, *lines)
    assert database.view("path") == [(2, 4)]
    assert events((tmp_path / "out.jsonl").read_text()) == [
        ("c", None, (2, 3)),
        ("d", (2, 3), None),
        ("c", None, (2, 4)),
    ]


# ── rows to facts ────────────────────────────────────────────────────────────────────────────

PERSON = ".decl person(id:number, name:symbol, city:symbol)  .decl in_(city:symbol, name:symbol)  in_(c, n) :- person(_, n, c)."


def resolved(database: Database, *changes: RowChange, keys: dict[str, list[str]] | None = None) -> Any:
    naming = Naming(database.relations, keys=keys)
    updates = Resolver(database, naming, event_value, abort).updates(Transaction(changes, None, "test"))
    return database.apply(updates)


def person(id_: int, name: object = "Ada", city: object = "Bern") -> dict[str, object]:
    return {"id": id_, "name": name, "city": city, "born": 1815}


def test_with_a_key_a_row_takes_the_place_of_the_one_that_has_it() -> None:
    database = Database.from_text(PERSON)
    keys = {"person": ["id"]}
    resolved(database, RowChange("person", "c", None, person(1)), keys=keys)
    resolved(database, RowChange("person", "c", None, person(1)), keys=keys)  # once more
    resolved(database, RowChange("person", "u", None, person(1, "Ada", "Basel")), keys=keys)
    assert database.view("person") == [(1, "Ada", "Basel")]
    resolved(database, RowChange("person", "u", {"id": 1}, person(2, "Ada", "Chur")), keys=keys)
    assert database.view("person") == [(2, "Ada", "Chur")]
    resolved(database, RowChange("person", "d", {"id": 2, "name": None}), keys=keys)
    resolved(database, RowChange("person", "d", {"id": 2}), keys=keys)
    assert database.view("person") == []


def test_changes_of_one_row_in_one_transaction_see_each_other() -> None:
    database = Database.from_text(PERSON)
    changes = [RowChange("person", "c", None, person(n)) for n in range(5)]
    changes += [RowChange("person", "u", {"id": n}, person(n, "Bo")) for n in range(4)]
    changes += [RowChange("person", "d", {"id": n}) for n in range(3)]
    for keys in ({"person": ["id"]}, None):
        resolved(database, RowChange("person", "t"), *changes, keys=keys)
        assert database.view("person") == [(3, "Bo", "Bern"), (4, "Ada", "Bern")]


def test_a_value_that_is_left_out_since_it_has_not_changed_stays() -> None:
    database = Database.from_text(PERSON)
    keys = {"person": ["id"]}
    resolved(database, RowChange("person", "c", None, person(1, "long" * 9)), keys=keys)
    resolved(database, RowChange("person", "u", None, person(1, UNCHANGED, "Chur")), keys=keys)
    assert database.view("person") == [(1, "long" * 9, "Chur")]
    resolved(database, RowChange("person", "u", person(1, "long" * 9, "Chur"), person(1, UNCHANGED, "Zug")))
    assert database.view("person") == [(1, "long" * 9, "Zug")]
    with pytest.raises(FactsError, match="the unchanged value of `name` is not known"):
        resolved(database, RowChange("person", "u", None, person(9, UNCHANGED)), keys=keys)


@pytest.mark.parametrize(
    ("change", "keys", "message"),
    [
        (
            RowChange("person", "c", None, person(1, None)),
            None,
            "column 2 (`name`:symbol) is null; a fact has a value in every column",
        ),
        (RowChange("person", "c", None, {"id": 1}), None, "column 2 (`name`:symbol) is missing from {'id': 1}"),
        (RowChange("person", "c", None, person(2**63)), None, "is out of range for a 64-bit number"),
        (
            RowChange("person", "u", None, person(1)),
            None,
            "the change does not say what was there before; name the key of person",
        ),
        (RowChange("person", "d", person(1, None)), None, "the change does not say what was there before"),
        (RowChange("person", "d", {"name": "Ada"}), None, "one row is meant, but 2 facts of person fit"),
        (RowChange("person", "d", {"name": "Ada"}), {"person": ["id"]}, "the key of person is missing"),
    ],
)
def test_a_change_that_means_no_facts_is_reported_and_nothing_happens(
    change: RowChange, keys: dict[str, list[str]] | None, message: str
) -> None:
    database = Database.from_text(PERSON, facts={"person": [(n, "Ada", "Bern") for n in (7, 8, 9)]})
    with pytest.raises(FactsError) as caught:
        resolved(database, RowChange("person", "d", {"id": 7}), change, keys=keys)
    assert message in str(caught.value)
    assert database.size("person") == 3


def test_a_row_that_never_was_a_fact_becomes_one() -> None:
    database = Database.from_text(PERSON)
    for keys in (None, {"person": ["id"]}):
        resolved(database, RowChange("person", "u", person(2**63), person(1)), keys=keys)
        assert database.view("person") == [(1, "Ada", "Bern")]
        resolved(database, RowChange("person", "d", person(1)), keys=keys)
        assert database.size("person") == 0


def test_tables_have_the_names_of_relations_or_others(tmp_path: Path) -> None:
    told: list[str] = []
    lines = [
        event("c", None, (n, 0), table=table) for n, table in enumerate(["links", "edge", "shop.links", "other"])
    ]
    database = followed(tmp_path, *lines, tables={"edge": "links"}, tell=told.append)
    assert database.view("edge") == [(0, 0), (2, 0)]
    assert told == [
        f"changes of the table `{t}` are skipped: no relation has this name" for t in ("edge", "other")
    ]
    with pytest.raises(FactsError, match=r"the key of edge\(x:number, y:number\) has no column `z`"):
        followed(tmp_path, keys={"edge": ["z"]})


@settings(max_examples=25)
@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=5), max_size=6), st.booleans())
def test_a_keyed_table_is_followed_whatever_becomes_of_its_rows(steps: list[Any], full: bool) -> None:
    """Rows of a keyed table come, change and go, with or without `before`."""
    table: dict[int, int] = {}
    lines = []
    for number, step in enumerate(steps):
        lines.append(begin(str(number)))
        for key, value in step:
            before = (key, table[key]) if key in table else None
            if value == 0 and before:
                lines.append(event("d", before if full else {"x": key}, tx=str(number)))
                del table[key]
            elif value:
                lines.append(event("u" if before else "c", before if full else None, (key, value), tx=str(number)))
                table[key] = value
        lines.append(end(str(number)))
    with tempfile.TemporaryDirectory() as folder:
        database = followed(Path(folder), *lines, keys={"edge": ["x"]})
        assert database.view("edge") == sorted(table.items())
        assert added_up((Path(folder) / "out.jsonl").read_text()) == closure(table.items())


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────


def test_a_bad_row_stops_the_stream_before_its_transaction(tmp_path: Path) -> None:
    lines = [event("c", None, (1, 2)), begin("7"), event("c", None, (2, 3), tx="7")]
    lines += [event("c", None, (3, "x"), tx="7"), end("7")]
    database = Database.from_text(PATHS)
    with pytest.raises(FactsError, match=r"in.jsonl:4: column 2 \(`y`:number\): 'x' is not a number"):
        follow(database, [stream(tmp_path, *lines)], [str(tmp_path / "out.jsonl")])
    assert database.view("edge") == [(1, 2)]
    assert added_up((tmp_path / "out.jsonl").read_text()) == {(1, 2)}


def test_rejects_take_what_is_no_fact_and_the_rest_goes_on(tmp_path: Path) -> None:
    lines = [event("c", None, (1, 2)), "{\n", begin("7"), event("c", None, (2, 3), tx="7")]
    lines += [event("u", (1, 2), (1, None), tx="7"), end("7"), event("c", None, (4, 5))]
    database = followed(tmp_path, *lines, rejects=tmp_path / "bad.jsonl")
    assert database.view("edge") == [(2, 3), (4, 5)]
    bad = entries((tmp_path / "bad.jsonl").read_text())
    assert [(entry["line"], entry["reason"][:8]) for entry in bad] == [(2, "not JSON"), (5, "column 2")]
    assert bad[1]["values"] == {"x": 1, "y": None}


def test_a_step_on_which_a_rule_fails_stops_the_stream_or_is_rejected(tmp_path: Path) -> None:
    program = ".decl edge(x:number, y:number)  .decl ratio(r:number)  ratio(x / y) :- edge(x, y)."
    lines = [event("c", None, (4, 2)), event("c", None, (1, 0)), event("c", None, (9, 3))]
    with pytest.raises(FactsError, match=r"in.jsonl:2: the transaction cannot be applied: division by zero"):
        followed(tmp_path, *lines, program=program)
    database = followed(tmp_path, *lines, program=program, rejects=tmp_path / "bad.jsonl")
    assert database.view("ratio") == [(2,), (3,)]
    assert [entry["values"] for entry in entries((tmp_path / "bad.jsonl").read_text())] == [{"x": 1, "y": 0}]


def test_addresses_beyond_this_machine_are_refused() -> None:
    assert address_of("tcp://localhost:80").host == "localhost"
    assert address_of("tcp://[::1]:80").host == "::1"
    for url in (
        "tcp://0.0.0.0:9000",
        "tcp-listen://192.168.1.2:9000",
        "tcp://example.org:1",
        "tcp-listen://:9000",
    ):
        with pytest.raises(FactsError, match=r"only 127.0.0.1, ::1 and localhost are allowed"):
            address_of(url)
    with pytest.raises(FactsError, match="a port is missing"):
        address_of("tcp://127.0.0.1")
    with pytest.raises(FactsError, match="a path is missing"):
        address_of("unix://")


def test_the_command_line_reports_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(PATHS)
    for arguments, message in [
        (["--from", "nowhere.jsonl"], "cannot read nowhere.jsonl"),
        (["--from", "http://x"], "http:// is not supported"),
        (["--from", "tcp://127.0.0.1:1"], "cannot connect to tcp://127.0.0.1:1"),
        (["--from", "p.dl", "--from", "p.dl"], "p.dl occurs twice"),
        (["--key", "edge"], "`edge`: write --key RELATION=COLUMN"),
        (["--table", "egde=t"], "undefined relation `egde`; did you mean `edge`"),
        (["--tell", "paths"], "undefined relation `paths`"),
        (["--from", "p.dl"], "p.dl:2: not JSON"),
    ]:
        assert main(["follow", "p.dl", "--to", "out.jsonl", *arguments]) == 1
        assert message in capsys.readouterr().err


# ── files: restarts ──────────────────────────────────────────────────────────────────────────


def test_a_file_that_is_read_again_is_not_told_again(tmp_path: Path) -> None:
    lines = [event("c", None, (1, 2)), event("c", None, (2, 3)), event("d", (1, 2)), event("c", None, (3, 4))]
    for count in range(5):
        followed(tmp_path, *lines[:count])
    text = (tmp_path / "out.jsonl").read_text()
    assert added_up(text) == closure([(2, 3), (3, 4)])
    assert [op for op, _, _ in events(text)] == ["c", "c", "c", "d", "d", "c", "c"]
    assert [entry["id"] for entry in entries(text) if entry.get("status") == "END"] == ["1", "2", "3", "4"]


def test_a_database_goes_on_behind_its_position(tmp_path: Path) -> None:
    database = Database.from_text(PATHS)
    lines = [event("c", None, (1, 2)), event("c", None, (2, 3))]
    source = stream(tmp_path, *lines)
    assert follow(database, [source], []) == 2
    assert follow(database, [source], []) == 0
    stream(tmp_path, *lines, event("c", None, (3, 4)))
    assert follow(database, [source], []) == 1
    assert list(database.positions) == [source]
    stream(tmp_path, event("c", None, (7, 7)), *lines)
    with pytest.raises(FactsError, match="is not the file that was read up to byte"):
        follow(database, [source], [])


@pytest.mark.parametrize("cut", [1, 30, 200, 400])
def test_what_a_crash_has_cut_short_is_cut_off_and_told_anew(tmp_path: Path, cut: int) -> None:
    lines = [event("c", None, (1, 2)), event("c", None, (2, 3))]
    followed(tmp_path, *lines)
    path = tmp_path / "out.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-cut])
    followed(tmp_path, *lines)
    assert added_up(path.read_text()) == closure([(1, 2), (2, 3)])
    assert events(path.read_text()) == events(whole)


def test_other_rules_are_reported_as_the_difference(tmp_path: Path) -> None:
    followed(tmp_path, event("c", None, (1, 2)), event("c", None, (2, 3)))
    followed(
        tmp_path, event("c", None, (1, 2)), event("c", None, (2, 3)), program=PATHS + "path(y, x) :- edge(x, y)."
    )
    text = (tmp_path / "out.jsonl").read_text()
    assert added_up(text) == {(1, 2), (2, 3), (1, 3), (2, 1), (3, 2), (2, 2), (3, 3)}


def test_a_line_that_is_rejected_keeps_no_transaction_waiting(tmp_path: Path) -> None:
    lines = [
        begin("1"),
        event("c", None, (1, 2), tx="1"),
        '{"op": "?"}\n',
        end("1", edge=2),
        event("c", None, (5, 6)),
    ]
    assert followed(tmp_path, *lines, rejects=tmp_path / "bad").view("edge") == [(1, 2), (5, 6)]


def test_a_file_has_one_writer_and_is_not_its_own_source(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    with following(tmp_path, "--from", "in.jsonl", "--to", "out.jsonl", "--live") as process:
        wait_until(lambda: (tmp_path / "out.jsonl").exists(), process)
        with pytest.raises(FactsError, match="another everlog writes to it"):
            wait_until(lambda: followed(tmp_path) and False, process)
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    with pytest.raises(FactsError, match="cannot be both a source and a sink"):
        follow(Database.from_text(PATHS), [str(tmp_path / "in.jsonl")], [str(tmp_path / "link.jsonl")])


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    ours = begin("1")[:-3]
    for text in (
        "a diary\n",
        "a diary",
        event("c", None, (1, 2)),
        begin("1") + event("c", None, (1, 2), tx="1"),
        "7",
        ours,
    ):
        (tmp_path / "out.jsonl").write_text(text)
        if text is ours:  # cut short by a crash
            followed(tmp_path, event("c", None, (1, 2)))
            assert added_up((tmp_path / "out.jsonl").read_text()) == {(1, 2)}
            return
        with pytest.raises(FactsError, match=r"out.jsonl:[12]: not written by everlog"):
            followed(tmp_path, event("c", None, (1, 2)))
        assert (tmp_path / "out.jsonl").read_text() == text


def test_a_chain_of_two_programs_by_a_file(tmp_path: Path) -> None:
    """One everlog reads what another writes: derived relations become tables."""
    followed(tmp_path, event("c", None, (1, 2)), event("c", None, (2, 3)), event("d", (1, 2)))
    second = Database.from_text(".decl path(x:number, y:number)  .decl start(x:number)  start(x) :- path(x, _).")
    follow(second, [str(tmp_path / "out.jsonl")], [])
    assert second.view("path") == [(2, 3)]
    assert second.view("start") == [(2,)]


def test_updates_are_reported_as_such_where_a_key_is_known(tmp_path: Path) -> None:
    program = ".decl edge(x:number, y:number)  .decl best(x:number, y:number)  best(x, y) :- edge(x, _), y = max z : edge(x, z)."
    followed(tmp_path, event("c", None, (1, 2)), event("c", None, (1, 5)), program=program, keys={"best": ["x"]})
    assert events((tmp_path / "out.jsonl").read_text()) == [("c", None, (1, 2)), ("u", (1, 2), (1, 5))]


def test_a_growing_file_is_followed_through_kills(tmp_path: Path) -> None:
    """A process that reads a growing file is killed at random: no loss, no repetition."""
    random, edges = Random(7), set[tuple[int, int]]()
    source, sink = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.touch()
    arguments = ("--from", "in.jsonl", "--to", "out.jsonl", "--live")

    def toggle(edge: tuple[int, int]) -> None:
        nonlocal edges
        with source.open("a") as file:
            file.write(event("d", edge) if edge in edges else event("c", None, edge))
        edges ^= {edge}

    for run in range(2):
        with following(tmp_path, *arguments) as process:
            toggle((1000 + run, 0))
            wait_until(lambda: sink.exists() and f'"x": {1000 + run},' in sink.read_text(), process)  # noqa: B023
            for _ in range(150):
                toggle((random.randrange(30), random.randrange(30)))
            time.sleep(random.uniform(0, 0.2))
            process.send_signal(signal.SIGKILL)  # in the midst of it
            process.wait()
    with following(tmp_path, "--from", "in.jsonl", "--to", "out.jsonl") as process:
        assert process.wait(60) == 0
    assert added_up(sink.read_text()) == closure(edges)


def test_a_database_in_a_file_has_each_transaction_once_through_kills(tmp_path: Path) -> None:
    """Its steps are the transactions of the source, in order, each exactly once."""
    random, edges, transactions = Random(5), set[tuple[int, int]](), list[dict[Any, int]]()
    source, sink = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.touch()
    arguments = ("--from", "in.jsonl", "--to", "out.jsonl", "--db", "steps.db")
    for run in range(2):
        with following(tmp_path, *arguments, "--live") as process:
            for number in range(60):
                toggled = (
                    {(1000 + run, 0)}
                    if number == 0
                    else {(random.randrange(20), random.randrange(20)) for _ in "ab"}
                )
                name = str(len(transactions))
                lines = [event("d", e, tx=name) if e in edges else event("c", None, e, tx=name) for e in toggled]
                with source.open("a") as file:
                    file.write("".join([begin(name), *lines, end(name)]))
                transactions.append({edge: -1 if edge in edges else 1 for edge in toggled})
                edges ^= toggled
                if number == 0:
                    wait_until(lambda: sink.exists() and f'"x": {1000 + run},' in sink.read_text(), process)  # noqa: B023
            time.sleep(random.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
            process.wait()
    with following(tmp_path, *arguments) as process:
        assert process.wait(60) == 0
    with Database.open(tmp_path / "steps.db", read_only=True) as database:
        assert [dict(past.changes["edge"]) for past in database.history("edge")] == transactions
        assert set(database.view("path")) == closure(edges)
    assert added_up(sink.read_text()) == closure(edges)


# ── pipes and sockets ────────────────────────────────────────────────────────────────────────


def test_a_live_pipe_is_answered_at_once(tmp_path: Path) -> None:
    with following(tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["status"] == "BEGIN"
        assert json.loads(process.stdout.readline())["op"] == "t"
        assert json.loads(process.stdout.readline())["status"] == "END"
        for n in range(3):
            process.stdin.write(event("c", None, (n, n + 1)).encode())
            process.stdin.flush()
            lines = [json.loads(process.stdout.readline()) for _ in range(n + 3)]
            assert [line.get("op", line.get("status")) for line in lines] == ["BEGIN", *["c"] * (n + 1), "END"]
        process.stdin.close()
        assert process.wait(30) == 0


def test_output_that_is_no_longer_read(tmp_path: Path) -> None:
    with following(tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            for n in range(2000):
                process.stdin.write(event("c", None, (n, 0)).encode())
        assert process.wait(30) == 1
        process.stdin, process.stdout = None, None


def test_named_pipes(tmp_path: Path) -> None:
    for name in ("in.pipe", "out.pipe"):
        os.mkfifo(tmp_path / name)
    with following(tmp_path, "--from", "in.pipe", "--to", "out.pipe", "--no-snapshot", "--live") as process:
        answers = (tmp_path / "out.pipe").open()
        for n in range(2):  # one writer after the other
            with (tmp_path / "in.pipe").open("w") as changes:
                changes.write(event("c", None, (n, n)))
            assert [json.loads(answers.readline()).get("op") for _ in range(3)] == [None, "c", None]
        process.terminate()
        assert process.wait(30) == 0
        answers.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_sockets_that_listen(tmp_path: Path, kind: str) -> None:
    urls = [
        f"tcp-listen://127.0.0.1:{free_port()}" if kind == "tcp" else f"unix-listen://{tmp_path}/{n}" for n in "ab"
    ]
    with following(tmp_path, "--from", urls[0], "--to", urls[1], "--live") as process:
        for n in range(2):  # peers come and go
            sender = wait_until(lambda: connected(urls[0]), process)
            sender.sendall(event("c", None, (n, n + 1)).encode())
            reader = wait_until(lambda: connected(urls[1]), process)
            with reader, reader.makefile() as lines:
                seen = ""
                while added_up(seen) != closure((m, m + 1) for m in range(n + 1)):
                    seen += lines.readline()
                sender.sendall(event("c", None, (50, 50)).encode() + event("d", (50, 50)).encode())
                sender.close()
                while "END" not in seen[-300:] or '"d"' not in seen:
                    seen += lines.readline()
                assert [op for op, _, _ in events(seen)][-2:] == ["c", "d"]
        process.terminate()
        assert process.wait(30) == 0
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("again", [True, False])
def test_what_a_peer_left_open_when_it_went_is_no_part_of_what_comes_next(tmp_path: Path, again: bool) -> None:
    """The first peer stops within transaction 2; the next sends it again, or never."""
    url = f"unix-listen://{tmp_path}/in"
    cut = begin("2") + event("c", None, (8, 8), tx="2") + event("c", None, (9, 9), tx="2")[:40]
    whole = begin("2") + event("c", None, (2, 3), tx="2") + end("2", edge=1) if again else ""
    texts = event("c", None, (1, 2)) + cut, whole + event("c", None, (4, 5), tx="3") + event("c", None, (6, 7))
    with following(tmp_path, "--from", url, "--to", "out.jsonl", "--live") as process:
        for text in texts:
            with wait_until(lambda: connected(url), process) as peer:
                peer.sendall(text.encode())
        wanted = closure([(1, 2), (4, 5), (6, 7)] + [(2, 3)] * again)
        told = tmp_path / "out.jsonl"
        wait_until(lambda: told.exists() and added_up(complete(told)) == wanted, process)
        process.terminate()
        assert process.wait(30) == 0


def connected(url: str) -> socket.socket | None:
    try:
        return address_of(url.replace("-listen", "")).connect()
    except FactsError:
        return None


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_chain_of_two_processes_by_a_socket_that_is_broken(tmp_path: Path, kind: str) -> None:
    """The second program follows the first; after a kill it catches up exactly once."""
    url = f"tcp-listen://127.0.0.1:{free_port()}" if kind == "tcp" else f"unix-listen://{tmp_path}/chain"
    (tmp_path / "first").mkdir()
    second = ".decl path(x:number, y:number)  .decl start(x:number)  .output start  start(x) :- path(x, _)."
    with following(tmp_path, "--from", url, "--to", "starts.jsonl", "--live", program=second) as receiver:
        told = tmp_path / "starts.jsonl"
        for edges in ([(1, 2), (2, 3)], [(2, 3), (5, 6)]):
            (tmp_path / "first" / "in.jsonl").write_text("".join(event("c", None, edge) for edge in edges))
            wait_until(lambda: connectable(url), receiver)
            arguments = ("--from", "in.jsonl", "--to", url.replace("-listen", ""), "--live")
            with following(tmp_path / "first", *arguments) as sender:
                wanted = {(x,) for x, _ in edges}
                wait_until(lambda: told.exists() and added_up(complete(told)) == wanted, sender)  # noqa: B023
                sender.kill()
        receiver.terminate()
        assert receiver.wait(30) == 0
    assert added_up(told.read_text()) == {(2,), (5,)}


def connectable(url: str) -> bool:
    """Whether a process listens; found out without disturbing it."""
    address = address_of(url)
    if address.path is not None:
        return Path(address.path).exists()
    with Path("/proc/net/tcp").open() as lines:
        return any(f":{address.port:04X} 00000000:0000 0A" in line for line in lines)


def complete(path: Path) -> str:
    text = path.read_text()
    return text[: text.rfind("\n") + 1]


def test_two_sources_and_two_sinks(tmp_path: Path) -> None:
    database = Database.from_text(PATHS)
    sources = [
        stream(tmp_path, event("c", None, (1, 2)), name="a.jsonl"),
        stream(tmp_path, event("c", None, (2, 3)), name="b.jsonl"),
    ]
    sinks = [str(tmp_path / "out1.jsonl"), str(tmp_path / "out2.jsonl")]
    assert follow(database, sources, sinks) == 2
    assert sorted(database.positions) == sources
    for sink in sinks:
        assert added_up(Path(sink).read_text()) == {(1, 2), (2, 3), (1, 3)}


def test_facts_in_files_are_there_before_the_changes(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    (tmp_path / "in.jsonl").write_text(event("c", None, (2, 3)))
    program = PATHS + ".input edge"
    with following(tmp_path, "--from", "in.jsonl", "--to", "out.jsonl", program=program) as process:
        assert process.wait(30) == 0
    assert events((tmp_path / "out.jsonl").read_text())[0] == ("r", None, (1, 2))
    assert added_up((tmp_path / "out.jsonl").read_text()) == {(1, 2), (1, 3), (2, 3)}


def test_a_nullary_relation_is_reported() -> None:
    database = Database.from_text(".decl n(x:number)  .decl any()  any() :- n(_).")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [json.dumps({"op": "c", "after": {"x": 1}, "source": {"table": "n"}}) + "\n"]
        follow(database, [stream(folder, *lines)], [str(folder / "out.jsonl")])
        assert events((folder / "out.jsonl").read_text()) == [("c", None, ())]
        other = Database.from_text(".decl any()")
        follow(other, [str(folder / "out.jsonl")], [])
        assert other.view("any") == [()]


def test_positions_are_kept_with_a_step() -> None:
    database = Database.from_text(".decl n(x:number)")
    database.apply([("n", (1,), 1)], positions={"a": "1"})
    database.apply([], positions={"b": "2"})
    assert dict(database.positions) == {"a": "1", "b": "2"}
    with pytest.raises(Exception, match="undefined relation"):
        database.apply([("m", (1,), 1)], positions={"a": "9"})
    assert database.positions["a"] == "1"
    assert isinstance(database.program, Program)

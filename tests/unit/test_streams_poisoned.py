"""Malformed messages: each is rejected and the stream goes on, or ends the stream."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any, NoReturn

import pytest
from following import begin, end, event
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everlog import Database, FactsError
from everlog.cli import main
from everlog.streams import follow, grouping, lines
from everlog.streams.debezium import decode
from everlog.streams.lines import Cutter

PROGRAM = """
.decl edge(x:number, y:number)
.decl named(x:symbol, y:float)
.decl healthy(x:number)
.decl told(x:symbol)
.output told, healthy
told(x) :- named(x, _).
"""
DEEP = "[" * 150 + "]" * 150


def healthy(number: int) -> str:
    return event("c", None, (number,), table="healthy")


def no_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a rejects file, which every reader of JSON can read."""
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line, parse_constant=no_constant) for line in data.decode().split("\n")[:-1]]


class Run:
    """A file of lines, and databases that follow it."""

    def __init__(self, folder: Path, *texts: str | bytes) -> None:
        self.path, self.rejects, self.out = folder / "in.jsonl", folder / "bad.jsonl", folder / "out.jsonl"
        self.add(*texts)

    def add(self, *texts: str | bytes) -> None:
        with self.path.open("ab") as file:
            file.writelines(text if isinstance(text, bytes) else text.encode() for text in texts)

    def follow(self, database: Database) -> list[dict[str, Any]]:
        """Follow with a rejects file; what was added to that."""
        before = len(records(self.rejects)) if self.rejects.exists() else 0
        follow(database, [str(self.path)], [str(self.out)], rejects=self.rejects)
        return records(self.rejects)[before:]

    def stops(self, database: Database) -> str:
        """Follow without one; the error, without the name of the file."""
        with pytest.raises(FactsError) as told:
            follow(database, [str(self.path)], [])
        assert str(told.value).startswith(f"{self.path}:")
        return str(told.value).removeprefix(f"{self.path}:")


# ── lines ────────────────────────────────────────────────────────────────────────────────────


def changed(path: str, value: object) -> str:
    """An event with another value at a path such as `source.table`."""
    found = json.loads(event("c", None, (1, 2), tx="7", snapshot="false"))
    *outer, last = path.split(".")
    place = found
    for name in outer:
        place = place[name]
    place[last] = value
    return json.dumps(found) + "\n"


POISONED = {
    "half a surrogate pair": (event("c", None, ("\ud800", 1.0), table="named"), "has no UTF-8 form"),
    "as a name of a column": (changed("after", {"\ud800": 1}), "column 1 (`x`:number) is missing"),
    "as a number": (changed("after.x", "\ud83d"), "is not a number"),
    "NUL as a number": (changed("after.x", "\0"), "is not a number"),
    "bytes that are no UTF-8": (b'{"op": "\xff\xfe"}\n', "is not UTF-8"),
    "UTF-16": (event("c", None, (1, 2)).encode("utf-16-le").replace(b"\n\x00", b"\n"), "not JSON"),
    "NaN as a number": (changed("after.x", float("nan")), "nan is not a number"),
    "Infinity as a number": (changed("after.x", float("-inf")), "-inf is not a number"),
    "a number with many digits": (changed("after.x", 10**4000), "is out of range"),
    "with more": (changed("after.x", 0).replace('"x": 0', '"x": ' + "9" * 9999), "not JSON: Exceeds the limit"),
    "a name twice": (changed("op", "d").replace('"op"', '"op": "c", "op"'), "has the name 'op' twice"),
    "a column twice": (changed("op", "d").replace('"x"', '"x": 2, "x"'), "has the name 'x' twice"),
    "deep": (changed("after", 0).replace('"after": 0', f'"after": {DEEP}'), "more than 100 levels"),
    "deeper than Python": ("[" * 100_000 + "\n", "not JSON"),
    "deep in a column": (changed("after.x", json.loads(DEEP[60:240])), "is not a number"),
    "no object": ("[]\n", "expected a change event"),
    "a text": ('"BEGIN"\n', "expected a change event"),
    "payload of a text": ('{"payload": "\\ud800"}\n', "expected a change event"),
    "op": (changed("op", ["c"]), "unknown operation ['c']"),
    "source": (changed("source", "edge"), "a change event needs `source.table`"),
    "table": (changed("source.table", 7), "a change event needs `source.table`"),
    "schema": (changed("source.schema", {}), "`source.schema` must be a text or null"),
    "snapshot": (changed("source.snapshot", [1]), "`source.snapshot` must be a text"),
    "after": (changed("after", "x"), "`after` must be an object or null"),
    "transaction": (changed("transaction", "7"), "`transaction` must be null or have an `id`"),
    "id of an event": (changed("transaction.id", 1.5), "the id of a transaction must be a text"),
    "id of a marker": ('{"status": "BEGIN", "id": null}\n', "the id of a transaction must be a text"),
    "id of an end": ('{"status": "END", "id": ["7"]}\n', "the id of a transaction must be a text"),
    "status": ('{"status": "PAUSE", "id": "7"}\n', "expected a change event"),
}


@pytest.mark.parametrize("name", POISONED)
def test_a_poisoned_line_is_rejected_once_or_ends_the_stream_where_it_stands(tmp_path: Path, name: str) -> None:
    line, reason = POISONED[name]
    run = Run(tmp_path, healthy(1), line, healthy(2))
    database = Database.from_text(PROGRAM)
    first = run.stops(database)
    assert first.startswith("2: ")
    assert reason in first
    assert database.view("healthy") == [(1,)]
    assert run.stops(database) == first
    rejected = run.follow(database)
    assert [(entry["source"], entry["line"]) for entry in rejected] == [(str(run.path), 2)]
    assert reason in rejected[0]["reason"]
    assert database.view("healthy") == [(1,), (2,)]
    assert run.follow(database) == []


@pytest.mark.parametrize("name", ["half a surrogate pair", "deeper than Python", "op", "id of an end"])
def test_a_poisoned_line_at_the_end_is_not_rejected_at_each_start(tmp_path: Path, name: str) -> None:
    run = Run(tmp_path, healthy(1), POISONED[name][0])
    database = Database.from_text(PROGRAM)
    assert len(run.follow(database)) == 1
    assert run.follow(database) == []
    run.add(healthy(2))
    assert run.follow(database) == []
    assert database.view("healthy") == [(1,), (2,)]


def test_a_poisoned_line_does_not_hide_a_transaction_that_goes_on_behind_it(tmp_path: Path) -> None:
    run = Run(tmp_path, begin("7"), event("c", None, (1, 2), tx="7"), "{\n")
    database = Database.from_text(PROGRAM)
    run.follow(database)
    run.add(event("c", None, (3, 4), tx="7"), end("7", edge=3))
    run.follow(database)
    assert database.view("edge") == [(1, 2), (3, 4)]


def test_the_command_goes_on_behind_a_poisoned_line_at_each_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    run = Run(tmp_path, healthy(1), POISONED["half a surrogate pair"][0], healthy(2))
    command = ["follow", str(tmp_path / "p.dl"), "--from", str(run.path), "--to", str(run.out)]
    for _ in range(2):
        assert main([*command, "--db", str(tmp_path / "p.db"), "--rejects", str(run.rejects)]) == 0
        assert [entry["line"] for entry in records(run.rejects)] == [2]
    assert main(command) == 1
    assert "in.jsonl:2: column 1 (`x`:symbol): '\\ud800' has no UTF-8 form" in capsys.readouterr().err


def test_rows_of_files_that_are_rejected_can_be_read_back(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text('{"x": "\\ud800", "y": NaN}\n{"x": "a", "y": 1}\n')
    text = '.decl n(x:symbol, y:float)  .input n(filename="n.jsonl", rejects="bad.jsonl")'
    (tmp_path / "p.dl").write_text(text)
    database = Database.from_text(text)
    database.load("n", tmp_path / "n.jsonl", rejects=str(tmp_path / "bad.jsonl"))
    assert database.view("n") == [("a", 1.0)]
    assert [entry["values"] for entry in records(tmp_path / "bad.jsonl")] == [{"x": "\ud800", "y": "NaN"}]


def test_a_line_that_is_too_long_is_cut_off_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 200)
    monkeypatch.setattr(lines, "_PIECE", 64)
    run = Run(tmp_path, healthy(1), "x" * 1000 + "\n", healthy(2), "y" * 500)
    database = Database.from_text(PROGRAM)
    assert run.stops(database).startswith("2: a line has more than")
    assert [(entry["line"], len(entry["values"]) < 400) for entry in run.follow(database)] == [
        (2, True),
        (4, True),
    ]
    assert database.view("healthy") == [(1,), (2,)]


@given(st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"\0", b"\n")), max_size=12))
def test_lines_have_their_offsets_whatever_the_pieces(pieces: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "LONGEST", 4)
        cutter, whole = Cutter(), b"".join(pieces)
        found = [line for piece in pieces for line in cutter.lines(piece)] + [cutter.last()]
    for line in found:
        assert whole[line.begin : line.end].startswith(line.data)
        if line.data:
            assert line.number == whole[: line.begin].count(b"\n") + 1
        if not line.is_too_long:
            assert whole[line.begin : line.end].removesuffix(b"\n") == line.data
    assert cutter.offset == len(whole)


@pytest.mark.parametrize("which", ["in.jsonl", "out.jsonl", "link.jsonl"])
def test_rejects_have_a_file_of_their_own(tmp_path: Path, which: str) -> None:
    run = Run(tmp_path, healthy(1), "{\n")
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    before = run.path.read_bytes()
    with pytest.raises(FactsError, match="cannot be both the rejects file and a source or sink"):
        follow(Database.from_text(PROGRAM), [str(run.path)], [str(run.out)], rejects=tmp_path / which)
    assert run.path.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_rejects_that_cannot_be_written_end_the_stream(tmp_path: Path) -> None:
    run = Run(tmp_path, "{\n")
    with pytest.raises(FactsError, match="cannot write /dev/full: "):
        follow(Database.from_text(PROGRAM), [str(run.path)], [], rejects=Path("/dev/full"))


# ── ends ─────────────────────────────────────────────────────────────────────────────────────


def an_end(event_count: object = None, collections: object = None) -> str:
    return (
        json.dumps({"status": "END", "id": "7", "event_count": event_count, "data_collections": collections})
        + "\n"
    )


def of(table: object, count: object) -> dict[str, object]:
    return {"data_collection": table, "event_count": count}


def transaction(last: str) -> list[str]:
    """Two events of `edge`, one of an unknown table, and an END."""
    other = event("c", None, (9,), table="other", tx="7")
    return [begin("7"), event("c", None, (1, 2), tx="7"), event("c", None, (3, 4), tx="7"), other, last]


@pytest.mark.parametrize(
    "last",
    [
        an_end(),
        an_end(3),
        an_end(3, [of("edge", 2), of("other", 1)]),
        an_end(None, [of("public.edge", 2), of("other", 1)]),
        an_end(5, [of("edge", 2), of("other", 3)]),  # the others may not be in this stream
        an_end(2, [of("edge", 2)]),
    ],
)
def test_an_end_that_fits_is_applied(tmp_path: Path, last: str) -> None:
    database = Database.from_text(PROGRAM)
    assert Run(tmp_path, *transaction(last), healthy(1)).follow(database) == []
    assert database.view("edge") == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (an_end(5), "counts 5 event(s), and 3 came"),
        (an_end(2), "counts 2 event(s), and 3 came"),
        (an_end(0), "counts 0 event(s), and 3 came"),
        (an_end(3, [of("edge", 3)]), "counts 3 event(s), and 2 came"),
        (an_end(1, [of("edge", 1)]), "counts 1 event(s), and 2 came"),
        (an_end(0, []), "counts 0 event(s), and 2 came"),
        (an_end(2, [of("edge", 1), of("named", 1)]), "counts 2 event(s), and 2 came"),
        (an_end(9, [of("edge", 2)]), "`event_count` is 9, but its tables have 2"),
        (an_end(-1), "`event_count` must be a number of events, not -1"),
        (an_end(2**63), "`event_count` must be a number of events, not 9223372036854775808"),
        (an_end("3"), "`event_count` must be a number of events, not '3'"),
        (an_end(True), "`event_count` must be a number of events, not True"),
        (an_end(3.0), "`event_count` must be a number of events, not 3.0"),
        (an_end(3, {"edge": 3}), "`data_collections` must be an array or null"),
        (an_end(3, [of("edge", "3")]), "`event_count` must be a number of events, not '3'"),
        (an_end(3, [of("edge", 10**4000)]), "`event_count` must be a number of events, not 1000"),
        (an_end(3, [of(None, 3)]), "`data_collections` must have each table once"),
        (an_end(4, [of("edge", 2), of("edge", 2)]), "`data_collections` must have each table once"),
        (an_end(3, ["edge"]), "`data_collections` must have each table once"),
    ],
)
def test_an_end_that_does_not_fit_is_not_applied(tmp_path: Path, last: str, reason: str) -> None:
    run = Run(tmp_path, healthy(1), *transaction(last), healthy(2))
    database = Database.from_text(PROGRAM)
    for _ in range(2):
        stopped = run.stops(database)
        assert stopped.startswith("6: the END of transaction '7' ")
        assert stopped.endswith(": it is not applied")
        assert reason in stopped
        assert database.view("edge") == []
    rejected = run.follow(database)
    assert [entry["line"] for entry in rejected] == [6, 3, 4]
    assert [entry["values"] for entry in rejected[1:]] == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    assert all(reason in entry["reason"] for entry in rejected)
    assert database.view("edge") == []
    assert database.view("healthy") == [(1,), (2,)]


def test_what_comes_behind_a_refused_end_is_not_applied_by_itself(tmp_path: Path) -> None:
    late = event("c", None, (5, 6), tx="7")
    run = Run(tmp_path, *transaction(an_end(4)), late, healthy(1), *transaction(an_end(3)))
    database = Database.from_text(PROGRAM)
    assert [entry["line"] for entry in run.follow(database)] == [5, 2, 3, 6]
    assert database.view("edge") == [(1, 2), (3, 4)]  # sent again as a whole


def test_a_file_that_ends_before_the_events_it_counts_may_have_them_later(tmp_path: Path) -> None:
    late = event("c", None, (5, 6), tx="7")
    run = Run(tmp_path, *transaction(an_end(4, [of("edge", 3), of("other", 1)])), healthy(1))
    database = Database.from_text(PROGRAM)
    assert "counts 3 event(s), and 2 came" in run.stops(database)
    assert database.view("healthy") == [(1,)]
    assert [entry["line"] for entry in run.follow(database)] == [5, 2, 3]
    run.add(late)
    assert run.follow(database) == []
    assert database.view("edge") == [(1, 2), (3, 4), (5, 6)]


def test_an_event_that_comes_twice_counts_once(tmp_path: Path) -> None:
    def ordered(order: int, x: int) -> str:
        found = json.loads(event("c", None, (x, 0), tx="7"))
        found["transaction"]["total_order"] = order
        return json.dumps(found) + "\n"

    run = Run(tmp_path, begin("7"), ordered(1, 1), ordered(2, 2), ordered(1, 1), an_end(2, [of("edge", 2)]))
    database = Database.from_text(PROGRAM)
    assert run.follow(database) == []
    assert database.view("edge") == [(1, 0), (2, 0)]
    run.add(begin("8").replace("8", "7"), ordered(1, 3), ordered(1, 4), an_end(2))  # others, wrongly numbered
    assert run.follow(database) == []
    assert database.view("edge") == [(1, 0), (2, 0), (3, 0), (4, 0)]


def test_a_transaction_whose_end_is_lost_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else positions, which name all that is complete behind it, grow without bound."""
    monkeypatch.setattr(grouping, "_MOST_BEHIND", 5)
    others = [healthy(number) for number in range(20)]
    run = Run(tmp_path, begin("7"), event("c", None, (1, 2), tx="7"), '{"status": "END", "id"\n', *others)
    database = Database.from_text(PROGRAM)
    rejected = run.follow(database)
    assert [entry["line"] for entry in rejected] == [3, 1, 2]
    assert rejected[1]["reason"] == (
        "the END of transaction '7' is missing, and a line was refused: it is not applied"
    )
    assert (database.size("edge"), database.size("healthy")) == (0, 20)
    assert json.loads(database.positions[str(run.path)])["done"] == []


@pytest.mark.parametrize("id_", ["", "\0snapshot", "\x000", "\ud800", "None", "a" * 10_000])
def test_ids_of_transactions_may_be_any_text(tmp_path: Path, id_: str) -> None:
    snapshot = event("r", None, (0, 0), snapshot="first")
    last = event("r", None, (0, 1), snapshot="last")
    run = Run(tmp_path, snapshot, begin(id_), event("c", None, (1, 2), tx=id_), last, end(id_, edge=1))
    database = Database.from_text(PROGRAM)
    assert run.follow(database) == []
    run.add(event("c", None, (3, 4), tx=id_), event("c", None, (5, 6), tx=id_))
    assert run.follow(database) == []
    assert database.view("edge") == [(0, 0), (0, 1), (1, 2), (3, 4), (5, 6)]


def test_a_second_snapshot_and_an_id_that_comes_back_are_not_taken_for_the_first(tmp_path: Path) -> None:
    """While an older transaction is open, positions list complete ones behind it."""
    first = [event("r", None, (1, 1), snapshot="last"), event("c", None, (2, 2), tx="5"), healthy(1)]
    run = Run(tmp_path, begin("7"), *first)
    database = Database.from_text(PROGRAM)
    run.follow(database)
    run.add(event("r", None, (3, 3), snapshot="last"), event("c", None, (4, 4), tx="5"), healthy(2), end("7"))
    run.follow(database)
    assert database.view("edge") == [(1, 1), (2, 2), (3, 3), (4, 4)]


# ── anything ─────────────────────────────────────────────────────────────────────────────────

ODD: list[object] = [
    None,
    True,
    -1,
    0,
    7,
    2**63,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "7",
    "\ud800",
    "\0",
]
ODD += [
    "\udc80",
    "\u2028",
    "c",
    "d",
    "t",
    "BEGIN",
    "last",
    "edge",
    "named",
    [],
    {},
    [[]],
    {"id": "7"},
    json.loads(DEEP),
]


@st.composite
def poisoned_lines(draw: st.DrawFn) -> bytes:
    """A line of a stream with something wrong in it, or perhaps not."""
    row = draw(st.sampled_from([(1, 2), ("a", 1.5)]))
    table = draw(st.sampled_from(["edge", "named", "other"]))
    op = draw(st.sampled_from("crudt"))
    tx = draw(st.sampled_from([None, "7", "8"]))
    good = [event(op, row, row, table=table, tx=tx), begin("7"), end("7"), end("7", edge=1), end("8", edge=2)]
    good.append(event("r", None, row, table=table, snapshot=draw(st.sampled_from(["first", "true", "last"]))))
    value = json.loads(draw(st.sampled_from(good)))
    for _ in range(draw(st.integers(0, 2))):
        place = value
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
                odd = deepcopy(draw(st.sampled_from(ODD)))  # a later change may go into it
                if isinstance(place, dict) and draw(st.booleans()):
                    del place[key]
                    place[odd if isinstance(odd, str) else repr(odd)[:50]] = inner
                else:
                    place[key] = odd
                break
            place = inner
    data = json.dumps(value).encode()
    if draw(st.booleans()):
        at, cut = draw(st.integers(0, len(data))), draw(st.sampled_from([0, 0, 1, 5]))
        odd_bytes = draw(
            st.sampled_from([b"\xff", b"\0", b"\\ud800", b'"', b"{", b"]", b"9" * 5000, b"NaN", b"\r", b""])
        )
        data = data[:at] + odd_bytes + data[at + cut :]
    return data.replace(b"\n", b" ") + b"\n"


@settings(max_examples=12)
@given(st.lists(poisoned_lines(), max_size=12), st.integers(1, 12))
@example([b'{"op": "c", "source": {"table": "named"}, "after": {"x": "\\ud800", "y": 1}}\n'], 1)
def test_whatever_lines_come_a_stream_goes_on_and_can_be_taken_up(poisoned: list[bytes], cut: int) -> None:
    check_stream(poisoned, cut)


@pytest.mark.deep
@settings(max_examples=1000)
@given(st.lists(poisoned_lines(), max_size=12), st.integers(1, 12))
def test_whatever_many_lines_come_a_stream_goes_on(poisoned: list[bytes], cut: int) -> None:
    check_stream(poisoned, cut)


def check_stream(poisoned: list[bytes], cut: int) -> None:
    """With rejects, all good rows arrive; without, an error says where."""
    with tempfile.TemporaryDirectory() as folder:
        texts: list[bytes] = []
        for number, line in enumerate(poisoned):
            texts += [healthy(number).encode(), line]
        run = Run(Path(folder), *texts, healthy(99))
        database = Database.from_text(PROGRAM)
        rejected = run.follow(database)
        wanted = [(number,) for number in range(len(poisoned))] + [(99,)]
        assert database.view("healthy") == wanted
        again = Database.from_text(PROGRAM)
        (Path(folder) / "again").mkdir()
        parts = Run(Path(folder) / "again", *texts[:cut])
        parts.follow(again)
        parts.add(*texts[cut:], healthy(99))
        parts.follow(again)
        assert again.view("healthy") == wanted
        strict = Database.from_text(PROGRAM)
        if not rejected:
            follow(strict, [str(run.path)], [])
            assert [strict.view(name) for name in strict.relations] == [
                database.view(name) for name in strict.relations
            ]
            return
        told = run.stops(strict)
        assert int(told.partition(":")[0]) in {entry["line"] for entry in rejected}
        assert run.stops(strict) == told


@given(st.binary(max_size=60) | poisoned_lines())
def test_a_line_is_an_entry_or_a_value_error(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        entry = decode(text)
    except ValueError:
        return
    repr(entry)
